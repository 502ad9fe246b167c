// The real clients of AG-UI, as front ends use them: each stores its messages itself and sends all of them.

import { strict as assert } from "node:assert";

/** Warnings that clients have logged. @type {string[]} */
export const complaints = [];
console.warn = (...words) => void complaints.push(words.join(" "));

/**
 * One release of the package `@ag-ui/client`.
 * @typedef {{name: string, module: any, hasInterrupts: boolean}} Release
 */

/** The tested releases: the newest of each line, and one from before interrupts. @type {[string, boolean][]} */
const NAMES = [
  ["ag-ui-0-early", false],
  ["ag-ui-0", true],
  ["ag-ui-1", true],
];

/** @type {Release[]} */
export const RELEASES = await Promise.all(
  NAMES.map(async ([name, hasInterrupts]) => ({ name, hasInterrupts, module: await import(name) })),
);

/** @param {{base: string, token: string}} callboard */
export function address(callboard, agent = "") {
  return {
    url: `${callboard.base}api/agui${agent ? `/${agent}` : ""}`,
    headers: { Authorization: `Bearer ${callboard.token}` },
  };
}

/**
 * A client of a running Callboard.
 * @param {Release} release
 * @param {{base: string, token: string}} callboard
 * @param {{agent?: string, threadId?: string, messages?: any[]}} [options]
 * @returns {any}
 */
export function openAgent({ module }, callboard, { agent, threadId, messages } = {}) {
  return new module.HttpAgent({
    ...address(callboard, agent),
    threadId: threadId ?? crypto.randomUUID(),
    initialMessages: structuredClone(messages ?? []),
  });
}

/**
 * Runs the agent once, and returns its events and its end.
 * @param {any} agent
 * @param {string | any[]} [content] text or parts of a new message
 * @param {object} [parameters] of `runAgent`
 * @returns {Promise<{events: any[], error?: string, failed?: Error, last: any}>}
 */
export async function run(agent, content, parameters = {}) {
  if (content !== undefined) agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  /** @type {any} */
  const outcome = { events: [] };
  await agent
    .runAgent(parameters, {
      onEvent: (/** @type {any} */ { event }) => void outcome.events.push(event),
      onRunErrorEvent: (/** @type {any} */ { event }) => void (outcome.error = event.message),
      onRunFailed: (/** @type {any} */ { error }) => void (outcome.failed = error),
    })
    .catch((/** @type {Error} */ error) => void (outcome.failed ??= error));
  outcome.last = outcome.events.at(-1);
  return outcome;
}

/** Like `run`, but fails on an error. @param {any} agent @param {any} [content] @param {object} [parameters] */
export async function runWell(agent, content, parameters) {
  const outcome = await run(agent, content, parameters);
  assert.equal(outcome.failed, undefined);
  assert.equal(outcome.error, undefined);
  assert.equal(outcome.last.type, "RUN_FINISHED");
  return outcome;
}

/** The stored messages of a conversation, in the client's format. @param {any} callboard @param {string} id */
export async function kept(callboard, id) {
  const { messages } = await callboard.api(`sessions/${id}/messages?format=agui&limit=1000`);
  return messages;
}

/**
 * Both sides have the same messages. Results of tools that the client ran have the client's ids.
 * @param {any} agent @param {any} callboard @param {string[]} [own] calls that the client ran
 */
export async function assertKept(agent, callboard, own = []) {
  const shared = (/** @type {any[]} */ messages) =>
    JSON.parse(JSON.stringify(messages)).map((/** @type {any} */ message) =>
      own.includes(message.toolCallId) ? { ...message, id: "own" } : message,
    );
  assert.deepEqual(shared(agent.messages), shared(await kept(callboard, agent.threadId)));
}

/** All calls of a client's messages. @param {any} agent @returns {any[]} */
export function calls(agent) {
  return agent.messages.flatMap((/** @type {any} */ message) => message.toolCalls ?? []);
}

/** The client's messages of one role. @param {any} agent @param {string} role @returns {any[]} */
export function of(agent, role) {
  return agent.messages.filter((/** @type {any} */ message) => message.role === role);
}

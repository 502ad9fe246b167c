// The parameters of the cases of agents, and their common checks.

import assert from "node:assert/strict";

/** @typedef {Awaited<ReturnType<typeof import("./agents.mjs").startStage>>} Stage */
/** @typedef {Awaited<ReturnType<Stage["open"]>>} Conversation */

/**
 * @typedef {object} Case
 * @property {Stage} stage
 * @property {import("node:test").TestContext} t
 * @property {ReturnType<typeof import("./browser.mjs").useBrowser>} browser
 * @property {(options?: {asks?: boolean}) => Promise<Conversation>} open a new session
 * @property {any} its expected differences of this agent
 * @property {(answer: any) => string[]} outline one line for each part of an answer, in order
 */

/** @typedef {Record<string, (given: Case) => Promise<void>>} Cases */

/** @param {any} part */
export const isSteered = (part) => part.type === "steered";

/**
 * A line for each part of an answer.
 * @param {any} answer @param {Record<string, string>} tools Callboard's names of the agent's tools
 */
export function outline(answer, tools) {
  return answer.parts.map((/** @type {any} */ part) => {
    if (part.type === "text") return `${part.role}: ${part.text}`;
    if (part.type !== "tool_call") return `${part.type}: ${part.text ?? part.raw}`;
    const call = answer.toolCalls.find((/** @type {any} */ it) => it.id === part.id);
    const printed = `${call.output ?? ""}${call.stderr ?? ""}`.trim();
    return [`${tools[call.name] ?? call.name} ${call.state}`, printed].filter(Boolean).join(": ");
  });
}

/** @param {any} answer */
export function exchangeOf(answer) {
  return answer.parts.find((/** @type {any} */ it) => it.type === "exchange");
}

/** The output of a stopped command depends on timing. @param {string} line */
export function withoutOutput(line) {
  return line.replace(/^(shell \w+): [^]*/, "$1");
}

/** @param {any} answer @param {string} reason */
export function assertStopped(answer, reason) {
  const { status, interrupted, cancelReason } = answer;
  assert.deepEqual({ status, interrupted, cancelReason }, { status: "cancelled", interrupted: true, cancelReason: reason });
}

/** Checks that the next message is answered in the same conversation. @param {Conversation} talk @param {string} before @param {Stage} stage */
export async function assertGoesOn(talk, before, stage) {
  const answer = await talk.answerTo("play:recall");
  assert.equal(answer.content, "I remember all of it.");
  assert.ok(stage.models.asked("recall").at(-1)?.includes(before), "the model knows what was said before");
  const linked = (await stage.callboard.events(talk.id)).filter((it) => it.type === "agent_linked");
  assert.ok(new Set(linked.map((it) => it.cliSessionId)).size <= 1, "the program's conversation is the same");
}

/** Checks that everything ends once and nothing is unrecognized. @param {any[]} events */
export function assertAllClosed(events) {
  const count = (/** @type {string} */ type) => events.filter((it) => it.type === type).length;
  for (const [begin, end] of [
    ["run_start", "run_finish"],
    ["step_start", "step_finish"],
    ["text_start", "text_done"],
    ["thinking_start", "thinking_done"],
    ["tool_call_start", "tool_result"],
    ["tool_approval_requested", "tool_approval_resolved"],
  ]) {
    assert.equal(count(end), count(begin), `${end} for each ${begin}`);
  }
  assert.deepEqual(events.filter((it) => it.type === "unrecognized"), []);
}

// The real clients of the AI SDK, without a page around them: each keeps its messages as `useChat` does.

import { strict as assert } from "node:assert";

/**
 * One release of the package `ai`.
 * @typedef {{name: string, module: any, profile: number}} Sdk
 */

/** What is tested: the newest of each major version, and its first. @type {[string, number][]} */
const RELEASES = [
  ["ai-5", 5],
  ["ai-5-first", 5],
  ["ai-6", 6],
  ["ai-6-first", 6],
  ["ai-7", 7],
  ["ai-7-first", 7],
];

/** @type {Sdk[]} */
export const SDKS = await Promise.all(
  RELEASES.map(async ([name, profile]) => ({ name, profile, module: await import(name) })),
);

/** Messages in memory: what React would hold. */
class Memory {
  status = "ready";
  error = undefined;
  /** @param {any[]} messages */
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = (/** @type {any} */ message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (/** @type {number} */ idx, /** @type {any} */ message) =>
    void (this.messages = this.messages.map((it, n) => (n === idx ? structuredClone(message) : it)));
  snapshot = (/** @type {any} */ value) => structuredClone(value);
}

/**
 * A chat with a running Callboard.
 * @param {Sdk} sdk
 * @param {{base: string, token: string}} callboard
 * @param {{id?: string, messages?: any[], agent?: string, body?: object, [option: string]: any}} [options]
 * @returns {any}
 */
export function openChat({ module, profile }, callboard, options = {}) {
  const { agent, body, messages = [], ...rest } = options;
  class Chat extends module.AbstractChat {
    constructor() {
      const transport = new module.DefaultChatTransport({
        api: `${callboard.base}api/chat${agent ? `/${agent}` : ""}`,
        headers: { Authorization: `Bearer ${callboard.token}`, "x-callboard-profile": String(profile) },
        body,
      });
      super({ transport, state: new Memory(messages), ...rest });
    }
  }
  return new Chat();
}

/** What the server keeps of a chat, in the client's words. @param {any} callboard @param {string} id */
export async function kept(callboard, id, profile = 6) {
  const { messages } = await callboard.api(`sessions/${id}/messages?format=ui&profile=${profile}`);
  return messages;
}

/**
 * What both sides must agree on. The client has no metadata of what it said itself; it also keeps how
 * arguments looked while they came.
 * @param {any[]} messages
 */
export function shared(messages) {
  return JSON.parse(JSON.stringify(messages)).map((/** @type {any} */ message) => {
    if (message.role === "user") delete message.metadata;
    for (const part of message.parts) {
      delete part.rawInput;
      if (part.type === "reasoning") delete part.id;
    }
    return message;
  });
}

/** Both sides have the same messages. @param {any} chat @param {any} callboard @param {Sdk} sdk */
export async function assertKept(chat, callboard, { profile }) {
  assert.deepEqual(shared(chat.messages), shared(await kept(callboard, chat.id, profile)));
}

/** The parts of the last message, by their type. @param {any} chat @returns {any[]} */
export function parts(chat, type = "") {
  return chat.messages.at(-1).parts.filter((/** @type {any} */ part) => part.type.startsWith(type));
}

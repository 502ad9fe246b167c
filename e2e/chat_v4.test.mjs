// Version 4 of the AI SDK: what its `useChat` calls, against a running Callboard.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { callChatApi } from "@ai-sdk/ui-utils";

import { kept } from "./ai_sdk.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";

/** @type {Awaited<ReturnType<typeof startCallboard>>} */
let callboard;
/** @type {() => Promise<void>} */
let end = async () => {};
before(async () => {
  callboard = await startCallboard({ after: (it) => void (end = it) });
});
after(() => end());

let count = 0;

/** A chat that keeps its messages as `useChat` does. */
class Chat {
  id = `v4-${process.pid}-${(count += 1)}`;
  /** @type {any[]} */
  messages = [];

  /** @param {typeof callboard} server @param {object} [body] */
  constructor(server, body) {
    this.server = server;
    this.body = body;
  }

  /** @param {string} text */
  async send(text) {
    this.messages.push({ id: `said-${this.messages.length}`, role: "user", content: text, parts: [{ type: "text", text }] });
    await this.ask();
  }

  /** Sends what there is. @param {"generate" | "resume"} [requestType] */
  async ask(requestType = "generate") {
    const messages = this.messages;
    await callChatApi({
      api: `${this.server.base}api/chat/v4${requestType === "resume" ? "" : "/demo"}`,
      body: { id: this.id, messages: messages.map(({ role, content, parts }) => ({ role, content, parts })), ...this.body },
      streamProtocol: "data",
      credentials: undefined,
      headers: { Authorization: `Bearer ${this.server.token}` },
      abortController: undefined,
      restoreMessagesOnFailure: () => {},
      onResponse: undefined,
      onUpdate: ({ message, replaceLastMessage }) => {
        this.messages = [...(replaceLastMessage ? messages.slice(0, -1) : messages), structuredClone(message)];
      },
      onFinish: undefined,
      onToolCall: undefined,
      generateId: () => "made",
      fetch: undefined,
      lastMessage: messages.at(-1),
      requestType,
    });
  }

  get last() {
    return this.messages.at(-1);
  }
}

/** @type {[string, string, RegExp][]} */
const ANSWERS = [
  ["text", "hello", /demo agent/],
  ["reasoning", "think about breakfast", /breakfast/],
  ["a tool", "what time is it in Paris?", /Paris/],
  ["parallel tools", "what time is it in Paris and Tokyo?", /Tokyo/],
  ["a tool's error", "read nowhere.txt", /nowhere/],
];
for (const [name, text, pattern] of ANSWERS) {
  test(`ai-4: ${name}`, async () => {
    const chat = new Chat(callboard);
    await chat.send(text);
    assert.match(chat.last.content, pattern);
    const { messages } = await callboard.api(`sessions/${chat.id}/messages?format=ui-v4&order=asc`);
    assert.equal(messages.at(-1).id, chat.last.id);
    const kinds = (/** @type {any} */ message) => message.parts.map((/** @type {any} */ part) => part.type);
    assert.deepEqual(kinds(chat.last).filter((/** @type {string} */ it) => it !== "step-start"), kinds(messages.at(-1)).filter((/** @type {string} */ it) => it !== "step-start"));
  });
}

test("ai-4: an error of the agent", async () => {
  const chat = new Chat(callboard);
  await assert.rejects(chat.send("break"), /broke off/);
});

test("ai-4: a tool of the client", async () => {
  const chat = new Chat(callboard, { tools: { pick: { parameters: { type: "object" } } } });
  await chat.send("use the client tool pick");
  const call = chat.last.parts.find((/** @type {any} */ it) => it.type === "tool-invocation");
  assert.equal(call.toolInvocation.state, "call");
  Object.assign(call.toolInvocation, { state: "result", result: "teal" });
  await chat.ask();
  assert.match(chat.last.content, /teal/);
  assert.equal(chat.messages.length, 2);
  const [, answer] = await kept(callboard, chat.id);
  assert.match(JSON.stringify(answer.parts), /"output":"teal"/);
});

test("ai-4: a chat is resumed while it is told, and there is nothing to resume when it is idle", async (t) => {
  const slow = await startCallboard(t, { config: NATURAL });
  const chat = new Chat(slow);
  const told = chat.send("tell me a story");
  await until(async () => chat.messages.length === 2);
  const again = new Chat(slow);
  again.id = chat.id;
  const resumed = fetch(`${slow.base}api/chat/v4?chatId=${chat.id}`, { headers: { Authorization: `Bearer ${slow.token}` } });
  const first = await (await resumed).body?.getReader().read();
  assert.match(new TextDecoder().decode(first?.value), /^f:/);
  await slow.api(`sessions/${chat.id}/cancel`, { method: "POST" });
  await told;
  const idle = await fetch(`${slow.base}api/chat/v4?chatId=${chat.id}`, { headers: { Authorization: `Bearer ${slow.token}` } });
  assert.deepEqual([idle.status, await idle.text()], [200, ""]);
});

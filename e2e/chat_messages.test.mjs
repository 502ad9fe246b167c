// Stored messages in the AI SDK's format: of the demo agent's sessions at every
// moment, and of the messages of a request. `chat_recorded.test.mjs` has those of other agents.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { kept, release } from "./ai_sdk.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { runsOnPinnedNode } from "./pinned_node.mjs";

const FIXTURES = new URL("../crates/formats/fixtures/", import.meta.url);
const SAID = ["What time is it in Paris and Tokyo?", "think about lighthouses, then write a report about them", "break", "run echo hi > made.txt"];

/** @param {string} path @returns {any[]} */
function readLines(path) {
  return readFileSync(new URL(path, FIXTURES), "utf8").trim().split("\n").map((it) => JSON.parse(it));
}

/**
 * A call after its import: an open call is cut off, and a denied one has ended.
 * @param {any} part @param {number} profile
 */
function over(part, profile) {
  const { approval, ...call } = part;
  if (part.state === "approval-responded" && !approval.approved) {
    return profile === 5 ? { ...call, state: "output-error", errorText: approval.reason } : { ...part, state: "output-denied" };
  }
  const isOpen = ["input-streaming", "input-available", "approval-requested"].includes(part.state);
  return isOpen ? { ...call, state: "output-error", errorText: BROKEN_OFF } : part;
}

const BROKEN_OFF = "The call had no result when the conversation was written down.";

/** Messages without the ids of approvals, which the server assigns. @param {unknown} messages */
function plain(messages) {
  return JSON.parse(JSON.stringify(messages, (key, value) => (key === "approvalId" ? undefined : value)));
}

if (await runsOnPinnedNode(import.meta.url)) {
  const releases = await Promise.all(["ai-5", "ai-6", "ai-7"].map(release));
  /** @type {Awaited<ReturnType<typeof startCallboard>>} */
  let callboard;
  /** @type {() => Promise<void>} */
  let end = async () => {};
  before(async () => {
    callboard = await startCallboard({ after: (it) => void (end = it) });
  });
  after(() => end());

  test("every prefix of a demo conversation is valid", async (t) => {
    const { id } = await callboard.api("sessions", { body: { agent: "demo" } });
    for (const text of SAID) await callboard.api(`sessions/${id}/messages`, { body: { text } });
    const hasAsked = (/** @type {any} */ { type }) => type === "tool_approval_requested";
    await until(async () => (await callboard.events(id)).some(hasAsked));
    const records = await callboard.events(id);
    for (const length of records.keys()) {
      const prefix = `prefix-${length}`;
      const log = records.slice(0, length + 1).map((it, idx) => ({ ...it, seq: idx + 1, sessionId: prefix }));
      await callboard.importLog(prefix, log);
      for (const { module, profile } of releases) {
        const messages = await kept(callboard, prefix, profile);
        if (messages.length > 0) await module.validateUIMessages({ messages });
        await module.convertToModelMessages(messages);
      }
    }
    const { messages } = await callboard.api(`sessions/prefix-${records.length - 1}/messages?format=ui`);
    assert.equal(messages.length, 2 * SAID.length, "the last prefix is all of it");
    assert.ok(records.length > 40, `${records.length} prefixes`);
    t.diagnostic(`${records.length} prefixes`);
  });

  test("imported chats convert to the same model messages", async (t) => {
    for (const { name, messages, releases: seen } of readLines("ui/converted.jsonl")) {
      await t.test(name, async () => {
        for (const { name: by, module, profile } of releases) {
          const id = `${name}-${by}`;
          const message = { role: "user", parts: [{ type: "text", text: "hello" }] };
          const headers = { Authorization: `Bearer ${callboard.token}` };
          const body = JSON.stringify({ id, messages: [...messages, message] });
          await (await fetch(`${callboard.base}api/chat`, { method: "POST", headers, body })).text();
          const imported = (await kept(callboard, id, profile)).slice(0, -2);
          const converted = plain(await module.convertToModelMessages(imported));
          const ended = messages.map((/** @type {any} */ it) => ({ ...it, parts: it.parts.map((/** @type {any} */ part) => over(part, profile)) }));
          assert.deepEqual(converted, plain(await module.convertToModelMessages(ended)), by);
          const isOver = JSON.stringify(ended) === JSON.stringify(messages);
          if (isOver) assert.deepEqual(converted, plain(seen[by] ?? seen["ai-7"]), by);
        }
      });
    }
  });
}

// Stored messages in the AI SDK's words, as the server gives them out: of the demo agent's sessions at every
// moment, and of what a chat brought along. `chat_recorded.test.mjs` has those of other agents.

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

/** Where the log says more than a client does: a call without a result has broken off, and it is we who ran it. */
const WRITTEN_DOWN = new Set([
  "convert-approval-denied",
  "convert-approval-requested-last",
  "convert-approval-requested-then-user",
  "convert-tool-input-available-pending",
  "convert-tool-input-streaming",
  "convert-provider-executed",
]);

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

  test("every prefix of what the demo agent does is valid", async (t) => {
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
    t.diagnostic(`${records.length} prefixes`);
  });

  test("what a chat brings along is kept as a model was told it", async (t) => {
    for (const { name, messages, releases: seen } of readLines("ui/converted.jsonl")) {
      if (WRITTEN_DOWN.has(name)) continue;
      await t.test(name, async () => {
        for (const { name: by, module, profile } of releases) {
          const id = `${name}-${by}`;
          const said = { role: "user", parts: [{ type: "text", text: "hello" }] };
          const headers = { Authorization: `Bearer ${callboard.token}` };
          const body = JSON.stringify({ id, messages: [...messages, said] });
          await (await fetch(`${callboard.base}api/chat`, { method: "POST", headers, body })).text();
          const brought = (await kept(callboard, id, profile)).slice(0, -2);
          // What a provider has signed is its own: it is not kept.
          const plain = (/** @type {unknown} */ it) =>
            JSON.parse(JSON.stringify(it, (key, value) => (key === "providerOptions" ? undefined : value)));
          const told = await module.convertToModelMessages(brought);
          assert.deepEqual(plain(told), plain(seen[by] ?? seen["ai-7"]), by);
        }
      });
    }
  });
}

// Stored messages in the AI SDK's words: whatever a session looks like at any moment, the real packages take
// it, check it, and make a model's messages of it. So do they take every chunk that is ever sent.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { convertToCoreMessages } from "ai-4";

import { kept, release } from "./ai_sdk.mjs";
import { startCallboard } from "./callboard.mjs";
import { runsOnPinnedNode } from "./pinned_node.mjs";

/** @typedef {Awaited<ReturnType<typeof release>>} Release */

const CRATES = new URL("../crates/", import.meta.url);
const LOGS = ["render/fixtures/", "transcript/fixtures/", "backends/fixtures/logs/"];

/** @param {string} path @returns {any[]} */
function readLines(path) {
  const lines = readFileSync(new URL(path, CRATES), "utf8").trim().split("\n");
  return lines.map((it) => JSON.parse(it));
}

/** A call without a result. @param {any[]} messages */
function hasOpenCall(messages) {
  const isOpen = (/** @type {any} */ { state, toolInvocation }) =>
    state?.startsWith("input-") || (toolInvocation && toolInvocation.state !== "result");
  return messages.some(({ parts }) => parts.some(isOpen));
}

/** Some releases lack the first function, and 5.0.0 makes nothing of an open call. @param {Release} release @param {any[]} messages */
async function takes({ name, module }, messages) {
  try {
    await module.validateUIMessages?.({ messages });
    if (!(name === "ai-5-first" && hasOpenCall(messages))) await module.convertToModelMessages(messages);
  } catch (error) {
    assert.fail(`${name} refuses ${JSON.stringify(messages)}: ${error}`);
  }
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

/** @param {number} profile */
const of = (profile) => (/** @type {{profile: number}} */ it) => it.profile === profile;

if (await runsOnPinnedNode(import.meta.url)) {
  const releases = await Promise.all(["ai-5", "ai-5-first", "ai-6", "ai-6-first", "ai-7", "ai-7-first"].map(release));
  /** @type {Awaited<ReturnType<typeof startCallboard>>} */
  let callboard;
  /** @type {() => Promise<void>} */
  let end = async () => {};
  before(async () => {
    callboard = await startCallboard({ after: (it) => void (end = it) });
  });
  after(() => end());

  test("every prefix of a recorded session is valid", async (t) => {
    const paths = LOGS.flatMap((folder) => readdirSync(new URL(folder, CRATES)).map((name) => folder + name));
    let count = 0;
    for (const path of paths.filter((it) => it.endsWith(".jsonl"))) {
      const name = path.split("/").at(-1)?.replace(".jsonl", "");
      await t.test(`${name}`, async () => {
        const records = readLines(path);
        for (let length = 1; length <= records.length; length += 1) {
          count += 1;
          await checkPrefix(`${name}-${length}`, records.slice(0, length));
        }
      });
    }
    t.diagnostic(`${count} prefixes`);
    assert.ok(count > 1000, `${count} prefixes`);
  });

  /** @param {string} id @param {object[]} records */
  async function checkPrefix(id, records) {
    await callboard.importLog(id, records.map((it, idx) => ({ ...it, seq: idx + 1, sessionId: id })));
    for (const profile of [5, 6, 7]) {
      const messages = await kept(callboard, id, profile);
      if (messages.length === 0) continue;
      for (const release of releases.filter(of(profile))) await takes(release, messages);
    }
    const messages = await kept(callboard, id, 4);
    if (!hasOpenCall(messages)) convertToCoreMessages(messages);
  }

  test("every shape of a message in any recording is valid", async () => {
    const shapes = readLines("backends/fixtures/ui_messages.jsonl");
    for (const release of releases) {
      // What 7 is told, 6 is told as well.
      const told = shapes.filter(of(Math.min(release.profile, 6)));
      assert.ok(told.length > 50);
      for (const { message } of told) await takes(release, [message]);
    }
  });

  test("every shape of a chunk in any recording is taken", async () => {
    const shapes = readLines("backends/fixtures/ui_chunks.jsonl");
    for (const { name, module, profile } of releases) {
      const told = shapes.filter(of(profile)).map(({ chunk }) => chunk);
      assert.ok(told.length > 20);
      const body = told.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
      const transport = new module.DefaultChatTransport({ fetch: async () => new Response(body) });
      const chunks = await transport.sendMessages({ chatId: "x", messages: [], trigger: "submit-message" });
      const taken = [];
      for await (const chunk of chunks) taken.push(chunk);
      assert.deepEqual(taken, told, name);
    }
  });

  test("what a chat brings along is kept as a model was told it", async (t) => {
    for (const { name, messages, releases: seen } of readLines("formats/fixtures/ui/converted.jsonl")) {
      if (WRITTEN_DOWN.has(name)) continue;
      await t.test(name, async () => {
        for (const { name: by, module, profile } of releases.filter(({ isFirst }) => !isFirst)) {
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

// Stored messages in the AI SDK's words: whatever a session looks like at any moment, the real packages take
// it, check it, and make a model's messages of it.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { SDKS, kept } from "./ai_sdk.mjs";
import { startCallboard } from "./callboard.mjs";

const CRATES = new URL("../crates/", import.meta.url);
const FOLDERS = ["render/fixtures/", "transcript/fixtures/", "backends/fixtures/logs/"];

/** @type {Awaited<ReturnType<typeof startCallboard>>} */
let callboard;
/** @type {() => Promise<void>} */
let end = async () => {};
before(async () => {
  callboard = await startCallboard({ after: (it) => void (end = it) });
});
after(() => end());

/** Sessions that were recorded, each as its records. @type {[string, object[]][]} */
const RECORDED = FOLDERS.flatMap((folder) => {
  const names = readdirSync(new URL(folder, CRATES)).filter((it) => it.endsWith(".jsonl"));
  return names.map((name) => {
    const lines = readFileSync(new URL(folder + name, CRATES), "utf8").trim().split("\n");
    return /** @type {[string, object[]]} */ ([name.replace(".jsonl", ""), lines.map((it) => JSON.parse(it))]);
  });
});

/** A call without a result, of which 5.0.0 makes no messages. @param {any[]} messages */
function hasOpenCall(messages) {
  return messages.some(({ parts }) => parts.some((/** @type {any} */ { state }) => state?.startsWith("input-")));
}

for (const [name, records] of RECORDED) {
  test(`every prefix of ${name} is valid`, async () => {
    for (let length = 1; length <= records.length; length += 1) {
      const id = `${name}-${length}`;
      const prefix = records.slice(0, length).map((it, idx) => ({ ...it, seq: idx + 1, sessionId: id }));
      await callboard.importLog(id, prefix);
      for (const profile of [5, 6, 7]) {
        const messages = await kept(callboard, id, profile);
        if (messages.length === 0) continue;
        for (const { name, module } of SDKS.filter((it) => it.profile === profile)) {
          try {
            await module.validateUIMessages?.({ messages });
            if (!(name === "ai-5-first" && hasOpenCall(messages))) await module.convertToModelMessages(messages);
          } catch (error) {
            assert.fail(`${name} refuses ${JSON.stringify(messages)}: ${error}`);
          }
        }
      }
    }
  });
}

// Recorded sessions in AG-UI's real clients: for every end of the log, they accept all events and have
// the stored messages, also after they reconnect.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { RELEASES, complaints, kept, openAgent, run } from "./ag_ui.mjs";
import { startCallboard, until } from "./callboard.mjs";

const CRATES = new URL("../crates/", import.meta.url);
const FOLDERS = ["render/fixtures/", "transcript/fixtures/", "backends/fixtures/logs/"];
/** Number of prefixes of each log, besides the whole log. */
const CUTS = 4;

/** @type {Awaited<ReturnType<typeof startCallboard>>} */
let callboard;
/** @type {() => Promise<void>} */
let end = async () => {};
before(async () => {
  callboard = await startCallboard({ after: (it) => void (end = it) });
});
after(() => end());

/** @type {[string, any[]][]} */
const RECORDED = FOLDERS.flatMap((folder) => {
  const names = readdirSync(new URL(folder, CRATES)).filter((it) => it.endsWith(".jsonl"));
  return names.map((name) => {
    const lines = readFileSync(new URL(folder + name, CRATES), "utf8").trim().split("\n");
    return /** @type {[string, any[]]} */ ([name.replace(".jsonl", ""), lines.map((it) => JSON.parse(it))]);
  });
});

/** A session with a prefix of the log, with the client's ids of messages. */
async function sessionUpTo(/** @type {any[]} */ records, /** @type {number} */ length, /** @type {string} */ id) {
  const prefix = records.slice(0, length).map((it, idx) => ({
    ...it,
    seq: idx + 1,
    sessionId: id,
    ...(it.type === "user_message" ? { clientId: it.messageId } : {}),
    ...(it.type === "session_created" ? { agent: "demo" } : {}),
  }));
  await callboard.importLog(id, prefix);
}

/** Messages without the form of files, which differs between versions. @param {any[]} messages */
function shared(messages) {
  const content = (/** @type {any} */ it) => (Array.isArray(it) ? it.map(({ text }) => text ?? "a file") : it);
  return JSON.parse(JSON.stringify(messages.map((it) => ({ ...it, content: content(it.content) }))));
}

for (const [name, records] of RECORDED) {
  test(`clients accept every prefix of ${name}`, async () => {
    const lengths = Array.from({ length: CUTS + 1 }, (_, n) => Math.ceil((records.length * (n + 1)) / (CUTS + 1)));
    for (const length of new Set(lengths)) {
      const is = (/** @type {string} */ kind) => (/** @type {any} */ { type }) => type === kind;
      const prefix = records.slice(0, length);
      const message = prefix.findLast(is("user_message"));
      // A message without a run would be answered later, but not in this test.
      if (message === undefined || prefix.findLastIndex(is("run_start")) < prefix.indexOf(message)) continue;
      for (const release of RELEASES) {
        const id = `${name}-${length}-${release.name}`;
        await sessionUpTo(records, length, id);
        if ((await callboard.api(`sessions/${id}/queue`)).messages.length > 0) continue;
        const agent = openAgent(release, callboard, { threadId: id });
        agent.addMessage({ id: message.messageId, role: "user", content: message.text || "(nothing)" });
        const outcome = await run(agent);
        assert.equal(outcome.failed, undefined, `${release.name} at ${length}`);
        await until(async () => (await callboard.api(`sessions/${id}`)).state !== "running");
        const had = agent.messages.slice(0, -1);
        const again = openAgent(release, callboard, { threadId: id, messages: had.length > 1 ? had : agent.messages });
        assert.equal((await run(again)).failed, undefined, `${release.name} at ${length}, again`);
        assert.deepEqual(shared(again.messages), shared(await kept(callboard, id)), `${release.name} at ${length}`);
      }
    }
    assert.deepEqual(complaints, []);
  });
}

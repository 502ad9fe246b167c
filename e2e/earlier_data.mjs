// Creates a data folder for tests of later versions, which must read and show its content as
// this version does. `crates/callboard/tests/it/store/earlier_data.rs` is the test.
//
//     CALLBOARD_BIN=target/release/callboard node e2e/earlier_data.mjs NAME
//
// Writes crates/callboard/fixtures/data/NAME: the database, and for each session its records, its messages and its page
// as this version returns them. Created once for each version.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";

import { startCallboard, until } from "./callboard.mjs";

const root = path.join(import.meta.dirname, "..");
const folder = path.join(root, "crates/callboard/fixtures/data", process.argv[2] ?? assert.fail("name it"));
const LOGS = ["approval", "exchange", "failed", "odd", "stopped", "subagent", "thinking", "tools", "words"];
const CONVERSATIONS = { claude: "claude/two-turns.jsonl", codex: "codex/app-tools.jsonl", pi: "pi/0.73/tools.jsonl" };

/** @type {(() => Promise<void>)[]} */
const ends = [];
const config = ['demo.pace = "instant"', '[[agents]]\nid = "demo"\nkind = "demo"', '[[agents]]\nid = "b"\nkind = "demo"'].join("\n");
const callboard = await startCallboard({ after: (end) => void ends.push(end) }, { config, files: { "README.md": "A token.\n" } });
try {
  await fill();
  await mkdir(folder, { recursive: true });
  const headers = { Authorization: `Bearer ${callboard.token}` };
  /** @param {string} file @param {string} address @param {(text: string) => string} [part] */
  const keep = async (file, address, part = (text) => text) => {
    const response = await fetch(callboard.base + address, { headers });
    assert.equal(response.status, 200, address);
    await writeFile(path.join(folder, file), part(await response.text()));
  };
  // Without the style, which is as large as all pages and changes with every version.
  const body = (/** @type {string} */ html) => html.slice(html.indexOf("<body"));
  const { sessions } = await callboard.api("sessions?limit=100");
  const ids = sessions.map((/** @type {any} */ it) => it.id);
  for (const id of ids) {
    await keep(`${id}.jsonl`, `api/sessions/${id}/export?format=jsonl`);
    await keep(`${id}.json`, `api/sessions/${id}/messages?limit=1000`);
    await keep(`${id}.html`, `api/sessions/${id}/export?format=html`, body);
  }
  callboard.command(["backup", path.join(folder, "callboard.db")]);
  console.log(`${ids.length} sessions in ${path.relative(root, folder)}`);
} finally {
  for (const end of ends) await end();
}

/** Sessions with everything that a log can hold. */
async function fill() {
  await callboard.converse("what time is it in Paris and Tokyo?", "read missing.txt", "break");
  await callboard.converse("think about lighthouses, then write a report about them");
  await callboard.converse("ask b: time in Lima");
  const archived = await callboard.converse("list the files, then read README.md and search for token");
  await callboard.api(`sessions/${archived}`, { method: "PATCH", body: { archived: true, title: "Put away" } });
  await decide("write hello to note.txt", { decision: "accepted", scope: "session" });
  await decide("run touch made", { decision: "rejected", feedback: "Not now." });
  await decide("write hello to other.txt", { decision: "accepted", scope: "always" });
  for (const name of LOGS) {
    const text = await readFile(path.join(root, `crates/render/fixtures/${name}.jsonl`), "utf8");
    const response = await bring(`id=log-${name}`, text);
    assert.equal(response.status, 201, `${name}: ${await response.text()}`);
  }
  for (const [format, file] of Object.entries(CONVERSATIONS)) {
    const text = await readFile(path.join(root, "crates/backends/fixtures/import", file), "utf8");
    const response = await bring(`id=from-${format}&format=${format}`, text);
    assert.equal(response.status, 201, `${format}: ${await response.text()}`);
  }
}

/** @param {string} query @param {string} body */
function bring(query, body) {
  const headers = { Authorization: `Bearer ${callboard.token}` };
  return fetch(`${callboard.base}api/sessions/import?${query}`, { method: "POST", headers, body });
}

/** @param {string} text @param {object} decision */
async function decide(text, decision) {
  const { id } = await callboard.api("sessions", { body: { agent: "demo" } });
  await callboard.api(`sessions/${id}/messages`, { body: { text } });
  /** @type {any} */
  let asked;
  await until(async () => (asked = (await callboard.events(id)).find((it) => it.type === "tool_approval_requested")) !== undefined);
  await callboard.api(`sessions/${id}/calls/${asked.callId}/approval`, { body: decision });
  await until(async () => (await callboard.api(`sessions/${id}`)).state === "idle");
}

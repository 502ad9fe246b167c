// Measures searches, imports and exports, and how long other requests wait meanwhile.
//
//     CALLBOARD_BIN=target/release/callboard node bench/store/costs.mjs [search] [import] [export]
//
// By default, all three are measured. TURNS="8000 33333" and DELTAS=1000000 are the sizes.

import { logLines, longLog } from "../../e2e/callboard.mjs";
import { withCallboard } from "../page/server.mjs";

/** @typedef {import("../page/server.mjs").Callboard} Callboard */

const OUTPUTS = 40;
const OUTPUT_BYTES = 900_000;
const TURNS = (process.env.TURNS ?? "8000 33333").split(" ").map(Number);
const DELTAS = Number(process.env.DELTAS ?? 1_000_000);

/** @type {Record<string, (callboard: Callboard) => Promise<void>>} */
const FIGURES = { search, import: importing, export: exporting };

const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(FIGURES)) {
  await withCallboard({}, FIGURES[name]);
}

/** @param {Callboard} callboard */
async function search(callboard) {
  await callboard.importLog("outputs", outputs());
  // The first search also builds the index.
  tell("index of 40 outputs of 0.9 MB", await seconds(() => find(callboard, "nowhere")));
  for (const word of ["thread", "warning", "t"]) {
    tell(`search for ${word}`, await seconds(() => find(callboard, word)));
  }
  const searches = Array.from({ length: 4 }, () => seconds(() => find(callboard, "t")));
  const isOver = Promise.all(searches);
  const waits = await whileRunning(isOver, () => callboard.api("sessions/outputs/events?limit=1"));
  tell("4 searches for t in parallel, each", Math.max(...(await isOver)));
  tell("  longest GET events beside them", Math.max(...waits));
}

/** @param {Callboard} callboard */
async function importing(callboard) {
  const { id: other } = await callboard.api("sessions", { body: { agent: "demo" } });
  for (const turns of TURNS) {
    const lines = logLines(`turns-${turns}`, longLog(2 * turns));
    const imported = seconds(() => post(callboard, lines));
    let n = 0;
    const patch = () => callboard.api(`sessions/${other}`, { method: "PATCH", body: { title: `${(n += 1)}` } });
    const waits = await whileRunning(imported, patch);
    tell(`import of ${turns} turns (${Math.round(lines.length / 1e6)} MB)`, await imported);
    tell("  longest write of another session", Math.max(...waits));
  }
}

/** @param {Callboard} callboard */
async function exporting(callboard) {
  tell(`import of ${DELTAS} deltas`, await seconds(() => post(callboard, deltas())));
  const path = "sessions/deltas/export?format=jsonl";
  tell("export before folding", await seconds(() => text(callboard, path)));
  // Folding begins when nothing has been written for a moment.
  await new Promise((resume) => setTimeout(resume, Number(process.env.FOLD_MS ?? 20_000)));
  tell("export after folding", await seconds(() => text(callboard, path)));
  const page = `sessions/deltas/events?deltas=1&limit=1000&after=${Math.round(DELTAS / 2)}`;
  tell("one page of 1,000 deltas", await seconds(() => text(callboard, page)));
}

/** A session of command outputs such as those of compilers and tests. */
function outputs() {
  const responseId = "r0";
  const run = { responseId };
  /** @type {object[]} */
  const log = [
    { type: "session_created", agent: "demo", title: "Outputs" },
    { type: "user_message", messageId: "m0", text: "Run them" },
    { type: "run_start", ...run, agent: "demo", trigger: "user" },
  ];
  for (let idx = 0; idx < OUTPUTS; idx += 1) {
    const callId = `c${idx}`;
    let output = "";
    for (let line = 0; output.length < OUTPUT_BYTES; line += 1) {
      output += `warning: thread worker-${line % 97} took ${line} ms in test case_${(line * 31) % 1009}\n`;
    }
    log.push(
      { type: "tool_call_start", ...run, callId, toolName: "shell", executor: "server" },
      { type: "tool_arguments_done", ...run, callId, arguments: `{"command":"make ${idx}"}`, valid: true },
      { type: "tool_result", ...run, callId, toolName: "shell", ok: true, output },
    );
  }
  log.push({ type: "run_finish", ...run, status: "completed", durationMs: 1 });
  return log;
}

function deltas() {
  const responseId = "r0";
  const part = { responseId, partId: "r0.0" };
  const log = [
    { type: "session_created", agent: "demo", title: "Deltas" },
    { type: "user_message", messageId: "m0", text: "Go on" },
    { type: "run_start", responseId, agent: "demo", trigger: "user" },
    { type: "text_start", ...part },
    ...Array.from({ length: DELTAS }, (_, idx) => ({ type: "text_delta", ...part, delta: `w${idx % 997} ` })),
    { type: "text_done", ...part, text: Array.from({ length: DELTAS }, (_, idx) => `w${idx % 997} `).join("") },
    { type: "run_finish", responseId, status: "completed", durationMs: 1 },
  ];
  return logLines("deltas", log);
}

/** @param {Callboard} callboard @param {string} word */
function find(callboard, word) {
  return callboard.api(`search?q=${word}&limit=50`);
}

/** @param {Callboard} callboard @param {string} body */
async function post({ base, token }, body) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(`${base}api/sessions/import`, { method: "POST", headers, body });
  if (response.status !== 201) throw new Error(await response.text());
  await response.text();
}

/** @param {Callboard} callboard @param {string} path */
async function text({ base, token }, path) {
  const response = await fetch(`${base}api/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(await response.text());
  return response.text();
}

/**
 * Durations of sequential requests during an action.
 * @param {Promise<unknown>} other @param {() => Promise<unknown>} request
 */
async function whileRunning(other, request) {
  let isOver = false;
  void other.finally(() => (isOver = true));
  const waits = [];
  do waits.push(await seconds(request));
  while (!isOver);
  return waits;
}

/** @param {() => Promise<unknown>} act */
async function seconds(act) {
  const began = performance.now();
  await act();
  return (performance.now() - began) / 1e3;
}

/** @param {string} what @param {number} value */
function tell(what, value) {
  console.log(`${what}: ${value < 1 ? `${(value * 1e3).toFixed(0)} ms` : `${value.toFixed(1)} s`}`);
}

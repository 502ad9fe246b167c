// Load measurements: an answer with a million unreadable lines, long messages, a program that floods,
// wrong passwords. Prints a table; fails if a limit is exceeded.
//
//   CALLBOARD_BIN=target/release/callboard node e2e/load.mjs [lines]
//
// LOAD_ONLY=lines,words,flood,passwords selects scenarios; LOAD_BOUNDS=off only measures, for an older version.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import http from "node:http";
import path from "node:path";

import { INSTANT, startCallboard, until } from "./callboard.mjs";

const LINES = Number(process.argv[2] ?? 1_000_000);
const MB = 1_000_000;
const only = process.env.LOAD_ONLY?.split(",");
const isBounded = process.env.LOAD_BOUNDS !== "off";
/** @type {Record<string, string | number>[]} */
const table = [];

/** @typedef {Awaited<ReturnType<typeof startCallboard>>} Callboard */

/** @param {string} what @param {string | number} figure @param {boolean} [isWithin] */
function note(what, figure, isWithin = true) {
  table.push({ what, figure });
  console.log(`${what}: ${figure}${isWithin ? "" : "  <-- too much"}`);
  if (isBounded) assert.ok(isWithin, `${what}: ${figure}`);
}

/**
 * Runs a scenario in a network namespace of its own, whose loopback interface has the addresses 10.77.0.0/24 too. Needs
 * root, for making the namespace.
 * @param {string} scenario
 */
function inNamespace(scenario) {
  const setUp = 'ip link set lo up && ip addr add 10.77.0.1/24 dev lo && exec "$0" "$@"';
  const env = { ...process.env, LOAD_NAMESPACE: "1", LOAD_ONLY: scenario };
  const args = ["--net", "sh", "-c", setUp, process.execPath, ...process.argv.slice(1)];
  const { status } = spawnSync("unshare", args, { env, stdio: "inherit" });
  assert.equal(status, 0, `${scenario} in a network namespace`);
}

/** Resident memory in MB, current or peak. @param {Callboard} callboard @param {"VmRSS" | "VmHWM"} [which] */
function memory({ pid }, which = "VmRSS") {
  const line = new RegExp(`${which}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Math.round((Number(line?.[1]) * 1024) / MB);
}

/** @param {Callboard} callboard @param {string} url */
async function get({ base, token }, url) {
  const began = performance.now();
  const response = await fetch(base + url, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(response.status, 200, url);
  let bytes = 0;
  for await (const piece of /** @type {any} */ (response.body)) bytes += piece.length;
  return { bytes, seconds: (performance.now() - began) / 1000 };
}

/** The longest time of `/healthz` during an action. @param {Callboard} callboard @param {Promise<unknown>} work */
async function health({ base }, work) {
  let longest = 0;
  let isOver = false;
  void work.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) {
    const began = performance.now();
    await (await fetch(`${base}healthz`)).text();
    longest = Math.max(longest, performance.now() - began);
    await new Promise((resume) => setTimeout(resume, 10));
  }
  await work;
  return Math.round(longest);
}

/** Memory is released gradually, and only where there is activity. @param {Callboard} callboard */
async function settle(callboard) {
  for (let n = 0; n < 50; n += 1) {
    await get(callboard, "api/agents");
    await new Promise((resume) => setTimeout(resume, 100));
  }
}

/** A log in the form of the previous version, with a record for every line, in pieces. */
function* oldLog(lines = LINES) {
  const at = "2026-11-15T18:44:28.123Z";
  const first = [
    { type: "session_created", agent: "claude" },
    { type: "user_message", messageId: "m1", text: "hello" },
    { type: "run_start", responseId: "r1", agent: "claude", trigger: "user" },
  ];
  const write = (/** @type {object} */ record, /** @type {number} */ seq) =>
    `${JSON.stringify({ seq, at, sessionId: "old", ...record })}\n`;
  yield first.map((record, idx) => write(record, idx + 1)).join("");
  const raw = "garbage that nobody can read, as long as the lines of the program that did this to us ".padEnd(100, ".");
  for (let from = 0; from < lines; from += 1000) {
    const some = Array.from({ length: Math.min(1000, lines - from) }, (_, idx) =>
      write({ responseId: "r1", type: "unrecognized", source: "claude", raw: `${from + idx} ${raw}` }, 4 + from + idx));
    yield some.join("");
  }
  yield write({ responseId: "r1", type: "run_finish", status: "completed", durationMs: 1 }, 4 + lines);
}

const scenarios = {
  /** @param {any} scope */
  async lines(scope) {
    const callboard = await startCallboard(scope, { config: INSTANT });
    note("idle: RSS (MB)", memory(callboard));
    const imported = await fetch(`${callboard.base}api/sessions/import`, {
      method: "POST",
      headers: { Authorization: `Bearer ${callboard.token}` },
      body: [...oldLog()].join(""),
    });
    assert.equal(imported.status, 201, await imported.text());
    // The import itself is not measured.
    await callboard.restart();
    const page = await get(callboard, "s/old");
    note(`page of ${LINES} unreadable lines (MB)`, (page.bytes / MB).toFixed(2), page.bytes < 5 * MB);
    note("... time (s)", page.seconds.toFixed(1));
    note("... RSS at its highest, then (MB)", `${memory(callboard, "VmHWM")}, ${memory(callboard)}`);
    const messages = await get(callboard, "api/sessions/old/messages");
    note("/messages of it (MB, s)", `${(messages.bytes / MB).toFixed(2)}, ${messages.seconds.toFixed(1)}`, messages.bytes < 5 * MB);
    const began = performance.now();
    const pages = Promise.all(Array.from({ length: 8 }, () => get(callboard, "s/old")));
    const longest = await health(callboard, pages);
    note("/healthz while eight such pages load, longest (ms)", longest, longest < 100);
    note("... all eight (s)", ((performance.now() - began) / 1000).toFixed(1));
    await settle(callboard);
    note("... RSS at its highest, then (MB)", `${memory(callboard, "VmHWM")}, ${memory(callboard)}`);
  },

  /** @param {any} scope */
  async words(scope) {
    const callboard = await startCallboard(scope, { config: INSTANT });
    const text = "Eleven messages that are much too long to read. ".repeat(165_000);
    const log = [{ type: "session_created", agent: "demo" }];
    for (let idx = 0; idx < 11; idx += 1) log.push(/** @type {any} */ ({ type: "user_message", messageId: `m${idx}`, text }));
    await callboard.importLog("words", log);
    await callboard.restart();
    const page = await get(callboard, "s/words");
    note("page of eleven messages of 7.9 MB (MB, s)", `${(page.bytes / MB).toFixed(2)}, ${page.seconds.toFixed(1)}`, page.bytes < 5 * MB);
    await settle(callboard);
    note("... RSS at its highest, then (MB)", `${memory(callboard, "VmHWM")}, ${memory(callboard)}`);
  },

  /** @param {any} scope */
  async flood(scope) {
    const config = 'demo = false\n[[agents]]\nid = "claude"\nkind = "claude"\ncommand = ["./play"]\n';
    const play = "#!/bin/sh\nread line\nexec yes 'garbage that nobody can read, as long as the lines of the program that did this'\n";
    const callboard = await startCallboard(scope, { config, files: { play } });
    await chmod(path.join(callboard.workspace, "play"), 0o755);
    const { id } = await callboard.api("sessions", { body: { agent: "claude" } });
    await callboard.api(`sessions/${id}/messages`, { body: { text: "hello" } });
    const longest = await health(callboard, new Promise((resume) => setTimeout(resume, 10_000)));
    note("a program floods for 10 s: /healthz, longest (ms)", longest, longest < 100);
    const { head } = await callboard.api(`sessions/${id}`);
    note("... records", head, head < 200);
    const page = await get(callboard, `s/${id}`);
    note("... page (MB, s)", `${(page.bytes / MB).toFixed(2)}, ${page.seconds.toFixed(1)}`, page.bytes < 5 * MB);
    note("... RSS (MB)", memory(callboard));
    const began = performance.now();
    await callboard.api(`sessions/${id}/cancel`, { body: {} });
    await until(async () => (await callboard.api(`sessions/${id}`)).state !== "running");
    note("... until it is stopped (s)", ((performance.now() - began) / 1000).toFixed(1));
  },

  /** @param {any} scope */
  async passwords(scope) {
    if (!process.env.LOAD_NAMESPACE) return inNamespace("passwords");
    const callboard = await startCallboard(scope);
    callboard.setPassword("correct horse");
    await callboard.restart();
    const before = memory(callboard);
    const { hostname, port } = new URL(callboard.base);
    // One address has few attempts, and all of 127.0.0.0/8 counts as one. The namespace has others.
    const attempt = (/** @type {number} */ n, isPatient = true) =>
      new Promise((resolve, reject) => {
        // Without the page's origin it would be refused unread.
        const headers = { "Content-Type": "application/x-www-form-urlencoded", Origin: callboard.base.slice(0, -1) };
        const options = { hostname, port, path: "/sign-in", method: "POST", headers, localAddress: `10.77.0.${2 + (n % 30)}` };
        const request = http.request(options, (response) => response.resume().on("end", () => resolve(response.statusCode)));
        request.on("error", isPatient ? reject : () => resolve(0)).end("password=wrong");
        // A client that does not wait for the response must not start the next check before this one has ended.
        if (!isPatient) setTimeout(() => request.destroy(), 20);
      });
    const waited = await Promise.all(Array.from({ length: 75 }, (_, n) => attempt(n)));
    for (let n = 0; n < 75; n += 1) await attempt(n, false);
    await until(async () => (await attempt(29)) !== 0);
    const checked = waited.filter((it) => it === 401).length;
    const highest = memory(callboard, "VmHWM");
    await settle(callboard);
    const after = memory(callboard);
    assert.ok(checked >= 70, `${checked} of 75 were checked`);
    note(`RSS before 150 wrong passwords (${checked} of 75 checked, 75 given up), highest, after (MB)`, `${before}, ${highest}, ${after}`, highest < before + 60);
  },
};

for (const [name, run] of Object.entries(scenarios)) {
  if (only && !only.includes(name)) continue;
  /** @type {(() => Promise<void>)[]} */
  const ends = [];
  try {
    await run({ after: (/** @type {() => Promise<void>} */ end) => ends.push(end) });
  } finally {
    for (const end of ends) await end();
  }
}
console.table(table);

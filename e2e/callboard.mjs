// Runs the real program: a server on a free port, with a data folder and a workspace of its own.
//
// The process always ends: by `stop` after the test, and by the
// handlers at the end of this file if the whole run is aborted.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const BINARY =
  process.env.CALLBOARD_BIN ??
  fileURLToPath(new URL("../target/release/callboard", import.meta.url));
const READY = /^callboard listening on (http:\/\/\S+?\/)\?token=(\S+)$/;
const START_MS = 30_000;
const STOP_MS = 10_000;

/** The demo agent without delays. */
export const INSTANT = '[demo]\npace = "instant"\n';
/** The demo agent at the speed of a model. */
export const NATURAL = '[demo]\npace = "natural"\n';

/**
 * @param {{after: (end: () => Promise<void>) => void}} scope ends the server: a test, or a suite
 * @param {{config?: string, files?: Record<string, string>, fill?: (data: string) => void}} [options]
 *   `files` fill the workspace, `fill` the data folder
 */
export async function startCallboard(scope, { config = INSTANT, files = {}, fill } = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), "callboard-e2e-"));
  const callboard = new Callboard(folder);
  scope.after(() => callboard.stop());
  await mkdir(callboard.workspace);
  await writeFile(path.join(folder, "callboard.toml"), config);
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(callboard.workspace, name), text);
  }
  fill?.(callboard.data);
  await callboard.start("127.0.0.1:0");
  return callboard;
}

class Callboard {
  /** The printed address, with the token. */
  url = "";
  /** The address without the token, with a slash at its end. */
  base = "";
  token = "";
  #folder;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #process;
  #log = "";

  /** @param {string} folder */
  constructor(folder) {
    this.#folder = folder;
    this.workspace = path.join(folder, "workspace");
    this.data = path.join(folder, "data");
  }

  get pid() {
    return this.#process?.pid ?? 0;
  }

  /** @param {string} listen */
  async start(listen) {
    const args = ["serve", "--listen", listen, "--data", this.data];
    args.push("--config", path.join(this.#folder, "callboard.toml"));
    const child = spawn(BINARY, args, {
      cwd: this.workspace,
      env: withoutSettings(process.env),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    child.stderr.on("data", (text) => (this.#log += text));
    const [, base, token] = await this.#readyLine(child);
    Object.assign(this, { base, token, url: `${base}?token=${token}` });
  }

  /** @param {import("node:child_process").ChildProcess} child */
  async #readyLine(child) {
    const lines = createInterface({ input: /** @type {any} */ (child.stdout) });
    const line = await new Promise((resolve, reject) => {
      const fail = (/** @type {string} */ why) =>
        reject(new Error(`${BINARY} ${why}; it said:\n${this.#log}`));
      const timer = setTimeout(() => fail("printed no address"), START_MS);
      child.once("error", (error) => fail(`did not start: ${error.message}`));
      child.once("exit", (code, signal) => fail(`ended at once (${code ?? signal})`));
      lines.once("line", resolve);
      lines.once("line", () => clearTimeout(timer));
      child.once("exit", () => clearTimeout(timer));
    });
    const ready = READY.exec(line);
    assert.ok(ready, `not a ready line: ${line}`);
    return ready;
  }

  /**
   * One request with the token. A body is sent as JSON, and the answer, if there is one, is read as JSON.
   * @param {string} path such as `sessions`, below `/api/`
   * @param {{method?: string, body?: unknown}} [options]
   */
  async api(path, { method, body } = {}) {
    const response = await fetch(`${this.base}api/${path}`, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: { Authorization: `Bearer ${this.token}` },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok(response.ok, `${path} gave ${response.status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** All records of a session, without the deltas of closed parts. @param {string} session */
  async events(session) {
    /** @type {{seq: number, type: string, [field: string]: any}[]} */
    const all = [];
    for (;;) {
      const after = all.at(-1)?.seq ?? 0;
      const { events } = await this.api(`sessions/${session}/events?after=${after}&limit=1000`);
      if (events.length === 0) return all;
      all.push(...events);
    }
  }

  /**
   * A new session in which all of this was said and answered. Gives its id.
   * @param {string[]} texts
   */
  async converse(...texts) {
    const { id } = await this.api("sessions", { body: { agent: "demo" } });
    for (const [idx, text] of texts.entries()) {
      await this.api(`sessions/${id}/messages`, { body: { text } });
      await until(async () => {
        const events = await this.events(id);
        return events.filter(({ type }) => type === "run_finish").length === idx + 1;
      });
    }
    return id;
  }

  /**
   * A session as if all of this had happened in it.
   * @param {string} id @param {object[]} records
   */
  async importLog(id, records) {
    const response = await fetch(`${this.base}api/sessions/import`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.token}` },
      body: logLines(id, records),
    });
    assert.equal(response.status, 201, await response.text());
  }

  /** Sets the password with which the page can be opened. @param {string} password */
  setPassword(password) {
    this.command(["password"], password);
  }

  /** Runs another command of the program and returns its output. @param {string[]} args @param {string} [input] */
  command(args, input = "") {
    const options = { cwd: this.workspace, env: withoutSettings(process.env), input, encoding: /** @type {const} */ ("utf8") };
    return execFileSync(BINARY, [...args, "--data", this.data], options);
  }

  /** Kills the process and waits for its end. @param {NodeJS.Signals} signal */
  async kill(signal = "SIGKILL") {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  /** Starts it again, on the same port and the same data. */
  async restart() {
    await this.kill();
    await this.start(new URL(this.base).host);
  }

  /** Stops the process with a signal and removes its folder. */
  async stop() {
    const timer = setTimeout(() => this.#process?.kill("SIGKILL"), STOP_MS);
    await this.kill("SIGTERM");
    clearTimeout(timer);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/**
 * A session's log as a file. Numbers and times are filled in.
 * @param {string} sessionId @param {object[]} records
 */
export function logLines(sessionId, records) {
  const lines = records.map((record, idx) => {
    const at = new Date(Date.UTC(2026, 10, 15, 9) + idx * 100).toISOString();
    return JSON.stringify({ seq: idx + 1, at, sessionId, ...record });
  });
  return lines.join("\n");
}

/** A log of `count` numbered messages. */
export function longLog(count = 120) {
  /** @type {object[]} */
  const log = [{ type: "session_created", agent: "demo", title: "A long talk" }];
  for (let idx = 0; idx < count / 2; idx += 1) {
    const responseId = `r${idx}`;
    const text = `Answer ${idx}. ${"The sea is wide. ".repeat(12)}`;
    log.push(
      { type: "user_message", messageId: `m${idx}`, text: `Question ${idx}` },
      { type: "run_start", responseId, agent: "demo", trigger: "user" },
      { type: "step_start", responseId, index: 0 },
      { type: "text_start", responseId, partId: `${responseId}.0` },
      { type: "text_done", responseId, partId: `${responseId}.0`, text },
      { type: "step_finish", responseId, index: 0, finishReason: "stop" },
      { type: "run_finish", responseId, status: "completed", durationMs: 1 },
    );
  }
  return log;
}

/**
 * Polls until the condition holds.
 * @param {() => Promise<boolean>} isTrue
 */
export async function until(isTrue, timeoutMs = 60_000) {
  const deadline = Date.now() + timeoutMs;
  while (!(await isTrue())) {
    assert.ok(Date.now() < deadline, `still not so after ${timeoutMs} ms: ${isTrue}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

/** The environment of the developer must not change the tests. @param {NodeJS.ProcessEnv} env */
function withoutSettings(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("CALLBOARD_")));
}

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

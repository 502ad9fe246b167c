// Callboard with one agent of a kind, and a scripted model behind it.

import { mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before } from "node:test";

import { startCallboard, until } from "./callboard.mjs";
import { startModels } from "./models.mjs";
import { PROGRAMS, installed, settle } from "./programs.mjs";

/** @typedef {import("./programs.mjs").Program} Program */
/** @typedef {Program | "openai" | "codexExec"} Kind */
/** @typedef {{after: (end: () => Promise<void>) => void}} Scope */

/** All kinds of agents except the demo agent. @type {Kind[]} */
export const KINDS = ["openai", ...PROGRAMS, "codexExec"];

/** Names of the agent that needs no approvals and of the one that does. */
const FREE = "free";
const ASKING = "asking";

/**
 * Agents do not retry unless a number of retries is given: most tests are about the failure.
 * @param {Scope} scope @param {Kind} kind
 */
export function startStage(scope, kind, retries = 0) {
  const modes = { [FREE]: "auto", [ASKING]: "ask" };
  return start(scope, kind, (home, models) =>
    kind === "openai" ? modelConfig(models, retries) : programConfig(kind, { home, models, retries }, modes),
  );
}

/** Starts a stage for a suite of tests. @param {Kind} kind */
export function useStage(kind) {
  const stage = /** @type {Stage} */ (Object.create(Stage.prototype));
  /** @type {() => Promise<void>} */
  let end = async () => {};
  before(async () => {
    Object.assign(stage, await startStage({ after: (it) => void (end = it) }, kind));
  });
  after(() => end());
  return stage;
}

/** Starts one Callboard with all programs, each under its own name. @param {Scope} scope @param {Program} first */
export function startTogether(scope, first) {
  return start(scope, first, async (home, models) => {
    const configs = PROGRAMS.map(async (it) => {
      const own = path.join(home, it);
      await mkdir(own);
      return programConfig(it, { home: own, models, retries: 0 }, { [it]: "auto" });
    });
    return (await Promise.all(configs)).join("\n");
  });
}

/** @param {Scope} scope @param {Kind} kind @param {(home: string, models: string) => string | Promise<string>} configure */
async function start(scope, kind, configure) {
  /** @type {(() => Promise<void>)[]} */
  const ends = [];
  const parts = { after: (/** @type {() => Promise<void>} */ end) => void ends.unshift(end) };
  // A program writes into its home until its server has ended it.
  scope.after(async () => {
    for (const end of ends) await end();
  });
  const models = await startModels(parts);
  const home = await mkdtemp(path.join(tmpdir(), "callboard-home-"));
  parts.after(() => rm(home, { recursive: true, force: true }));
  const config = await configure(home, models.base);
  return new Stage(kind, models, await startCallboard(parts, { config }), { home, config });
}

/** The configuration; rules about Callboard's own tools apply to all agents. @param {string} models @param {number} retries */
function modelConfig(models, retries) {
  const agents = [FREE, ASKING].map((id) =>
    table("[[agents]]", { id, kind: "openai", base_url: `${models}/v1`, model: "scripted", retries }),
  );
  const approvals = [
    table("[approvals]", { write_file: "allow", edit_file: "allow" }),
    table("[approvals.shell]", { ask: ["touch *"], otherwise: "allow" }),
  ];
  return [...agents, ...approvals].join("\n");
}

/**
 * @param {Exclude<Kind, "openai">} agent @param {{home: string, models: string, retries: number}} where
 * @param {Record<string, string>} modes of the agents by name
 */
async function programConfig(agent, { home, models, retries }, modes) {
  const kind = agent === "codexExec" ? "codex" : agent;
  const file = await installed(kind);
  const command = [agent === "codexExec" ? await withoutAppServer(file, home) : file];
  const { env, model } = await settle(kind, home, models, retries);
  return Object.entries(modes)
    .map(([id, mode]) => table("[[agents]]", { id, kind, command, env, permission_mode: mode, ...(model && { model }) }))
    .join("\n");
}

/** Writes a Codex without an app-server. @param {string} file @param {string} home */
async function withoutAppServer(file, home) {
  const old = path.join(home, "old-codex");
  await writeFile(old, `#!/bin/sh\n[ "$1" != app-server ] || exit 2\nexec '${file}' "$@"\n`, { mode: 0o755 });
  return old;
}

/** @param {string} head @param {Record<string, any>} values */
function table(head, values) {
  return `${head}\n${Object.entries(values).map(([key, it]) => `${key} = ${toml(it)}\n`).join("")}`;
}

/** JSON's strings, numbers and lists are TOML's too. @param {any} value @returns {string} */
function toml(value) {
  if (typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value).map(([key, it]) => `${key} = ${toml(it)}`).join(", ")} }`;
}

class Stage {
  /**
   * @param {Kind} kind @param {Awaited<ReturnType<typeof startModels>>} models
   * @param {Awaited<ReturnType<typeof startCallboard>>} callboard
   * @param {{home: string, config: string}} setting where programs live, and what Callboard knows of them
   */
  constructor(kind, models, callboard, setting) {
    this.kind = kind;
    this.models = models;
    this.callboard = callboard;
    this.setting = setting;
  }

  /** The same programs and model with a Callboard without sessions. @param {Scope} scope */
  async otherCallboard(scope) {
    const callboard = await startCallboard(scope, { config: this.setting.config });
    return new Stage(this.kind, this.models, callboard, this.setting);
  }

  /** A new working folder. */
  async folder() {
    return realpath(await mkdtemp(path.join(this.callboard.workspace, "work-")));
  }

  /** A new session with a folder of its own. @param {{asks?: boolean, agent?: string}} [options] */
  async open({ asks = false, agent = asks ? ASKING : FREE } = {}) {
    const workspace = await this.folder();
    const { id } = await this.callboard.api("sessions", { body: { agent, workspace } });
    return new Conversation(this, id, workspace);
  }

  /** A new session in the folder around Callboard's own. */
  async openAroundData() {
    const workspace = await realpath(path.dirname(this.callboard.data));
    const { id } = await this.callboard.api("sessions", { body: { agent: ASKING, workspace } });
    return new Conversation(this, id, workspace);
  }

  /** An existing session. @param {string} id */
  async meet(id) {
    const { workspace } = await this.callboard.api(`sessions/${id}`);
    return new Conversation(this, id, workspace);
  }
}

class Conversation {
  /** The id of the message that waits for an answer. */
  #at = "";

  /** @param {Stage} stage @param {string} id @param {string} workspace */
  constructor(stage, id, workspace) {
    this.stage = stage;
    this.id = id;
    this.workspace = workspace;
  }

  /** @param {string} path @param {object} [body] */
  post(path, body = {}) {
    return this.stage.callboard.api(`sessions/${this.id}/${path}`, { body });
  }

  /** @param {string} text @param {object[]} [attachments] */
  async sendMessage(text, attachments = []) {
    const { messageId } = await this.post("messages", { text, attachments });
    this.#at = messageId;
  }

  /** The queue. @returns {Promise<any[]>} */
  async queue() {
    return (await this.stage.callboard.api(`sessions/${this.id}/queue`)).messages;
  }

  /** The last answer, after that many have ended. @param {number} count */
  async lastOf(count) {
    await until(async () => {
      const events = await this.stage.callboard.events(this.id);
      return events.filter((it) => it.type === "run_finish").length === count;
    });
    const { messages } = await this.stage.callboard.api(`sessions/${this.id}/messages?order=desc&limit=1`);
    return messages[0];
  }

  /** Sends a message with a picture. @param {string} text @param {Buffer} png */
  async show(text, png) {
    const { base, token } = this.stage.callboard;
    const headers = { Authorization: `Bearer ${token}` };
    const kept = await fetch(`${base}api/blobs`, { method: "POST", headers, body: new Uint8Array(png) });
    const { blob, size } = await kept.json();
    await this.sendMessage(text, [{ blob, size, name: "picture.png", mediaType: "image/png" }]);
  }

  /** Sends a message and returns the completed answer. @param {string} text */
  async answerTo(text) {
    await this.sendMessage(text);
    return this.answer();
  }

  /** The completed answer to the last message. */
  answer() {
    return this.answerWhen((it) => it.status !== undefined);
  }

  /** The last answer of the session, to any message. */
  async lastAnswer() {
    const { messages } = await this.stage.callboard.api(`sessions/${this.id}/messages?order=desc&limit=5`);
    return messages.find((/** @type {any} */ it) => it.role === "assistant");
  }

  /** The answer to the last message, as soon as the condition holds. @param {(answer: any) => boolean} isSo */
  async answerWhen(isSo) {
    /** @type {any} */
    let answer;
    await until(async () => {
      const { messages } = await this.stage.callboard.api(`sessions/${this.id}/messages?order=desc&limit=5`);
      const at = messages.findIndex((/** @type {any} */ it) => it.id === this.#at);
      answer = messages.slice(0, Math.max(at, 0)).find((/** @type {any} */ it) => it.role === "assistant");
      return answer !== undefined && isSo(answer);
    });
    return answer;
  }

  /** Sends a message and returns the call that needs an approval. @param {string} text */
  async question(text) {
    await this.sendMessage(text);
    const isAsked = (/** @type {any} */ it) => it.state === "awaiting_approval";
    const { toolCalls } = await this.answerWhen((it) => it.toolCalls.some(isAsked));
    const events = await this.stage.callboard.events(this.id);
    const { options } = /** @type {any} */ (events.findLast((it) => it.type === "tool_approval_requested"));
    return { call: toolCalls.find(isAsked), options };
  }

  /** @param {string} callId @param {object} decision */
  decide(callId, decision) {
    return this.post(`calls/${callId}/approval`, decision);
  }

  /** Sends a message and waits until a command with this word runs. @param {string} text @param {string} word */
  async runs(text, word) {
    await this.sendMessage(text);
    await this.answerWhen((it) => it.toolCalls.length > 0);
    await until(async () => (await this.processes()).some((it) => it.command.includes(word)));
  }

  /** All processes in the session's folder: the program, its commands and their children. */
  async processes() {
    const found = await Promise.all((await readdir("/proc")).filter((it) => /^\d+$/.test(it)).map(lookAt));
    // A process that is ending has no command line.
    return found.flatMap((it) => (it?.folder === this.workspace && it.command ? [it] : []));
  }
}

/** Undefined if the process has ended or belongs to another user. @param {string} pid */
async function lookAt(pid) {
  try {
    const [folder, command, stat] = await Promise.all([
      readlink(`/proc/${pid}/cwd`),
      readFile(`/proc/${pid}/cmdline`, "utf8"),
      readFile(`/proc/${pid}/stat`, "utf8"),
    ]);
    const parent = Number(stat.slice(stat.lastIndexOf(")")).split(" ")[2]);
    return { pid: Number(pid), parent, folder, command: command.replaceAll("\0", " ").trim() };
  } catch {
    return undefined;
  }
}

// A model service with a script: the same scenarios in three protocols, on a port of loopback.
//
// The newest user message with a word such as `play:tools` chooses the scenario, and
// the number of results since then is the turn: the service itself stores nothing
// but the number of failures. A gate in a scenario holds the answer until the test opens it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

import { PROTOCOLS } from "./protocols.mjs";
import { SCENARIOS, TOOLS, text } from "./scenarios.mjs";

/**
 * @typedef {import("node:http").IncomingMessage} Request
 * @typedef {import("node:http").ServerResponse} Response
 * @typedef {import("./scenarios.mjs").Part} Part
 * @typedef {import("./scenarios.mjs").Use} Use
 * @typedef {import("./scenarios.mjs").Refusal} Refusal
 *
 * An answer that a test scripts: calls, text whose rest may be held, or a refusal; `finish` is the reason of its end.
 * @typedef {{call: string, arguments?: object}} Called
 * @typedef {{text: string, after?: Promise<unknown>, rest?: string, finish?: string}} ScriptedText
 * @typedef {Called | {calls: Called[]} | {refusal: string} | ScriptedText} ScriptedAnswer
 */

/** @param {{after: (end: () => Promise<void>) => void}} scope ends it: a test, or a suite */
export async function startModels(scope) {
  const models = new Models();
  scope.after(() => models.stop());
  await models.start();
  return models;
}

/**
 * A service that gives the answers of the test, one for each request, independent of the request.
 * @param {{after: (end: () => Promise<void>) => void}} scope ends it: a test, or a suite
 */
export async function startModel(scope) {
  const models = await startModels(scope);
  models.willAnswer();
  return {
    /** For the configuration of an agent. */
    agent: `[[agents]]\nid = "model"\nkind = "openai"\nbase_url = "${models.base}/v1"\nmodel = "scripted"\n`,
    /** The bodies of all requests. */
    get asked() {
      return models.requests.map((it) => it.body);
    },
    /** @param {ScriptedAnswer[]} scripted */
    willAnswer: (...scripted) => models.willAnswer(...scripted),
  };
}

class Models {
  /** All requests, oldest first. @type {{path: string, scenario?: string, turn: number, body: any}[]} */
  requests = [];
  /** Such as `http://127.0.0.1:1234`. */
  base = "";
  #gates = new Gates();
  #server = createServer((request, response) => {
    this.#answer(request, response).catch((error) => {
      if (response.headersSent) response.destroy();
      else answerJson(response, 400, { error: { message: `${error}` } });
    });
  });
  /** Number of answers and calls, for their ids. */
  #count = 0;
  /** Number of requests to scenarios that fail at first. @type {Map<import("./scenarios.mjs").Tries, number>} */
  #tries = new Map();
  /** Scripted answers, which replace the scenarios. @type {ScriptedAnswer[] | undefined} */
  #script;

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port } = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
    this.base = `http://127.0.0.1:${port}`;
  }

  async stop() {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Scripts the next answers, which replace the scenarios. @param {ScriptedAnswer[]} scripted */
  willAnswer(...scripted) {
    this.#script = [...(this.#script ?? []), ...scripted];
  }

  /** Waits until an answer is held at the gate. @param {string} name */
  reached(name) {
    return this.#gates.reached(name);
  }

  /** Releases the answers that are held at the gate, one by one. @param {string} name */
  open(name, times = 1) {
    this.#gates.open(name, times);
  }

  /** The requests of a scenario, as text. @param {string} scenario */
  asked(scenario) {
    return this.requests.filter((it) => it.scenario === scenario).map((it) => JSON.stringify(it.body));
  }

  /** @param {Request} request @param {Response} response */
  async #answer(request, response) {
    const path = new URL(request.url ?? "/", this.base).pathname;
    const protocol = PROTOCOLS[path];
    if (request.method !== "POST" || !protocol) return answerAside(path, response);
    const body = JSON.parse(await textOf(request));
    const asked = protocol.read(body);
    const { scenario, turn } = placeOf(asked.entries);
    this.requests.push({ path, scenario, turn, body });
    const scripted = this.#script && (this.#script.shift() ?? { text: "Nothing more to say." });
    const script = scripted ? this.#scriptedParts(scripted) : this.#nextTry(turnOf(scenario, turn, asked.tools));
    if ("refusal" in script) {
      return answerJson(response, script.refusal, protocol.refuse(script.refusal, script.message));
    }
    const parts = script.map((it) => (it.kind === "use" ? this.#call(it, turn, asked.tools, body) : it));
    const id = `${++this.#count}`;
    const atOnce = body.stream ? undefined : protocol.encodeWhole?.(parts, id, body.model);
    if (!atOnce) response.writeHead(200, { "content-type": "text/event-stream" });
    for (const it of protocol.encode(parts, id, body.model)) {
      if (!("kind" in it)) {
        if (!atOnce) response.write(sse(ending(it, scripted)));
      } else if (it.kind === "gate") await this.#gates.pass(it.name, response);
      else if (it.kind === "fail" && !atOnce) return response.end(sse(protocol.fail()));
      else response.destroy();
      if (response.destroyed) return;
    }
    if (atOnce) answerJson(response, 200, atOnce);
    else response.end();
  }

  /** @param {ReturnType<typeof turnOf>} turn */
  #nextTry(turn) {
    if (!("tries" in turn)) return turn;
    const before = this.#tries.get(turn) ?? 0;
    this.#tries.set(turn, before + 1);
    return /** @type {Part[] | Refusal} */ (turn.tries[Math.min(before, turn.tries.length - 1)]);
  }

  /** @param {ScriptedAnswer} scripted @returns {Refusal | (import("./protocols.mjs").Words | import("./protocols.mjs").Call)[]} */
  #scriptedParts(scripted) {
    if ("refusal" in scripted) return { refusal: 400, message: scripted.refusal };
    if ("text" in scripted) return [{ kind: "text", pieces: [scripted.text, ...this.#rest(scripted)] }];
    const calls = "calls" in scripted ? scripted.calls : [scripted];
    return calls.map(({ call, arguments: args = {} }) => ({
      kind: "call", id: `call_${++this.#count}`, name: call, args,
    }));
  }

  /** @param {ScriptedText} scripted @returns {(string | {kind: "gate", name: string})[]} */
  #rest({ after, rest }) {
    if (rest === undefined) return [];
    const name = `rest ${++this.#count}`;
    after?.then(() => this.open(name));
    return [{ kind: "gate", name }, rest];
  }

  /**
   * The id says which turn it belongs to.
   * @param {Use} use @param {number} turn @param {string[]} tools @param {any} body
   * @returns {import("./protocols.mjs").Call}
   */
  #call({ tool, args }, turn, tools, body) {
    const names = Object.keys(TOOLS[tool]);
    // Codex has a search for tools of servers and agents, and accepts a call of a tool that was not searched for.
    const isOffered = (/** @type {string} */ it) =>
      tools.includes(it) || (/^(mcp|multi_agent)_/.test(it) && tools.includes("tool_search"));
    const name = names.find(isOffered);
    assert.ok(name, `there is nothing to ${tool} with among ${tools}`);
    const given = TOOLS[tool][name](args, folderIn(body));
    const id = `call_s${turn}_${++this.#count}`;
    return { kind: "call", id, name, ...(typeof given === "string" ? { text: given } : { args: given }) };
  }
}

/** The scenario of a conversation, and its turn. @param {import("./protocols.mjs").Entry[]} entries */
function placeOf(entries) {
  // Unanswered messages may have been merged: the last word is the newest.
  const words = entries.map((it) => ("text" in it ? [...it.text.matchAll(/play:(\w+)/g)].at(-1)?.[1] : undefined));
  const at = words.findLastIndex((it) => it !== undefined);
  const results = entries.slice(at + 1).flatMap((it) => ("result" in it ? [it.result] : []));
  const turns = results.map((it) => Number(/_s(\d+)_/.exec(it)?.[1] ?? -1));
  return { scenario: words[at], turn: Math.max(-1, ...turns) + 1 };
}

/**
 * @param {string | undefined} scenario @param {number} turn @param {string[]} tools
 * @returns {Part[] | Refusal | import("./scenarios.mjs").Tries}
 */
function turnOf(scenario, turn, tools) {
  // Programs also ask for titles and such, and then offer no tools.
  if (scenario === undefined || tools.length === 0) return [text("Aside.")];
  const turns = SCENARIOS[scenario];
  return turns?.[turn] ?? { refusal: 400, message: `There is no turn ${turn} in the scenario ${scenario}.` };
}

/** The working folder of the program, for tools that need an absolute path. @param {any} body */
function folderIn(body) {
  const text = JSON.stringify([body.system, body.messages]);
  return /working directory: ([^\s"\\]+)/i.exec(text)?.[1] ?? "";
}

/** Requests of programs at their start. @param {string} path @param {Response} response */
function answerAside(path, response) {
  if (path === "/v1/models") {
    const model = { id: "scripted", object: "model", created: 0, owned_by: "nobody" };
    return answerJson(response, 200, { object: "list", data: [model], models: [] });
  }
  if (path === "/v1/messages/count_tokens") return answerJson(response, 200, { input_tokens: 100 });
  return answerJson(response, 404, { error: { message: `There is nothing at ${path}.` } });
}

/** @param {Response} response @param {number} status @param {object} body */
function answerJson(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/**
 * Replaces the reason of the end with that of the test.
 * @param {import("./protocols.mjs").Sent} sent @param {ScriptedAnswer | undefined} scripted
 */
function ending(sent, scripted) {
  const [choice] = /** @type {any} */ (sent.data).choices ?? [];
  if (choice?.finish_reason && scripted && "finish" in scripted) choice.finish_reason = scripted.finish;
  return sent;
}

/** @param {import("./protocols.mjs").Sent} sent */
function sse({ event, data }) {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${event ? `event: ${event}\n` : ""}data: ${text}\n\n`;
}

/** @param {Request} request */
async function textOf(request) {
  const chunks = [];
  for await (const it of request) chunks.push(it);
  return Buffer.concat(chunks).toString();
}

/** A gate that holds answers. Each opening releases one, also a later one. */
class Gates {
  /** @type {Map<string, {openings: number, held: (() => void)[], watchers: (() => void)[]}>} */
  #gates = new Map();

  /** @param {string} name */
  #gate(name) {
    const gate = this.#gates.get(name) ?? { openings: 0, held: [], watchers: [] };
    this.#gates.set(name, gate);
    return gate;
  }

  /** Waits until the gate opens or the client disconnects. @param {string} name @param {Response} response */
  async pass(name, response) {
    const gate = this.#gate(name);
    if (gate.openings > 0) {
      gate.openings -= 1;
      return;
    }
    await new Promise((/** @type {(_: void) => void} */ resolve) => {
      const go = () => {
        gate.held = gate.held.filter((it) => it !== go);
        resolve();
      };
      gate.held.push(go);
      response.once("close", go);
      gate.watchers.splice(0).forEach((it) => it());
    });
  }

  /** @param {string} name */
  async reached(name) {
    const gate = this.#gate(name);
    if (gate.held.length > 0) return;
    await new Promise((/** @type {(_: void) => void} */ resolve) => gate.watchers.push(resolve));
  }

  /** @param {string} name @param {number} times */
  open(name, times) {
    const gate = this.#gate(name);
    gate.openings += times;
    for (const go of gate.held.slice(0, gate.openings)) {
      gate.openings -= 1;
      go();
    }
  }
}

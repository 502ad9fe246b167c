// A model service with a script: the same scenarios in three protocols, on a port of loopback.
//
// The newest message of a user that has a word such as `play:tools` in it chooses the scenario, and
// the results that came since then say which of its turns it is: the service itself remembers nothing
// but how often it has failed. A gate in a scenario holds the answer back until the test opens it.

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
 * What a test tells it to say: calls, words whose rest may be held back, or a refusal; `finish` is why it ends.
 * @typedef {{call: string, arguments?: object}} Called
 * @typedef {{text: string, after?: Promise<unknown>, rest?: string, finish?: string}} Spoken
 * @typedef {Called | {calls: Called[]} | {refusal: string} | Spoken} Said
 */

/** @param {{after: (end: () => Promise<void>) => void}} scope ends it: a test, or a suite */
export async function startModels(scope) {
  const models = new Models();
  scope.after(() => models.stop());
  await models.start();
  return models;
}

/**
 * One that says what the test tells it to, an answer a request, whatever it is asked.
 * @param {{after: (end: () => Promise<void>) => void}} scope ends it: a test, or a suite
 */
export async function startModel(scope) {
  const models = await startModels(scope);
  models.willSay();
  return {
    /** For the configuration of an agent. */
    agent: `[[agents]]\nid = "model"\nkind = "openai"\nbase_url = "${models.base}/v1"\nmodel = "scripted"\n`,
    /** The bodies of all requests. */
    get asked() {
      return models.requests.map((it) => it.body);
    },
    /** @param {Said[]} said */
    willSay: (...said) => models.willSay(...said),
  };
}

class Models {
  /** All that was asked, oldest first. @type {{path: string, scenario?: string, turn: number, body: any}[]} */
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
  /** Of answers and calls, so that each has an id of its own. */
  #count = 0;
  /** How often something was asked that fails at first. @type {Map<import("./scenarios.mjs").Tries, number>} */
  #tries = new Map();
  /** What is to be said, instead of what a scenario says. @type {Said[] | undefined} */
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

  /** From now on it says this, and no scenario. @param {Said[]} said */
  willSay(...said) {
    this.#script = [...(this.#script ?? []), ...said];
  }

  /** Waits until an answer is held back there. @param {string} name */
  reached(name) {
    return this.#gates.reached(name);
  }

  /** Lets answers that are held back there go on, one after the other. @param {string} name */
  open(name, times = 1) {
    this.#gates.open(name, times);
  }

  /** The requests that a scenario brought, as text. @param {string} scenario */
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
    const said = this.#script && (this.#script.shift() ?? { text: "Nothing more to say." });
    const script = said ? this.#saying(said) : this.#nextTry(turnOf(scenario, turn, asked.tools));
    if ("refusal" in script) {
      return answerJson(response, script.refusal, protocol.refuse(script.refusal, script.message));
    }
    const parts = script.map((it) => (it.kind === "use" ? this.#call(it, turn, asked.tools, body) : it));
    const id = `${++this.#count}`;
    const atOnce = body.stream ? undefined : protocol.tellAtOnce?.(parts, id, body.model);
    if (!atOnce) response.writeHead(200, { "content-type": "text/event-stream" });
    for (const it of protocol.tell(parts, id, body.model)) {
      if (!("kind" in it)) {
        if (!atOnce) response.write(sse(ending(it, said)));
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

  /** @param {Said} said @returns {Refusal | (import("./protocols.mjs").Words | import("./protocols.mjs").Call)[]} */
  #saying(said) {
    if ("refusal" in said) return { refusal: 400, message: said.refusal };
    if ("text" in said) return [{ kind: "text", pieces: [said.text, ...this.#rest(said)] }];
    const calls = "calls" in said ? said.calls : [said];
    return calls.map(({ call, arguments: args = {} }) => ({
      kind: "call", id: `call_${++this.#count}`, name: call, args,
    }));
  }

  /** @param {Spoken} said @returns {(string | {kind: "gate", name: string})[]} */
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
    // Codex has a search for those of servers and for agents, and takes a call of one that was not searched for.
    const isOffered = (/** @type {string} */ it) =>
      tools.includes(it) || (/^(mcp|multi_agent)_/.test(it) && tools.includes("tool_search"));
    const name = names.find(isOffered);
    assert.ok(name, `there is nothing to ${tool} with among ${tools}`);
    const given = TOOLS[tool][name](args, folderIn(body));
    const id = `call_s${turn}_${++this.#count}`;
    return { kind: "call", id, name, ...(typeof given === "string" ? { text: given } : { args: given }) };
  }
}

/** Which scenario a conversation is in, and at which of its turns. @param {import("./protocols.mjs").Entry[]} entries */
function placeOf(entries) {
  // Messages that nobody answered may have become one: its last word is the newest.
  const words = entries.map((it) => ("said" in it ? [...it.said.matchAll(/play:(\w+)/g)].at(-1)?.[1] : undefined));
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

/** Where the program says that it works, for tools that want a whole path. @param {any} body */
function folderIn(body) {
  const told = JSON.stringify([body.system, body.messages]);
  return /working directory: ([^\s"\\]+)/i.exec(told)?.[1] ?? "";
}

/** What programs ask when they start. @param {string} path @param {Response} response */
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
 * With the reason that the test gives, where this is the end.
 * @param {import("./protocols.mjs").Sent} sent @param {Said | undefined} said
 */
function ending(sent, said) {
  const [choice] = /** @type {any} */ (sent.data).choices ?? [];
  if (choice?.finish_reason && said && "finish" in said) choice.finish_reason = said.finish;
  return sent;
}

/** @param {import("./protocols.mjs").Sent} sent */
function sse({ event, data }) {
  const told = typeof data === "string" ? data : JSON.stringify(data);
  return `${event ? `event: ${event}\n` : ""}data: ${told}\n\n`;
}

/** @param {Request} request */
async function textOf(request) {
  const chunks = [];
  for await (const it of request) chunks.push(it);
  return Buffer.concat(chunks).toString();
}

/** Where answers wait. Each opening lets one through, also one that comes later. */
class Gates {
  /** @type {Map<string, {openings: number, held: (() => void)[], watchers: (() => void)[]}>} */
  #gates = new Map();

  /** @param {string} name */
  #gate(name) {
    const gate = this.#gates.get(name) ?? { openings: 0, held: [], watchers: [] };
    this.#gates.set(name, gate);
    return gate;
  }

  /** Until it is opened, or whoever asked is gone. @param {string} name @param {Response} response */
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

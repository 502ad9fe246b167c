// A model service with a script: the same scenarios in three protocols, on a port of loopback.
//
// The newest message of a user that has a word such as `play:tools` in it chooses the scenario, and
// the results that came since then say which of its turns it is: the service itself remembers nothing.
// A gate in a scenario holds the answer back until the test opens it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

import { PROTOCOLS } from "./protocols.mjs";

/**
 * @typedef {import("./protocols.mjs").Gate} Gate
 * @typedef {import("node:http").IncomingMessage} Request
 * @typedef {import("node:http").ServerResponse} Response
 *
 * A call is told what it is for; see TOOLS for what becomes of it.
 * @typedef {{kind: "use", tool: string, args: Record<string, string>}} Use
 * @typedef {import("./protocols.mjs").Words | Gate | Use} Part
 * @typedef {{refusal: number, message: string}} Refusal
 */

/** @param {(string | Gate)[]} pieces @returns {Part} */
const text = (...pieces) => ({ kind: "text", pieces });
/** @param {string} words @returns {Part} */
const thinking = (words) => ({ kind: "thinking", pieces: [words] });
/** @param {string} name @returns {Gate} */
const gate = (name) => ({ kind: "gate", name });
/** @type {Gate} */
const cut = { kind: "cut" };
/** @param {string} command @returns {Part} */
const shell = (command) => ({ kind: "use", tool: "shell", args: { command } });
/** @param {string} path @param {string} content @returns {Part} */
const write = (path, content) => ({ kind: "use", tool: "write", args: { path, content } });
/** @param {string} path @param {string} before @param {string} after @returns {Part} */
const edit = (path, before, after) => ({ kind: "use", tool: "edit", args: { path, before, after } });
/** @param {string} path @returns {Part} */
const read = (path) => ({ kind: "use", tool: "read", args: { path } });
/** @type {Part} */
const listAgents = { kind: "use", tool: "agents", args: {} };
/** @param {string} words @returns {Part} */
const note = (words) => ({ kind: "use", tool: "note", args: { text: words } });

/** Something to be chosen by a person. @type {Part} */
const choice = { kind: "use", tool: "choose", args: {} };

/** @param {string} agent @param {string} words @returns {Part} */
const ask = (agent, words) => ({ kind: "use", tool: "ask", args: { agent, text: words, session: "new" } });

/** What the model does, turn by turn. @type {Record<string, (Part[] | Refusal)[]>} */
const SCENARIOS = {
  hello: [[text("Hello! This answer comes in several small pieces.")]],
  tools: [
    [text("First I look here."), shell("echo one")],
    [text("Then I look there."), shell("echo two")],
    [text("I have seen one and two.")],
  ],
  parallel: [[text("Both at once."), shell("echo left"), shell("echo right")], [text("Both came back.")]],
  thinking: [
    [thinking("I should look before I answer."), text("Let me look."), shell("echo thought")],
    [thinking("That was clear enough."), text("I have thought about it.")],
  ],
  files: [
    [text("I write it down."), write("note.txt", "alpha\nbeta\n")],
    [text("I change a word."), edit("note.txt", "beta", "gamma")],
    [text("I look at it again."), read("note.txt")],
    [text("The note is written.")],
  ],
  failing: [[text("This will fail."), shell("echo oops >&2; exit 3")], [text("It failed, as it should.")]],
  story: [[text("Once upon a time ", gate("story"), "there was no more to tell.")]],
  waiting: [[text("There is time."), shell("until [ -e go ]; do sleep 0.1; done; echo gone")], [text("That was all.")]],
  brokenOff: [[text("This breaks o", gate("brokenOff"), cut)]],
  colours: [[text("As it is:"), shell(String.raw`printf '\033[31mred\033[0m \303\244\342\202\254\n'`)], [text("Grün, 绿, 🟢.")]],
  forever: [[text("This never ends."), shell("echo started; tail -f /dev/null")], [text("It ended.")]],
  asking: [[text("I need a file."), shell("touch asked.txt")], [text("So be it.")]],
  ownTools: [
    [text("Who is there?"), listAgents],
    [text("I leave a note."), note("Half way.")],
    [text("All is noted.")],
  ],
  twins: [[text("The same twice."), note("Twin."), note("Twin.")], [text("Both are noted.")]],
  choosing: [[text("I have to know."), choice], [text("As you wish.")]],
  askDemo: [[text("The demo agent knows."), ask("demo", "time in Paris")], [text("Now I know the time.")]],
  chain: [[text("I ask another."), ask("asking", "play:askDemo")], [text("It has asked a third.")]],
  toClaude: [[text("Claude knows."), ask("claude", "play:hello")], [text("Claude has answered.")]],
  toCodex: [[text("Codex knows."), ask("codex", "play:toPi")], [text("Codex has answered.")]],
  toPi: [[text("Pi knows."), ask("pi", "play:askDemo")], [text("Pi has answered.")]],
  askForever: [[text("I ask another."), ask("free", "play:forever")], [text("It ended.")]],
  recall: [[text("I remember all of it.")]],
  refused401: [{ refusal: 401, message: "This key opens nothing." }],
  refused429: [{ refusal: 429, message: "Too many questions today." }],
  refused500: [{ refusal: 500, message: "The service has a bad day." }],
};

/**
 * The tools by what they do, as those who may ask call them and want their arguments. The first that a
 * request offers is called.
 * @type {Record<string, Record<string, (args: Record<string, string>, folder: string) => object | string>>}
 */
const TOOLS = {
  shell: {
    // It would go on behind the model's back after ten seconds.
    exec_command: ({ command }) => ({ cmd: command, yield_time_ms: 60_000 }),
    Bash: ({ command }) => ({ command, description: "Run a command" }),
    bash: ({ command }) => ({ command }),
    shell: ({ command }) => ({ command }),
  },
  write: {
    apply_patch: ({ path, content }) => patch(`Add File: ${path}`, content.replace(/^(?=.)/gm, "+").trimEnd()),
    Write: ({ path, content }, folder) => ({ file_path: `${folder}/${path}`, content }),
    write: ({ path, content }) => ({ path, content }),
    write_file: ({ path, content }) => ({ path, text: content }),
  },
  edit: {
    apply_patch: ({ path, before, after }) => patch(`Update File: ${path}`, `@@\n-${before}\n+${after}`),
    Edit: ({ path, before, after }, folder) => ({
      file_path: `${folder}/${path}`,
      old_string: before,
      new_string: after,
    }),
    edit: ({ path, before, after }) => ({ path, edits: [{ oldText: before, newText: after }] }),
    edit_file: ({ path, before, after }) => ({ path, old_string: before, new_string: after }),
  },
  choose: {
    AskUserQuestion: () => ({
      questions: [
        { question: "Which colour?", header: "Colour", multiSelect: false, options: options("Red", "Blue") },
        { question: "Which fruits?", header: "Fruit", multiSelect: true, options: options("Apple", "Plum", "Pear") },
        { question: "Which name?", header: "Name", multiSelect: false, options: options("Ann", "Bob") },
      ],
    }),
  },
  read: {
    Read: ({ path }, folder) => ({ file_path: `${folder}/${path}` }),
    read: ({ path }) => ({ path }),
    read_file: ({ path }) => ({ path }),
    exec_command: ({ path }) => ({ cmd: `cat ${path}` }),
  },
  // Callboard's own, which programs know as those of an MCP server.
  agents: { mcp__callboard__agents_list: () => ({}), agents_list: () => ({}) },
  ask: { mcp__callboard__agents_message: (args) => args, agents_message: (args) => args },
  note: { mcp__callboard__callboard_note: ({ text }) => ({ text }), callboard_note: ({ text }) => ({ text }) },
};

/** @param {string[]} labels */
function options(...labels) {
  return labels.map((label) => ({ label, description: `Choose ${label}` }));
}

/** @param {string} head @param {string} body */
function patch(head, body) {
  return `*** Begin Patch\n*** ${head}\n${body}\n*** End Patch`;
}

/** @param {{after: (end: () => Promise<void>) => void}} scope ends it: a test, or a suite */
export async function startModels(scope) {
  const models = new Models();
  scope.after(() => models.stop());
  await models.start();
  return models;
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
    const script = turnOf(scenario, turn, asked.tools);
    if ("refusal" in script) {
      return answerJson(response, script.refusal, protocol.refuse(script.refusal, script.message));
    }
    const parts = script.map((it) => (it.kind === "use" ? this.#call(it, turn, asked.tools, body) : it));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const it of protocol.tell(parts, `${++this.#count}`, body.model)) {
      if (!("kind" in it)) response.write(sse(it));
      else if (it.kind === "gate") await this.#gates.pass(it.name, response);
      else response.destroy();
      if (response.destroyed) return;
    }
    response.end();
  }

  /**
   * The id says which turn it belongs to.
   * @param {Use} use @param {number} turn @param {string[]} tools @param {any} body
   * @returns {import("./protocols.mjs").Call}
   */
  #call({ tool, args }, turn, tools, body) {
    const names = Object.keys(TOOLS[tool]);
    // Codex has a search for those of MCP servers, and takes a call of one that was not searched for.
    const isOffered = (/** @type {string} */ it) =>
      tools.includes(it) || (it.startsWith("mcp__") && tools.includes("tool_search"));
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
 * @returns {Part[] | Refusal}
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

// Clients of the AI SDK, of every version and kind, behind one set of names: the classes of `ai` in this
// process, and the hooks of `@ai-sdk/react` in a browser. Each stores its messages itself.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

/**
 * A kind of client. `profile` is its major version; `isFirst` marks the first release of one.
 * @typedef {object} Client
 * @property {string} name
 * @property {number} profile
 * @property {boolean} isFirst
 * @property {(callboard: {base: string, token: string}, options?: Options) => Promise<Chat>} open
 */

/**
 * `tools` are declared; those in `outputs` and `errors` are answered immediately. `byHand`: decisions and
 * results are sent only with the next message, as clients do by default.
 * @typedef {object} Options
 * @property {string} [id]
 * @property {any[]} [messages]
 * @property {string} [agent]
 * @property {object} [tools]
 * @property {Record<string, unknown>} [outputs]
 * @property {Record<string, string>} [errors]
 * @property {boolean} [byHand]
 * @property {boolean} [asIs] version 4 with its default options: it sends no ids
 */

/**
 * One chat of a client.
 * @typedef {object} Chat
 * @property {string} id
 * @property {() => Promise<{messages: any[], status: string, error?: string}>} look
 * @property {(message: string | {parts: any[], metadata?: object}, more?: {files?: any[], messageId?: string}) => Promise<void>} send
 *   ends with the response
 * @property {() => Promise<void>} stop disconnects
 * @property {() => Promise<void>} resume
 * @property {() => Promise<void>} regenerate
 * @property {(decision: {id: string, approved: boolean, reason?: string}) => Promise<void>} decide
 */

let count = 0;

function newId() {
  count += 1;
  return `chat-${process.pid}-${count}`;
}

/** The newest release of a major version, or its first, in this process. @param {string} name @returns {Promise<Client & {module: any}>} */
export async function release(name) {
  const module = await import(name);
  const profile = Number(name.split("-")[1]);
  const client = { name, profile, module, isFirst: name.endsWith("-first") };
  const open = async (/** @type {any} */ callboard, /** @type {Options} */ options = {}) => openHere(client, callboard, options);
  return { ...client, open };
}

/** Messages in memory, instead of React's state. */
class Memory {
  status = "ready";
  error = undefined;
  /** @param {any[]} messages */
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = (/** @type {any} */ message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (/** @type {number} */ idx, /** @type {any} */ message) =>
    void (this.messages = this.messages.map((it, n) => (n === idx ? structuredClone(message) : it)));
  snapshot = (/** @type {any} */ value) => structuredClone(value);
}

/** Creates a chat of that release. @param {any} module @param {any} options options of `useChat` @returns {any} */
export function newChat(module, { messages = [], ...options }) {
  const Chat = class extends module.AbstractChat {};
  return new /** @type {any} */ (Chat)({ ...options, state: new Memory(messages) });
}

/** @param {{module: any, profile: number}} client @param {any} callboard @param {Options} options @returns {Chat} */
function openHere({ module, profile }, callboard, { id = newId(), agent, tools, messages = [], outputs = {}, errors = {}, byHand = false }) {
  const api = `${callboard.base}api/chat${agent ? `/${agent}` : ""}`;
  const headers = { Authorization: `Bearer ${callboard.token}`, "x-callboard-profile": String(profile) };
  const chat = newChat(module, {
    id,
    transport: new module.DefaultChatTransport({ api, headers, body: { tools } }),
    messages,
    sendAutomaticallyWhen: (/** @type {any} */ it) =>
      !byHand &&
      (module.lastAssistantMessageIsCompleteWithToolCalls(it) ||
        module.lastAssistantMessageIsCompleteWithApprovalResponses?.(it)),
    onToolCall: (/** @type {any} */ { toolCall: { toolName, toolCallId } }) => {
      const give = chat.addToolOutput ?? chat.addToolResult;
      const call = { tool: toolName, toolCallId };
      if (toolName in outputs) void give.call(chat, { ...call, output: outputs[toolName] });
      if (toolName in errors) void give.call(chat, { ...call, state: "output-error", errorText: errors[toolName] });
    },
  });
  return {
    id,
    look: async () => JSON.parse(JSON.stringify({ messages: chat.messages, status: chat.status, error: chat.error?.message })),
    send: (message, more) => chat.sendMessage(typeof message === "string" ? { text: message, ...more } : message),
    stop: () => chat.stop(),
    resume: () => chat.resumeStream(),
    regenerate: () => chat.regenerate(),
    decide: (decision) => chat.addToolApprovalResponse(decision),
  };
}

/**
 * The hook of a major version, on a page of another origin than Callboard's, which must allow `origin`.
 * @param {number} profile
 * @param {string} origin
 * @param {() => Promise<import("playwright-core").Page>} newPage
 * @returns {Client}
 */
export function hook(profile, origin, newPage) {
  return {
    name: `react-${profile}`,
    profile,
    isFirst: false,
    open: async ({ base, token }, { id = newId(), ...options } = {}) => {
      const page = await newPage();
      const settings = { base, token, profile, id, ...options };
      await page.addInitScript((it) => void (/** @type {any} */ (globalThis).SETTINGS = it), settings);
      await page.goto(`${origin}/${profile}`);
      await page.locator("pre").waitFor();
      /** Calls a function of the hook and awaits its result. @param {string} name @param {any[]} args */
      const call = (name, ...args) =>
        page.evaluate(async ([name, args]) => {
          // Set before each call, because every rendering creates new ones.
          await /** @type {any} */ (globalThis).chat[name](...args);
        }, /** @type {const} */ ([name, args]));
      return {
        id,
        look: async () => JSON.parse(await page.locator("pre").innerText()),
        send: (text, more) => call("send", text, more),
        stop: () => call("stop"),
        resume: () => call("resume"),
        regenerate: () => call("regenerate"),
        decide: (decision) => call("decide", decision),
      };
    },
  };
}

/** Serves `chat_hook.jsx`, built with the packages of each version. Gives the origin. @param {{after: (end: () => Promise<void>) => void}} scope */
export async function serveHooks(scope) {
  /** @type {Map<string | undefined, string>} */
  const scripts = new Map();
  for (const profile of [4, 5, 6, 7]) {
    const { outputFiles } = await build({
      // The folder of the packages.
      absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
      entryPoints: ["chat_hook.jsx"],
      bundle: true,
      write: false,
      jsx: "automatic",
      alias: { ai: `ai-${profile}`, "@ai-sdk/react": `ai-react-${profile}` },
    });
    scripts.set(`/${profile}.js`, outputFiles[0].text);
  }
  const server = createServer((request, response) => {
    const script = scripts.get(request.url);
    response.setHeader("content-type", script ? "text/javascript" : "text/html; charset=utf-8");
    response.end(script ?? `<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script src="${request.url}.js"></script>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  scope.after(async () => void server.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return `http://127.0.0.1:${port}`;
}

/** The stored messages of a chat, in the client's format. @param {any} callboard @param {string} id @param {number} profile */
export async function kept(callboard, id, profile) {
  const format = profile === 4 ? "ui-v4&order=asc" : `ui&profile=${profile}`;
  const { messages } = await callboard.api(`sessions/${id}/messages?format=${format}`);
  return messages;
}

/**
 * Everything on which both sides must agree, without
 * - the time of a user message, which only the server knows unless the client sends it;
 * - the ids of thinking, which the first releases do not store;
 * - the differences of version 4, see below.
 * @param {any[]} messages @param {Client} client
 */
export function shared(messages, { profile, isFirst }) {
  const copies = structuredClone(messages);
  if (profile === 4) return copies.map(shared4);
  for (const message of copies) {
    if (message.role === "user" && message.metadata) {
      delete message.metadata.createdAt;
      if (Object.keys(message.metadata).length === 0) delete message.metadata;
    }
    for (const part of message.parts) {
      if (isFirst && part.type === "reasoning") delete part.id;
    }
  }
  return copies;
}

/**
 * Version 4 stores details twice, of which the parts count: `content` is all text there and the last one here,
 * `reasoning` and `toolInvocations` are absent here. It counts steps, has its own clock, and appends
 * annotations instead of replacing them.
 * @param {any} message
 */
function shared4({ id, role, content, parts, annotations = [], experimental_attachments }) {
  const last = new Map(
    annotations.map((/** @type {any} */ it) => [JSON.stringify([it.toolCallId, it.messageId, it.type, it.id]), it]),
  );
  const kept = parts.filter((/** @type {any} */ it) => it.type !== "step-start");
  for (const { toolInvocation } of kept) delete toolInvocation?.step;
  return {
    id,
    role,
    parts: kept,
    annotations: [...last.values()],
    ...(role === "user" && { content, experimental_attachments }),
  };
}

/** Both sides have the same messages. @param {Chat} chat @param {any} callboard @param {Client} client */
export async function assertKept(chat, callboard, client) {
  const { messages } = await chat.look();
  const here = shared(messages, client);
  assert.deepEqual(here, shared(await kept(callboard, chat.id, client.profile), client));
  return messages;
}

/**
 * A message in a form that all versions share, a line for each part: `text`, `reasoning`, `NAME: STATE`.
 * @param {any} message @returns {string[]}
 */
export function outline(message) {
  const named = message.parts.filter((/** @type {any} */ it) => it.type !== "step-start");
  return named.map((/** @type {any} */ { type, state, toolName, toolInvocation }) => {
    if (toolInvocation) return `${toolInvocation.toolName}: ${state4(toolInvocation)}`;
    if (type === "dynamic-tool") return `${toolName}: ${state}`;
    return type.startsWith("tool-") ? `${type.slice("tool-".length)}: ${state}` : type;
  });
}

/** The state of a call, as named by later versions. @param {any} invocation */
function state4({ state, result }) {
  if (state !== "result") return state === "call" ? "input-available" : "input-streaming";
  return result?.error ? "output-error" : "output-available";
}

/** Input and output of a call. @param {any} message @param {string} name */
export function call(message, name) {
  const part = message.parts.find((/** @type {any} */ it) => it.type === `tool-${name}` || it.toolInvocation?.toolName === name);
  const { toolCallId, args, result, input = args, output = result, errorText, approval } = part.toolInvocation ?? part;
  return { id: toolCallId, input, output, error: errorText ?? result?.error?.message, approval };
}

/** The whole text of a message. @param {any} message @returns {string} */
export function text(message) {
  return message.parts.map((/** @type {any} */ it) => it.text ?? it.reasoning ?? "").join("");
}

// The AI SDK's endpoints without a client: wire format, choice of agent, and refusals.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { kept, outline, text } from "./ai_sdk.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { startModel } from "./models.mjs";

const ORIGIN = "http://front.example";
const HELLO = { role: "user", parts: [{ type: "text", text: "hello" }] };

/** @type {Awaited<ReturnType<typeof startCallboard>>} */
let callboard;
/** @type {Awaited<ReturnType<typeof startModel>>} */
let model;
/** @type {(() => Promise<void>)[]} */
const ends = [];
before(async () => {
  const scope = { after: (/** @type {() => Promise<void>} */ end) => void ends.unshift(end) };
  model = await startModel(scope);
  const config = `[server]\nallowed_origins = ["${ORIGIN}"]\n[demo]\npace = "instant"\n${model.agent}`;
  callboard = await startCallboard(scope, { config });
});
after(async () => {
  for (const end of ends) await end();
});

let count = 0;

function newId() {
  count += 1;
  return `request-${count}`;
}

/**
 * @param {string} path below `/api/chat`
 * @param {{method?: string, body?: any, headers?: Record<string, string>}} [options]
 */
async function ask(path, { method, body, headers } = {}) {
  const response = await fetch(`${callboard.base}api/chat${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { Authorization: `Bearer ${callboard.token}`, ...headers },
    body: typeof body === "object" ? JSON.stringify(body) : body,
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** The chunks of a body, whose frames are checked. @param {string} body @returns {any[]} */
function chunks(body) {
  const frames = body.split("\n\n");
  assert.equal(frames.pop(), "", "the last one is closed");
  assert.equal(frames.pop(), "data: [DONE]");
  return frames.filter((it) => !it.startsWith(":")).map((frame) => {
    assert.match(frame, /^data: \{.*\}$/);
    return JSON.parse(frame.slice("data: ".length));
  });
}

test("a stream has its headers and frames", async () => {
  const { status, headers, text } = await ask("", { body: { id: newId(), messages: [HELLO] } });
  const named = ["content-type", "cache-control", "x-vercel-ai-ui-message-stream", "x-accel-buffering"];
  assert.deepEqual([status, ...named.map((it) => headers.get(it))], [200, "text/event-stream", "no-cache", "v1", "no"]);
  const kinds = chunks(text).map(({ type }) => type);
  assert.deepEqual([...new Set(kinds)], ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]);
});

test("a stream of version 4 has its headers", async () => {
  const body = { id: newId(), messages: [{ role: "user", content: "hello" }] };
  const { status, headers, text } = await ask("/v4", { body });
  const named = ["content-type", "x-vercel-ai-data-stream"];
  assert.deepEqual([status, ...named.map((it) => headers.get(it))], [200, "text/plain; charset=utf-8", "v1"]);
  // A blank line keeps the connection open.
  const codes = text.split("\n").filter(Boolean).map((it) => it[0]);
  assert.deepEqual([...new Set(codes)], ["f", "0", "e", "8", "d"]);
});

test("ids are the same in every response of a run", async () => {
  const body = { id: newId(), messages: [{ ...HELLO, id: "once" }] };
  const [first, again] = [await ask("", { body }), await ask("", { body })];
  assert.equal(again.text.match(/"messageId":"[^"]+"/)?.[0], first.text.match(/"messageId":"[^"]+"/)?.[0]);
  const [message, answer, ...rest] = await kept(callboard, body.id, 6);
  assert.deepEqual([message.id, answer.id, rest], ["once", chunks(first.text)[0].messageId, []]);
});

test("failed and cancelled runs end with their reason", async () => {
  const sendMessage = async (/** @type {string} */ text, query = "") =>
    chunks((await ask(`/demo${query}`, { body: { id: newId(), messages: [{ role: "user", parts: [{ type: "text", text }] }] } })).text);
  const failed = await sendMessage("break");
  assert.equal(failed.at(-1).type, "error");
  assert.match(failed.at(-1).errorText, /broke off/);
  assert.equal(failed.at(-2).messageMetadata.status, "failed");
  assert.equal((await sendMessage("hello", "?profile=5")).at(-1).finishReason, undefined);
  assert.equal((await sendMessage("hello")).at(-1).finishReason, "stop");
});

test("the first releases lose nothing of a very long text", async () => {
  const long = "Ünd so weiter 🙂 ".repeat(20_000);
  model.willAnswer({ text: long });
  const id = newId();
  const streamed = chunks((await ask("/model?profile=5", { body: { id, messages: [HELLO] } })).text);
  assert.equal(streamed.map(({ delta }) => delta ?? "").join(""), long);
  assert.equal(text((await kept(callboard, id, 5))[1]), long);
});

test("unknown fields and nulls are ignored", async () => {
  const id = newId();
  const body = { id, messages: [HELLO], message: null, trigger: null, messageId: null, tools: null, mood: { good: true } };
  const { status } = await ask("", { body });
  assert.equal(status, 200);
  assert.equal((await kept(callboard, id, 6)).length, 2);
});

test("the last message alone is enough", async () => {
  const id = newId();
  for (const message of [HELLO, HELLO]) assert.equal((await ask("", { body: { id, message } })).status, 200);
  assert.equal((await kept(callboard, id, 6)).length, 4);
});

test("an unanswered message of another client is not answered here", async () => {
  const id = newId();
  const system = { role: "system", parts: [{ type: "text", text: "Be brief." }] };
  const { text } = await ask("", { body: { id, messages: [HELLO, system, HELLO] } });
  const messages = await kept(callboard, id, 6);
  assert.deepEqual(messages.map((/** @type {any} */ { role }) => role), ["user", "system", "user", "assistant"]);
  assert.equal(chunks(text)[0].messageId, messages.at(-1).id);
});

test("version 4 works without ids and with nothing to resume", async () => {
  const id = newId();
  const message = { role: "user", content: "hello" };
  for (const messages of [[message], [message, { role: "assistant", content: "Hi" }, message]]) {
    assert.equal((await ask("/v4/demo", { body: { id, messages } })).status, 200);
  }
  assert.equal((await kept(callboard, id, 4)).length, 4);
  for (const chat of [id, "unknown", "no/id"]) {
    const { status, text } = await ask(`/v4?chatId=${encodeURIComponent(chat)}`);
    assert.deepEqual([status, text], [200, ""], "its client can read nothing else");
  }
});

test("nothing to resume is 204 for every session id", async () => {
  for (const chat of [newId(), "no%20id", "no%2Fid"]) assert.equal((await ask(`/${chat}/stream`)).status, 204);
  assert.equal((await ask(`/demo/${newId()}/stream`)).status, 204);
  assert.equal((await ask(`/${newId()}/stream`, { method: "HEAD" })).status, 204);
});

test("allowed origins may send all headers of the clients", async () => {
  const preflight = {
    Origin: ORIGIN,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,user-agent,x-callboard-profile,x-callboard-agent",
  };
  const { status, headers } = await ask("", { method: "OPTIONS", headers: preflight });
  assert.deepEqual([status, headers.get("access-control-allow-origin")], [204, ORIGIN]);
  // The star covers all headers but the token, because cookies are not allowed.
  assert.equal(headers.get("access-control-allow-headers"), "authorization, *");
  assert.equal(headers.get("access-control-allow-credentials"), null);
  const answered = await ask("", { body: { id: newId(), messages: [HELLO] }, headers: { Origin: ORIGIN } });
  assert.equal(answered.headers.get("access-control-allow-origin"), ORIGIN);
});

test("requests that make no sense are refused in plain words, and change nothing", async () => {
  const before = await callboard.api("sessions");
  /** @type {[string, any, number, RegExp][]} */
  const cases = [
    ["", "nonsense", 400, /JSON object/],
    ["", "[]", 400, /JSON object/],
    ["", {}, 400, /messages/],
    ["", { id: "a/b", messages: [HELLO] }, 400, /`id`/],
    ["", { id: 7, messages: [HELLO] }, 400, /`id`/],
    ["", { id: "x", messages: [] }, 400, /no message/],
    ["", { id: "x", messages: {} }, 400, /no array/],
    ["", { id: "x", messages: [null] }, 400, /no object/],
    ["", { id: "x", messages: [HELLO], trigger: "dance" }, 400, /trigger/],
    ["", { id: "x", messages: [], trigger: "regenerate-message" }, 404, /no session/],
    ["", { id: "x", messages: [{ role: "user", parts: [] }] }, 400, /neither text nor files/],
    ["", { id: "x", messages: [{ role: "user" }] }, 400, /parts/],
    ["", { id: "x", messages: [{ role: "robot", parts: [] }] }, 400, /role/],
    ["", { id: "x", messages: [HELLO], tools: { "a b": {} } }, 400, /name/],
    ["", { id: "x", messages: [HELLO], tools: 7 }, 400, /tools/],
    ["/nobody", { id: "x", messages: [HELLO] }, 400, /nobody/],
    ["?profile=9", { id: "x", messages: [HELLO] }, 400, /profile|variant/],
    ["", { id: "x", messages: [{ role: "assistant", parts: [] }] }, 404, /no session/],
    ["/v4", { id: "x", messages: [] }, 400, /no message/],
    ["/v4", { id: "x" }, 400, /messages/],
  ];
  for (const [path, body, status, pattern] of cases) {
    const refused = await ask(path, { body });
    assert.equal(refused.status, status, `${JSON.stringify(body)}: ${refused.text}`);
    assert.match(refused.text, pattern);
    assert.match(refused.headers.get("content-type") ?? "", /^text\/plain/);
  }
  assert.deepEqual(await callboard.api("sessions"), before);
});

test("the body, header or path chooses the agent, else it is the first", async () => {
  const agent = async (/** @type {string} */ path, headers = {}, body = {}) => {
    model.willAnswer({ text: "Yes." });
    const id = newId();
    await ask(path, { headers, body: { id, messages: [HELLO], ...body } });
    return (await callboard.api(`sessions/${id}`)).agent;
  };
  const [{ id: first }] = (await callboard.api("agents")).agents;
  assert.equal(await agent(""), first);
  assert.equal(await agent("/model"), "model");
  assert.equal(await agent("", { "x-callboard-agent": "model" }), "model");
  assert.equal(await agent("/demo", { "x-callboard-agent": "demo" }, { agent: "model" }), "model");
});

test("a pending client tool survives a restart and accepts any client", async (t) => {
  const own = await startCallboard(t);
  const id = newId();
  const message = { role: "user", parts: [{ type: "text", text: "use the client tool pick" }] };
  const headers = { Authorization: `Bearer ${own.token}` };
  const body = JSON.stringify({ id, messages: [message], tools: { pick: {} } });
  await (await fetch(`${own.base}api/chat`, { method: "POST", headers, body })).text();
  const [, asked] = await kept(own, id, 6);
  assert.equal(outline(asked).at(-1), "pick: input-available");
  await own.restart();
  await own.api(`sessions/${id}/calls/${asked.parts.at(-1).toolCallId}/result`, { body: { output: "blue" } });
  await until(async () => (await own.events(id)).some(({ type }) => type === "run_finish"));
  const [, answer] = await kept(own, id, 6);
  assert.match(text(answer), /blue/);
  assert.equal(answer.parts.find((/** @type {any} */ it) => it.type === "tool-pick").output, "blue");
});

// Front ends made for the AI SDK, versions 5 to 7: every release that is tested takes every case, against a
// running Callboard, and both sides keep the same messages.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { SDKS, assertKept, kept, openChat, parts } from "./ai_sdk.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import { startModel } from "./models.mjs";

/** @typedef {import("./ai_sdk.mjs").Sdk} Sdk */

/** @type {Awaited<ReturnType<typeof startCallboard>>} */
let callboard;
/** Talks at the speed of a model. @type {typeof callboard} */
let slow;
/** @type {Awaited<ReturnType<typeof startModel>>} */
let model;
/** @type {(() => Promise<void>)[]} */
const ends = [];
const scope = { after: (/** @type {() => Promise<void>} */ end) => void ends.unshift(end) };
before(async () => {
  model = await startModel(scope);
  callboard = await startCallboard(scope, { config: `[demo]\npace = "instant"\n${model.agent}` });
  slow = await startCallboard(scope, { config: NATURAL });
});
after(async () => {
  for (const end of ends) await end();
});

/** A case for every release that can take it. @param {string} name @param {(sdk: Sdk, t: any) => Promise<void>} run */
function testEach(name, run, from = 5) {
  for (const sdk of SDKS.filter(({ profile }) => profile >= from)) {
    test(`${sdk.name}: ${name}`, (t) => run(sdk, t));
  }
}

/** Runs a chat in which all of this is said. @param {Sdk} sdk @param {string[]} texts @param {object} [options] */
async function talk(sdk, texts, options) {
  const chat = openChat(sdk, callboard, { agent: "demo", ...options });
  for (const text of texts) await chat.sendMessage({ text });
  return chat;
}

/** @type {[string, string, (chat: any) => void][]} */
const ANSWERS = [
  ["text", "hello", (chat) => assert.match(parts(chat, "text")[0].text, /demo agent/)],
  ["reasoning", "think about breakfast", (chat) => assert.equal(parts(chat, "reasoning").length, 1)],
  ["a tool", "what time is it in Paris?", (chat) => assert.equal(parts(chat, "tool-time")[0].state, "output-available")],
  ["parallel tools", "what time is it in Paris and Tokyo?", (chat) => assert.equal(parts(chat, "tool-time").length, 2)],
  ["a tool's error", "read nowhere.txt", (chat) => assert.match(parts(chat, "tool-read_file")[0].errorText, /nowhere/)],
];
for (const [name, text, check] of ANSWERS) {
  testEach(name, async (sdk) => {
    const chat = await talk(sdk, [text]);
    assert.equal(chat.status, "ready", chat.error);
    check(chat);
    await assertKept(chat, callboard, sdk);
  });
}

testEach("a chat of several messages goes on where it was", async (sdk) => {
  const chat = await talk(sdk, ["hello", "think about tea", "what time is it?"]);
  assert.equal(chat.messages.length, 6);
  await assertKept(chat, callboard, sdk);
});

testEach("an error of the agent", async (sdk) => {
  const chat = await talk(sdk, ["break"]);
  assert.equal(chat.status, "error");
  assert.match(chat.error.message, /broke off/);
  await assertKept(chat, callboard, sdk);
});

for (const approved of [true, false]) {
  testEach(
    `a call that the reader ${approved ? "allows" : "refuses"}`,
    async (sdk) => {
      const chat = await talk(sdk, ["run echo hi > made.txt"], {
        sendAutomaticallyWhen: sdk.module.lastAssistantMessageIsCompleteWithApprovalResponses,
      });
      const [call] = parts(chat, "tool-shell");
      assert.equal(call.state, "approval-requested");
      await assertKept(chat, callboard, sdk);
      const { id } = chat.messages.at(-1);
      await chat.addToolApprovalResponse({ id: call.approval.id, approved, reason: approved ? undefined : "No." });
      await until(async () => chat.status === "ready" && parts(chat, "text").length === 2);
      assert.equal(parts(chat, "tool-shell")[0].state, approved ? "output-available" : "output-denied");
      assert.equal(chat.messages.at(-1).id, id, "the same message goes on");
      assert.equal(chat.messages.length, 2);
      await assertKept(chat, callboard, sdk);
    },
    6,
  );
}

test("ai-5: a question is answered elsewhere, and the stream waits for it", async () => {
  const sdk = SDKS[0];
  const chat = openChat(sdk, callboard, { agent: "demo" });
  const said = chat.sendMessage({ text: "run echo hi > made.txt" });
  await until(async () => chat.messages.length === 2 && parts(chat, "tool-shell")[0]?.state === "input-available");
  const call = parts(chat, "tool-shell")[0].toolCallId;
  await callboard.api(`sessions/${chat.id}/calls/${call}/approval`, { body: { decision: "accepted" } });
  await said;
  assert.equal(parts(chat, "tool-shell")[0].state, "output-available");
  await assertKept(chat, callboard, sdk);
});

const TOOLS = { pick_colour: { description: "Lets the user pick", parameters: { type: "object" } } };

/** A chat whose page runs the tool. @param {Sdk} sdk @param {string} agent @param {(chat: any, id: string) => any} give */
function withTool(sdk, agent, give) {
  /** @type {any} */
  const chat = openChat(sdk, callboard, {
    agent,
    body: { tools: TOOLS },
    sendAutomaticallyWhen: sdk.module.lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: (/** @type {any} */ { toolCall }) => void give(chat, toolCall.toolCallId),
  });
  return chat;
}

/** @param {any} chat @param {string} toolCallId @param {unknown} output */
function giveOutput(chat, toolCallId, output) {
  const give = chat.addToolOutput ?? chat.addToolResult;
  return give.call(chat, { tool: "pick_colour", toolCallId, output });
}

testEach("a tool of the client, called by the demo agent", async (sdk) => {
  const chat = withTool(sdk, "demo", (chat, id) => giveOutput(chat, id, { colour: "teal" }));
  await chat.sendMessage({ text: 'use the client tool pick_colour with {"of":"wall"}' });
  await until(async () => chat.status === "ready" && parts(chat, "text").length === 2);
  const [call] = parts(chat, "tool-pick_colour");
  assert.deepEqual([call.state, call.input, call.output], ["output-available", { of: "wall" }, { colour: "teal" }]);
  assert.match(parts(chat, "text").at(-1).text, /teal/);
  await assertKept(chat, callboard, sdk);
});

testEach("a tool of the client, called by a model", async (sdk) => {
  model.willSay({ call: "pick_colour", arguments: { of: "door" } }, { text: "Red it is." });
  const chat = withTool(sdk, "model", (chat, id) => giveOutput(chat, id, "red"));
  await chat.sendMessage({ text: "Which colour?" });
  await until(async () => chat.status === "ready" && parts(chat, "text").length === 1);
  assert.ok(model.asked.at(-1).tools.some((/** @type {any} */ it) => it.function.name === "pick_colour"));
  assert.match(JSON.stringify(model.asked.at(-1).messages.at(-1)), /red/);
  await assertKept(chat, callboard, sdk);
});

test("ai-6: what the client's tool waits for survives a restart, and another client may give it", async (t) => {
  const own = await startCallboard(t);
  const sdk = SDKS[2];
  const chat = openChat(sdk, own, { body: { tools: TOOLS } });
  await chat.sendMessage({ text: "use the client tool pick_colour" });
  const call = parts(chat, "tool-pick_colour")[0].toolCallId;
  await own.restart();
  await own.api(`sessions/${chat.id}/calls/${call}/result`, { body: { output: "blue" } });
  await until(async () => (await own.events(chat.id)).some(({ type }) => type === "run_finish"));
  const [, answer] = await kept(own, chat.id);
  const [{ output }] = answer.parts.filter((/** @type {any} */ it) => it.type === "tool-pick_colour");
  assert.equal(output, "blue");
  assert.match(answer.parts.at(-1).text, /blue/);
});

testEach("a client that stops listening stops nothing, and can come back", async (sdk) => {
  const chat = openChat(sdk, slow);
  const said = chat.sendMessage({ text: "tell me a story" });
  await until(async () => chat.messages.length === 2 && parts(chat, "text").length === 1);
  await chat.stop();
  await said;
  const again = openChat(sdk, slow, { id: chat.id, messages: chat.messages.slice(0, 1) });
  const resumed = again.resumeStream();
  await until(async () => again.messages.length === 2 && parts(again, "text")[0]?.text.length > 0);
  await slow.api(`sessions/${chat.id}/cancel`, { method: "POST" });
  await resumed;
  assert.equal(again.messages.at(-1).metadata.status, "cancelled");
  await assertKept(again, slow, sdk);
});

testEach("there is nothing to resume in an idle chat or an unknown one", async (sdk) => {
  const chat = await talk(sdk, ["hello"]);
  const before = structuredClone(chat.messages);
  await chat.resumeStream();
  assert.deepEqual(chat.messages, before);
  assert.equal(chat.error, undefined);
  const unknown = openChat(sdk, callboard);
  await unknown.resumeStream();
  assert.equal(unknown.error, undefined);
});

testEach("an answer is made again, and a message said in other words", async (sdk) => {
  const chat = await talk(sdk, ["hello", "what time is it in Paris?"]);
  const [, , , { id }] = chat.messages;
  await chat.regenerate();
  assert.notEqual(chat.messages.at(-1).id, id);
  assert.equal(chat.messages.length, 4);
  await assertKept(chat, callboard, sdk);
  for (const text of ["think about tea", "think about milk"]) {
    await chat.sendMessage({ text, messageId: chat.messages[0].id });
    assert.equal(chat.messages.length, 2, chat.error);
    assert.equal(chat.messages[0].parts[0].text, text);
    await assertKept(chat, callboard, sdk);
  }
  const reasons = (await callboard.events(chat.id)).flatMap(({ type, reason }) => (type === "history_rewound" ? [reason] : []));
  assert.deepEqual(reasons, ["regenerate", "edit", "edit"]);
});

testEach("a message sent while the agent works is answered in its turn", async (sdk) => {
  const first = openChat(sdk, slow);
  const told = first.sendMessage({ text: "tell me a story" });
  await until(async () => first.messages.length === 2);
  const second = openChat(sdk, slow, { id: first.id, messages: first.messages.slice(0, 1) });
  const answered = second.sendMessage({ text: "hello" });
  await until(async () => (await slow.api(`sessions/${first.id}/queue`)).messages.length === 1);
  await slow.api(`sessions/${first.id}/cancel`, { method: "POST" });
  await slow.api(`sessions/${first.id}/queue/release`, { method: "POST" });
  await told;
  await answered;
  assert.match(parts(second, "text")[0].text, /demo agent/);
});

const PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

testEach("a file goes along with a message", async (sdk) => {
  const chat = openChat(sdk, callboard, { agent: "demo" });
  const files = [{ type: "file", mediaType: "image/png", filename: "dot.png", url: PICTURE }];
  await chat.sendMessage({ text: "hello", files });
  const [{ parts: said }] = await kept(callboard, chat.id);
  assert.equal(said[0].filename, "dot.png");
  const response = await fetch(new URL(said[0].url, callboard.base), { headers: { Authorization: `Bearer ${callboard.token}` } });
  assert.equal(Buffer.from(await response.arrayBuffer()).toString("base64"), PICTURE.split(",")[1]);
});

/** A conversation that was held elsewhere, with every kind of part. */
const HISTORY = [
  { id: "u1", role: "user", parts: [{ type: "file", mediaType: "image/png", filename: "dot.png", url: PICTURE }, { type: "text", text: "Look" }] },
  {
    id: "a1",
    role: "assistant",
    parts: [
      { type: "step-start" },
      { type: "reasoning", text: "Hm.", state: "done" },
      { type: "text", text: "I will look.", state: "done" },
      { type: "tool-look", toolCallId: "c1", state: "output-available", input: { at: 1 }, output: { seen: true } },
      { type: "tool-touch", toolCallId: "c2", state: "output-error", input: {}, errorText: "Too hot." },
      { type: "dynamic-tool", toolName: "wait", toolCallId: "c3", state: "input-available", input: {} },
      { type: "step-start" },
      { type: "source-url", sourceId: "s1", url: "https://example.com", title: "Example" },
      { type: "data-weather", id: "w", data: { sun: true } },
      { type: "text", text: "A dot.", state: "done" },
    ],
  },
];

testEach("a new chat brings its history along, and the agent knows it", async (sdk) => {
  const chat = openChat(sdk, callboard, { agent: "model", messages: structuredClone(HISTORY) });
  model.willSay({ text: "As I said." });
  await chat.sendMessage({ text: "What was it?" });
  assert.equal(chat.status, "ready", chat.error);
  const asked = JSON.stringify(model.asked.at(-1).messages);
  for (const known of ["Look", "A dot.", "Too hot.", "seen"]) assert.ok(asked.includes(known), known);
  const messages = await kept(callboard, chat.id);
  assert.deepEqual(messages.map((/** @type {any} */ it) => it.role), ["user", "assistant", "user", "assistant"]);
  assert.equal(messages[1].id, "a1");
  const marks = (await callboard.events(chat.id)).filter(({ type, text }) => type === "notice" && /client/.test(text));
  assert.equal(marks.length, 1, "it is marked as the client's");
});

test("requests that make no sense are refused in plain words, and change nothing", async () => {
  const send = async (/** @type {string} */ path, /** @type {any} */ body, headers = {}) => {
    const response = await fetch(`${callboard.base}api/chat${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${callboard.token}`, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
  const before = await callboard.api("sessions");
  const message = { role: "user", parts: [{ type: "text", text: "hello" }] };
  /** @type {[string, any, number, RegExp][]} */
  const cases = [
    ["", "nonsense", 400, /JSON object/],
    ["", {}, 400, /messages/],
    ["", { id: "a/b", messages: [message] }, 400, /`id`/],
    ["", { id: "x", messages: [] }, 400, /no message/],
    ["", { id: "x", messages: [message], trigger: "dance" }, 400, /trigger/],
    ["", { id: "x", messages: [{ role: "user", parts: [] }] }, 400, /neither text nor files/],
    ["", { id: "x", messages: [message], tools: { "a b": {} } }, 400, /name/],
    ["/nobody", { id: "x", messages: [message] }, 400, /nobody/],
    ["?profile=9", { id: "x", messages: [message] }, 400, /profile|variant/],
    ["", { id: "x", messages: [{ role: "assistant", parts: [] }] }, 404, /no session/],
    ["/v4", { id: "x", messages: [] }, 400, /no message/],
  ];
  for (const [path, body, status, text] of cases) {
    const refused = await send(path, body);
    assert.equal(refused.status, status, refused.text);
    assert.match(refused.text, text);
    assert.match(refused.type ?? "", /^text\/plain/);
  }
  assert.deepEqual(await callboard.api("sessions"), before);
});

test("the agent is the one that the body, the header or the path names, else the first", async () => {
  const ask = async (/** @type {string} */ path, headers = {}, body = {}) => {
    model.willSay({ text: "Yes." });
    const id = `agent-${Math.random().toString(36).slice(2)}`;
    const message = { role: "user", parts: [{ type: "text", text: "hello" }] };
    await (
      await fetch(`${callboard.base}api/chat${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${callboard.token}`, ...headers },
        body: JSON.stringify({ id, messages: [message], ...body }),
      })
    ).text();
    return (await callboard.api(`sessions/${id}`)).agent;
  };
  const [{ id: first }] = (await callboard.api("agents")).agents;
  assert.equal(await ask(""), first);
  assert.equal(await ask("/model"), "model");
  assert.equal(await ask("", { "x-callboard-agent": "model" }), "model");
  assert.equal(await ask("/demo", { "x-callboard-agent": "demo" }, { agent: "model" }), "model");
});

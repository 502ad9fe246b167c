// AG-UI clients: every tested release runs every case against a running Callboard, and
// both sides store the same messages.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { RELEASES, address, assertKept, calls, complaints, kept, of, openAgent, run, runWell } from "./ag_ui.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import { startModel } from "./models.mjs";

/** @typedef {import("./ag_ui.mjs").Release} Release */

/** @type {Awaited<ReturnType<typeof startCallboard>>} */
let callboard;
/** A demo agent at the speed of a model. @type {typeof callboard} */
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

/** Adds a test for every release that supports the case. @param {string} name @param {(release: Release, t: any) => Promise<void>} take */
function testEach(name, take, { interrupts = false } = {}) {
  for (const release of RELEASES.filter(({ hasInterrupts }) => hasInterrupts || !interrupts)) {
    test(`${release.name}: ${name}`, (t) => take(release, t));
  }
}

/** @type {[string, string, (agent: any) => void][]} */
const ANSWERS = [
  ["text", "hello", (agent) => assert.match(of(agent, "assistant")[0].content, /demo agent/)],
  ["reasoning", "think about breakfast", (agent) => assert.equal(of(agent, "reasoning").length, 1)],
  ["a tool", "what time is it in Paris?", (agent) => assert.match(of(agent, "tool")[0].content, /Paris/)],
  ["parallel tools", "what time is it in Paris and Tokyo?", (agent) => assert.equal(of(agent, "tool").length, 2)],
  ["a tool's error", "read nowhere.txt", (agent) => assert.match(JSON.parse(of(agent, "tool")[0].content).error, /nowhere/)],
];
for (const [name, text, check] of ANSWERS) {
  testEach(name, async (release) => {
    const agent = openAgent(release, callboard, { agent: "demo" });
    const { events } = await runWell(agent, text, { runId: "my-run" });
    check(agent);
    for (const end of [events[0], events.at(-1)]) {
      assert.deepEqual([end.threadId, end.runId], [agent.threadId, "my-run"]);
    }
    await assertKept(agent, callboard);
  });
}

testEach("a conversation of several runs continues", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  for (const text of ["hello", "think about tea", "what time is it?", "read nowhere.txt"]) {
    const { events } = await runWell(agent, text);
    assert.ok(!events.some(({ type }) => type === "MESSAGES_SNAPSHOT"), "the client has it all");
    await assertKept(agent, callboard);
  }
  assert.equal(of(agent, "user").length, 4);
});

testEach("a run follows a failed run", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  const { error, failed, last } = await run(agent, "break");
  assert.match(error ?? "", /broke off/);
  assert.equal(failed, undefined);
  assert.equal(last.type, "RUN_ERROR");
  await assertKept(agent, callboard);
  await runWell(agent, "hello");
  await assertKept(agent, callboard);
});

/** @type {[string, object, RegExp][]} */
const DECISIONS = [
  ["allows", { status: "resolved", payload: { approved: true } }, /exit|hi|0/i],
  ["refuses", { status: "resolved", payload: { approved: false, reason: "Not today." } }, /Not today/],
  ["turns away from", { status: "cancelled" }, /error/],
  ["changes", { status: "resolved", payload: { approved: true, editedArgs: { command: "echo changed" } } }, /changed/],
];
for (const [name, decision, result] of DECISIONS) {
  testEach(
    `a call that the reader ${name}`,
    async (release) => {
      const agent = openAgent(release, callboard, { agent: "demo" });
      const asked = await runWell(agent, "run echo hi > made.txt");
      const [call] = calls(agent);
      assert.equal(call.function.name, "shell");
      const [interrupt] = asked.last.outcome.interrupts;
      assert.equal(interrupt.toolCallId, call.id);
      assert.equal(of(agent, "tool").length, 0);
      await assertKept(agent, callboard);
      const { events } = await runWell(agent, undefined, { resume: [{ interruptId: interrupt.id, ...decision }] });
      assert.ok(!events.some(({ type }) => type === "TOOL_CALL_START"), "the call is known");
      assert.match(of(agent, "tool")[0].content, result);
      const starts = (await callboard.events(agent.threadId)).filter(({ type }) => type === "run_start");
      assert.equal(starts.length, 1, "the same run goes on");
      await assertKept(agent, callboard);
    },
    { interrupts: true },
  );
}

testEach(
  "a decision and a new message arrive in one request",
  async (release) => {
    const agent = openAgent(release, callboard, { agent: "demo" });
    const asked = await runWell(agent, "run echo hi > made.txt");
    const [{ id: interruptId }] = asked.last.outcome.interrupts;
    await runWell(agent, "hello", { resume: [{ interruptId, status: "cancelled" }] });
    assert.match(agent.messages.at(-1).content, /demo agent/);
    await assertKept(agent, callboard);
  },
  { interrupts: true },
);

testEach("a client reconnects after an approval was decided on the page", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  await runWell(agent, "run echo hi > made.txt");
  const [{ id }] = calls(agent);
  await callboard.api(`sessions/${agent.threadId}/calls/${id}/approval`, { body: { decision: "accepted" } });
  agent.pendingInterrupts = [];
  await runWell(agent);
  assert.equal(of(agent, "tool").length, 1);
  await assertKept(agent, callboard);
});

const TOOL = { name: "pick_colour", description: "Lets the user pick", parameters: { type: "object" } };

/** Runs until the agent calls no more client tools. @param {any} agent @param {string} text @param {object} given */
async function withTool(agent, text, given) {
  await runWell(agent, text, { tools: [TOOL] });
  const [call] = calls(agent);
  assert.equal(call.function.name, "pick_colour");
  assert.equal(of(agent, "tool").length, 0, "it is the client's turn");
  await assertKept(agent, callboard);
  agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, ...given });
  await runWell(agent, undefined, { tools: [TOOL] });
  return call;
}

testEach("the demo agent calls a tool of the front end", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  const call = await withTool(agent, 'use the client tool pick_colour with {"of":"wall"}', { content: "teal" });
  assert.deepEqual(JSON.parse(call.function.arguments), { of: "wall" });
  assert.match(agent.messages.at(-1).content, /teal/);
  assert.equal(of(agent, "tool").length, 1, "the client's own result, once");
  await assertKept(agent, callboard, [call.id]);
  await runWell(agent, "hello", { tools: [TOOL] });
  await assertKept(agent, callboard, [call.id]);
});

testEach("a model calls a tool of the front end", async (release) => {
  model.willAnswer({ call: "pick_colour", arguments: { of: "door" } }, { text: "Red it is." });
  const agent = openAgent(release, callboard, { agent: "model" });
  const call = await withTool(agent, "Which colour?", { content: "red" });
  assert.ok(model.asked.at(-1).tools.some((/** @type {any} */ it) => it.function.name === "pick_colour"));
  assert.match(JSON.stringify(model.asked.at(-1).messages.at(-1)), /red/);
  assert.equal(agent.messages.at(-1).content, "Red it is.");
  await assertKept(agent, callboard, [call.id]);
});

testEach("a tool of the front end fails", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  const given = { content: "Nobody there.", error: "Nobody there." };
  const call = await withTool(agent, "use the client tool pick_colour", given);
  assert.match(agent.messages.at(-1).content, /Nobody there/);
  const [{ content }] = (await kept(callboard, agent.threadId)).filter((/** @type {any} */ it) => it.toolCallId === call.id);
  assert.deepEqual(JSON.parse(content), { error: "Nobody there." });
});

testEach("a stopped run ends without an error and keeps its text", async (release) => {
  const agent = openAgent(release, slow);
  const running = run(agent, "tell me a story");
  await until(async () => of(agent, "assistant")[0]?.content?.length > 0);
  await slow.api(`sessions/${agent.threadId}/cancel`, { method: "POST" });
  const { last } = await running;
  assert.deepEqual([last.type, last.result], ["RUN_FINISHED", { status: "cancelled" }]);
  await assertKept(agent, slow);
});

testEach("a client that disconnects stops nothing and can rejoin the active run", async (release) => {
  const agent = openAgent(release, slow);
  const running = run(agent, "tell me a story");
  await until(async () => of(agent, "assistant")[0]?.content?.length > 0);
  agent.abortRun();
  await running;
  const length = of(agent, "assistant")[0].content.length;
  const again = openAgent(release, slow, { threadId: agent.threadId, messages: agent.messages });
  const more = run(again, undefined);
  await until(async () => of(again, "assistant")[0]?.content.length > length + 20);
  await slow.api(`sessions/${agent.threadId}/cancel`, { method: "POST" });
  await more;
  await assertKept(again, slow);
});

testEach("a client reconnects after the run, with or without earlier messages", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  await runWell(agent, "think about tea");
  await runWell(agent, "what time is it in Paris and Tokyo?");
  for (const had of [agent.messages, agent.messages.slice(0, -1), agent.messages.slice(0, 5), agent.messages.slice(0, 3)]) {
    const again = openAgent(release, callboard, { threadId: agent.threadId, messages: had });
    await runWell(again);
    await assertKept(again, callboard);
  }
});

testEach("a client gets the messages of other clients", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  await runWell(agent, "hello");
  const other = openAgent(release, callboard, { threadId: agent.threadId, messages: agent.messages });
  await runWell(other, "think about tea");
  await runWell(agent, "what time is it?");
  assert.deepEqual(of(agent, "user").map(({ content }) => content), ["hello", "think about tea", "what time is it?"]);
  await assertKept(agent, callboard);
  await runWell(other, "hello");
  await assertKept(other, callboard);
});

testEach("a message sent during a run is answered after it", async (release) => {
  const first = openAgent(release, slow);
  const running = run(first, "tell me a story");
  await until(async () => of(first, "assistant")[0]?.content?.length > 0);
  const second = openAgent(release, slow, { threadId: first.threadId, messages: of(first, "user") });
  const answered = run(second, "hello");
  await until(async () => (await slow.api(`sessions/${first.threadId}/queue`)).messages.length === 1);
  await running;
  assert.equal((await answered).last.type, "RUN_FINISHED");
  assert.match(second.messages.at(-1).content, /demo agent/);
  await assertKept(second, slow);
});

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A picture in the form of that release. @param {Release} release */
function picture({ name }) {
  return name === "ag-ui-0-early"
    ? { type: "binary", mimeType: "image/png", data: DOT, filename: "dot.png" }
    : { type: "image", source: { type: "data", mimeType: "image/png", value: DOT } };
}

testEach("a file is sent with a message and returned in a snapshot", async (release) => {
  const agent = openAgent(release, callboard, { agent: "demo" });
  await runWell(agent, [{ type: "text", text: "hello" }, picture(release)]);
  const [{ content }] = await kept(callboard, agent.threadId);
  assert.deepEqual([content[0], content[1].type], [{ type: "text", text: "hello" }, "image"]);
  const { headers } = address(callboard);
  const response = await fetch(content[1].source.value, { headers });
  assert.equal(Buffer.from(await response.arrayBuffer()).toString("base64"), DOT);
  const again = openAgent(release, callboard, { threadId: agent.threadId, messages: agent.messages });
  await runWell(again, undefined);
  assert.match(JSON.stringify(again.messages[0].content), /api\/blobs/);
});

/** A conversation of another program, with every kind of message. @param {Release} release */
function history(release) {
  return [
    { id: "s1", role: "system", content: "Be brief." },
    { id: "d1", role: "developer", content: "No jokes." },
    { id: "u1", role: "user", content: [{ type: "text", text: "Look" }, picture(release)] },
    { id: "t1", role: "reasoning", content: "Hm." },
    {
      id: "a1",
      role: "assistant",
      content: "I will look.",
      toolCalls: [
        { id: "c1", type: "function", function: { name: "look", arguments: '{"at":1}' } },
        { id: "c2", type: "function", function: { name: "touch", arguments: "{}" } },
      ],
    },
    { id: "r1", role: "tool", toolCallId: "c1", content: '{"seen":true}' },
    { id: "r2", role: "tool", toolCallId: "c2", content: "", error: "Too hot." },
    { id: "a2", role: "assistant", content: "A dot." },
  ];
}

testEach("a new thread imports its history, and the agent knows it", async (release) => {
  const agent = openAgent(release, callboard, { agent: "model", messages: history(release) });
  model.willAnswer({ text: "As I said." });
  await runWell(agent, "What was it?");
  const asked = JSON.stringify(model.asked.at(-1).messages);
  for (const known of ["Be brief.", "No jokes.", "Look", "A dot.", "Too hot.", "seen"]) assert.ok(asked.includes(known), known);
  const messages = await kept(callboard, agent.threadId);
  assert.deepEqual(messages.map(brief), agent.messages.map(brief));
  const marks = (await callboard.events(agent.threadId)).filter(({ type, text }) => type === "notice" && /client/.test(text));
  assert.equal(marks.length, 1, "it is marked as the client's");
  await runWell(agent, "And again?");
  assert.deepEqual((await kept(callboard, agent.threadId)).map(brief), agent.messages.map(brief));
});

/** The content of a message, without ids that only one side assigns. @param {any} message */
function brief({ role, content, toolCalls, toolCallId, error }) {
  const text = Array.isArray(content) ? content.map(({ text, type }) => text ?? (type === "binary" ? "image" : type)) : content;
  const result = error ? JSON.stringify({ error }) : text;
  return JSON.parse(JSON.stringify({ role: role === "developer" ? "system" : role, content: result, toolCalls, toolCallId }));
}

testEach("refusals have a clear reason that the client shows", async (release) => {
  const agent = openAgent(release, callboard, { agent: "nobody" });
  const { failed } = await run(agent, "hello");
  assert.match(failed?.message ?? "", /nobody/);
});

test("invalid requests are refused with a clear reason and change nothing", async () => {
  const send = async (/** @type {string} */ path, /** @type {any} */ body) => {
    const { url, headers } = address(callboard);
    const response = await fetch(url + path, {
      method: "POST",
      headers,
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
  const before = await callboard.api("sessions");
  const ids = { threadId: "t", runId: "r" };
  const messages = [{ id: "u", role: "user", content: "hello" }];
  /** @type {[string, any, number, RegExp][]} */
  const cases = [
    ["", "nonsense", 400, /JSON object/],
    ["", {}, 400, /threadId/],
    ["", { threadId: "t", messages }, 400, /runId/],
    ["", { ...ids, threadId: "a/b", messages }, 400, /`id`/],
    ["", { ...ids, messages: 7 }, 400, /messages/],
    ["", { ...ids, messages: [{ role: "user", content: 7 }] }, 400, /content/],
    ["", { ...ids, messages: [{ role: "user", content: "  " }] }, 400, /neither text nor files/],
    ["", { ...ids, messages, tools: [{ name: "a b" }] }, 400, /name/],
    ["", { ...ids, messages, resume: [{ interruptId: "i", status: "resolved" }] }, 400, /interruptId/],
    ["/nobody", { ...ids, messages }, 400, /nobody/],
    ["", { ...ids, messages: [] }, 404, /no session/],
    ["", { ...ids, resume: [{ interruptId: "approval_c", status: "cancelled" }] }, 404, /no session/],
  ];
  for (const [path, body, status, text] of cases) {
    const refused = await send(path, body);
    assert.equal(refused.status, status, refused.text);
    assert.match(refused.text, text);
    assert.match(refused.type ?? "", /^text\/plain/);
  }
  assert.deepEqual(await callboard.api("sessions"), before);
});

test("no client has logged a warning", () => assert.deepEqual(complaints, []));

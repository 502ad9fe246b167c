// Clients of OpenAI's API: the official ones for Node and for Python, with every agent as a model.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import OpenAI from "openai";

import { startStage } from "./agents.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import { startModel } from "./models.mjs";

/** @typedef {Awaited<ReturnType<typeof startCallboard>>} Callboard */
/** @typedef {OpenAI.ChatCompletionMessageParam} Message */

const SESSION = "x-callboard-session";
/** One point, as png. */
const PICTURE =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** @type {Callboard} */
let callboard;
/** A demo agent at the speed of a model. @type {Callboard} */
let slow;
/** @type {Awaited<ReturnType<typeof startModel>>} */
let model;
/** @type {OpenAI} */
let client;
/** @type {(() => Promise<void>)[]} */
const ends = [];
const scope = { after: (/** @type {() => Promise<void>} */ end) => void ends.unshift(end) };
before(async () => {
  model = await startModel(scope);
  callboard = await startCallboard(scope, { config: `[demo]\npace = "instant"\n${model.agent}` });
  slow = await startCallboard(scope, { config: NATURAL });
  client = clientOf(callboard);
});
after(async () => {
  for (const end of ends) await end();
});

/** @param {{base: string, token: string}} callboard */
function clientOf({ base, token }) {
  return new OpenAI({ apiKey: token, baseURL: `${base}v1` });
}

/** @param {string} content @returns {Message} */
const user = (content) => ({ role: "user", content });

/** @param {string} text */
const ask = (text, model = "demo") => ({ model, messages: [user(text)] });

/** A named session that continues. @param {string} id */
const inSession = (id) => ({ headers: { [SESSION]: id } });

/** The stored messages, with calls named by their order: each reader gets new ids. @param {string} session */
async function kept(session) {
  const { messages } = await callboard.api(`sessions/${session}/messages?format=openai`);
  return numbered(messages);
}

/** @param {any[]} messages */
function numbered(messages) {
  /** @type {string[]} */
  const ids = [];
  const number = (/** @type {string} */ id) => (ids.includes(id) || ids.push(id), `call ${ids.indexOf(id)}`);
  return messages.map((message) => {
    const { role, content, tool_calls: calls, tool_call_id: call } = message;
    // Helpers add fields to a call that the API does not have.
    const plain = (/** @type {any} */ { id, type, function: { name, arguments: text } }) => [number(id), type, name, text];
    return {
      role,
      content: content || null,
      ...(calls && { tool_calls: calls.map(plain) }),
      ...(call && { tool_call_id: number(call) }),
    };
  });
}

/** The whole text of a stream. @param {AsyncIterable<OpenAI.ChatCompletionChunk>} stream */
async function read(stream) {
  /** @type {{content: string, reasoning: string, chunks: OpenAI.ChatCompletionChunk[]}} */
  const all = { content: "", reasoning: "", chunks: [] };
  for await (const chunk of stream) {
    /** @type {any} */
    const delta = chunk.choices[0]?.delta ?? {};
    all.content += delta.content ?? "";
    all.reasoning += delta.reasoning_content ?? "";
    all.chunks.push(chunk);
  }
  return all;
}

/** @param {OpenAI.ChatCompletion} completion @returns {any} */
const message = (completion) => completion.choices[0].message;

test("the list of models contains the agents", async () => {
  const ids = [];
  for await (const { id, object } of client.models.list()) {
    assert.equal(object, "model");
    ids.push(id);
  }
  assert.deepEqual(ids.slice(0, 3), ["default", "model", "demo"]);
  assert.equal((await client.models.retrieve("demo")).id, "demo");
  await assert.rejects(client.models.retrieve("gpt-9"), OpenAI.NotFoundError);
});

test("a completion returns a text", async () => {
  const { data, response } = await client.chat.completions.create(ask("hello")).withResponse();
  const [choice] = data.choices;
  assert.match(choice.message.content ?? "", /demo agent/);
  assert.deepEqual([data.object, data.model, choice.finish_reason], ["chat.completion", "demo", "stop"]);
  const usage = data.usage ?? assert.fail();
  assert.ok(usage.prompt_tokens > 0 && usage.total_tokens === usage.prompt_tokens + usage.completion_tokens);
  const session = response.headers.get(SESSION) ?? "";
  assert.deepEqual(await kept(session), numbered([user("hello"), choice.message]));
});

test("the default agent is the first", async () => {
  model.willAnswer({ text: "I am the model." });
  assert.equal(message(await client.chat.completions.create(ask("hello", "default"))).content, "I am the model.");
});

test("a streamed completion is the same, with usage on demand", async () => {
  const whole = await client.chat.completions.create(ask("think about tea"));
  const body = { ...ask("think about tea"), stream: /** @type {const} */ (true) };
  const plain = await read(await client.chat.completions.create(body));
  assert.equal(plain.content, message(whole).content);
  assert.equal(plain.reasoning, message(whole).reasoning_content);
  assert.ok(plain.reasoning.length > 100);
  assert.ok(plain.chunks.every(({ usage }) => !usage));
  const counted = await read(await client.chat.completions.create({ ...body, stream_options: { include_usage: true } }));
  assert.deepEqual(counted.chunks.at(-1)?.choices, []);
  assert.deepEqual(counted.chunks.at(-1)?.usage, whole.usage);
});

test("the streaming helper works", async () => {
  const stream = client.chat.completions.stream({ ...ask("tell me a story"), stream_options: { include_usage: true } });
  let received = "";
  stream.on("content", (delta) => (received += delta));
  assert.equal(await stream.finalContent(), received);
  assert.ok(received.length > 100);
  assert.ok((await stream.totalUsage()).completion_tokens > 20);
  assert.equal((await stream.finalChatCompletion()).choices[0].finish_reason, "stop");
});

test("calls of other tools are part of the reasoning, or hidden", async () => {
  const question = ask("what time is it in Paris and Tokyo?");
  const shown = message(await client.chat.completions.create(question));
  assert.match(shown.reasoning_content, /^time\(zone: 'Europe\/Paris'\)\n→ .*\n\ntime\(zone: 'Asia\/Tokyo'\)\n→ .*$/);
  assert.equal(shown.tool_calls, undefined, "they are not for the client to run");
  const hidden = { headers: { "x-callboard-tools": "hidden" } };
  assert.equal(message(await client.chat.completions.create(question, hidden)).reasoning_content, undefined);
  const failed = message(await client.chat.completions.create(ask("read nowhere.txt")));
  assert.match(failed.reasoning_content, /^read_file\(path: 'nowhere.txt'\)\n→ failed: .*nowhere/);
  const streamed = await read(await client.chat.completions.create({ ...question, stream: true }));
  const withoutClocks = (/** @type {string} */ text) => text.replace(/\d+/g, "0");
  assert.equal(withoutClocks(streamed.reasoning), withoutClocks(shown.reasoning_content));
});

/** @param {(args: any) => unknown} run */
const pick = (run) => ({
  type: /** @type {const} */ ("function"),
  function: {
    name: "pick_colour",
    description: "Lets the user pick",
    parameters: { type: "object", properties: { of: { type: "string" } } },
    parse: JSON.parse,
    function: run,
  },
});

for (const agent of ["demo", "model"]) {
  for (const session of [`picking-${agent}`, undefined]) {
    test(`runTools with the agent ${agent}, ${session ? "in a named session" : "in an unnamed session"}`, async () => {
      if (agent === "model") {
        model.willAnswer({ call: "pick_colour", arguments: { of: "wall" } }, { text: "So teal it is." });
      }
      /** @type {any[]} */
      const asked = [];
      const tools = [pick((args) => (asked.push(args), { colour: "teal" }))];
      const question = ask('use the client tool pick_colour with {"of":"wall"}', agent);
      const runner = client.chat.completions.runTools({ ...question, tools }, session ? inSession(session) : {});
      assert.match((await runner.finalContent()) ?? "", /teal/);
      assert.deepEqual(asked, [{ of: "wall" }]);
      if (!session) return;
      const events = await callboard.events(session);
      assert.equal(events.filter(({ type }) => type === "run_start").length, 1, "it is one run");
      assert.deepEqual(await kept(session), numbered(runner.messages));
    });
  }
}

test("the usage of a run with client tools adds up", async () => {
  const runner = client.chat.completions.runTools(
    { ...ask("use the client tool pick_colour"), tools: [pick(() => "teal")] },
    inSession("counted"),
  );
  await runner.done();
  const counts = runner.allChatCompletions().map(({ usage }) => usage?.total_tokens ?? 0);
  const { messages } = await callboard.api("sessions/counted/messages");
  assert.equal(counts.length, 2);
  assert.equal(counts[0] + counts[1], messages.at(-1).usage.totalTokens);
});

/** Parallel calls of these tools, each with its number. @param {string[]} names */
const callsOf = (...names) => ({ calls: names.map((call, n) => ({ call, arguments: { n } })) });

for (const streamed of [false, true]) {
  test(`parallel tools of the client, by hand, ${streamed ? "streamed" : "in one piece"}`, async () => {
    const session = `parallel-${streamed}`;
    const tools = ["left", "right"].map((name) => ({ type: /** @type {const} */ ("function"), function: { name } }));
    const complete = async (/** @type {Message[]} */ messages) => {
      const body = { model: "model", messages, tools };
      if (!streamed) return client.chat.completions.create(body, inSession(session));
      return client.chat.completions.stream(body, inSession(session)).finalChatCompletion();
    };
    model.asked.length = 0;
    model.willAnswer(callsOf("left", "right"), { text: "Both came back." });
    /** @type {Message[]} */
    const messages = [user("both, please")];
    const first = await complete(messages);
    assert.equal(first.choices[0].finish_reason, "tool_calls");
    const { tool_calls: calls } = message(first);
    assert.deepEqual(
      calls.map((/** @type {any} */ it) => [it.function.name, it.function.arguments]),
      [["left", '{"n":0}'], ["right", '{"n":1}']],
    );
    const results = ["a  text", '{ "spaced": true }'];
    messages.push({ role: "assistant", content: message(first).content, tool_calls: calls });
    for (const [idx, content] of results.entries()) {
      messages.push({ role: "tool", tool_call_id: calls[idx].id, content });
    }
    const second = await complete(messages);
    assert.deepEqual([message(second).content, second.choices[0].finish_reason], ["Both came back.", "stop"]);
    assert.notEqual(first.id, second.id);
    const received = model.asked.at(-1).messages.filter((/** @type {any} */ it) => it.role === "tool");
    assert.deepEqual(received.map((/** @type {any} */ it) => it.content), results, "the model hears what the client said");
    messages.push({ role: "assistant", content: message(second).content });
    assert.deepEqual(await kept(session), numbered(messages));
  });
}

test("a client sends a message right after its results", async () => {
  const tools = [{ type: /** @type {const} */ ("function"), function: { name: "left" } }];
  model.willAnswer({ call: "left" }, { text: "Went well." }, { text: "And now this." });
  const first = await client.chat.completions.create({ ...ask("go", "model"), tools }, inSession("results-then-words"));
  const [call] = message(first).tool_calls;
  const messages = [user("go"), message(first), { role: "tool", tool_call_id: call.id, content: "done" }, user("and now?")];
  const second = await client.chat.completions.create({ model: "model", messages, tools }, inSession("results-then-words"));
  assert.equal(message(second).content, "And now this.");
});

test("stop reasons are those of OpenAI", async () => {
  for (const reason of ["length", "content_filter"]) {
    model.willAnswer({ text: "Once upon", finish: reason });
    const { choices } = await client.chat.completions.create(ask("a story", "model"));
    assert.deepEqual([choices[0].finish_reason, choices[0].message.content], [reason, "Once upon"]);
  }
});

test("tools that the client forbids are not offered", async () => {
  const tools = [{ type: /** @type {const} */ ("function"), function: { name: "left" } }];
  const offered = async (/** @type {"none" | "auto"} */ choice) => {
    model.willAnswer({ text: "Well." });
    await client.chat.completions.create({ ...ask("x", "model"), tools, tool_choice: choice });
    return model.asked.at(-1).tools.some((/** @type {any} */ it) => it.function.name === "left");
  };
  assert.deepEqual([await offered("auto"), await offered("none")], [true, false]);
});

test("a named session continues and stays in the list", async () => {
  model.asked.length = 0;
  /** @type {Message[]} */
  const messages = [{ role: "system", content: "Be brief." }, user("one")];
  for (const [idx, answer] of ["First.", "Second."].entries()) {
    model.willAnswer({ text: answer });
    const { data, response } = await client.chat.completions
      .create({ model: "model", messages }, inSession("named"))
      .withResponse();
    assert.equal(response.headers.get(SESSION), "named");
    messages.push({ role: "assistant", content: message(data).content });
    if (idx === 0) messages.push(user("two"));
  }
  assert.deepEqual(await kept("named"), numbered(messages));
  assert.deepEqual(numbered(model.asked.at(-1).messages), numbered(messages.slice(0, -1)));
  assert.equal((await callboard.api("sessions/named")).archived, false);
  const mistaken = client.chat.completions.create(ask("three"), inSession("named"));
  await assert.rejects(mistaken, /the session is with the agent 'model'/);
});

test("a request retried after a lost connection is sent once", async () => {
  let lost = 0;
  /** Receives the head of the response and loses the connection. @type {typeof fetch} */
  const lossy = async (...request) => {
    const response = await fetch(...request);
    if (lost > 0) return response;
    lost += 1;
    await response.text();
    throw new TypeError("fetch failed");
  };
  const { token, base } = callboard;
  const client = new OpenAI({ apiKey: token, baseURL: `${base}v1`, fetch: lossy });
  const { choices } = await client.chat.completions.create(ask("hello"), inSession("lost"));
  assert.match(choices[0].message.content ?? "", /demo agent/);
  assert.equal(lost, 1);
  assert.equal((await kept("lost")).length, 2);
  await client.chat.completions.create(ask("hello"), inSession("lost"));
  assert.equal((await kept("lost")).length, 4, "who says it twice means it");
});

test("every unnamed request is an archived session of its own", async () => {
  const { response } = await client.chat.completions.create(ask("hello")).withResponse();
  const { archived } = await callboard.api(`sessions/${response.headers.get(SESSION)}`);
  assert.equal(archived, true);
});

/** A conversation of another program. @type {Message[]} */
const HISTORY = [
  { role: "developer", content: "Be brief." },
  user("what is in the box?"),
  {
    role: "assistant",
    content: "I will look.",
    tool_calls: [
      { id: "c1", type: "function", function: { name: "look", arguments: '{"at":"box"}' } },
      { id: "c2", type: "function", function: { name: "weigh", arguments: "{}" } },
    ],
  },
  { role: "tool", tool_call_id: "c1", content: "a cat" },
  { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: '{"kg":4}' }] },
  { role: "assistant", content: [{ type: "text", text: "A cat of 4 kg." }] },
  {
    role: "user",
    content: [
      { type: "text", text: "does it look like this?" },
      { type: "image_url", image_url: { url: PICTURE } },
    ],
  },
];

test("a history with tool calls and pictures is imported", async () => {
  model.willAnswer({ text: "It does." });
  const { response } = await client.chat.completions.create({ model: "model", messages: HISTORY }).withResponse();
  const received = model.asked.at(-1).messages;
  const roles = ["system", "user", "assistant", "tool", "tool", "assistant", "user"];
  assert.deepEqual(received.map((/** @type {any} */ it) => it.role), roles);
  assert.deepEqual(received.slice(3, 5).map((/** @type {any} */ it) => it.content), ["a cat", '{"kg":4}']);
  assert.match(JSON.stringify(received.at(-1)), /picture|image/);
  const log = await callboard.events(response.headers.get(SESSION) ?? "");
  assert.ok(log.some(({ type, text }) => type === "notice" && /The client sent/.test(text)));
});

/** @type {[string, object, any, RegExp, string | null][]} */
const REFUSED = [
  ["an unknown model", { model: "gpt-9" }, OpenAI.NotFoundError, /there are: model, demo/, "model"],
  ["several answers", { n: 2 }, OpenAI.BadRequestError, /one answer/, "n"],
  ["no messages", { messages: [] }, OpenAI.BadRequestError, /empty/, "messages"],
  ["a schema", { response_format: { type: "json_object" } }, OpenAI.BadRequestError, /in text/, "response_format"],
  [
    "a picture elsewhere",
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://a.example/b.png" } }] }] },
    OpenAI.BadRequestError,
    /fetches none/,
    "messages[0].content[0]",
  ],
];
for (const [name, fields, kind, message, param] of REFUSED) {
  test(`refused: ${name}`, async () => {
    for (const stream of [false, true]) {
      /** @type {any} */
      const body = { ...ask("hello"), ...fields, stream };
      await assert.rejects(client.chat.completions.create(body), (/** @type {any} */ error) => {
        assert.ok(error instanceof kind, `${error}`);
        assert.match(error.message, message);
        assert.deepEqual([error.param, error.type], [param, "invalid_request_error"]);
        return true;
      });
    }
  });
}

test("refused: a wrong key and an unknown address", async () => {
  const stranger = clientOf({ base: callboard.base, token: "wrong" });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  await assert.rejects(stranger.chat.completions.create(ask("hello")), (/** @type {any} */ error) => {
    return error instanceof OpenAI.AuthenticationError && error.code === "unauthorized";
  });
  await assert.rejects(client.embeddings.create({ model: "demo", input: "x" }), OpenAI.NotFoundError);
});

test("a failed run is an error that the client does not retry", async () => {
  const failing = client.chat.completions.create(ask("break"), inSession("failing"));
  await assert.rejects(failing, (/** @type {any} */ error) => {
    assert.ok(error instanceof OpenAI.InternalServerError);
    assert.deepEqual([error.status, error.code, error.type], [502, "upstream_error", "server_error"]);
    return true;
  });
  const events = await callboard.events("failing");
  assert.equal(events.filter(({ type }) => type === "run_start").length, 1);
  const stream = await client.chat.completions.create({ ...ask("break"), stream: true });
  await assert.rejects(read(stream), (/** @type {any} */ error) => error.code === "upstream_error");
});

test("an approval is decided on the page while the client waits", async () => {
  for (const stream of [false, true]) {
    const session = `asking-${stream}`;
    /** @type {any} */
    const body = { ...ask(`run echo hi > ${session}.txt`), stream };
    const asked = client.chat.completions.create(body, inSession(session));
    const answer = asked.then(async (it) => ("choices" in it ? message(it).content : (await read(it)).content));
    const found = async () => {
      const { messages } = await callboard.api(`sessions/${session}/messages`).catch(() => ({ messages: [] }));
      return messages.at(-1)?.toolCalls?.find((/** @type {any} */ it) => it.state === "awaiting_approval");
    };
    await until(async () => (await found()) !== undefined);
    await callboard.api(`sessions/${session}/calls/${(await found()).id}/approval`, { body: { decision: "accepted" } });
    assert.ok((await answer).length > 0);
  }
});

test("a client that disconnects stops nothing", async () => {
  const patient = clientOf(slow);
  const stream = await patient.chat.completions.create({ ...ask("tell me a story"), stream: true }, inSession("left"));
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
  assert.equal((await slow.api("sessions/left")).state, "running");
  await slow.api("sessions/left/cancel", { method: "POST" });
  assert.equal((await slow.api("sessions/left")).state, "idle");
  const stopped = patient.chat.completions.stream(ask("tell me a story"), inSession("stopped"));
  stopped.once("content", () => void slow.api("sessions/stopped/cancel", { method: "POST" }));
  assert.equal((await stopped.finalChatCompletion()).choices[0].finish_reason, "stop", "stopped by another client");
});

test("a program agent knows the messages of other clients", async (t) => {
  const stage = await startStage(t, "claude");
  const own = clientOf(stage.callboard);
  const first = await own.chat.completions.create(ask("play:tools", "free"));
  assert.match(message(first).content, /I have seen one and two\./);
  assert.match(message(first).reasoning_content, /Bash\(.*echo one.*\)\n→ .*one/);
  /** @type {Message[]} */
  const messages = [
    { role: "system", content: "You like cats." },
    user("The word is xyzzy."),
    { role: "assistant", content: "I see." },
    user("play:recall"),
  ];
  const { choices } = await own.chat.completions.create({ model: "free", messages });
  assert.equal(choices[0].message.content, "I remember all of it.");
  const asked = stage.models.asked("recall").at(-1) ?? "";
  for (const word of ["You like cats.", "The word is xyzzy.", "I see."]) assert.ok(asked.includes(word), word);
});

const PYTHON = fileURLToPath(new URL(".venv/bin/python", import.meta.url));
const SCRIPT = fileURLToPath(new URL("openai_client.py", import.meta.url));

/** The result of a case in Python. @param {string} name @returns {Promise<any>} */
async function inPython(name) {
  const env = { ...process.env, OPENAI_BASE_URL: `${callboard.base}v1`, OPENAI_API_KEY: callboard.token };
  const { stdout } = await promisify(execFile)(PYTHON, [SCRIPT, name], { env, timeout: 60_000 });
  return JSON.parse(stdout);
}

test("Python: the list of models contains the agents", async () => {
  const { ids, one } = await inPython("models");
  assert.deepEqual(ids.slice(0, 3), ["default", "model", "demo"]);
  assert.equal(one, "demo");
});

test("Python: completion, chunks and helper give the same", async () => {
  const { whole, chunks, helped, session } = await inPython("same");
  assert.deepEqual(chunks, whole);
  assert.deepEqual(helped, whole);
  assert.match(whole.content, /demo agent/);
  assert.ok(whole.usage.total_tokens > 0);
  assert.deepEqual(await kept(session), numbered([user("hello"), { role: "assistant", content: whole.content }]));
});

test("Python: reasoning contains the calls of tools", async () => {
  const { thought, helped, activity, hidden } = await inPython("reasoning");
  assert.ok(thought.length > 100);
  assert.equal(helped, thought, "the helper puts it together");
  assert.match(activity, /^time\(zone: 'Europe\/Paris'\)\n→ /);
  assert.equal(hidden, null);
});

test("Python: parallel tools of the client", async () => {
  model.willAnswer(callsOf("left", "right"), { text: "Both came back." });
  model.willAnswer(callsOf("left", "right"), { text: "Both came back." });
  for (const { messages, reason, session } of await inPython("tools")) {
    assert.equal(reason, "tool_calls");
    assert.deepEqual(await kept(session), numbered(messages));
  }
});

test("Python: errors", async () => {
  const refused = { type: "invalid_request_error", param: null };
  assert.deepEqual(await inPython("errors"), [
    { ...refused, kind: "NotFoundError", status: 404, code: "model_not_found", param: "model" },
    { ...refused, kind: "AuthenticationError", status: 401, code: "unauthorized" },
    { ...refused, kind: "BadRequestError", status: 400, code: "invalid_request", param: "n" },
    { ...refused, kind: "InternalServerError", status: 502, code: "upstream_error", type: "server_error" },
    { ...refused, kind: "APIError", status: null, code: "upstream_error", type: "server_error" },
  ]);
});

// The cases of all clients of the AI SDK: one table for all versions
// After each case, the stored chat equals that of the client.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { assertKept, call, kept, outline, shared, text } from "./ai_sdk.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { FILE, HISTORY, HISTORY_4, LINK, PICTURE, newParts } from "./chat_history.mjs";
import { startModel } from "./models.mjs";

/**
 * @typedef {import("./ai_sdk.mjs").Client} Client
 * @typedef {import("./ai_sdk.mjs").Chat} Chat
 * @typedef {Awaited<ReturnType<typeof startCallboard>>} Callboard
 * @typedef {{client: Client, callboard: Callboard, model: Awaited<ReturnType<typeof startModel>>}} Setting
 * @typedef {{name: string, run: (setting: Setting) => Promise<void>, suits?: (client: Client) => boolean}} Case
 */

const asks = (/** @type {Client} */ { profile }) => profile >= 6;
const edits = (/** @type {Client} */ { profile }) => profile >= 5;

/** Adds a test for each client and case that it supports. @param {Client[]} clients @param {string[]} [origins] of pages */
export function takeCases(clients, origins = []) {
  /** @type {(() => Promise<void>)[]} */
  const ends = [];
  /** @type {Omit<Setting, "client">} */
  let setting;
  before(async () => {
    const scope = { after: (/** @type {() => Promise<void>} */ end) => void ends.unshift(end) };
    const model = await startModel(scope);
    const config = `[server]\nallowed_origins = ${JSON.stringify(origins)}\n[demo]\npace = "instant"\n${model.agent}`;
    setting = { model, callboard: await startCallboard(scope, { config }) };
  });
  after(async () => {
    for (const end of ends) await end();
  });
  for (const client of clients) {
    for (const { name, run, suits = () => true } of CASES) {
      if (suits(client)) test(`${client.name}: ${name}`, () => run({ client, ...setting }));
    }
  }
}

/** A chat with the demo agent with these messages. @param {Setting} setting @param {...string} texts */
async function talk({ client, callboard }, ...texts) {
  const chat = await client.open(callboard, { agent: "demo" });
  for (const text of texts) await chat.send(text);
  return chat;
}

/** Waits until the chat is idle, without an error. @param {Chat} chat @param {(last: any) => boolean} [isThere] */
async function settled(chat, isThere = () => true) {
  await until(async () => {
    const { messages, status, error } = await chat.look();
    assert.notEqual(status, "error", error);
    return status === "ready" && isThere(messages.at(-1));
  });
}

/** The last message, or an empty one. @param {Chat} chat */
async function last(chat) {
  const { messages } = await chat.look();
  return messages.at(-1) ?? { parts: [] };
}

/** Messages to the demo agent and their expected answers. @type {[string, string, string[], RegExp][]} */
const ANSWERS = [
  ["text", "hello", ["text"], /demo agent/],
  ["reasoning", "think about breakfast", ["reasoning", "text"], /breakfast/],
  ["a tool", "what time is it in Paris?", ["text", "time: output-available", "text"], /Paris/],
  [
    "parallel tools",
    "what time is it in Paris and Tokyo?",
    ["text", "time: output-available", "time: output-available", "text"],
    /Tokyo/,
  ],
  ["a tool's error", "read nowhere.txt", ["text", "read_file: output-error", "text"], /nowhere/],
];

/** @type {Case[]} */
const CASES = ANSWERS.map(([name, sent, parts, pattern]) => ({
  name,
  run: async (setting) => {
    const chat = await talk(setting, sent);
    await settled(chat);
    assert.deepEqual(outline(await last(chat)), parts);
    assert.match(text(await last(chat)), pattern);
    await assertKept(chat, setting.callboard, setting.client);
  },
}));

/** @param {string} name @param {Case["run"]} run @param {Case["suits"]} [suits] */
function add(name, run, suits) {
  CASES.push({ name, run, suits });
}

add("a chat of several messages continues", async (setting) => {
  const chat = await talk(setting, "hello", "think about tea", "what time is it?");
  await settled(chat);
  const messages = await assertKept(chat, setting.callboard, setting.client);
  assert.equal(messages.length, 6);
});

add("a chat continues after an error of the agent", async (setting) => {
  const chat = await talk(setting, "break");
  await until(async () => (await chat.look()).status === "error");
  assert.match((await chat.look()).error ?? "", /broke off/);
  await assertKept(chat, setting.callboard, setting.client);
  await chat.send("hello");
  await settled(chat);
  await assertKept(chat, setting.callboard, setting.client);
});

add("an error before the first text", async ({ client, callboard, model }) => {
  model.willAnswer({ refusal: "No such model." });
  const chat = await client.open(callboard, { agent: "model" });
  await chat.send("hello");
  await until(async () => (await chat.look()).status === "error");
  assert.match((await chat.look()).error ?? "", /No such model/);
  await assertKept(chat, callboard, client);
});

add("a very long text", async ({ client, callboard, model }) => {
  const long = "Ünd so weiter 🙂 ".repeat(2_000);
  model.willAnswer({ text: long });
  const chat = await client.open(callboard, { agent: "model" });
  await chat.send("Tell me everything");
  await settled(chat);
  assert.equal(text(await last(chat)), long);
  await assertKept(chat, callboard, client);
});

for (const approved of [true, false]) {
  const word = approved ? "allows" : "refuses";

  add(
    `a call that the reader ${word}`,
    async (setting) => {
      const chat = await talk(setting, "run echo hi > made.txt");
      await settled(chat);
      const asked = await last(chat);
      assert.deepEqual(outline(asked), ["text", "shell: approval-requested"]);
      await assertKept(chat, setting.callboard, setting.client);
      const reason = approved ? undefined : "No.";
      await chat.decide({ id: call(asked, "shell").approval.id, approved, reason });
      await settled(chat, (it) => outline(it).length === 3);
      const answer = await last(chat);
      assert.deepEqual(outline(answer), ["text", `shell: output-${approved ? "available" : "denied"}`, "text"]);
      assert.equal(answer.id, asked.id, "the same message goes on");
      const messages = await assertKept(chat, setting.callboard, setting.client);
      assert.equal(messages.length, 2);
    },
    asks,
  );

  add(
    `a call that somebody else ${word} while the stream waits`,
    async (setting) => {
      const { client, callboard } = setting;
      const chat = await client.open(callboard, { agent: "demo" });
      const sent = chat.send("run echo hi > made.txt");
      await until(async () => outline(await last(chat)).includes("shell: input-available"));
      const { id } = call(await last(chat), "shell");
      const decision = approved ? "accepted" : "rejected";
      await callboard.api(`sessions/${chat.id}/calls/${id}/approval`, { body: { decision } });
      await sent;
      await settled(chat);
      assert.deepEqual(outline(await last(chat)), ["text", `shell: output-${approved ? "available" : "error"}`, "text"]);
      await assertKept(chat, callboard, client);
    },
    (client) => !asks(client),
  );
}

add(
  "the run resumes after the last of several decisions",
  async ({ client, callboard, model }) => {
    const calls = ["one", "two"].map((it) => ({ call: "shell", arguments: { command: `echo ${it} > ${it}.txt` } }));
    model.willAnswer({ calls }, { text: "Half done." });
    const chat = await client.open(callboard, { agent: "model" });
    await chat.send("Write two files");
    await settled(chat);
    const asked = await last(chat);
    assert.deepEqual(outline(asked), ["shell: approval-requested", "shell: approval-requested"]);
    const ids = asked.parts.flatMap((/** @type {any} */ it) => it.approval?.id ?? []);
    await chat.decide({ id: ids[0], approved: true });
    await settled(chat);
    assert.deepEqual(outline(await last(chat)), ["shell: approval-responded", "shell: approval-requested"]);
    await chat.decide({ id: ids[1], approved: false });
    await settled(chat, (it) => outline(it).length === 3);
    assert.deepEqual(outline(await last(chat)), ["shell: output-available", "shell: output-denied", "text"]);
    await assertKept(chat, callboard, client);
  },
  asks,
);

add(
  "a run asks twice, and each response continues the last one",
  async ({ client, callboard, model }) => {
    const write = (/** @type {string} */ it) => ({ call: "shell", arguments: { command: `echo ${it} > ${it}.txt` } });
    model.willAnswer(write("three"), write("four"), { text: "Both done." });
    const chat = await client.open(callboard, { agent: "model" });
    await chat.send("Write two files, one after the other");
    for (const n of [1, 2]) {
      await settled(chat, (it) => outline(it).length === n && outline(it)[n - 1] === "shell: approval-requested");
      const asked = (await last(chat)).parts.find((/** @type {any} */ it) => it.state === "approval-requested");
      await chat.decide({ id: asked.approval.id, approved: true });
    }
    await settled(chat, (it) => outline(it).length === 3);
    assert.deepEqual(outline(await last(chat)), ["shell: output-available", "shell: output-available", "text"]);
    await assertKept(chat, callboard, client);
  },
  asks,
);

add(
  "a call is stopped and needs nothing from the client",
  async ({ client, callboard, model }) => {
    model.willAnswer({ call: "shell", arguments: { command: "echo begun > begun.txt; sleep 600" } });
    const chat = await client.open(callboard, { agent: "model" });
    await chat.send("Wait for a long time");
    await settled(chat, (it) => outline(it)[0] === "shell: approval-requested");
    const asked = (await last(chat)).parts.find((/** @type {any} */ it) => it.state === "approval-requested");
    void chat.decide({ id: asked.approval.id, approved: true });
    const isRunning = (/** @type {any} */ { type }) => type === "tool_running";
    await until(async () => (await callboard.events(chat.id)).some(isRunning));
    await callboard.api(`sessions/${chat.id}/cancel`, { method: "POST" });
    await settled(chat, (it) => outline(it)[0] === "shell: output-error");
    assert.equal((await chat.look()).error, undefined);
    await assertKept(chat, callboard, client);
  },
  asks,
);

add(
  "an approval is shown again after a reload",
  async (setting) => {
    const { client, callboard } = setting;
    const first = await talk(setting, "run echo hi > made.txt");
    await settled(first);
    const { messages } = await first.look();
    // A first release appends to its message.
    const before = client.isFirst ? messages.slice(0, 1) : await kept(callboard, first.id, client.profile);
    const chat = await client.open(callboard, { id: first.id, agent: "demo", messages: before });
    await chat.resume();
    await settled(chat);
    await assertKept(chat, callboard, client);
    await chat.decide({ id: call(await last(chat), "shell").approval.id, approved: true });
    await settled(chat, (it) => outline(it).length === 3);
    await assertKept(chat, callboard, client);
  },
  asks,
);

const TOOLS = { pick_colour: { description: "Lets the user pick", parameters: { type: "object" } } };

add("the demo agent calls a tool of the client", async ({ client, callboard }) => {
  const outputs = { pick_colour: { colour: "teal" } };
  const chat = await client.open(callboard, { agent: "demo", tools: TOOLS, outputs });
  await chat.send('use the client tool pick_colour with {"of":"wall"}');
  await settled(chat, (it) => outline(it).length === 3);
  const answer = await last(chat);
  const { input, output } = call(answer, "pick_colour");
  assert.deepEqual([input, output], [{ of: "wall" }, { colour: "teal" }]);
  assert.match(text(answer), /teal/);
  const messages = await assertKept(chat, callboard, client);
  assert.equal(messages.length, 2);
});

add("a model calls a tool of the client", async ({ client, callboard, model }) => {
  model.willAnswer({ call: "pick_colour", arguments: { of: "door" } }, { text: "Red it is." });
  const chat = await client.open(callboard, { agent: "model", tools: TOOLS, outputs: { pick_colour: "red" } });
  await chat.send("Which colour?");
  await settled(chat, (it) => outline(it).length === 2);
  const { tools, messages } = model.asked.at(-1);
  assert.ok(tools.some((/** @type {any} */ it) => it.function.name === "pick_colour"));
  assert.match(JSON.stringify(messages.at(-1)), /red/);
  await assertKept(chat, callboard, client);
});

add("a tool of the client is called twice in a run", async ({ client, callboard, model }) => {
  const pick = (/** @type {string} */ of) => ({ call: "pick_colour", arguments: { of } });
  model.willAnswer(pick("door"), pick("wall"), { text: "Red, both." });
  const chat = await client.open(callboard, { agent: "model", tools: TOOLS, outputs: { pick_colour: "red" } });
  await chat.send("Which colours?");
  await settled(chat, (it) => outline(it).length === 3);
  await assertKept(chat, callboard, client);
});

add(
  "a tool of the client fails",
  async ({ client, callboard }) => {
    const errors = { pick_colour: "The page has no colours." };
    const chat = await client.open(callboard, { agent: "demo", tools: TOOLS, errors });
    await chat.send("use the client tool pick_colour");
    await settled(chat, (it) => outline(it).length === 3);
    assert.equal(call(await last(chat), "pick_colour").error, errors.pick_colour);
    await assertKept(chat, callboard, client);
  },
  // The others have no state for it.
  ({ profile, isFirst }) => profile >= 5 && !(isFirst && profile === 5),
);

/** A decision or result arrives with the next message, which is answered. @param {Setting} setting @param {Chat} chat @param {string} outcome */
async function goesOn({ client, callboard }, chat, outcome) {
  await chat.send("hello");
  await settled(chat, (it) => it.role === "assistant");
  assert.match(text(await last(chat)), /demo agent/);
  const messages = await kept(callboard, chat.id, client.profile);
  assert.equal(messages.length, 4);
  assert.deepEqual(outline(messages[1]).slice(0, 2), ["text", outcome]);
  const [first, , ...rest] = (await chat.look()).messages;
  // It has only the beginning of the previous answer.
  assert.deepEqual(shared([first, ...rest], client), shared([messages[0], ...messages.slice(2)], client));
}

for (const approved of [true, false]) {
  add(
    `a decision comes with the next message: ${approved ? "yes" : "no"}`,
    async (setting) => {
      const chat = await setting.client.open(setting.callboard, { agent: "demo", byHand: true });
      await chat.send("run echo hi > made.txt");
      await settled(chat);
      await chat.decide({ id: call(await last(chat), "shell").approval.id, approved });
      await goesOn(setting, chat, `shell: output-${approved ? "available" : "denied"}`);
    },
    asks,
  );
}

add("a result of a client tool arrives with the next message", async (setting) => {
  const options = { agent: "demo", byHand: true, tools: TOOLS, outputs: { pick_colour: "teal" } };
  const chat = await setting.client.open(setting.callboard, options);
  await chat.send("use the client tool pick_colour");
  await settled(chat, (it) => outline(it).includes("pick_colour: output-available"));
  await goesOn(setting, chat, "pick_colour: output-available");
});

/** A chat events of a failure in the middle of an answer, which continues on `release`. @param {Setting} setting */
async function halfway({ client, callboard, model }) {
  let letGo = () => {};
  const after = new Promise((resolve) => (letGo = () => resolve(undefined)));
  model.willAnswer({ text: "Once upon a time ", after, rest: "all was well." });
  const chat = await client.open(callboard, { agent: "model" });
  const sent = chat.send("Tell me a story");
  await until(async () => text(await last(chat)).includes("Once upon"));
  return { chat, sent, letGo };
}

add("a run is stopped", async (setting) => {
  const { client, callboard } = setting;
  const { chat, sent, letGo } = await halfway(setting);
  await callboard.api(`sessions/${chat.id}/cancel`, { method: "POST" });
  await sent;
  letGo();
  await settled(chat);
  await assertKept(chat, callboard, client);
  const [, answer] = await kept(callboard, chat.id, 6);
  assert.equal(answer.metadata.status, "cancelled");
});

add("a client that disconnects stops nothing and can rejoin", async (setting) => {
  const { client, callboard } = setting;
  const { chat, sent, letGo } = await halfway(setting);
  await chat.stop();
  await sent;
  const { messages } = await chat.look();
  const again = await client.open(callboard, { id: chat.id, agent: "model", messages: messages.slice(0, 1) });
  const resumed = again.resume();
  await until(async () => text(await last(again)).includes("Once upon"));
  letGo();
  await resumed;
  await settled(again);
  assert.equal(text(await last(again)), "Once upon a time all was well.");
  await assertKept(again, callboard, client);
});

add("two clients receive the same run", async (setting) => {
  const { client, callboard } = setting;
  const { chat, sent, letGo } = await halfway(setting);
  const { messages } = await chat.look();
  const other = await client.open(callboard, { id: chat.id, agent: "model", messages: messages.slice(0, 1) });
  const resumed = other.resume();
  await until(async () => text(await last(other)).includes("Once upon"));
  letGo();
  await Promise.all([sent, resumed]);
  for (const each of [chat, other]) {
    await settled(each);
    await assertKept(each, callboard, client);
  }
});

add(
  "a page loaded during an answer gets the rest of it",
  async (setting) => {
    const { client, callboard } = setting;
    const { chat, sent, letGo } = await halfway(setting);
    const messages = await kept(callboard, chat.id, client.profile);
    const loaded = await client.open(callboard, { id: chat.id, agent: "model", messages });
    const resumed = loaded.resume();
    await until(async () => (await loaded.look()).status === "streaming");
    letGo();
    await Promise.all([sent, resumed]);
    await settled(loaded, (it) => text(it).includes("well"));
    await assertKept(loaded, callboard, client);
  },
  // The others append to their message.
  ({ profile, isFirst }) => profile >= 5 && !isFirst,
);

add("an idle or unknown chat has nothing to resume", async (setting) => {
  const { client, callboard } = setting;
  const chat = await talk(setting, "hello");
  await settled(chat);
  const before = await chat.look();
  await chat.resume();
  const { messages, error } = await chat.look();
  assert.deepEqual([messages, error], [before.messages, undefined]);
  await assertKept(chat, callboard, client);
  const unknown = await client.open(callboard);
  await unknown.resume();
  assert.deepEqual([(await unknown.look()).messages, (await unknown.look()).error], [[], undefined]);
});

/** @param {Setting} setting @param {Chat} chat */
async function reasons({ callboard }, chat) {
  const events = await callboard.events(chat.id);
  return events.flatMap(({ type, reason }) => (type === "history_rewound" ? [reason] : []));
}

add("an answer is regenerated", async (setting) => {
  const chat = await talk(setting, "hello", "what time is it in Paris?");
  await settled(chat);
  const { id } = await last(chat);
  await chat.regenerate();
  await settled(chat, (it) => it.id !== id && it.role === "assistant");
  const messages = await assertKept(chat, setting.callboard, setting.client);
  assert.equal(messages.length, 4);
  assert.deepEqual(await reasons(setting, chat), ["regenerate"]);
});

add(
  "an answer is regenerated for a client without ids",
  async (setting) => {
    const { client, callboard } = setting;
    const chat = await client.open(callboard, { agent: "demo", asIs: true });
    for (const _ of [1, 2]) {
      await chat.send("hello");
      await settled(chat);
    }
    const { id } = await last(chat);
    await chat.regenerate();
    await settled(chat, (it) => it.id !== id && it.role === "assistant");
    const messages = await kept(callboard, chat.id, client.profile);
    assert.deepEqual(messages.map(text), (await chat.look()).messages.map(text));
    assert.equal(messages.length, 4);
    assert.deepEqual(await reasons(setting, chat), ["regenerate"]);
  },
  ({ profile }) => profile === 4,
);

add("a client with a wrong key gets a clear reason", async ({ client, callboard }) => {
  const chat = await client.open({ ...callboard, token: "wrong" }, { agent: "demo" });
  await chat.send("hello");
  await until(async () => (await chat.look()).status === "error");
  const { error } = await chat.look();
  assert.match(error ?? "", /key|token|sign/i);
  assert.doesNotMatch(error ?? "", /[{}]/);
});

add(
  "a message is edited",
  async (setting) => {
    const chat = await talk(setting, "hello", "what time is it in Paris?");
    for (const words of ["think about tea", "think about milk"]) {
      const { messages } = await chat.look();
      await chat.send(words, { messageId: messages[0].id });
      await settled(chat);
      const [sent, ...rest] = await assertKept(chat, setting.callboard, setting.client);
      assert.deepEqual([text(sent), rest.length], [words, 1]);
    }
    assert.deepEqual(await reasons(setting, chat), ["edit", "edit"]);
  },
  edits,
);

add("a message sent while the agent works is answered in its turn", async (setting) => {
  const { client, callboard, model } = setting;
  const { chat, sent, letGo } = await halfway(setting);
  model.willAnswer({ text: "And that was that." });
  const { messages } = await chat.look();
  const other = await client.open(callboard, { id: chat.id, agent: "model", messages: messages.slice(0, 1) });
  const answered = other.send("And then?");
  await until(async () => (await callboard.api(`sessions/${chat.id}/queue`)).messages.length === 1);
  letGo();
  await Promise.all([sent, answered]);
  await settled(other, (it) => text(it).includes("that was that"));
  // It has not received the previous answer.
  const [first, , ...rest] = await kept(callboard, chat.id, client.profile);
  assert.deepEqual(shared((await other.look()).messages, client), shared([first, ...rest], client));
});


/** Messages with the contents of our files instead of their addresses. @param {Callboard} callboard @param {any[]} messages */
async function withFiles(callboard, messages) {
  const holders = messages.flatMap(({ parts, experimental_attachments = [] }) => [...parts, ...experimental_attachments]);
  for (const holder of holders.filter(({ url }) => url?.startsWith(callboard.base))) {
    const response = await fetch(holder.url, { headers: { Authorization: `Bearer ${callboard.token}` } });
    const data = Buffer.from(await response.arrayBuffer()).toString("base64");
    holder.url = `data:${holder.mediaType ?? holder.contentType};base64,${data}`;
  }
  return messages;
}

add("a file is sent with a message", async ({ client, callboard }) => {
  const chat = await client.open(callboard, { agent: "demo" });
  await chat.send("hello", { files: [FILE] });
  await settled(chat);
  const there = await withFiles(callboard, await kept(callboard, chat.id, client.profile));
  assert.ok(JSON.stringify(there).includes(PICTURE));
  assert.deepEqual(shared((await chat.look()).messages, client), shared(there, client));
});


add(
  "a message keeps its texts, files, links, data and metadata",
  async ({ client, callboard }) => {
    const chat = await client.open(callboard, { agent: "demo" });
    const { filename, ...nameless } = FILE;
    const parts = [{ type: "text", text: "hello" }, nameless, LINK, { type: "data-place", data: { x: 1 } }, { type: "text", text: "again" }];
    await chat.send({ parts, metadata: { mood: "good" } });
    await settled(chat);
    const there = await withFiles(callboard, await kept(callboard, chat.id, client.profile));
    assert.deepEqual(shared((await chat.look()).messages, client), shared(there, client));
    assert.deepEqual([there[0].parts, there[0].metadata.mood], [parts, "good"]);
  },
  edits,
);

add("a file is sent as an address", async ({ client, callboard, model }) => {
  model.willAnswer({ text: "A dot." });
  const chat = await client.open(callboard, { agent: "model" });
  await chat.send("Look", { files: [{ ...LINK, filename: "dot.png" }] });
  await settled(chat);
  assert.match(JSON.stringify(model.asked.at(-1).messages.at(-1)), /https:\/\/example\.com\/dot\.png/);
  await assertKept(chat, callboard, client);
});

add("a new chat imports its history, and the agent knows it", async ({ client, callboard, model }) => {
  const messages = structuredClone(client.profile === 4 ? HISTORY_4 : HISTORY);
  // After the calls of the first step.
  messages[1].parts.splice(6, 0, ...newParts(client));
  const chat = await client.open(callboard, { agent: "model", messages });
  model.willAnswer({ text: "As I said." });
  await chat.send("What was it?");
  await settled(chat);
  const asked = JSON.stringify(model.asked.at(-1).messages);
  for (const known of ["Look", "A dot.", "Too hot.", "seen"]) assert.ok(asked.includes(known), known);
  const there = await withFiles(callboard, await kept(callboard, chat.id, client.profile));
  // The agent, the time and the executed calls are stored here and were not sent by the client.
  for (const name of ["metadata", "annotations"]) delete there[1][name];
  assert.deepEqual(shared((await chat.look()).messages, client), shared(there, client));
  const marks = (await callboard.events(chat.id)).filter(({ type, text }) => type === "notice" && /client/.test(text));
  assert.equal(marks.length, 1, "it is marked as the client's");
});

const LOG = readFileSync(new URL("../crates/transcript/fixtures/v1.jsonl", import.meta.url), "utf8");
/** The records of a session with every kind of part. @type {object[]} */
const EVERY_KIND = LOG.trim().split("\n").map((it) => JSON.parse(it));

add("a chat with every kind of part is loaded and continues", async ({ client, callboard }) => {
  const id = `every-${client.name}`;
  await callboard.importLog(id, EVERY_KIND.map((record) => ({ ...record, sessionId: id })));
  const messages = await kept(callboard, id, client.profile);
  const chat = await client.open(callboard, { id, messages });
  await chat.send("hello");
  await settled(chat);
  const all = await assertKept(chat, callboard, client);
  assert.equal(all.length, messages.length + 2);
});

add("a refusal has a clear reason", async ({ client, callboard }) => {
  const before = await callboard.api("sessions");
  const chat = await client.open(callboard, { agent: "nobody" });
  await chat.send("hello");
  await until(async () => (await chat.look()).status === "error");
  assert.match((await chat.look()).error ?? "", /nobody/);
  assert.deepEqual(await callboard.api("sessions"), before);
});

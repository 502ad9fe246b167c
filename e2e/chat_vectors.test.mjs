// The behaviour of the AI SDK's clients: the test vectors of `crates/formats`, run with the real clients,
// so that both assume the same.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { callChatApi } from "@ai-sdk/ui-utils";

import { newChat, release } from "./ai_sdk.mjs";
import { runsOnPinnedNode } from "./pinned_node.mjs";

const FIXTURES = new URL("../crates/formats/fixtures/", import.meta.url);

/** @param {string} path @returns {any[]} */
function readLines(path) {
  return readFileSync(new URL(path, FIXTURES), "utf8").trim().split("\n").map((it) => JSON.parse(it));
}

/** The response of a case. @param {any} it */
function respond({ chunks, done = true, body, httpStatus = 200, headers }) {
  const frames = chunks?.map((/** @type {any} */ chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
  const text = body ?? (frames === undefined ? null : frames + (done ? "data: [DONE]\n\n" : ""));
  return new Response(text, { status: httpStatus, headers });
}

/** The client generates ids that the server does not send. @param {any[]} messages @param {any} it */
function comparable(messages, { chunks, body }) {
  const isNamed = chunks ? chunks[0].type === "start" : /"messageId"/.test(body ?? "");
  const assistant = messages.filter(({ role }) => role === "assistant");
  return JSON.parse(JSON.stringify(assistant)).map((/** @type {any} */ it) => (isNamed ? it : { ...it, id: "made" }));
}

/** With the zod of these tests, all releases refuse a result without `output`; when recorded, only 7.0.0 did. */
const REFUSED_BY_ZOD = "ui-missing-output-field";

if (await runsOnPinnedNode(import.meta.url)) {
  for (const name of ["ai-5", "ai-5-first", "ai-6", "ai-6-first", "ai-7", "ai-7-first"]) {
    const { module } = await release(name);
    for (const vector of readLines("ui/folded.jsonl")) {
      test(`${name}: ${vector.name}`, async () => {
        const by = vector.name === REFUSED_BY_ZOD ? "ai-7-first" : name;
        const seen = vector.releases[by] ?? vector.releases["ai-7"];
        const transport = new module.DefaultChatTransport({ fetch: async () => respond(vector) });
        const chat = newChat(module, { id: "chat_1", transport, messages: structuredClone(vector.initial) });
        if (vector.resumes) await chat.resumeStream();
        else await chat.sendMessage(vector.initial ? undefined : { text: "hi" });
        assert.equal(chat.status, seen.status, chat.error);
        assert.deepEqual(comparable(chat.messages, vector), comparable(seen.assistant, vector));
      });
    }
  }

  for (const vector of readLines("ui_v4/folded.jsonl")) {
    test(`ai-4: ${vector.name}`, async () => {
      /** @type {any[]} */
      let messages = [];
      const finished = callChatApi({
        api: "/",
        body: {},
        streamProtocol: "data",
        credentials: undefined,
        headers: undefined,
        abortController: undefined,
        restoreMessagesOnFailure: () => {},
        onResponse: undefined,
        onUpdate: ({ message }) => void (messages = [structuredClone(message)]),
        onFinish: undefined,
        onToolCall: undefined,
        generateId: () => "made",
        fetch: async () => new Response(vector.body),
        lastMessage: undefined,
      });
      const status = await finished.then(() => "ready", () => "error");
      assert.equal(status, vector.status);
      const plain = (/** @type {any} */ { role, content, parts, annotations }) => ({ role, content, parts, annotations });
      assert.deepEqual(messages.map(plain), vector.assistant.map(plain));
    });
  }
}

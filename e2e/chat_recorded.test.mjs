// Every recorded session in the AI SDK's format: for every end of the log, the real packages check its messages
// and convert them to model messages; and they fold the stream of every run to the stored message.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { convertToCoreMessages } from "ai-4";

import { newChat, release, shared } from "./ai_sdk.mjs";
import { runsOnPinnedNode } from "./pinned_node.mjs";

const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));
const NAMES = ["ai-5", "ai-5-first", "ai-6", "ai-6-first", "ai-7", "ai-7-first"];
const BUILD_MS = 600_000;

/** The file that a test of `backends` writes and prints the path of. @param {string} stdout @param {string} name @returns {any[]} */
function readLines(stdout, name) {
  const [line, path] = stdout.match(new RegExp(`^.* in (/.*/${name})$`, "m")) ?? [];
  assert.ok(path, stdout);
  process.stdout.write(`# ${line}\n`);
  return readFileSync(path, "utf8").trim().split("\n").map((it) => JSON.parse(it));
}

/** A call without a result. @param {any[]} messages */
function hasOpenCall(messages) {
  const isOpen = (/** @type {any} */ { state, toolInvocation }) =>
    state?.startsWith("input-") || (toolInvocation && toolInvocation.state !== "result");
  return messages.some(({ parts }) => parts.some(isOpen));
}

/** Messages without the decisions about these calls, with a denial as an error. @param {any[]} messages @param {any[]} calls */
function withoutDecisions(messages, calls) {
  for (const part of messages.flatMap((it) => it.parts)) {
    const call = calls.find((it) => it.toolCallId === part.toolCallId);
    if (!call) continue;
    delete part.approval;
    if (call.state !== "output-denied") continue;
    assert.match(part.state, /^output-(denied|error)$/);
    delete part.state;
    delete part.errorText;
  }
  return messages;
}

if (await runsOnPinnedNode(import.meta.url)) {
  /** @type {{profile: number, messages: any[]}[]} */
  let lists;
  /** @type {{profile: number, chunks: any[], message: any}[]} */
  let streams;
  before(() => {
    const written = ["test", "--locked", "--package", "backends", "--test", "it", "is_written_down", "--", "--nocapture"];
    const stdout = execFileSync("cargo", written, { cwd: REPOSITORY, encoding: "utf8", timeout: BUILD_MS });
    lists = readLines(stdout, "ui_messages.jsonl");
    streams = readLines(stdout, "ui_streams.jsonl");
  });

  for (const client of await Promise.all(NAMES.map(release))) {
    const { name, module, profile } = client;

    test(`${name} accepts the messages of every prefix`, async (t) => {
      // Version 6 gets the messages of version 7 too.
      const selected = lists.filter((it) => it.profile === Math.min(profile, 6));
      for (const { messages } of selected) {
        try {
          // 5.0.0 lacks the first function, and its second one refuses every open call.
          await module.validateUIMessages?.({ messages });
          if (!(name === "ai-5-first" && hasOpenCall(messages))) await module.convertToModelMessages(messages);
        } catch (error) {
          assert.fail(`${JSON.stringify(messages)}: ${error}`);
        }
      }
      t.diagnostic(`${selected.length} different lists`);
      assert.ok(selected.length > 5000);
    });

    test(`${name} folds every stream to the stored message`, async () => {
      const selected = streams.filter((it) => it.profile === profile);
      assert.ok(selected.length > 400);
      for (const { chunks, message } of selected) {
        const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
        const transport = new module.DefaultChatTransport({ fetch: async () => new Response(body) });
        const chat = newChat(module, { id: "x", transport });
        await chat.sendMessage({ text: "hi" });
        const failed = chunks.at(-1).type === "error" ? chunks.at(-1).errorText : undefined;
        assert.equal(chat.error?.message, failed, body);
        const made = JSON.parse(JSON.stringify(chat.messages.slice(1)));
        // Version 6 has no form for decisions of others.
        const decided = profile === 6 ? message.parts.filter((/** @type {any} */ it) => it.approval) : [];
        const [here, there] = [made, [message]].map((it) => withoutDecisions(shared(it, client), decided));
        assert.deepEqual(here, there, body);
      }
    });
  }

  test("ai-4 accepts the messages of every prefix", () => {
    const selected = lists.filter(({ profile, messages }) => profile === 4 && !hasOpenCall(messages));
    assert.ok(selected.length > 3000);
    for (const { messages } of selected) convertToCoreMessages(messages);
  });
}

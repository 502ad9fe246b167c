// The AI SDK's own chat with every agent: Callboard's loop around a model, and the real command-line agents.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { KINDS, useStage } from "./agents.mjs";
import { assertKept, call, kept, outline, release, text } from "./ai_sdk.mjs";
import { until } from "./callboard.mjs";

/** @typedef {import("./ai_sdk.mjs").Chat} Chat */

const TIMEOUT_MS = 60_000;
const CLIENT = await release("ai-6");

/** The last message, as soon as the chat is idle and the condition holds. @param {Chat} chat @param {(last: any) => boolean} [isSo] */
async function settled(chat, isSo = () => true) {
  /** @type {any} */
  let last;
  await until(async () => {
    const { messages, status, error } = await chat.look();
    assert.notEqual(status, "error", error);
    last = messages.at(-1);
    return status === "ready" && isSo(last);
  });
  return last;
}

for (const kind of KINDS) {
  describe(kind, () => {
    const stage = useStage(kind);

    /** A chat of a new session. @param {boolean} asks */
    const open = async (asks) => {
      const { id } = await stage.open({ asks });
      return CLIENT.open(stage.callboard, { id });
    };

    test("a conversation has thinking and calls", { timeout: TIMEOUT_MS }, async () => {
      const chat = await open(false);
      for (const scenario of ["hello", "thinking", "parallel", "failing"]) {
        await chat.send(`play:${scenario}`);
        await settled(chat);
        await assertKept(chat, stage.callboard, CLIENT);
      }
      const { messages } = await chat.look();
      assert.equal(messages.length, 8);
      const calls = messages.flatMap(outline).filter((it) => /: output-(available|error)$/.test(it));
      assert.ok(calls.length >= 3, calls.join("\n"));
    });

    // The old Codex needs no approval for what its sandbox allows.
    for (const approved of kind === "codexExec" ? [] : [true, false]) {
      test(`a call that the reader ${approved ? "allows" : "refuses"}`, { timeout: TIMEOUT_MS }, async () => {
        const chat = await open(true);
        await chat.send("play:asking");
        const isAsked = (/** @type {any} */ it) => it.approval && it.approval.approved === undefined;
        const asked = await settled(chat, (it) => it.parts.some(isAsked));
        await assertKept(chat, stage.callboard, CLIENT);
        await chat.decide({ id: asked.parts.find(isAsked).approval.id, approved });
        const answer = await settled(chat, (it) => text(it).includes("So be it."));
        assert.equal(answer.id, asked.id, "the same message goes on");
        const name = asked.parts.find(isAsked).type.slice("tool-".length);
        assert.equal(call(answer, name).approval.approved, approved);
        assert.ok(outline(answer).includes(`${name}: output-${approved ? "available" : "denied"}`), outline(answer).join("\n"));
        await assertKept(chat, stage.callboard, CLIENT);
      });
    }

    test("a client that disconnects can rejoin the run", { timeout: TIMEOUT_MS }, async () => {
      const chat = await open(false);
      const sent = chat.send("play:story");
      await stage.models.reached("story");
      await until(async () => (await chat.look()).status === "streaming");
      await chat.stop();
      await sent;
      const [first] = (await chat.look()).messages;
      const again = await CLIENT.open(stage.callboard, { id: chat.id, messages: [first] });
      const resumed = again.resume();
      // A shorter run would leave nothing to resume.
      await until(async () => (await again.look()).status === "streaming");
      stage.models.open("story");
      await resumed;
      assert.match(text(await settled(again, (it) => it.role === "assistant")), /Once upon a time there was no more to tell\./);
      await assertKept(again, stage.callboard, CLIENT);
    });

    test("an answer is regenerated, if the agent supports it", { timeout: TIMEOUT_MS }, async () => {
      const chat = await open(false);
      await chat.send("play:hello");
      const before = await settled(chat);
      await chat.regenerate();
      if (kind === "openai") {
        const answer = await settled(chat, (it) => it.role === "assistant");
        assert.notEqual(answer.id, before.id);
        await assertKept(chat, stage.callboard, CLIENT);
      } else {
        const { status, error } = await chat.look();
        assert.equal(status, "error");
        assert.match(error ?? "", /cannot go back/);
        const messages = await kept(stage.callboard, chat.id, CLIENT.profile);
        assert.deepEqual(messages[1].id, before.id, "nothing is lost");
      }
    });

    test("the agent knows the messages of other clients", { timeout: TIMEOUT_MS }, async () => {
      const messages = [
        { id: "u1", role: "user", parts: [{ type: "text", text: "The word is lighthouse." }] },
        { id: "a1", role: "assistant", parts: [{ type: "step-start" }, { type: "text", text: "I keep it.", state: "done" }] },
      ];
      const chat = await CLIENT.open(stage.callboard, { agent: "free", messages });
      await chat.send("play:recall");
      assert.match(text(await settled(chat)), /remember/);
      const asked = stage.models.asked("recall").at(-1) ?? "";
      for (const words of ["The word is lighthouse.", "I keep it."]) assert.ok(asked.includes(words), asked);
    });
  });
}

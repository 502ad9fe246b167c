// What is said to an agent while it works, and what it says to others through Callboard.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";

import { assertGoesOn, exchangeOf, isSteered } from "./agent_case.mjs";
import { until } from "./callboard.mjs";
import { answered, assertSameAfterReload, openSession, say } from "./drive.mjs";

/** @typedef {import("./agent_case.mjs").Cases} Cases */

/** @type {Cases} */
export const OTHERS = {
  "a message can go into the running answer": async ({ stage, open, told, its }) => {
    const talk = await open();
    await talk.runs("play:waiting", "until");
    const before = stage.models.asked("waiting").length;
    await talk.post("messages", { text: "Do hurry.", mode: "steer" });
    // Programs take it into a queue of their own; our own loop takes it at its next step.
    if (its.isProgram) await talk.answerWhen((it) => it.parts.some(isSteered));
    else assert.deepEqual((await talk.queue()).map((it) => it.mode), ["steer"]);
    writeFileSync(path.join(talk.workspace, "go"), "");
    const answer = await talk.answer();
    assert.deepEqual(told(answer), [
      "commentary: There is time.",
      "shell succeeded: gone",
      "steered: Do hurry.",
      "final: That was all.",
    ]);
    assert.equal(answer.parts.find(isSteered).state, "seen");
    const asked = stage.models.asked("waiting").slice(before - 1);
    assert.deepEqual(asked.map((it) => it.includes("Do hurry.")), [false, true]);
    assert.deepEqual(await talk.queue(), []);
  },

  "a message for the running answer that it never saw comes back when it is stopped": async ({ stage, open, its }) => {
    const talk = await open();
    await talk.runs("play:waiting", "until");
    await talk.post("messages", { text: "play:hello", mode: "steer" });
    if (its.isProgram) await talk.answerWhen((it) => it.parts.some(isSteered));
    await talk.post("cancel");
    if (its.readsWhileItStops) {
      assert.equal((await talk.answer()).parts.find(isSteered).state, "seen");
      assert.deepEqual(await talk.queue(), []);
      return assertGoesOn(talk, "play:hello", stage);
    }
    const waiting = (await talk.queue()).map(({ text, held }) => ({ text, held }));
    assert.deepEqual(waiting, [{ text: "play:hello", held: true }]);
    await talk.post("queue/release");
    const last = await talk.lastOf(2);
    assert.equal(last.content, "Hello! This answer comes in several small pieces.");
    await assertGoesOn(talk, "play:hello", stage);
    const said = (await stage.callboard.events(talk.id)).filter((it) => it.type === "user_message");
    assert.deepEqual(said.map((it) => it.text), ["play:waiting", "play:hello", "play:recall"]);
  },

  "Callboard's own tools have one name, one result and no question": async ({ browser, t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:ownTools");
    await answered(page);
    const answer = await talk.lastAnswer();
    assert.deepEqual(told(answer), [
      "commentary: Who is there?",
      "agents_list succeeded",
      "commentary: I leave a note.",
      "callboard_note succeeded",
      "notice: Half way.",
      "final: All is noted.",
    ]);
    const [list, note] = answer.toolCalls;
    const ids = list.result.agents.map((/** @type {any} */ it) => [it.id, it.kind, it.you ?? false]);
    const kind = stage.kind;
    assert.deepEqual(ids, [["free", kind, false], ["asking", kind, true], ["demo", "demo", false]]);
    assert.deepEqual(note.result, { noted: true });
    assert.match(stage.models.asked("ownTools").at(-1) ?? "", /noted/);
    const events = await stage.callboard.events(talk.id);
    assert.equal(events.filter((it) => it.type === "tool_approval_requested").length, 0);
    assert.equal(events.filter((it) => it.type === "tool_result").length, 2);
    await page.getByText("Half way.", { exact: true }).waitFor();
    const texts = (/** @type {string} */ part) => page.locator(`.tool-block ${part}`).allTextContents();
    assert.deepEqual(await texts(".name"), ["agents_list", "callboard_note"]);
    assert.deepEqual(await texts(".origin"), ["Callboard", "Callboard"]);
    assert.deepEqual(await texts(".agents b"), ["free", "asking", "demo"]);
    await assertSameAfterReload(page);
    const commands = (await talk.processes()).map((it) => it.command).join("\n");
    assert.doesNotMatch(commands, /Bearer [^$]/, "everybody can read a command line");
  },

  "two calls that are the same are two": async ({ open, told }) => {
    const answer = await (await open()).hear("play:twins");
    const [first, ...rest] = told(answer);
    const last = rest.pop();
    assert.deepEqual([first, last], ["commentary: The same twice.", "final: Both are noted."]);
    const twins = ["callboard_note succeeded", "callboard_note succeeded", "notice: Twin.", "notice: Twin."];
    assert.deepEqual(rest.sort(), twins);
  },

  "an agent asks another of its kind, and that one a third": async ({ browser, t, stage, open, told }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:chain");
    await answered(page);
    const answer = await talk.lastAnswer();
    assert.deepEqual(told(answer), [
      "commentary: I ask another.",
      "agents_message succeeded",
      "exchange: play:askDemo",
      "final: It has asked a third.",
    ]);
    const { agent, ok, result, sessionId } = exchangeOf(answer);
    assert.deepEqual([agent, ok, result], ["asking", true, "Now I know the time."]);
    const [question, second] = (await stage.callboard.api(`sessions/${sessionId}/messages`)).messages;
    assert.deepEqual([question.from.agent, question.from.sessionId], ["free", talk.id]);
    assert.match(exchangeOf(second).result, /In Paris it is/);
    assert.match(stage.models.asked("chain").at(-1) ?? "", /Now I know the time/, "the model gets the answer");
    const block = page.locator(".exchange");
    assert.equal(await block.count(), 1);
    assert.match((await block.getAttribute("class")) ?? "", /success/);
    await assertSameAfterReload(page);
  },

  "stopping who waits stops whom it waits for": async ({ stage, open }) => {
    const talk = await open();
    await talk.say("play:askForever");
    const asked = await talk.answerWhen((it) => exchangeOf(it)?.state === "running");
    // Both work in the same folder.
    const tails = async () => (await talk.processes()).filter((it) => it.command.includes("tail"));
    await until(async () => (await tails()).length > 0);
    await talk.post("cancel");
    assert.equal((await talk.answer()).status, "cancelled");
    const { state } = await stage.callboard.api(`sessions/${exchangeOf(asked).sessionId}`);
    assert.deepEqual([state, await tails()], ["idle", []]);
    await assertGoesOn(talk, "play:askForever", stage);
  },
};

// Steering an agent, and messages of an agent to others through Callboard.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";

import { assertGoesOn, exchangeOf, isSteered } from "./agent_case.mjs";
import { until } from "./callboard.mjs";
import { answered, assertSameAfterReload, openSession, sendMessage } from "./drive.mjs";

/** @typedef {import("./agent_case.mjs").Cases} Cases */

/** @type {Cases} */
export const OTHERS = {
  "a message is steered into the active run": async ({ stage, open, outline, its }) => {
    const talk = await open();
    await talk.runs("play:waiting", "until");
    const before = stage.models.asked("waiting").length;
    await talk.post("messages", { text: "Do hurry.", mode: "steer" });
    // Programs have a queue of their own; Callboard's loop reads it at the next step.
    if (its.isProgram) await talk.answerWhen((it) => it.parts.some(isSteered));
    else assert.deepEqual((await talk.queue()).map((it) => it.mode), ["steer"]);
    writeFileSync(path.join(talk.workspace, "go"), "");
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), [
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

  "an unseen steered message returns when the run is stopped": async ({ stage, open, its }) => {
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
    const messages = (await stage.callboard.events(talk.id)).filter((it) => it.type === "user_message");
    assert.deepEqual(messages.map((it) => it.text), ["play:waiting", "play:hello", "play:recall"]);
  },

  "Callboard's own tools have one name, one result and no approval": async ({ browser, t, stage, open, outline }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:ownTools");
    await answered(page);
    const answer = await talk.lastAnswer();
    assert.deepEqual(outline(answer), [
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

  "two equal calls stay two": async ({ open, outline }) => {
    const answer = await (await open()).answerTo("play:twins");
    const [first, ...rest] = outline(answer);
    const last = rest.pop();
    assert.deepEqual([first, last], ["commentary: The same twice.", "final: Both are noted."]);
    const twins = ["callboard_note succeeded", "callboard_note succeeded", "notice: Twin.", "notice: Twin."];
    assert.deepEqual(rest.sort(), twins);
  },

  "an agent asks another of its kind, which asks a third": async ({ browser, t, stage, open, outline }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:chain");
    await answered(page);
    const answer = await talk.lastAnswer();
    assert.deepEqual(outline(answer), [
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

  "stopping the asking agent stops the asked one": async ({ stage, open }) => {
    const talk = await open();
    await talk.sendMessage("play:askForever");
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

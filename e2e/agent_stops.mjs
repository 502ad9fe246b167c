// Agents that are stopped, and programs and servers that die.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { assertGoesOn, assertStopped, withoutOutput } from "./agent_case.mjs";
import { startStage } from "./agents.mjs";
import { until } from "./callboard.mjs";

/** @typedef {import("./agent_case.mjs").Cases} Cases */

/** Programs that continue when a run is stopped. */
const HEEDS_INTERRUPTS = ["claude", "codex", "pi"];

/** @type {Cases} */
export const STOPS = {
  "a text is stopped": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.sendMessage("play:story");
    await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), ["final: Once upon a time "]);
    assertStopped(answer, "user_cancel");
    await assertGoesOn(talk, "play:story", stage);
  },

  "a stopped call leaves no process": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.runs("play:forever", "tail");
    const program = HEEDS_INTERRUPTS.includes(stage.kind) ? await programOf(talk) : undefined;
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(outline(answer).map(withoutOutput), ["final: This never ends.", "shell interrupted"]);
    assert.equal(answer.toolCalls[0].error.code, "tool_interrupted");
    assertStopped(answer, "user_cancel");
    const left = (await talk.processes()).filter((it) => it.command.includes("tail"));
    assert.deepEqual(left.map((it) => it.pid), []);
    await assertGoesOn(talk, "play:forever", stage);
    // It ended the command itself, so the program was not ended.
    if (program) assert.equal((await programOf(talk)).pid, program.pid);
  },

  "a stopped program continues without repeated messages": async ({ stage, open }) => {
    const talk = await open();
    await talk.sendMessage("play:story");
    await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    await talk.post("cancel");
    await talk.answer();
    await assertContinues(talk, stage);
  },

  "server killed during a text: continued without repeated messages": async ({ t, stage }) => {
    const own = await startStage(t, stage.kind);
    const talk = await own.open();
    await talk.sendMessage("play:story");
    await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    await own.callboard.kill();
    await own.callboard.restart();
    assertStopped(await talk.answer(), "restart");
    await assertContinues(talk, own);
  },

  "server killed during a call: run closed, conversation continues": async ({ t, stage, outline }) => {
    const own = await startStage(t, stage.kind);
    const talk = await own.open();
    await talk.runs("play:forever", "tail");
    const before = (await talk.processes()).map((it) => it.pid);
    await own.callboard.kill();
    await own.callboard.restart();
    const answer = await talk.answer();
    assert.deepEqual(outline(answer).map(withoutOutput), ["final: This never ends.", "shell interrupted"]);
    assertStopped(answer, "restart");
    await assertGoesOn(talk, "play:forever", own);
    const survivors = (await talk.processes()).filter((it) => before.includes(it.pid));
    assert.deepEqual(survivors, [], "nothing of a run is alive when the next one begins");
  },
};

/** Checks that the text is complete. @param {import("./agent_case.mjs").Conversation} talk @param {import("./agent_case.mjs").Stage} stage */
async function assertContinues(talk, stage) {
  const before = stage.models.asked("story").length;
  await talk.post("continue");
  await until(async () => stage.models.asked("story").length > before);
  stage.models.open("story");
  const answer = await talk.lastOf(2);
  assert.deepEqual([answer.status, answer.content], ["completed", "Once upon a time there was no more to tell."]);
  const request = stage.models.asked("story").at(-1) ?? "";
  assert.equal(request.split("play:story").length - 1, 1, request);
}

/** Cases of program agents only. @type {Cases} */
export const PROGRAM_STOPS = {
  "program killed during a text: run failed, conversation continues": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.answerTo("play:hello");
    await talk.sendMessage("play:story");
    await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    await killProgram(talk);
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), ["final: Once upon a time "]);
    assert.deepEqual([answer.status, answer.error.code], ["failed", "agent_exited"]);
    assert.deepEqual(await talk.processes(), []);
    await assertGoesOn(talk, "play:hello", stage);
  },

  "program killed during a call: run failed, no process left": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.runs("play:forever", "tail");
    await killProgram(talk);
    const answer = await talk.answer();
    assert.deepEqual(outline(answer).map(withoutOutput), ["final: This never ends.", "shell interrupted"]);
    assert.deepEqual([answer.status, answer.error.code], ["failed", "agent_exited"]);
    assert.deepEqual(await talk.processes(), []);
    await assertGoesOn(talk, "play:forever", stage);
  },

  "keeper killed during a call: run failed, no process left": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.runs("play:forever", "tail");
    await killKeeper(talk);
    const answer = await talk.answer();
    // The program may report the end of its command before it dies.
    assert.match(outline(answer)[1], /^shell (interrupted|failed)/);
    assert.deepEqual([answer.status, answer.error.code], ["failed", "agent_exited"]);
    assert.deepEqual(await talk.processes(), []);
    await assertGoesOn(talk, "play:forever", stage);
  },
};

/** Kills the topmost process in the folder; the keeper has another folder. @param {import("./agent_case.mjs").Conversation} talk */
async function programOf(talk) {
  const all = await talk.processes();
  const program = all.find((it) => all.every(({ pid }) => pid !== it.parent));
  assert.ok(program, "the program runs");
  return program;
}

/** Kills the program without its children. @param {import("./agent_case.mjs").Conversation} talk */
async function killProgram(talk) {
  process.kill((await programOf(talk)).pid, "SIGKILL");
}

/** Kills the process between Callboard and the program. @param {import("./agent_case.mjs").Conversation} talk */
async function killKeeper(talk) {
  const { parent } = await programOf(talk);
  const command = await readFile(`/proc/${parent}/cmdline`, "utf8");
  assert.ok(command.split("\0").includes("keep"), command);
  process.kill(parent, "SIGKILL");
}

/** Cases of programs with sub-agents. @type {Cases} */
export const DELEGATES = {
  "sub-agents are shown within their call, which lasts as long": async ({ open, outline }) => {
    const answer = await (await open()).answerTo("play:delegating");
    const [first, call] = answer.parts;
    const within = answer.parts.filter((/** @type {any} */ it) => it.parentCallId === call.id);
    assert.deepEqual([first.text, call.type], ["Somebody else may look.", "tool_call"]);
    assert.deepEqual(outline({ ...answer, parts: within }), [
      "commentary: First I look here.",
      "shell succeeded: one",
      "commentary: Then I look there.",
      "shell succeeded: two",
      "final: I have seen one and two.",
    ]);
    const [delegated, ...rest] = answer.toolCalls;
    assert.deepEqual([delegated.state, rest.length], ["succeeded", 2]);
    const longest = Math.max(...rest.map((/** @type {any} */ it) => it.durationMs));
    assert.ok(delegated.durationMs >= longest, `${delegated.durationMs} ms for ${longest} ms of work`);
  },

  "a stopped sub-agent leaves no process": async ({ stage, open }) => {
    const talk = await open();
    await talk.sendMessage("play:delegatingForever");
    await until(async () => (await tails(talk)).length > 0);
    await talk.post("cancel");
    const answer = await talk.answer();
    assertStopped(answer, "user_cancel");
    assert.deepEqual(await tails(talk), []);
    const states = answer.toolCalls.map((/** @type {any} */ it) => it.state);
    assert.deepEqual([...new Set(states)], ["interrupted"]);
    await assertGoesOn(talk, "play:delegatingForever", stage);
    await assertRuns(talk, stage, 2);
  },
};

/** Cases of programs that run commands in the background. @type {Cases} */
export const BACKGROUND = {
  "background tasks of a stopped run are stopped silently": async ({ stage, open }) => {
    const talk = await open();
    await talk.sendMessage("play:aside");
    await until(async () => (await tails(talk)).length > 1);
    await talk.post("cancel");
    assertStopped(await talk.answer(), "user_cancel");
    assert.deepEqual(await tails(talk), []);
    await assertGoesOn(talk, "play:aside", stage);
    await assertRuns(talk, stage, 2);
  },
};

/** @param {import("./agent_case.mjs").Conversation} talk */
async function tails(talk) {
  return (await talk.processes()).filter((it) => it.command.startsWith("tail")).map((it) => it.command);
}

/**
 * Checks that only messages started runs.
 * @param {import("./agent_case.mjs").Conversation} talk @param {import("./agent_case.mjs").Stage} stage
 * @param {number} count
 */
async function assertRuns(talk, stage, count) {
  const begun = (await stage.callboard.events(talk.id)).filter((it) => it.type === "run_start");
  assert.equal(begun.length, count, "it does not go on by itself");
}

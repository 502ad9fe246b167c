// Cases of all agents: texts, calls, files and failures of the service.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";

import { assertGoesOn } from "./agent_case.mjs";
import { startStage } from "./agents.mjs";
import { answered, assertSameAfterReload, openSession, sendMessage, setRoot } from "./drive.mjs";

/** @typedef {import("./agent_case.mjs").Cases} Cases */
/** One point, as png. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Number of retries of an agent in the tests of retries, and their notice. */
const RETRIES = 2;
const ATTEMPTS = ["attempt 1 of 2", "attempt 2 of 2"];

/** The notice of a retry, without its reason and time. @param {string} line */
function attempt(line) {
  return line.replace(/^notice: The model service .*(failed|slow down) \(.+\)\. .*[Tt]r(ies|ying) again.* \((attempt.*)\)\.$/, "$3");
}

/** @type {Cases} */
export const WORK = {
  "text streams in pieces and is complete in the end": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.sendMessage("play:story");
    await stage.models.reached("story");
    const begun = await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    assert.equal(begun.parts[0].open, true);
    stage.models.open("story");
    assert.deepEqual(outline(await talk.answer()), ["final: Once upon a time there was no more to tell."]);
  },

  "commentary, call, commentary, call, answer": async ({ open, outline }) => {
    const talk = await open();
    const answer = await talk.answerTo("play:tools");
    assert.deepEqual(outline(answer), [
      "commentary: First I look here.",
      "shell succeeded: one",
      "commentary: Then I look there.",
      "shell succeeded: two",
      "final: I have seen one and two.",
    ]);
    const led = answer.toolCalls.map((/** @type {any} */ it) => it.commentary);
    assert.deepEqual(led, ["First I look here.", "Then I look there."]);
    assert.equal(answer.content, "I have seen one and two.");
    assert.deepEqual(answer.toolCalls.map((/** @type {any} */ it) => it.args.command), ["echo one", "echo two"]);
    assert.ok(answer.usage.inputTokens >= 1200 && answer.usage.outputTokens >= 90, "usage of all three turns");
  },

  "calls run in parallel": async ({ open, outline }) => {
    const answer = await (await open()).answerTo("play:parallel");
    const [first, ...rest] = outline(answer);
    const last = rest.pop();
    assert.deepEqual([first, last], ["commentary: Both at once.", "final: Both came back."]);
    // They begin in any order.
    assert.deepEqual(rest.sort(), ["shell succeeded: left", "shell succeeded: right"]);
    assert.equal(answer.toolCalls[0].commentary, "Both at once.");
  },

  "thinking is distinct from text": async ({ open, outline }) => {
    assert.deepEqual(outline(await (await open()).answerTo("play:thinking")), [
      "thinking: I should look before I answer.",
      "commentary: Let me look.",
      "shell succeeded: thought",
      "thinking: That was clear enough.",
      "final: I have thought about it.",
    ]);
  },

  "files are written, changed and read": async ({ open, outline, its }) => {
    const talk = await open();
    const calls = outline(await talk.answerTo("play:files")).filter((it) => / succeeded|failed/.test(it));
    const usual = ["write succeeded", "edit succeeded", "read succeeded"];
    assert.deepEqual(calls, its.filesTold ?? usual);
    assert.equal(readFileSync(path.join(talk.workspace, "note.txt"), "utf8"), "alpha\ngamma\n");
  },

  "a call that fails": async ({ open, outline }) => {
    const answer = await (await open()).answerTo("play:failing");
    assert.deepEqual(outline(answer), [
      "commentary: This will fail.",
      "shell failed: oops",
      "final: It failed, as it should.",
    ]);
    const [{ error, result }] = answer.toolCalls;
    assert.deepEqual(error, { code: "tool_error", message: "The command ended with exit code 3." });
    assert.equal(result.exitCode, 3);
    assert.equal(answer.status, "completed");
  },

  "the model sees pictures": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.show("play:hello", Buffer.from(PICTURE, "base64"));
    assert.deepEqual(outline(await talk.answer()), ["final: Hello! This answer comes in several small pieces."]);
    assert.ok(stage.models.asked("hello").at(-1)?.includes(PICTURE));
  },

  "the output of a command is unchanged": async ({ open, outline }) => {
    assert.deepEqual(outline(await (await open()).answerTo("play:colours")), [
      "commentary: As it is:",
      "shell succeeded: \u001b[31mred\u001b[0m ä€",
      "final: Grün, 绿, 🟢.",
    ]);
  },

  "refusals of a service are distinct and have advice": async ({ open, outline }) => {
    const refusals = {
      refused401: ["upstream_auth", /log in|login|key/i],
      refused429: ["rate_limit_upstream", /slow down/],
      refused500: ["upstream_error", /service|high demand/],
    };
    const talk = await open();
    for (const [scenario, [code, words]] of Object.entries(refusals)) {
      const answer = await talk.answerTo(`play:${scenario}`);
      assert.deepEqual([answer.status, answer.error.code], ["failed", code], scenario);
      assert.match(answer.error.message, /** @type {RegExp} */ (words));
      assert.deepEqual(outline(answer), [], scenario);
    }
    // `codex exec` stores no conversation without an answer, and a notice says so.
    const goesOn = outline(await talk.answerTo("play:hello"));
    assert.equal(goesOn.at(-1), "final: Hello! This answer comes in several small pieces.");
  },

  "a text that the service cuts off stays": async ({ stage, open, outline }) => {
    const talk = await open();
    await talk.sendMessage("play:brokenOff");
    await talk.answerWhen((it) => it.parts[0]?.text === "This breaks o");
    // Some programs retry on their own and give up in the end.
    stage.models.open("brokenOff", Infinity);
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), ["final: This breaks o"]);
    assert.deepEqual([answer.status, answer.error.code], ["failed", "upstream_error"]);
    await assertGoesOn(talk, "play:brokenOff", stage);
  },

  "retries of a failing service are reported before the answer": async ({ t, stage, outline, its }) => {
    const own = await startStage(t, stage.kind, RETRIES);
    const talk = await own.open();
    const [once, twice] = its.attempts ?? ATTEMPTS;
    const answer = await talk.answerTo("play:busyAtFirst");
    assert.deepEqual(outline(answer).map(attempt), [
      once,
      twice,
      "commentary: Now I look.",
      "shell succeeded: seen",
      once,
      "final: That was worth the wait.",
    ]);
    assert.equal(answer.status, "completed");
    assert.equal(own.models.asked("busyAtFirst").length, 5);
    const slow = await talk.answerTo("play:slowAtFirst");
    if (its.givesUpAt429) assert.deepEqual([slow.error.code, outline(slow)], ["rate_limit_upstream", []]);
    else assert.deepEqual(outline(slow).map(attempt), [once, "final: That was slow."]);
    await assertGoesOn(talk, "play:busyAtFirst", own);
  },

  "the model sees earlier messages": async ({ stage, open }) => {
    const talk = await open();
    await talk.answerTo("play:tools");
    await assertGoesOn(talk, "play:tools", stage);
    const [request] = stage.models.asked("recall").slice(-1);
    for (const it of ["First I look here.", "echo two", "I have seen one and two."]) assert.ok(request?.includes(it), it);
  },

  "the page shows the same blocks, live and loaded": async ({ browser, t, stage, open, its }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await setRoot(page, { toolDisplay: "timeline" });
    await sendMessage(page, "play:thinking");
    await answered(page);
    const shown = [
      ".bubble",
      ".thinking",
      ".text.commentary",
      ".tool-block.success",
      ".thinking",
      ".text.final",
    ];
    const blocks = page.locator([...new Set(shown)].map((it) => `.messages ${it}`).join());
    const kinds = await blocks.evaluateAll(
      (all, shown) => all.map((it) => shown.find((selector) => it.matches(selector))),
      shown,
    );
    assert.deepEqual(kinds, shown);
    assert.ok((await page.locator(".tool-block .name").innerText()) in its.tools);
    await assertSameAfterReload(page);
  },
};

/** Cases of programs that restart an answer that was cut off. @type {Cases} */
export const BEGINS_ANEW = {
  "a restarted answer discards its first text": async ({ browser, t, stage, outline, its }) => {
    const own = await startStage(t, stage.kind, RETRIES);
    for (const how of ["cutAtFirst", "failsAtFirst"]) {
      const talk = await own.open();
      const page = await openSession(t, browser, own.callboard, talk.id);
      await sendMessage(page, `play:${how}`);
      await page.locator(".parts > .text", { hasText: "This is begun and n" }).waitFor();
      own.models.open(how);
      await answered(page);
      const answer = await talk.lastAnswer();
      const isReported = how === "cutAtFirst" || !its.hidesFailedStreams;
      const notice = isReported ? ATTEMPTS.slice(0, 1) : [];
      assert.deepEqual(outline(answer).map(attempt), [
        "discarded: This is begun and n",
        ...notice,
        "final: This is begun and ended.",
      ]);
      assert.deepEqual([answer.status, answer.content], ["completed", "This is begun and ended."]);
      assert.deepEqual(await page.locator(".text.discarded").allInnerTexts(), ["This is begun and n"]);
      await assertSameAfterReload(page);
      await assertGoesOn(talk, `play:${how}`, own);
    }
  },
};

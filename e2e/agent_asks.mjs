// Agents that ask a person before they do something, or what to do.

import assert from "node:assert/strict";
import { existsSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";

import { assertGoesOn, assertStopped } from "./agent_case.mjs";
import { startStage } from "./agents.mjs";
import { answered, assertSameAfterReload, card, field, openSession, say, seen } from "./drive.mjs";

/** @typedef {import("./agent_case.mjs").Cases} Cases */

/** @type {Cases} */
export const ASKS = {
  "asked about a call: allowed": async ({ open, told, its }) => {
    const talk = await open({ asks: true });
    const { call, options } = await talk.question("play:asking");
    assert.deepEqual([call.args.command, options.canEdit], ["touch asked.txt", its.canEdit]);
    assert.deepEqual(readdirSync(talk.workspace), [], "nothing runs before it is allowed");
    await talk.decide(call.id, { decision: "accepted" });
    assert.deepEqual(told(await talk.answer()), [
      "commentary: I need a file.",
      "shell succeeded",
      "final: So be it.",
    ]);
    assert.deepEqual(readdirSync(talk.workspace), ["asked.txt"]);
  },

  "asked about a call: other arguments run instead, or are refused": async ({ open, told, its }) => {
    const talk = await open({ asks: true });
    const { call } = await talk.question("play:asking");
    const args = { ...call.args, command: "touch changed.txt" };
    const decided = talk.decide(call.id, { decision: "accepted", arguments: args });
    if (its.canEdit) {
      await decided;
      assert.equal(told(await talk.answer())[1], "shell succeeded");
      assert.deepEqual(readdirSync(talk.workspace), ["changed.txt"]);
    } else {
      await assert.rejects(decided, /the program takes only a yes or a no/);
      await talk.decide(call.id, { decision: "rejected" });
      assert.equal(told(await talk.answer())[1], "shell denied");
      assert.deepEqual(readdirSync(talk.workspace), []);
    }
  },

  "asked about a call: denied, and the model hears why": async ({ stage, open, told }) => {
    const talk = await open({ asks: true });
    const { call } = await talk.question("play:asking");
    await talk.decide(call.id, { decision: "rejected", feedback: "Files are for another day." });
    const answer = await talk.answer();
    assert.deepEqual(told(answer), ["commentary: I need a file.", "shell denied", "final: So be it."]);
    assert.equal(answer.toolCalls[0].error.code, "tool_denied");
    assert.match(stage.models.asked("asking").at(-1) ?? "", /Files are for another day\./);
    assert.deepEqual(readdirSync(talk.workspace), []);
  },

  "stopped while it asks": async ({ stage, open, told }) => {
    const talk = await open({ asks: true });
    await talk.question("play:asking");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(told(answer), ["final: I need a file.", "shell interrupted"]);
    assertStopped(answer, "user_cancel");
    assert.deepEqual(readdirSync(talk.workspace), []);
    await assertGoesOn(talk, "play:asking", stage);
  },

  "the server is killed while it asks: a question lives as long as who asked it": async ({ t, stage, told, its }) => {
    const own = await startStage(t, stage.kind);
    const talk = await own.open({ asks: true });
    const { call } = await talk.question("play:asking");
    await own.callboard.kill();
    await own.callboard.restart();
    if (its.isProgram) {
      const answer = await talk.answer();
      assert.deepEqual(told(answer), ["final: I need a file.", "shell interrupted"]);
      assertStopped(answer, "restart");
      await assertGoesOn(talk, "play:asking", own);
    } else {
      await talk.decide(call.id, { decision: "accepted" });
      assert.deepEqual(told(await talk.answer()), ["commentary: I need a file.", "shell succeeded", "final: So be it."]);
    }
  },

  "a question is answered on the page": async ({ browser, t, stage, open }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:asking");
    const sheet = card(page);
    await sheet.getByText("touch asked.txt", { exact: true }).first().waitFor();
    await sheet.getByRole("button", { name: "Allow once" }).click();
    await answered(page);
    assert.equal(await page.locator(".text.final").innerText(), "So be it.");
    assert.deepEqual(readdirSync(talk.workspace), ["asked.txt"]);
  },
};

/** Of one whose tools that read can be made to ask. @type {Cases} */
export const GUARDS = {
  "Callboard's own files are asked about, though they are only read": async ({ stage, told }) => {
    const talk = await stage.openAroundData();
    const { call, options } = await talk.question("play:readingData");
    assert.equal(options.covers, undefined, "it can be allowed once at a time");
    await talk.decide(call.id, { decision: "rejected" });
    const answer = await talk.answer();
    assert.equal(told(answer)[1], "read denied");
    const { token } = stage.callboard;
    assert.ok(!JSON.stringify(answer).includes(token) && !JSON.stringify(stage.models.requests).includes(token));
  },
};

/** Of one that may ask to leave its sandbox. @type {Cases} */
export const ESCALATES = {
  "asked to look outside: nobody else decides, though it only looks": async ({ open, told }) => {
    const talk = await open({ asks: true });
    const outside = path.dirname(talk.workspace);
    writeFileSync(path.join(outside, "secret.txt"), "A secret.\n");
    const { call, options } = await talk.question("play:lookingOutside");
    assert.deepEqual(call.args, { command: "cat secret.txt", cwd: outside });
    const { calls } = JSON.parse(options.covers);
    assert.deepEqual(calls, { command: { text: "cat secret.txt", options: { cwd: realpathSync(outside) } } });
    await talk.decide(call.id, { decision: "rejected" });
    assert.equal(told(await talk.answer())[1], "shell denied");
  },

  "what is allowed for the session is not allowed in another folder": async ({ open, told }) => {
    const talk = await open({ asks: true });
    const first = await talk.question("play:making");
    await talk.decide(first.call.id, { decision: "accepted", scope: "session" });
    assert.equal(told(await talk.answer())[1], "shell succeeded");
    assert.equal(told(await talk.hear("play:making"))[1], "shell succeeded", "nobody is asked again");
    const { call } = await talk.question("play:makingOutside");
    await talk.decide(call.id, { decision: "rejected" });
    assert.equal(told(await talk.answer())[1], "shell denied");
    assert.deepEqual(readdirSync(talk.workspace), ["made.txt"]);
    assert.ok(!existsSync(path.join(talk.workspace, "..", "made.txt")));
  },
};

/** Of one that takes a yes or a no, and no other arguments. @type {Cases} */
export const CORRECTS = {
  "denied with a correction, the model hears what to call instead": async ({ browser, t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:asking");
    const sheet = card(page);
    const correct = sheet.getByRole("button", { name: "Deny with this correction" });
    await sheet.getByText("touch asked.txt", { exact: true }).first().waitFor();
    assert.equal(await correct.isVisible(), false);
    await sheet.getByText("Suggest a correction").click();
    await sheet.getByRole("textbox", { name: "Arguments" }).fill('{ "command": "touch corrected.txt" }');
    assert.deepEqual(await seen(sheet.getByRole("button", { name: /allow/i })), [], "what is corrected is not what would run");
    await correct.click();
    await answered(page);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    assert.equal(told(messages.at(-1))[1], "shell denied");
    assert.match(stage.models.asked("asking").at(-1) ?? "", /Use these arguments instead: .*touch corrected\.txt/);
    assert.deepEqual(readdirSync(talk.workspace), []);
  },
};

/** Of one that asks before it writes a file. @type {Cases} */
export const WRITES = {
  "files of a folder are allowed on the page, and no others": async ({ browser, t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    const sheet = card(page);
    await say(page, "play:writing");
    await sheet.getByText("apply to Write for any file directly in notes/").waitFor();
    assert.match(await sheet.innerText(), /^\s*Create notes\/a\.txt/);
    await sheet.getByRole("button", { name: "Allow for this session" }).click();
    await answered(page, 1);
    await say(page, "play:writingMore");
    await answered(page, 2);
    await say(page, "play:writingElsewhere");
    await sheet.getByText("other/c.txt").first().waitFor();
    await sheet.getByRole("button", { name: "Deny" }).click();
    await answered(page, 3);
    const files = readdirSync(talk.workspace, { recursive: true }).filter((it) => String(it).endsWith(".txt")).sort();
    assert.deepEqual(files, ["notes/a.txt", "notes/b.txt"]);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    const calls = messages.filter((/** @type {any} */ it) => it.role === "assistant").map((/** @type {any} */ it) => told(it)[1]);
    assert.deepEqual(calls, ["write succeeded", "write succeeded", "write denied"]);
  },

  "steered while it asks: the question stays": async ({ browser, t, stage, open }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:asking");
    await card(page).waitFor();
    await field(page).fill("Hurry up, please.");
    await page.keyboard.press("Control+Enter");
    await page.locator(".messages, .queue").getByText("Hurry up, please.").first().waitFor();
    await page.waitForFunction(() => !document.querySelector("#pending > *"));
    assert.ok(await card(page).isVisible());
    const types = (await stage.callboard.events(talk.id)).map((it) => it.type);
    assert.ok(!types.includes("tool_approval_resolved") && !types.includes("cancel_requested"));
    assert.equal(await field(page).inputValue(), "");
    await card(page).getByRole("button", { name: "Allow once" }).click();
    await page.getByText("So be it.").first().waitFor();
    assert.deepEqual(readdirSync(talk.workspace), ["asked.txt"]);
  },
};

/** What Claude Code asks of a person, with a form. @type {Cases} */
export const FORMS = {
  "questions are answered with a form": async ({ browser, t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:choosing");
    const sheet = card(page);
    const question = (/** @type {string} */ name) => sheet.getByRole("group", { name });
    await question("Which colour?").getByRole("radio", { name: "Blue" }).check();
    await sheet.getByRole("button", { name: "Answer", exact: true }).click();
    await page.getByText("please answer every question").waitFor();
    for (const name of ["Apple", "Pear"]) await question("Which fruits?").getByRole("checkbox", { name }).check();
    await question("Which name?").getByRole("radio", { name: "Bob" }).check();
    await question("Which name?").getByRole("textbox").fill("Somebody else");
    await sheet.getByRole("button", { name: "Answer", exact: true }).click();
    await answered(page);
    const answers = { "Which colour?": "Blue", "Which fruits?": "Apple, Pear", "Which name?": "Somebody else" };
    const events = await stage.callboard.events(talk.id);
    const { arguments: given } = /** @type {any} */ (events.find((it) => it.type === "tool_approval_resolved"));
    assert.deepEqual(JSON.parse(given), { answers });
    const [heard] = stage.models.asked("choosing").slice(-1);
    for (const it of Object.values(answers)) assert.ok(heard?.includes(it), it);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    assert.deepEqual(told(messages.at(-1)), [
      "commentary: I have to know.",
      "AskUserQuestion succeeded",
      "final: As you wish.",
    ]);
    assert.match(await page.locator(".decision").innerText(), /You answered\s+Which colour\? Blue/);
    await assertSameAfterReload(page);
  },

  "questions need not be answered": async ({ browser, t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:choosing");
    const sheet = card(page);
    await sheet.getByText("Add a reason").click();
    await sheet.getByRole("textbox", { name: "Reason (optional)" }).fill("Choose yourself.");
    await sheet.getByRole("button", { name: "Skip" }).click();
    await answered(page);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    assert.equal(told(messages.at(-1))[1], "AskUserQuestion denied");
    assert.match(stage.models.asked("choosing").at(-1) ?? "", /Choose yourself\./);
  },

  "stopped while it asks with a form": async ({ open, told }) => {
    const talk = await open({ asks: true });
    await talk.question("play:choosing");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(told(answer), ["final: I have to know.", "AskUserQuestion interrupted"]);
    assertStopped(answer, "user_cancel");
  },
};

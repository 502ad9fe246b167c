// Agents that request approvals or ask questions.

import assert from "node:assert/strict";
import { existsSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";

import { assertGoesOn, assertStopped } from "./agent_case.mjs";
import { startStage } from "./agents.mjs";
import { answered, assertSameAfterReload, card, field, openSession, sendMessage, seen } from "./drive.mjs";

/** @typedef {import("./agent_case.mjs").Cases} Cases */

/** @type {Cases} */
export const ASKS = {
  "an approval is accepted": async ({ open, outline, its }) => {
    const talk = await open({ asks: true });
    const { call, options } = await talk.question("play:asking");
    assert.deepEqual([call.args.command, options.canEdit], ["touch asked.txt", its.canEdit]);
    assert.deepEqual(readdirSync(talk.workspace), [], "nothing runs before it is allowed");
    await talk.decide(call.id, { decision: "accepted" });
    assert.deepEqual(outline(await talk.answer()), [
      "commentary: I need a file.",
      "shell succeeded",
      "final: So be it.",
    ]);
    assert.deepEqual(readdirSync(talk.workspace), ["asked.txt"]);
  },

  "an approval is accepted with other arguments, if the agent can": async ({ open, outline, its }) => {
    const talk = await open({ asks: true });
    const { call } = await talk.question("play:asking");
    const args = { ...call.args, command: "touch changed.txt" };
    const decided = talk.decide(call.id, { decision: "accepted", arguments: args });
    if (its.canEdit) {
      await decided;
      assert.equal(outline(await talk.answer())[1], "shell succeeded");
      assert.deepEqual(readdirSync(talk.workspace), ["changed.txt"]);
    } else {
      await assert.rejects(decided, /the program takes only a yes or a no/);
      await talk.decide(call.id, { decision: "rejected" });
      assert.equal(outline(await talk.answer())[1], "shell denied");
      assert.deepEqual(readdirSync(talk.workspace), []);
    }
  },

  "an approval is denied, and the model gets the reason": async ({ stage, open, outline }) => {
    const talk = await open({ asks: true });
    const { call } = await talk.question("play:asking");
    await talk.decide(call.id, { decision: "rejected", feedback: "Files are for another day." });
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), ["commentary: I need a file.", "shell denied", "final: So be it."]);
    assert.equal(answer.toolCalls[0].error.code, "tool_denied");
    assert.match(stage.models.asked("asking").at(-1) ?? "", /Files are for another day\./);
    assert.deepEqual(readdirSync(talk.workspace), []);
  },

  "a run that waits for an approval is stopped": async ({ stage, open, outline }) => {
    const talk = await open({ asks: true });
    await talk.question("play:asking");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), ["final: I need a file.", "shell interrupted"]);
    assertStopped(answer, "user_cancel");
    assert.deepEqual(readdirSync(talk.workspace), []);
    await assertGoesOn(talk, "play:asking", stage);
  },

  "server killed during an approval: it lives as long as the agent": async ({ t, stage, outline, its }) => {
    const own = await startStage(t, stage.kind);
    const talk = await own.open({ asks: true });
    const { call } = await talk.question("play:asking");
    await own.callboard.kill();
    await own.callboard.restart();
    if (its.isProgram) {
      const answer = await talk.answer();
      assert.deepEqual(outline(answer), ["final: I need a file.", "shell interrupted"]);
      assertStopped(answer, "restart");
      await assertGoesOn(talk, "play:asking", own);
    } else {
      await talk.decide(call.id, { decision: "accepted" });
      assert.deepEqual(outline(await talk.answer()), ["commentary: I need a file.", "shell succeeded", "final: So be it."]);
    }
  },

  "an approval is decided on the page": async ({ browser, t, stage, open }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:asking");
    const sheet = card(page);
    await sheet.getByText("touch asked.txt", { exact: true }).first().waitFor();
    await sheet.getByRole("button", { name: "Allow once" }).click();
    await answered(page);
    assert.equal(await page.locator(".text.final").innerText(), "So be it.");
    assert.deepEqual(readdirSync(talk.workspace), ["asked.txt"]);
  },
};

/** Cases of agents whose reading tools can need an approval. @type {Cases} */
export const GUARDS = {
  "reading Callboard's private files needs an approval": async ({ stage, outline }) => {
    const talk = await stage.openAroundData();
    const { call, options } = await talk.question("play:readingData");
    assert.equal(options.covers, undefined, "it can be allowed once at a time");
    await talk.decide(call.id, { decision: "rejected" });
    const answer = await talk.answer();
    assert.equal(outline(answer)[1], "read denied");
    const { token } = stage.callboard;
    assert.ok(!JSON.stringify(answer).includes(token) && !JSON.stringify(stage.models.requests).includes(token));
  },
};

/** Cases of agents that can ask to leave their sandbox. @type {Cases} */
export const ESCALATES = {
  "reading outside the workspace needs an approval": async ({ open, outline }) => {
    const talk = await open({ asks: true });
    const outside = path.dirname(talk.workspace);
    writeFileSync(path.join(outside, "secret.txt"), "A secret.\n");
    const { call, options } = await talk.question("play:lookingOutside");
    assert.deepEqual(call.args, { command: "cat secret.txt", cwd: outside });
    const { calls } = JSON.parse(options.covers);
    assert.deepEqual(calls, { command: { text: "cat secret.txt", options: { cwd: realpathSync(outside) } } });
    await talk.decide(call.id, { decision: "rejected" });
    assert.equal(outline(await talk.answer())[1], "shell denied");
  },

  "a session grant does not apply to another folder": async ({ open, outline }) => {
    const talk = await open({ asks: true });
    const first = await talk.question("play:making");
    await talk.decide(first.call.id, { decision: "accepted", scope: "session" });
    assert.equal(outline(await talk.answer())[1], "shell succeeded");
    assert.equal(outline(await talk.answerTo("play:making"))[1], "shell succeeded", "nobody is asked again");
    const { call } = await talk.question("play:makingOutside");
    await talk.decide(call.id, { decision: "rejected" });
    assert.equal(outline(await talk.answer())[1], "shell denied");
    assert.deepEqual(readdirSync(talk.workspace), ["made.txt"]);
    assert.ok(!existsSync(path.join(talk.workspace, "..", "made.txt")));
  },
};

/** Cases of agents whose approvals cannot change arguments. @type {Cases} */
export const CORRECTS = {
  "a denial with a correction tells the model what to call": async ({ browser, t, stage, open, outline }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:asking");
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
    assert.equal(outline(messages.at(-1))[1], "shell denied");
    assert.match(stage.models.asked("asking").at(-1) ?? "", /Use these arguments instead: .*touch corrected\.txt/);
    assert.deepEqual(readdirSync(talk.workspace), []);
  },
};

/** Cases of agents that ask before they write a file. @type {Cases} */
export const WRITES = {
  "a grant for the files of a folder covers no others": async ({ browser, t, stage, open, outline }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    const sheet = card(page);
    await sendMessage(page, "play:writing");
    await sheet.getByText("apply to Write for any file directly in notes/").waitFor();
    assert.match(await sheet.innerText(), /^\s*Create notes\/a\.txt/);
    await sheet.getByRole("button", { name: "Allow for this session" }).click();
    await answered(page, 1);
    await sendMessage(page, "play:writingMore");
    await answered(page, 2);
    await sendMessage(page, "play:writingElsewhere");
    await sheet.getByText("other/c.txt").first().waitFor();
    await sheet.getByRole("button", { name: "Deny" }).click();
    await answered(page, 3);
    const files = readdirSync(talk.workspace, { recursive: true }).filter((it) => String(it).endsWith(".txt")).sort();
    assert.deepEqual(files, ["notes/a.txt", "notes/b.txt"]);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    const calls = messages.filter((/** @type {any} */ it) => it.role === "assistant").map((/** @type {any} */ it) => outline(it)[1]);
    assert.deepEqual(calls, ["write succeeded", "write succeeded", "write denied"]);
  },

  "steering keeps a pending approval": async ({ browser, t, stage, open }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:asking");
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

/** Cases of Claude Code's forms. @type {Cases} */
export const FORMS = {
  "questions are answered with a form": async ({ browser, t, stage, open, outline }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:choosing");
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
    const [request] = stage.models.asked("choosing").slice(-1);
    for (const it of Object.values(answers)) assert.ok(request?.includes(it), it);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    assert.deepEqual(outline(messages.at(-1)), [
      "commentary: I have to know.",
      "AskUserQuestion succeeded",
      "final: As you wish.",
    ]);
    assert.match(await page.locator(".decision").innerText(), /You answered\s+Which colour\? Blue/);
    await assertSameAfterReload(page);
  },

  "questions can be skipped": async ({ browser, t, stage, open, outline }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:choosing");
    const sheet = card(page);
    await sheet.getByText("Add a reason").click();
    await sheet.getByRole("textbox", { name: "Reason (optional)" }).fill("Choose yourself.");
    await sheet.getByRole("button", { name: "Skip" }).click();
    await answered(page);
    const { messages } = await stage.callboard.api(`sessions/${talk.id}/messages`);
    assert.equal(outline(messages.at(-1))[1], "AskUserQuestion denied");
    assert.match(stage.models.asked("choosing").at(-1) ?? "", /Choose yourself\./);
  },

  "a run that waits for a form is stopped": async ({ open, outline }) => {
    const talk = await open({ asks: true });
    await talk.question("play:choosing");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(outline(answer), ["final: I have to know.", "AskUserQuestion interrupted"]);
    assertStopped(answer, "user_cancel");
  },
};

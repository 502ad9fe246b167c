// Every agent in the same cases: Callboard's own loop around a model, and the real command-line agents.
//
// What the model does is scripted (models.mjs). What Callboard makes of it has to be the same, whoever
// stands between.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { KINDS, startStage } from "./agents.mjs";
import { useBrowser } from "./browser.mjs";
import { until } from "./callboard.mjs";
import { answered, assertSameAfterReload, openSession, say, setRoot } from "./drive.mjs";

/** @typedef {Awaited<ReturnType<typeof startStage>>} Stage */
/** @typedef {Awaited<ReturnType<Stage["open"]>>} Conversation */

const TIMEOUT_MS = 60_000;
/** One point, as png. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** What cannot be the same for all, and why. @type {Record<string, any>} */
const DIFFERENCES = {
  openai: {
    tools: { shell: "shell", write_file: "write", edit_file: "edit", read_file: "read" },
    canEdit: true,
    // The loop is Callboard's own, and so is the conversation.
    isProgram: false,
  },
  claude: {
    tools: { Bash: "shell", Write: "write", Edit: "edit", Read: "read" },
    canEdit: true,
    isProgram: true,
  },
  codex: {
    // It changes files by patches alone, and reads them with commands.
    tools: { shell: "shell", apply_patch: "write" },
    filesTold: ["write succeeded", "write succeeded", "shell succeeded: alpha\ngamma"],
    // Its protocol takes a yes or a no, and no other arguments.
    canEdit: false,
    isProgram: true,
  },
  codexExec: {
    tools: { shell: "shell", apply_patch: "write" },
    filesTold: ["write succeeded", "write succeeded", "shell succeeded: alpha\ngamma"],
    isProgram: true,
    isOneWay: true,
    // Said before all else, in the first answer.
    limits:
      "notice: Codex is driven without its app-server: its words come whole, and it does what its sandbox allows without asking.",
  },
  pi: {
    tools: { bash: "shell", write: "write", edit: "edit", read: "read" },
    canEdit: true,
    isProgram: true,
    // It takes what it was handed into its conversation even while it stops.
    readsWhileItStops: true,
  },
};

/**
 * @typedef {object} Case
 * @property {Stage} stage
 * @property {import("node:test").TestContext} t
 * @property {(options?: {asks?: boolean}) => Promise<Conversation>} open a new session
 * @property {any} its what is different for this agent
 * @property {(answer: any) => string[]} told what an answer consists of, in order
 */

/** @type {Record<string, (given: Case) => Promise<void>>} */
const CASES = {
  "words come piece by piece, and are whole in the end": async ({ stage, open, told }) => {
    const talk = await open();
    await talk.say("play:story");
    await stage.models.reached("story");
    const begun = await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    assert.equal(begun.parts[0].open, true);
    stage.models.open("story");
    assert.deepEqual(told(await talk.answer()), ["final: Once upon a time there was no more to tell."]);
  },

  "commentary, call, commentary, call, answer": async ({ open, told }) => {
    const talk = await open();
    const answer = await talk.hear("play:tools");
    assert.deepEqual(told(answer), [
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

  "calls side by side": async ({ open, told }) => {
    const answer = await (await open()).hear("play:parallel");
    const [first, ...rest] = told(answer);
    const last = rest.pop();
    assert.deepEqual([first, last], ["commentary: Both at once.", "final: Both came back."]);
    // They begin in no particular order.
    assert.deepEqual(rest.sort(), ["shell succeeded: left", "shell succeeded: right"]);
    assert.equal(answer.toolCalls[0].commentary, "Both at once.");
  },

  "thinking is told apart from words": async ({ open, told }) => {
    assert.deepEqual(told(await (await open()).hear("play:thinking")), [
      "thinking: I should look before I answer.",
      "commentary: Let me look.",
      "shell succeeded: thought",
      "thinking: That was clear enough.",
      "final: I have thought about it.",
    ]);
  },

  "files are written, changed and read": async ({ open, told, its }) => {
    const talk = await open();
    const calls = told(await talk.hear("play:files")).filter((it) => / succeeded|failed/.test(it));
    const usual = ["write succeeded", "edit succeeded", "read succeeded"];
    assert.deepEqual(calls, its.filesTold ?? usual);
    assert.equal(readFileSync(path.join(talk.workspace, "note.txt"), "utf8"), "alpha\ngamma\n");
  },

  "a call that fails": async ({ open, told }) => {
    const answer = await (await open()).hear("play:failing");
    assert.deepEqual(told(answer), [
      "commentary: This will fail.",
      "shell failed: oops",
      "final: It failed, as it should.",
    ]);
    const [{ error, result }] = answer.toolCalls;
    assert.deepEqual(error, { code: "tool_error", message: "The command ended with exit code 3." });
    assert.equal(result.exitCode, 3);
    assert.equal(answer.status, "completed");
  },

  "the model sees pictures": async ({ stage, open, told }) => {
    const talk = await open();
    await talk.show("play:hello", Buffer.from(PICTURE, "base64"));
    assert.deepEqual(told(await talk.answer()), ["final: Hello! This answer comes in several small pieces."]);
    assert.ok(stage.models.asked("hello").at(-1)?.includes(PICTURE));
  },

  "what a command prints comes as it is": async ({ open, told }) => {
    assert.deepEqual(told(await (await open()).hear("play:colours")), [
      "commentary: As it is:",
      "shell succeeded: \u001b[31mred\u001b[0m ä€",
      "final: Grün, 绿, 🟢.",
    ]);
  },

  "stopped in its words": async ({ stage, open, told }) => {
    const talk = await open();
    await talk.say("play:story");
    await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(told(answer), ["final: Once upon a time "]);
    assertStopped(answer, "user_cancel");
    await assertGoesOn(talk, "play:story", stage);
  },

  "stopped in a call: nothing of it is left": async ({ stage, open, told }) => {
    const talk = await open();
    await talk.runs("play:forever", "tail");
    await talk.post("cancel");
    const answer = await talk.answer();
    assert.deepEqual(told(answer).map(withoutOutput), ["commentary: This never ends.", "shell interrupted"]);
    assert.equal(answer.toolCalls[0].error.code, "tool_interrupted");
    assertStopped(answer, "user_cancel");
    const left = (await talk.processes()).filter((it) => it.command.includes("tail"));
    assert.deepEqual(left.map((it) => it.pid), []);
    await assertGoesOn(talk, "play:forever", stage);
  },

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
    assert.deepEqual(told(answer), ["commentary: I need a file.", "shell interrupted"]);
    assertStopped(answer, "user_cancel");
    assert.deepEqual(readdirSync(talk.workspace), []);
    await assertGoesOn(talk, "play:asking", stage);
  },

  "a service that refuses is told apart, in words that help": async ({ open, told }) => {
    const refusals = {
      refused401: ["upstream_auth", /log in|login|key/i],
      refused429: ["rate_limit_upstream", /slow down/],
      refused500: ["upstream_error", /service|high demand/],
    };
    const talk = await open();
    for (const [scenario, [code, words]] of Object.entries(refusals)) {
      const answer = await talk.hear(`play:${scenario}`);
      assert.deepEqual([answer.status, answer.error.code], ["failed", code], scenario);
      assert.match(answer.error.message, /** @type {RegExp} */ (words));
      assert.deepEqual(told(answer), [], scenario);
    }
    // `codex exec` keeps no conversation in which nothing was answered, and Callboard says so before.
    const goesOn = told(await talk.hear("play:hello"));
    assert.equal(goesOn.at(-1), "final: Hello! This answer comes in several small pieces.");
  },

  "a service that breaks off: what was said stays": async ({ stage, open, told }) => {
    const talk = await open();
    await talk.say("play:brokenOff");
    await talk.answerWhen((it) => it.parts[0]?.text === "This breaks o");
    // Some programs ask again by themselves, and give up in the end.
    stage.models.open("brokenOff", Infinity);
    const answer = await talk.answer();
    assert.deepEqual(told(answer), ["final: This breaks o"]);
    assert.deepEqual([answer.status, answer.error.code], ["failed", "upstream_error"]);
    await assertGoesOn(talk, "play:brokenOff", stage);
  },

  "the model sees what was said before": async ({ stage, open }) => {
    const talk = await open();
    await talk.hear("play:tools");
    await assertGoesOn(talk, "play:tools", stage);
    const [request] = stage.models.asked("recall").slice(-1);
    for (const it of ["First I look here.", "echo two", "I have seen one and two."]) assert.ok(request?.includes(it), it);
  },

  "the server is killed in a call: the run is closed, and the conversation goes on": async ({ t, stage, told }) => {
    const own = await startStage(t, stage.kind);
    const talk = await own.open();
    await talk.runs("play:forever", "tail");
    const before = (await talk.processes()).map((it) => it.pid);
    await own.callboard.kill();
    await own.callboard.restart();
    const answer = await talk.answer();
    assert.deepEqual(told(answer).map(withoutOutput), ["commentary: This never ends.", "shell interrupted"]);
    assertStopped(answer, "restart");
    await assertGoesOn(talk, "play:forever", own);
    const survivors = (await talk.processes()).filter((it) => before.includes(it.pid));
    assert.deepEqual(survivors, [], "nothing of a run is alive when the next one begins");
  },

  "the server is killed while it asks: a question lives as long as who asked it": async ({ t, stage, told, its }) => {
    const own = await startStage(t, stage.kind);
    const talk = await own.open({ asks: true });
    const { call } = await talk.question("play:asking");
    await own.callboard.kill();
    await own.callboard.restart();
    if (its.isProgram) {
      const answer = await talk.answer();
      assert.deepEqual(told(answer), ["commentary: I need a file.", "shell interrupted"]);
      assertStopped(answer, "restart");
      await assertGoesOn(talk, "play:asking", own);
    } else {
      await talk.decide(call.id, { decision: "accepted" });
      assert.deepEqual(told(await talk.answer()), ["commentary: I need a file.", "shell succeeded", "final: So be it."]);
    }
  },

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

  "the page shows the same blocks, live and loaded": async ({ t, stage, open, its }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await setRoot(page, { toolDisplay: "timeline" });
    await say(page, "play:thinking");
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

  "Callboard's own tools have one name, one result and no question": async ({ t, stage, open, told }) => {
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

  "an agent asks another of its kind, and that one a third": async ({ t, stage, open, told }) => {
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

  "a question is answered on the page": async ({ t, stage, open }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:asking");
    const sheet = page.getByRole("alertdialog");
    await sheet.getByText("touch asked.txt", { exact: true }).first().waitFor();
    await sheet.getByRole("button", { name: "Allow once" }).click();
    await answered(page);
    assert.equal(await page.locator(".text.final").innerText(), "So be it.");
    assert.deepEqual(readdirSync(talk.workspace), ["asked.txt"]);
  },
};

/** What makes no sense without a program. @type {typeof CASES} */
const PROGRAM_CASES = {
  "how the program is can be seen while it works": async ({ t, stage, open }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:story");
    await stage.models.reached("story");
    const pulse = page.locator(".pulse-line");
    await pulse.getByText(/^pid \d+$/).waitFor();
    const pids = (await talk.processes()).map((it) => `pid ${it.pid}`);
    assert.ok(pids.includes(await pulse.locator("span").first().innerText()), `${pids}`);
    await pulse.getByText(/^last line \d+s ago$/).waitFor();
    stage.models.open("story");
    await answered(page);
    await pulse.waitFor({ state: "hidden" });
  },

  "the program is killed in its words: the run says so, and the conversation goes on": async ({ stage, open, told }) => {
    const talk = await open();
    await talk.hear("play:hello");
    await talk.say("play:story");
    await talk.answerWhen((it) => it.parts[0]?.text === "Once upon a time ");
    const all = await talk.processes();
    const program = all.find((it) => all.every(({ pid }) => pid !== it.parent));
    assert.ok(program, "the program runs");
    process.kill(program.pid, "SIGKILL");
    const answer = await talk.answer();
    assert.deepEqual(told(answer), ["final: Once upon a time "]);
    assert.deepEqual([answer.status, answer.error.code], ["failed", "agent_exited"]);
    assert.deepEqual(await talk.processes(), []);
    await assertGoesOn(talk, "play:hello", stage);
  },
};

/** What Claude Code asks of a person, with a form. @type {typeof CASES} */
const CLAUDE_CASES = {
  "questions are answered with a form": async ({ t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:choosing");
    const sheet = page.getByRole("alertdialog");
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
    await page.locator(".activity > summary").click();
    assert.match(await page.locator(".decision").innerText(), /Answered by user:\s+Which colour\? Blue/);
    await assertSameAfterReload(page);
  },

  "questions need not be answered": async ({ t, stage, open, told }) => {
    const talk = await open({ asks: true });
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await say(page, "play:choosing");
    const sheet = page.getByRole("alertdialog");
    const refuse = sheet.getByRole("button", { name: "Do not answer" });
    await refuse.click();
    await sheet.getByRole("textbox", { name: "Why not" }).fill("Choose yourself.");
    await refuse.click();
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
    assert.deepEqual(told(answer), ["commentary: I have to know.", "AskUserQuestion interrupted"]);
    assertStopped(answer, "user_cancel");
  },

  "a change is shown as the program tells it, with the lines around it": async ({ t, stage, open }) => {
    const talk = await open();
    await talk.hear("play:files");
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await setRoot(page, { toolDisplay: "timeline" });
    const edit = page.locator(".tool-block", { hasText: "Edit" }).first();
    await edit.locator("summary").first().click();
    const shown = await edit.locator(".view .diff").innerText();
    assert.match(shown, / \talpha\n[^]*-\tbeta\n[^]*\+\tgamma/);
  },
};

/** What is left where words come whole, nothing is asked and a program hears nothing once it runs. */
const ONE_WAY_CASES = {
  ...pick(CASES, [
    "commentary, call, commentary, call, answer",
    "calls side by side",
    "thinking is told apart from words",
    "files are written, changed and read",
    "a call that fails",
    "what a command prints comes as it is",
    "stopped in a call: nothing of it is left",
    "a service that refuses is told apart, in words that help",
    "the model sees what was said before",
    "the server is killed in a call: the run is closed, and the conversation goes on",
  ]),

  "the page says what it cannot do": async (/** @type {Case} */ { t, stage, open }) => {
    const talk = await open();
    await talk.hear("play:hello");
    const page = await openSession(t, browser, stage.callboard, talk.id);
    assert.match(await page.locator(".remark").innerText(), /no app-server.*come whole.*without asking/);
    assert.match(await page.locator(".notice").innerText(), /without its app-server/);
  },
};

const browser = useBrowser();

for (const kind of KINDS) {
  describe(kind, () => {
    /** @type {Stage} */
    let stage;
    /** @type {() => Promise<void>} */
    let end = async () => {};
    before(async () => {
      stage = await startStage({ after: (it) => void (end = it) }, kind);
    });
    after(() => end());

    const its = DIFFERENCES[kind];
    const programCases = its.isOneWay ? ONE_WAY_CASES : { ...CASES, ...PROGRAM_CASES };
    const cases = kind === "claude" ? { ...programCases, ...CLAUDE_CASES } : its.isProgram ? programCases : CASES;
    for (const [name, play] of Object.entries(cases)) {
      test(name, { timeout: TIMEOUT_MS }, async (t) => {
        /** @type {Conversation[]} */
        const opened = [];
        const open = async (/** @type {{asks?: boolean}} */ options = {}) => {
          opened.push(await stage.open(options));
          return /** @type {Conversation} */ (opened.at(-1));
        };
        await play({ t, stage, open, its, told: (answer) => told(answer, its.tools).filter((/** @type {string} */ it) => it !== its.limits) });
        for (const it of opened) assertAllClosed(await stage.callboard.events(it.id));
      });
    }
  });
}

/** @param {any} part */
const isSteered = (part) => part.type === "steered";

/** @template T @param {Record<string, T>} all @param {string[]} names @returns {Record<string, T>} */
function pick(all, names) {
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

/**
 * A line for each part of an answer.
 * @param {any} answer @param {Record<string, string>} tools what the agent's tools are to us
 */
function told(answer, tools) {
  return answer.parts.map((/** @type {any} */ part) => {
    if (part.type === "text") return `${part.role}: ${part.text}`;
    if (part.type !== "tool_call") return `${part.type}: ${part.text ?? part.raw}`;
    const call = answer.toolCalls.find((/** @type {any} */ it) => it.id === part.id);
    const printed = `${call.output ?? ""}${call.stderr ?? ""}`.trim();
    return [`${tools[call.name] ?? call.name} ${call.state}`, printed].filter(Boolean).join(": ");
  });
}

/** @param {any} answer */
function exchangeOf(answer) {
  return answer.parts.find((/** @type {any} */ it) => it.type === "exchange");
}

/** How much a command has printed when it is stopped is a matter of luck. @param {string} line */
function withoutOutput(line) {
  return line.replace(/^(shell \w+): [^]*/, "$1");
}

/** @param {any} answer @param {string} reason */
function assertStopped(answer, reason) {
  const { status, interrupted, cancelReason } = answer;
  assert.deepEqual({ status, interrupted, cancelReason }, { status: "cancelled", interrupted: true, cancelReason: reason });
}

/** The next message is answered, and is one of the same conversation. @param {Conversation} talk @param {string} before @param {Stage} stage */
async function assertGoesOn(talk, before, stage) {
  const answer = await talk.hear("play:recall");
  assert.equal(answer.content, "I remember all of it.");
  assert.ok(stage.models.asked("recall").at(-1)?.includes(before), "the model knows what was said before");
  const linked = (await stage.callboard.events(talk.id)).filter((it) => it.type === "agent_linked");
  assert.ok(new Set(linked.map((it) => it.cliSessionId)).size <= 1, "the program's conversation is the same");
}

/** Everything that began has one end, and everything was understood. @param {any[]} events */
function assertAllClosed(events) {
  const count = (/** @type {string} */ type) => events.filter((it) => it.type === type).length;
  for (const [begin, end] of [
    ["run_start", "run_finish"],
    ["step_start", "step_finish"],
    ["text_start", "text_done"],
    ["thinking_start", "thinking_done"],
    ["tool_call_start", "tool_result"],
    ["tool_approval_requested", "tool_approval_resolved"],
  ]) {
    assert.equal(count(end), count(begin), `${end} for each ${begin}`);
  }
  assert.deepEqual(events.filter((it) => it.type === "unrecognized"), []);
}

// Stored conversations of the real Claude Code, Codex and Pi continue in another Callboard.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";

import { assertAllClosed, outline } from "./agent_case.mjs";
import { startStage } from "./agents.mjs";
import { useBrowser } from "./browser.mjs";
import { answered, sendMessage, sessionOf } from "./drive.mjs";
import { PROGRAMS, conversationFiles, runWithoutCallboard } from "./programs.mjs";

/** @typedef {import("./agent_case.mjs").Stage} Stage */
/** @typedef {import("./agent_case.mjs").Conversation} Conversation */
/** @typedef {import("./programs.mjs").Program} Program */

/** Time limit of a test. */
const TIMEOUT_MS = 60_000;

/** Names of the shell tools. */
const TOOLS = { Bash: "shell", bash: "shell" };

const BEGUN = [
  "commentary: First I look here.",
  "shell succeeded: one",
  "commentary: Then I look there.",
  "shell succeeded: two",
  "final: I have seen one and two.",
];
const RECALLED = ["final: I remember all of it."];

/**
 * Origins of a conversation of `play:tools`; each returns its folder.
 * @type {Record<string, (stage: Stage) => Promise<string>>}
 */
const PLACES = {
  "without Callboard": async (stage) => {
    const [folder, models] = [await stage.folder(), stage.models.base];
    await runWithoutCallboard(/** @type {Program} */ (stage.kind), { home: stage.setting.home, models, folder }, "play:tools");
    return folder;
  },
  "on another Callboard": async (stage) => {
    const folder = await startConversation(stage);
    await stage.callboard.kill("SIGTERM");
    return folder;
  },
};

/** @param {Stage} stage */
async function startConversation(stage) {
  const talk = await stage.open();
  await talk.answerTo("play:tools");
  return talk.workspace;
}

const browser = useBrowser();

for (const program of PROGRAMS) {
  describe(program, () => {
    for (const [place, begin] of Object.entries(PLACES)) {
      test(`a conversation ${place} is imported and continued`, { timeout: TIMEOUT_MS }, async (t) => {
        const first = await startStage(t, program);
        const folder = await begin(first);
        const file = await onlyFile(first);
        const second = await first.otherCallboard(t);
        const session = assertImported(second, file, "1 turn added");
        assertImported(second, file, "nothing new");
        const talk = await confirmed(second, session);
        assert.equal(talk.workspace, folder);
        assert.deepEqual(await outlines(talk), [BEGUN]);
        await talk.answerTo("play:recall");
        await assertWentOn(talk, file);
        await assertAddsNothing(talk, file);

        const third = await first.otherCallboard(t);
        assertImported(third, file, "2 turns added");
        assert.deepEqual(await outlines(await third.meet(session)), [BEGUN, RECALLED], "the file has what was said here");
      });
    }
  });
}

test("a Codex conversation can be continued after it is closed elsewhere", { timeout: TIMEOUT_MS }, async (t) => {
  const first = await startStage(t, "codex");
  await startConversation(first);
  const file = await onlyFile(first);
  const second = await first.otherCallboard(t);
  const talk = await confirmed(second, assertImported(second, file, "1 turn added"));
  const refused = await talk.answerTo("play:recall");
  assert.deepEqual([refused.status, refused.error.code, refused.parts], ["failed", "agent_busy", []]);
  assert.match(refused.error.message, /open in another Codex .*Close it there/);
  await first.callboard.kill("SIGTERM");
  await talk.post("retry");
  await talk.lastOf(3);
  await assertWentOn(talk, file);
});

test("a conversation imported on the page is continued there", { timeout: TIMEOUT_MS }, async (t) => {
  const first = await startStage(t, "claude");
  await PLACES["without Callboard"]?.(first);
  const file = await onlyFile(first);
  const second = await first.otherCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(`${second.callboard.base}?token=${second.callboard.token}`);
  const give = async () => {
    await page.getByRole("button", { name: "Import" }).click();
    await page.getByLabel("Files", { exact: true }).setInputFiles(file);
    return page.locator("#imported li").last();
  };
  await (await give()).getByText("turns added: 1").waitFor();
  await page.locator("#imported li").getByRole("link").click();
  await answered(page);
  const use = page.getByRole("button", { name: "Use this folder" });
  await use.click();
  await use.waitFor({ state: "detached" });
  await sendMessage(page, "play:recall");
  await answered(page, 2);
  assert.equal(await page.locator(".text.final").last().innerText(), "I remember all of it.");
  const talk = await second.meet(sessionOf(page));
  await assertWentOn(talk, file);
  await (await give()).getByText("goes on here").waitFor();
  await assertAddsNothing(talk, file);
});

/** The session, in the folder of its file. @param {Stage} stage @param {string} session */
async function confirmed(stage, session) {
  const { workspace, suggestedWorkspace } = await stage.callboard.api(`sessions/${session}`);
  assert.equal(workspace, null, "nobody has confirmed it yet");
  await stage.callboard.api(`sessions/${session}`, { method: "PATCH", body: { workspace: suggestedWorkspace } });
  return stage.meet(session);
}

/** The only stored conversation of the program. @param {Stage} stage */
async function onlyFile(stage) {
  const files = await conversationFiles(stage.setting.home);
  assert.equal(files.length, 1, `${files}`);
  return /** @type {string} */ (files[0]);
}

/** Imports the conversation and returns the session's id. @param {Stage} stage @param {string} file @param {string} what */
function assertImported(stage, file, what) {
  const output = stage.callboard.command(["import", file]).trim();
  const [session] = output.split(": ");
  assert.equal(output, `${session}: ${what}: ${file}`);
  return /** @type {string} */ (session);
}

/** Checks that the program continued its own conversation. @param {Conversation} talk @param {string} file */
async function assertWentOn(talk, file) {
  const { callboard, models } = talk.stage;
  assert.deepEqual(await outlines(talk), [BEGUN, RECALLED]);
  const [request] = models.asked("recall").slice(-1);
  for (const it of ["First I look here.", "echo two", "I have seen one and two."]) assert.ok(request?.includes(it), it);
  assert.equal(request?.split("play:tools").length, 2, "it remembers, and is not told again");
  assert.ok((await talk.processes()).length > 0, "it works in the folder of its conversation");
  const events = await callboard.events(talk.id);
  const linked = new Set(events.flatMap((it) => (it.type === "agent_linked" ? [it.cliSessionId] : [])));
  assert.equal(linked.size, 1);
  assert.ok(path.basename(file).includes([...linked][0]));
  assert.equal(await onlyFile(talk.stage), file);
  assert.ok((await readFile(file, "utf8")).includes("play:recall"));
  assertAllClosed(events);
}

/** @param {Conversation} talk @param {string} file */
async function assertAddsNothing(talk, file) {
  const before = await talk.stage.callboard.events(talk.id);
  assert.equal(assertImported(talk.stage, file, "goes on here, nothing added"), talk.id);
  assert.deepEqual(await talk.stage.callboard.events(talk.id), before);
  assert.equal((await talk.stage.callboard.api("sessions")).sessions.length, 1);
}

/** The parts of all answers of a session. @param {Conversation} talk */
async function outlines(talk) {
  const { messages } = await talk.stage.callboard.api(`sessions/${talk.id}/messages`);
  const answers = messages.filter((/** @type {any} */ it) => it.role === "assistant");
  return answers.map((/** @type {any} */ it) => outline(it, TOOLS));
}

// Every agent in the same cases: Callboard's own loop around a model, and the real command-line agents.
//
// The model is scripted (scenarios.mjs). Callboard's result has to be the same for every program in
// between.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ASKS, CORRECTS, ESCALATES, FORMS, GUARDS, WRITES } from "./agent_approvals.mjs";
import { assertAllClosed, outline } from "./agent_case.mjs";
import { OTHERS } from "./agent_messages.mjs";
import { BACKGROUND, DELEGATES, PROGRAM_STOPS, STOPS } from "./agent_stops.mjs";
import { BEGINS_ANEW, WORK } from "./agent_work.mjs";
import { KINDS, useStage } from "./agents.mjs";
import { useBrowser } from "./browser.mjs";
import { answered, field, openSession, sendMessage, setRoot } from "./drive.mjs";

/** @typedef {import("./agent_case.mjs").Stage} Stage */
/** @typedef {import("./agent_case.mjs").Conversation} Conversation */
/** @typedef {import("./agent_case.mjs").Cases} Cases */

const TIMEOUT_MS = 60_000;

/** Differences between the agents, and their reasons. @type {Record<string, any>} */
const DIFFERENCES = {
  openai: {
    tools: { shell: "shell", write_file: "write", edit_file: "edit", read_file: "read" },
    canEdit: true,
    // Callboard's own loop has no conversation elsewhere.
    isProgram: false,
    // It counts the first attempt too.
    attempts: ["attempt 2 of 3", "attempt 3 of 3"],
  },
  claude: {
    name: "Claude Code",
    tools: { Bash: "shell", Write: "write", Edit: "edit", Read: "read" },
    canEdit: true,
    isProgram: true,
    // It repeats the request without a stream, and does not report it.
    hidesFailedStreams: true,
  },
  codex: {
    name: "Codex",
    // It edits files with patches only, and reads them with commands.
    tools: { shell: "shell", apply_patch: "write" },
    filesTold: ["write succeeded", "write succeeded", "shell succeeded: alpha\ngamma"],
    // Its protocol has no edited arguments.
    canEdit: false,
    isProgram: true,
    givesUpAt429: true,
  },
  codexExec: {
    tools: { shell: "shell", apply_patch: "write" },
    filesTold: ["write succeeded", "write succeeded", "shell succeeded: alpha\ngamma"],
    isProgram: true,
    givesUpAt429: true,
    // The first part of the first answer.
    limits:
      "notice: Codex runs without its app-server: messages arrive whole, and it does what its sandbox allows without asking.",
  },
  pi: {
    name: "Pi",
    tools: { bash: "shell", write: "write", edit: "edit", read: "read" },
    canEdit: true,
    isProgram: true,
    // It adds a steered message to its conversation even while it stops.
    readsWhileItStops: true,
  },
};

/** Cases of all agents. @type {Cases} */
const ALL = { ...WORK, ...STOPS, ...ASKS, ...OTHERS };

/** Cases of program agents only. @type {Cases} */
const OF_PROGRAMS = {
  ...ALL,
  ...BEGINS_ANEW,
  ...PROGRAM_STOPS,

  "the log contains the version of the program": async ({ stage, open }) => {
    const talk = await open();
    await talk.answerTo("play:hello");
    const linked = (await stage.callboard.events(talk.id)).find((it) => it.type === "agent_linked");
    assert.match(linked?.version ?? "", /^\d+\.\d+\.\d+/);
  },

  "every item links to its raw lines, live and loaded": async ({ browser, t, stage, open }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:hello");
    await answered(page);
    for (const _ of ["live", "loaded"]) {
      const text = page.locator(".parts > .text.final");
      const link = text.locator("> .raw-link");
      assert.equal(await link.evaluate((it) => getComputedStyle(it).opacity), "0", "the page is calm");
      await text.hover();
      await page.waitForFunction((it) => it && getComputedStyle(it).opacity === "1", await link.elementHandle());
      const words = (await text.innerText()).trim();
      assert.ok(!words.includes("Raw"), "the link is no word of the text");
      const opened = page.waitForEvent("popup");
      await link.click();
      const wrote = await (await opened).locator("body").innerText();
      assert.ok(wrote.includes(words), wrote);
      assert.ok(wrote.split("\n").every((it) => it.trim() === "" || it.startsWith("{")), "nothing but its lines");
      await page.reload();
    }
  },

  "an edited message: the program keeps the original, as the page notes": async ({ browser, t, stage, open, its }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:hello");
    await answered(page);
    await page.locator(".bubble").hover();
    await page.getByRole("button", { name: "Edit and send again" }).click();
    const words = `Editing: everything after this message will be replaced. ${its.name} still remembers what it replaces.`;
    await page.locator("#editing").getByText(words).waitFor();
    await field(page).fill("play:recall");
    await page.keyboard.press("Enter");
    await page.getByText("I remember all of it.").waitFor();
    assert.ok(stage.models.asked("recall").at(-1)?.includes("play:hello"));
    await page.getByText("2 earlier messages (replaced)").waitFor();
    await answered(page);
  },

  "the state of the program is shown while it works": async ({ browser, t, stage, open }) => {
    const talk = await open();
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await sendMessage(page, "play:story");
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
};

/** Cases about a program's details besides its texts. @type {Cases} */
const TELLS_MORE = {
  "each answer shows its cost, and the session their sum": async ({ browser, t, stage, open }) => {
    const talk = await open();
    const costs = [(await talk.answerTo("play:hello")).cost, (await talk.answerTo("play:hello")).cost];
    assert.ok(costs[0] > 0, `${costs}`);
    assert.ok(Math.abs(costs[1] - costs[0]) < costs[0] / 100, `the second is not charged for the first: ${costs}`);
    const page = await openSession(t, browser, stage.callboard, talk.id);
    const shown = (/** @type {number} */ cost) => `tokens · $${cost.toFixed(4)}`;
    for (const [at, cost] of costs.entries()) {
      const timing = await page.locator(".timing").nth(at).textContent();
      assert.ok(timing?.endsWith(shown(cost)), `${timing}`);
    }
    const heading = await page.locator(".heading .meta").textContent();
    assert.ok(heading?.includes(shown(costs[0] + costs[1])), `${heading}`);
  },

  "a file change is shown with the lines around it": async ({ browser, t, stage, open }) => {
    const talk = await open();
    await talk.answerTo("play:files");
    const page = await openSession(t, browser, stage.callboard, talk.id);
    await setRoot(page, { toolDisplay: "timeline" });
    const edit = page.locator(".tool-block", { hasText: "Edit" }).first();
    await edit.locator("summary").first().click();
    const shown = await edit.locator(".view .diff").innerText();
    assert.match(shown, / \talpha\n[^]*-\tbeta\n[^]*\+\tgamma/);
  },
};

/** @type {Cases} */
const OF_CLAUDE = { ...OF_PROGRAMS, ...GUARDS, ...FORMS, ...WRITES, ...DELEGATES, ...BACKGROUND, ...TELLS_MORE };

/** Cases for programs without deltas, approvals and steering. @type {Cases} */
const ONE_WAY = {
  ...pick(OF_PROGRAMS, [
    "commentary, call, commentary, call, answer",
    "calls run in parallel",
    "thinking is distinct from text",
    "files are written, changed and read",
    "a call that fails",
    "the output of a command is unchanged",
    "a stopped call leaves no process",
    "refusals of a service are distinct and have advice",
    "retries of a failing service are reported before the answer",
    "the model sees earlier messages",
    "server killed during a call: run closed, conversation continues",
    "program killed during a call: run failed, no process left",
  ]),

  "the page shows what the agent cannot do": async ({ browser, t, stage, open }) => {
    const talk = await open();
    await talk.answerTo("play:hello");
    const page = await openSession(t, browser, stage.callboard, talk.id);
    assert.match(await page.locator(".remark").innerText(), /no app-server.*not streamed.*without approval/);
    assert.match(await page.locator(".notice").innerText(), /without its app-server/);
  },
};

/** @type {Record<import("./agents.mjs").Kind, Cases>} */
const CASES = {
  openai: ALL,
  claude: OF_CLAUDE,
  codex: { ...OF_PROGRAMS, ...DELEGATES, ...ESCALATES, ...CORRECTS },
  pi: { ...OF_PROGRAMS, ...GUARDS, ...TELLS_MORE },
  codexExec: ONE_WAY,
};

const browser = useBrowser();

for (const kind of KINDS) {
  describe(kind, () => {
    const stage = useStage(kind);

    const its = DIFFERENCES[kind];
    for (const [name, play] of Object.entries(CASES[kind])) {
      test(name, { timeout: TIMEOUT_MS }, async (t) => {
        /** @type {Conversation[]} */
        const opened = [];
        const open = async (/** @type {{asks?: boolean}} */ options = {}) => {
          opened.push(await stage.open(options));
          return /** @type {Conversation} */ (opened.at(-1));
        };
        const outlineOf = (/** @type {any} */ answer) =>
          outline(answer, its.tools).filter((/** @type {string} */ it) => it !== its.limits);
        await play({ t, browser, stage, open, its, outline: outlineOf });
        for (const it of opened) assertAllClosed(await stage.callboard.events(it.id));
      });
    }
  });
}

/** @template T @param {Record<string, T>} all @param {string[]} names @returns {Record<string, T>} */
function pick(all, names) {
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

// Parts that the settings show and hide, during an answer and afterwards.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { logLines, startCallboard } from "./callboard.mjs";
import { openSession, seen, setRoot } from "./drive.mjs";
import { drawGallery, openDrawn } from "./gallery.mjs";

const browser = useBrowser();
const SHORT = "Let me look.";
const LONG = "I shall look at every file that there is. ".repeat(8).trim();
/** @type {ReturnType<typeof drawGallery>} */
let gallery;
/** @type {(() => void)[]} */
const ends = [];

/** An answer with commentary, thinking, a call and a final text. @param {string} words */
function log(words, archived = false) {
  const it = { responseId: "r" };
  const call = { ...it, callId: "r.2" };
  return [
    { type: "session_created", agent: "demo", title: "Settings" },
    ...(archived ? [{ type: "session_updated", archived }] : []),
    { type: "user_message", messageId: "m", text: "Look" },
    { ...it, type: "run_start", agent: "demo", trigger: "user" },
    { ...it, type: "step_start", index: 0 },
    { ...it, type: "thinking_start", partId: "r.0" },
    { ...it, type: "thinking_done", partId: "r.0", text: "Where is it?" },
    { ...it, type: "text_start", partId: "r.1" },
    { ...it, type: "text_delta", partId: "r.1", delta: words },
    { ...it, type: "text_done", partId: "r.1", text: words },
    { ...call, type: "tool_call_start", toolName: "look", executor: "server" },
    { ...call, type: "tool_arguments_done", arguments: "{}", summary: "", validation: "not_required" },
    { ...call, type: "tool_running" },
    { ...call, type: "tool_result", toolName: "look", ok: true, result: "Here.", durationMs: 5 },
    { ...it, type: "step_finish", index: 0, finishReason: "tool-calls" },
    { ...it, type: "step_start", index: 1 },
    { ...it, type: "text_start", partId: "r.3" },
    { ...it, type: "text_done", partId: "r.3", text: "It is here." },
    { ...it, type: "step_finish", index: 1, finishReason: "stop" },
    { ...it, type: "run_finish", status: "completed", durationMs: 9 },
  ];
}

before(() => {
  const folder = mkdtempSync(path.join(tmpdir(), "callboard-settings-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  for (const [name, words, archived] of /** @type {[string, string, boolean][]} */ ([
    ["short", SHORT, false],
    ["long", LONG, false],
    ["archived", SHORT, true],
  ])) {
    writeFileSync(path.join(folder, `${name}.jsonl`), logLines(name, log(words, archived)));
  }
  gallery = drawGallery({ after: (end) => void ends.push(end) }, folder);
});
after(() => ends.forEach((end) => end()));

/**
 * A page that receives the answer; `until` applies records up to and including one of that kind.
 * @param {any} t @param {string} name @param {Record<string, string>} settings
 */
async function open(t, name, settings) {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay(name);
  const { patch } = await openDrawn(page, name, first);
  await setRoot(page, settings);
  const kinds = log("", name === "archived").map(({ type }) => type);
  const rest = [...patches];
  return {
    page,
    /** The text without the links to cut parts. */
    words: async () => (await seen(page.locator(".messages .text"))).map((it) => it.replace(/^Show all /, "")),
    /** @param {string} type */
    async until(type) {
      const seq = kinds.indexOf(type) + 1;
      while (rest[0] && rest[0].seq <= seq) await patch(/** @type {any} */ (rest.shift()));
    },
    async all() {
      for (const step of rest.splice(0)) await patch(step);
    },
  };
}

for (const look of ["widget", "badges"]) {
  // Badges cannot open held text, so it is shown once it is classified.
  test(`reveal in the look ${look}: parts that were shown live stay`, async (t) => {
    for (const [reveal, name, comes, stays] of /** @type {[string, string, boolean, boolean][]} */ ([
      ["live", "short", true, true],
      ["live", "long", true, true],
      ["smart", "long", true, true],
      ["deferred", "short", false, look === "badges"],
      ["deferred", "long", false, look === "badges"],
    ])) {
      const { words, until, all } = await open(t, name, { toolDisplay: look, reveal });
      const text = name === "long" ? LONG : SHORT;
      await until("text_delta");
      assert.deepEqual(await words(), comes ? [text] : [], `${reveal}, ${name}, as it comes`);
      await until("tool_running");
      assert.deepEqual(await words(), stays ? [text] : [], `${reveal}, ${name}, as a call runs`);
      await all();
      assert.deepEqual(await words(), [...(stays ? [text] : []), "It is here."], `${reveal}, ${name}, at the end`);
    }
  });
}

test("reveal smart: a reload shows earlier parts immediately", async (t) => {
  const page = await browser.newPage(t);
  const { pages } = gallery.replay("short");
  const seq = log(SHORT).findIndex(({ type }) => type === "text_delta") + 1;
  // A page that waited would wait for twenty minutes.
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Animation.enable");
  await devtools.send("Animation.setPlaybackRate", { playbackRate: 0.001 });
  await openDrawn(page, "short", pages[seq] ?? "");
  await page.locator(".messages .undecided").waitFor();
  assert.deepEqual(await seen(page.locator(".messages .text")), [SHORT]);
});

test("hidden tool calls leave only the activity of the agent", async (t) => {
  for (const toolDisplay of ["widget", "badges", "panels", "timeline"]) {
    const { page, words, until, all } = await open(t, "long", { toolDisplay, showToolCalls: "false" });
    for (const moment of ["run_start", "tool_running", "step_finish"]) {
      await until(moment);
      assert.ok(await page.locator(".typing").isVisible(), `${toolDisplay} at ${moment}`);
    }
    await all();
    assert.deepEqual(await words(), ["It is here."], toolDisplay);
    const hidden = page.locator(".messages :is(.tool-block, .activity, .tool-calls-container, .typing)");
    assert.deepEqual(await seen(hidden), [], toolDisplay);
  }
});

test("thinking is shown or hidden", async (t) => {
  const { page, all } = await open(t, "short", { toolDisplay: "timeline" });
  await all();
  assert.equal((await seen(page.locator(".thinking"))).length, 1);
  await setRoot(page, { showThinking: "false" });
  assert.deepEqual(await seen(page.locator(".thinking")), []);
});

test("calls are hidden in an archived session only", async (t) => {
  for (const [name, shown] of /** @type {[string, number][]} */ ([["archived", 0], ["short", 1]])) {
    const { page, all } = await open(t, name, { toolDisplay: "timeline", hideToolCallsInArchived: "true" });
    await all();
    assert.equal((await seen(page.locator(".tool-block"))).length, shown, name);
  }
});

test("settings changed elsewhere show on every open page and in its dialog", async (t) => {
  const callboard = await startCallboard(t);
  const pages = [await openSession(t, browser, callboard), await openSession(t, browser, callboard)];
  const change = { toolDisplay: "badges", showThinking: false, theme: "dark" };
  for (const page of pages) await page.waitForFunction(() => !document.body.matches(".offline"));
  const response = await fetch(`${callboard.base}api/settings`, {
    method: "PATCH",
    headers: { "content-type": "application/json", authorization: `Bearer ${callboard.token}` },
    body: JSON.stringify(change),
  });
  assert.equal(response.status, 200);
  for (const page of pages) {
    await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
    const shown = await page.evaluate(() => {
      const { toolDisplay, showThinking, theme } = document.documentElement.dataset;
      const form = /** @type {HTMLFormElement} */ (document.querySelector("#settings form"));
      const { toolDisplay: look, showThinking: thinking } = /** @type {any} */ (form.elements);
      return { toolDisplay, showThinking, theme, look: look.value, thinking: thinking.checked };
    });
    assert.deepEqual(shown, {
      toolDisplay: "badges", showThinking: "false", theme: "dark", look: "badges", thinking: false,
    });
  }
});

// Runs of the demo agent in a real browser: while they are active, when they are stopped, when
// the page or the server disconnects. A hand-written log covers what the demo agent cannot do.

import assert from "node:assert/strict";
import { test } from "node:test";

import { listFaults, useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import {
  answered,
  assertSameAfterReload,
  conversationText,
  isMarked,
  mark,
  noteValues,
  openSession,
  sendMessage,
  seen,
  sessionOf,
  setRoot,
} from "./drive.mjs";
import { fromLog, openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

test("X4.1 a call goes from calling to its result and survives a reload", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  const states = await noteValues(page, ".tool-block", "class");
  await sendMessage(page, "what time is it in Paris");
  await answered(page);
  assert.deepEqual(await states(), ["tool-block pending", "tool-block success"]);
  await page.reload();
  assert.equal(await page.locator(".tool-block").getAttribute("class"), "tool-block success");
  assert.equal(await page.locator(".tool-widget").getAttribute("data-state"), "complete");
});

test("X4.2 two parallel calls get and keep their results", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await setRoot(page, { toolDisplay: "timeline" });
  await sendMessage(page, "what time is it in Paris and Tokyo?");
  await answered(page);
  const states = page.locator(".tool-block .state");
  assert.deepEqual(await seen(states), ["done", "done"]);
  assert.match(await conversationText(page), /In Paris it is[^]*In Tokyo it is/);
  await assertSameAfterReload(page);
  assert.equal(await page.locator(".tool-block.success").count(), 2);
});

test("X4.3 a reload during a run gives the same page, which stays live", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.reload();
  await page.locator(".typing").waitFor({ state: "attached" });
  const [head, shown] = await page.evaluate(`[document.body.dataset.head, (${fromLog})(null)]`);
  const fresh = await page.evaluate(async (head) => (await fetch(`?at=${head}`)).text(), head);
  assert.deepEqual(shown, await page.evaluate(fromLog, fresh));
  await mark(page);
  const before = (await conversationText(page)).length;
  await page.waitForFunction(
    (before) => (document.querySelector(".messages")?.textContent?.length ?? 0) > before + 40,
    before,
  );
  assert.ok(await isMarked(page), "it went on without another reload");
  await callboard.api(`sessions/${sessionOf(page)}/cancel`, { method: "POST" });
});

test("X5.1 a message, its calls and the answer are in this order", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await setRoot(page, { toolDisplay: "timeline" });
  await sendMessage(page, "what time is it in Paris");
  await answered(page);
  const kinds = await page
    .locator(".bubble, .messages .text, .messages .tool-block")
    .evaluateAll((all) => all.map((it) => it.className));
  const plain = kinds.map((it) => it.replace(/ (shown|long)$/, ""));
  assert.deepEqual(plain, ["bubble", "text commentary", "tool-block success", "text final"]);
});

test("X5.2 X6.8 a text that was stopped stays and is marked", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await answered(page);
  const isMarkedSo = async () =>
    assert.match((await seen(page.locator(".interrupted-mark"))).join(), /^Interrupted \(stopped by you/);
  await isMarkedSo();
  assert.match(await conversationText(page), /Once there was/);
  await assertSameAfterReload(page);
  await isMarkedSo();
  await page.getByRole("button", { name: "Continue" }).waitFor();
});

test("X5.3 X6.9 a stopped call of a log is amber, live and after a reload", async (t) => {
  const page = await browser.newPage(t);
  const faults = listFaults(page);
  const { first, patches } = gallery.replay("stopped");
  const { patch } = await openDrawn(page, "stopped", first);
  for (const step of patches) await patch(step);
  await setRoot(page, { toolDisplay: "timeline" });
  const block = page.locator(".tool-block");
  const look = async () => [
    await block.getAttribute("class"),
    ...(await block.evaluate((it) => [getComputedStyle(it).borderTopStyle, getComputedStyle(it).borderTopColor])),
    await block.locator(".state").innerText(),
  ];
  const live = await look();
  assert.deepEqual([live[0], live[1], live[3]], ["tool-block interrupted", "dashed", "⚠ Interrupted"]);
  const fresh = await browser.newPage(t);
  await openDrawn(fresh, "stopped", gallery.html("stopped"));
  await setRoot(fresh, { toolDisplay: "timeline" });
  const again = fresh.locator(".tool-block");
  const [colour] = await again.evaluate((it) => [getComputedStyle(it).borderTopColor]);
  assert.deepEqual([await again.getAttribute("class"), colour], [live[0], live[2]]);
  assert.equal(await page.locator(".banner, .notice.error").count(), 0, "no error of the backend");
  assert.deepEqual(faults, []);
});

test("X5.3 X6.9 a stopped call of a running agent ends and is marked", async (t) => {
  const callboard = await startCallboard(t, { config: `${NATURAL}[approvals]\nshell = "allow"\n` });
  const page = await openSession(t, browser, callboard);
  await setRoot(page, { toolDisplay: "timeline" });
  await sendMessage(page, "run echo begun; sleep 600");
  const block = page.locator(".tool-block");
  await page.locator(".tool-block[data-state=running]").waitFor();
  await page.locator(".tool-block [data-stream=stdout]", { hasText: "begun" }).waitFor({ state: "attached" });
  await page.keyboard.press("Escape");
  await answered(page);
  const isInterrupted = async () => {
    assert.equal(await block.getAttribute("class"), "tool-block interrupted");
    assert.match((await seen(page.locator(".interrupted-mark"))).join(), /^Interrupted \(stopped by you/);
  };
  await isInterrupted();
  const [result] = (await callboard.events(sessionOf(page))).filter(({ type }) => type === "tool_result");
  assert.equal(result?.error.code, "tool_interrupted");
  await assertSameAfterReload(page);
  await isInterrupted();
});

test("Escape after Ctrl+K leaves the search, or stops the run if it is empty", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("story");
  const query = page.getByRole("searchbox");
  assert.equal(await query.inputValue(), "story");
  await page.keyboard.press("Escape");
  assert.equal(await query.inputValue(), "");
  assert.equal(await page.locator(".interrupted-mark").count(), 0, "one thing at a time");
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  await page.locator(".interrupted-mark").waitFor();
});

test("X6.7 text stays before its tools after a stop and a reload", async (t) => {
  const page = await browser.newPage(t);
  await openDrawn(page, "stopped", gallery.html("stopped"));
  await setRoot(page, { toolDisplay: "timeline" });
  const order = await seen(
    page.locator(".bubble, .messages .text, .tool-block .name, .interrupted-mark"),
  );
  assert.deepEqual(order.map((it) => it.split(" ")[0]), [
    "Write",
    "Once",
    "Interrupted",
    "Count",
    "Counting.",
    "shell",
    "Interrupted",
  ]);
});

test("two tabs show the same, whichever sends", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const one = await openSession(t, browser, callboard);
  const two = await openSession(t, browser, callboard, sessionOf(one));
  await sendMessage(one, "what time is it in Tokyo");
  await answered(two);
  await sendMessage(two, "what time is it in Paris");
  await answered(one, 2);
  await answered(two, 2);
  const [a, b] = await Promise.all([one, two].map((it) => it.evaluate(fromLog, null)));
  assert.deepEqual(a, b);
});

test("two tabs show the same at each record while the agent works", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL, files: { "notes.txt": "buy oil" } });
  const one = await openSession(t, browser, callboard);
  const two = await openSession(t, browser, callboard, sessionOf(one));
  for (const page of [one, two]) await page.evaluate(`(${noteHeads})(${fromLog})`);
  await sendMessage(two, "list the files, then read notes.txt and write a report about lamps");
  await answered(one);
  await answered(two);
  const [a, b] = await Promise.all([one, two].map((it) => it.evaluate(() => /** @type {any} */ (window).shownAt)));
  const both = Object.keys(a).filter((head) => head in b);
  for (const head of both) assert.deepEqual(a[head], b[head], `at ${head}`);
  t.diagnostic(`${both.length} moments compared`);
  assert.ok(both.length > 10, `${both.length} moments`);
});

/** Records the content of the page at each record number. Runs in the browser. @param {typeof fromLog} fromLog */
function noteHeads(fromLog) {
  /** @type {Record<string, string[]>} */
  const shownAt = {};
  const note = () => void (shownAt[document.body.dataset.head ?? ""] = fromLog(null));
  new MutationObserver(note).observe(document.body, { attributeFilter: ["data-head"] });
  Object.assign(window, { shownAt });
}

test("a page detects a frozen server and reconnects", async (t) => {
  const callboard = await startCallboard(t);
  const id = await callboard.converse();
  const page = await browser.newPage(t);
  await page.clock.install();
  const connection = page.waitForEvent("websocket");
  await page.goto(`${callboard.base}s/${id}?token=${callboard.token}`);
  const socket = await connection;
  const answer = () => socket.waitForEvent("framereceived", ({ payload }) => `${payload}`.includes('"pong"'));
  /** The page pings the server at intervals, and waits as long for the reply. */
  const later = () => page.clock.fastForward(15_000);
  await socket.waitForEvent("framereceived");
  for (let idx = 0; idx < 3; idx++) await Promise.all([answer(), later()]);
  assert.ok(!socket.isClosed(), "a server that answers is left in peace");

  process.kill(callboard.pid, "SIGSTOP");
  const gone = page.getByText("Connection lost");
  await until(async () => {
    await later();
    return gone.isVisible();
  });
  process.kill(callboard.pid, "SIGCONT");
  await gone.waitFor({ state: "hidden" });
});

test("a page detects a restart and shows new messages", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await mark(page);
  await callboard.kill();
  await page.getByText("Connection lost").waitFor();
  await callboard.restart();
  await callboard.api(`sessions/${sessionOf(page)}/messages`, { body: { text: "what time is it in Tokyo" } });
  await page.getByText("Connection lost").waitFor({ state: "hidden" });
  await answered(page);
  assert.match(await conversationText(page), /In Tokyo it is/);
  assert.ok(await isMarked(page), "without a reload");
});

test("the footer shows the activity and its time while a run is active", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  const now = page.locator(".foot .now");
  await now.getByText("Writing").waitFor();
  await now.locator(".clock", { hasText: /^\d+s$/ }).waitFor();
  await page.keyboard.press("Escape");
  await answered(page);
  assert.equal(await now.innerText(), "");
  await page.waitForFunction(
    () => document.querySelector("#announcer")?.textContent === "The agent has finished.",
  );
});

test("a failed run shows a banner, and Try again answers again", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  await sendMessage(page, "break");
  await page.locator(".banner").waitFor();
  assert.match(await conversationText(page), /break/);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".rewound").waitFor();
  await page.locator(".messages > .message .banner").waitFor();
  await assertSameAfterReload(page);
});

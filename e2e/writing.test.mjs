// Written text is sent once and never lost.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { answered, field, openSession, sendMessage, seen, sessionOf } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

test("a message whose response was lost is sent again as the same one", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  let isLost = false;
  await page.route("**/messages", async (route) => {
    if (isLost) return route.continue();
    isLost = true;
    await route.fetch();
    return route.abort();
  });
  await field(page).fill("what time is it in Tokyo");
  await page.keyboard.press("Enter");
  await until(async () => isLost && (await field(page).inputValue()) !== "");
  await sendMessage(page, "what time is it in Tokyo");
  await answered(page);
  const messages = (await callboard.events(sessionOf(page))).filter(({ type }) => type === "user_message");
  assert.equal(messages.length, 1);
  assert.deepEqual(await seen(page.locator("#pending > *")), []);
});

test("a failed first message is retried in the same session", async (t) => {
  const callboard = await startCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  /** @type {(() => void)[]} */
  const holds = [];
  let tries = 0;
  await page.route("**/messages", async (route) => {
    tries += 1;
    if (tries > 1) return route.continue();
    await new Promise((resume) => holds.push(() => resume(undefined)));
    return route.abort();
  });
  await field(page).fill("what time is it in Tokyo");
  await page.keyboard.press("Enter");
  await page.locator("#pending .bubble", { hasText: "Tokyo" }).waitFor();
  assert.ok(!(await page.locator(".welcome").isVisible()));
  await until(async () => holds.length > 0);
  holds.forEach((end) => end());
  await until(async () => (await field(page).inputValue()) !== "");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/s\/[\w-]+$/);
  assert.equal((await callboard.api("sessions")).sessions.length, 1);
});

/** A file to attach. @param {string} name */
const file = (name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(name) });

/** The messages of a session, as text or names of files. @param {any} callboard @param {string} session */
async function messages(callboard, session) {
  /** @type {any[]} */
  const all = await callboard.events(session);
  // A queued message has two records.
  const messages = new Map(all.filter(({ text, messageId }) => messageId && text !== undefined).map((it) => [it.messageId, it]));
  return [...messages.values()].map(({ text, attachments }) => text || attachments[0].name);
}

test("messages of files alone are different messages", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  for (const [idx, name] of ["one.txt", "two.txt"].entries()) {
    await page.locator("#attach").setInputFiles(file(name));
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await answered(page, idx + 1);
  }
  assert.deepEqual(await messages(callboard, sessionOf(page)), ["one.txt", "two.txt"]);
});

test("messages arrive in the order in which they were sent", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  /** @type {() => void} */
  let release = () => {};
  const isHeld = new Promise((resume) => (release = () => resume(undefined)));
  await page.route("**/api/blobs", async (route) => {
    await isHeld;
    await route.continue();
  });
  await page.locator("#attach").setInputFiles(file("large.txt"));
  await field(page).fill("first");
  await page.keyboard.press("Enter");
  await field(page).fill("second");
  await page.keyboard.press("Enter");
  await page.locator("#pending > *", { hasText: "second" }).waitFor();
  release();
  await answered(page, 2);
  assert.deepEqual(await messages(callboard, sessionOf(page)), ["first", "second"]);
});

test("messages sent before a new session has opened go into it", async (t) => {
  const callboard = await startCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  /** @type {() => void} */
  let release = () => {};
  const isHeld = new Promise((resume) => (release = () => resume(undefined)));
  await page.route("**/api/sessions", async (route) => {
    await isHeld;
    await route.continue();
  });
  for (const text of ["what time is it in Tokyo", "and in Paris"]) {
    await field(page).fill(text);
    await page.keyboard.press("Enter");
    await page.locator("#pending .bubble", { hasText: text }).waitFor();
  }
  release();
  await page.waitForURL(/\/s\/[\w-]+$/);
  assert.equal((await callboard.api("sessions")).sessions.length, 1);
  assert.deepEqual(await messages(callboard, sessionOf(page)), ["what time is it in Tokyo", "and in Paris"]);
});

test("editing arguments keeps its cursor when the card is redrawn", async (t) => {
  const page = await browser.newPage(t);
  const { sendFrame } = await openDrawn(page, "approval", gallery.html("approval"));
  const sheet = page.locator(".card");
  await sheet.getByText("Edit before running").click();
  const edited = sheet.getByRole("textbox", { name: "Arguments" });
  await edited.fill('{"command": "rm -r build/tmp"}');
  await edited.evaluate((it) => /** @type {any} */ (it).setSelectionRange(5, 7));
  const [id, html] = await sheet.evaluate((it) => [it.id, it.outerHTML]);
  await sheet.evaluate((it) => Object.assign(window, { before: it }));
  sendFrame({ type: "patch", sessionId: "approval", seq: 1000, ops: [["put", id, html]] });
  await page.waitForFunction(() => !(/** @type {any} */ (window).before.isConnected));
  // A block that opens reports it one frame later.
  await page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume))));
  await page.keyboard.type("X");
  assert.equal(await edited.inputValue(), '{"comXnd": "rm -r build/tmp"}');
});

test("an unsaved title survives a lost connection", async (t) => {
  const callboard = await startCallboard(t);
  const [first, second] = [await callboard.converse("help"), await callboard.converse("help")];
  const page = await openSession(t, browser, callboard, first);
  const line = page.locator(`#sessions-${second}`);
  await line.hover();
  await line.locator(".more").click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  const title = page.getByRole("textbox", { name: "Title" });
  await title.fill("Lamps");
  await callboard.kill("SIGKILL");
  await page.getByText("Connection lost").waitFor();
  await callboard.restart();
  await page.getByText("Connection lost").waitFor({ state: "hidden" });
  assert.equal(await title.inputValue(), "Lamps");
  const third = await callboard.converse("help");
  await page.locator(`#sessions-${third}`).waitFor();
  await title.press("Enter");
  await line.getByText("Lamps").waitFor();
});

test("an example keeps the draft, and an edit keeps its files", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard, await callboard.converse("help"));
  await page.locator("#attach").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("x") });
  await field(page).fill("about these");
  await page.locator('.message[data-role="user"]').hover();
  await page.getByRole("button", { name: "Edit and send again" }).click();
  assert.deepEqual(await seen(page.locator("#files button")), []);
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await seen(page.locator("#files button .name")), ["notes.txt"]);
  assert.equal(await field(page).inputValue(), "about these");

  await page.goto(callboard.base);
  await field(page).fill("a long thought");
  await page.getByRole("button", { name: "help", exact: true }).click();
  await page.waitForURL(/\/s\/[\w-]+$/);
  await page.goto(callboard.base);
  assert.equal(await field(page).inputValue(), "a long thought");
});

test("a steered message replaces its pending copy", async (t) => {
  const page = await browser.newPage(t);
  const drawn = await openDrawn(page, "tools", gallery.html("tools"));
  await page.route("**/messages", (route) => route.fulfill({ status: 202, json: { messageId: "m9", state: "steered" } }));
  await sendMessage(page, "shorter, please");
  const id = await page.locator(".parts").last().getAttribute("id");
  const html = '<div id="s9" class="steered" data-message-id="m9"><div class="bubble">shorter, please</div></div>';
  drawn.sendFrame({ type: "patch", sessionId: "tools", seq: 1000, ops: [["add", id, html]] });
  await page.locator(".steered").waitFor();
  await until(async () => (await page.locator("#pending > *").count()) === 0);
});

test("an edit of a queued message survives a reordering", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("queue");
  const { patch, sendFrame } = await openDrawn(page, "queue", first);
  for (const step of patches) {
    await patch(step);
    if ((await page.locator(".queued").count()) > 1) break;
  }
  const [one, two] = await page.locator(".queued").evaluateAll((all) => all.map(({ id }) => id));
  const box = page.locator(`[id="${one}"]`);
  await box.getByText("Edit", { exact: true }).click();
  // The page focuses the field, with the caret at its end, once the box has opened.
  await box.locator("textarea:focus").waitFor();
  await box.locator("textarea").fill("in other words");
  const seq = Number(await page.evaluate(() => document.body.dataset.head)) + 1;
  sendFrame({ type: "patch", sessionId: "queue", seq, ops: [["move", one, null], ["move", two, one]] });
  await page.waitForFunction((seq) => document.body.dataset.head === String(seq), seq);
  assert.equal(await box.locator("textarea").inputValue(), "in other words");
  assert.ok(await box.locator("textarea").evaluate((it) => it === document.activeElement), "in focus");
});

test("the list keeps focus, position and menu when sessions move", async (t) => {
  const page = await browser.newPage(t, { viewport: { width: 1280, height: 420 } });
  const { sendFrame } = await openDrawn(page, "odd", gallery.html("odd"));
  const lines = page.locator("#sessions > li[data-session-id]");
  const ids = await lines.evaluateAll((all) => all.map(({ id }) => id));
  const last = page.locator(`[id="${ids.at(-1)}"]`);
  const patched = async (/** @type {any[]} */ ops) => {
    sendFrame({ type: "patch", sessions: true, ops: [...ops, ["attr", ids[0], "data-patched", `${ops.length}`]] });
    await page.locator(`[data-patched="${ops.length}"]`).waitFor({ state: "attached" });
  };
  await last.locator("a").focus();
  const top = () => page.locator(".scroller").evaluate((it) => it.scrollTop);
  const before = await top();
  assert.ok(before > 0, "the list is longer than its place");
  await patched([["move", ids.at(-1), ids[1]]]);
  assert.ok(await last.locator("a").evaluate((it) => it === document.activeElement));
  await page.locator(".scroller").evaluate((it) => it.scrollTo(0, 1000));
  const end = await top();
  const list = await page.locator("#sessions").evaluate((it) => it.outerHTML);
  await patched([["put", "sessions", list], ["drop", "-"]]);
  assert.equal(await top(), end);

  await last.hover();
  await last.locator(".more").click();
  await patched([["put", "sessions", list], ["drop", "-"], ["drop", "-"]]);
  await page.getByRole("menuitem", { name: "Rename" }).click();
  const title = await last.locator(".title").innerText();
  assert.equal(await page.getByRole("textbox", { name: "Title" }).inputValue(), title);
});

test("folded JSON is copied whole", async (t) => {
  const callboard = await startCallboard(t);
  const rows = Array.from({ length: 80 }, (_, idx) => ({ idx }));
  const it = { responseId: "r", callId: "r.0" };
  await callboard.importLog("folded", [
    { type: "session_created", agent: "demo", title: "Folded" },
    { type: "run_start", responseId: "r", agent: "demo", trigger: "user" },
    { ...it, type: "tool_call_start", toolName: "rows", executor: "agent" },
    { ...it, type: "tool_arguments_done", arguments: "{}", summary: "", validation: "not_required" },
    { ...it, type: "tool_result", toolName: "rows", ok: true, result: { rows }, durationMs: 1 },
    { type: "run_finish", responseId: "r", status: "completed", durationMs: 1 },
  ]);
  const options = { permissions: ["clipboard-read", "clipboard-write"] };
  const page = await openSession(t, browser, callboard, "folded", options);
  await page.locator(".activity > summary").click();
  await page.locator(".tool-block > details > summary").click();
  await page.getByRole("button", { name: "Copy result" }).click();
  await page.locator("#status", { hasText: "Copied" }).waitFor();
  assert.deepEqual(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())), { rows });
});

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

test("Enter on a touch screen adds a line, and the button sends", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard, "", PHONE);
  assert.equal(await field(page).getAttribute("enterkeyhint"), "enter");
  await field(page).focus();
  await page.keyboard.type("help");
  await page.keyboard.press("Enter");
  await page.keyboard.type("please");
  assert.equal(await field(page).inputValue(), "help\nplease");
  await page.getByRole("button", { name: "Send" }).tap();
  await page.locator(".messages .bubble").waitFor();
  assert.deepEqual(await messages(callboard, sessionOf(page)), ["help\nplease"]);
});

/** A picture of one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

test("an attached picture is previewed before sending and while editing", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  await page.locator("#attach").setInputFiles([
    { name: "dot.png", mimeType: "image/png", buffer: PIXEL },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("x") },
  ]);
  const shown = page.locator("#files img");
  await shown.waitFor();
  assert.ok(await shown.evaluate((/** @type {any} */ it) => it.decode().then(() => it.naturalWidth === 1)));
  assert.equal(await shown.count(), 1);
  await sendMessage(page, "help");
  await page.locator(".messages .attachment img").waitFor();
  assert.equal(await shown.count(), 0);
  await page.locator('.message[data-role="user"]').hover();
  await page.getByRole("button", { name: "Edit and send again" }).click();
  await shown.waitFor();
});

test("dragging a file over the page shows where to drop it", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  const drag = (/** @type {string} */ type, file = true) =>
    page.evaluate(([type, file]) => {
      const dataTransfer = new DataTransfer();
      if (file) dataTransfer.items.add(new File(["x"], "notes.txt", { type: "text/plain" }));
      else dataTransfer.setData("text/plain", "words");
      document.body.dispatchEvent(new DragEvent(`${type}`, { bubbles: true, cancelable: true, dataTransfer }));
    }, [type, file]);
  const isShown = () => page.locator(".bar").evaluate((it) => getComputedStyle(it, "::before").content !== "none");
  assert.equal(await isShown(), false);
  await drag("dragover");
  assert.equal(await isShown(), true);
  await drag("dragleave");
  assert.equal(await isShown(), false, "it has left the window");
  await drag("dragover", false);
  assert.equal(await isShown(), false, "words are no file");
  await drag("dragover");
  await drag("drop");
  assert.equal(await isShown(), false);
  await page.locator("#files .name", { hasText: "notes.txt" }).waitFor();
});

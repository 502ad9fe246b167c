// What people do on a page, with the real server and the demo agent.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launchBrowser } from "./browser.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import { fromLog } from "./gallery.mjs";

/** @typedef {import("playwright-core").Page} Page */

/** @type {Awaited<ReturnType<typeof launchBrowser>>} */
let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser.close());

/** @param {Page} page */
const answers = (page) => page.locator('.message[data-role="assistant"]');

/** @param {Page} page @param {number} count */
function answered(page, count) {
  return page.waitForFunction((count) => {
    const answers = document.querySelectorAll('.message[data-role="assistant"]');
    return answers.length === count && !document.querySelector(".typing");
  }, count);
}

/** @param {Page} page @param {string} text */
async function say(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

async function openSession(t, callboard, session, options) {
  const page = await browser.newPage(t, options);
  await page.goto(`${callboard.base}s/${session}?token=${callboard.token}`);
  return page;
}

test("X4 two calls at once go from calling to result, and are so after a reload", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const session = await callboard.converse();
  const page = await openSession(t, callboard, session);
  await say(page, "what time is it in Paris and Tokyo?");
  await answered(page, 1);
  const blocks = page.locator(".tool-block");
  assert.equal(await blocks.count(), 2);
  for (const block of await blocks.all()) assert.match((await block.getAttribute("class")) ?? "", /\bsuccess\b/);
  const live = await page.evaluate(fromLog, null);
  await page.reload();
  assert.deepEqual(await page.evaluate(fromLog, null), live);
  assert.equal(await blocks.count(), 2);
});

test("X5 a message is pending at once, then real; typing shows until the end of the run", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const session = await callboard.converse();
  const page = await openSession(t, callboard, session);
  let release = () => {};
  const held = new Promise((resolve) => (release = () => resolve(undefined)));
  await page.route("**/messages", async (route) => {
    await held;
    await route.continue();
  });
  await say(page, "tell me a story");
  const pending = page.locator("#pending .bubble");
  await pending.waitFor();
  assert.equal(await pending.innerText(), "tell me a story");
  release();
  await pending.waitFor({ state: "detached" });
  await page.locator('[data-role="user"][data-client-id]').waitFor();
  await page.locator(".typing").waitFor({ state: "attached" });
  await answered(page, 1);
  assert.equal(await page.locator(".typing").count(), 0);
});

test("reload in the middle of a run: the same page, and it goes on", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const session = await callboard.converse();
  const page = await openSession(t, callboard, session);
  await say(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.reload();
  const head = Number(await page.locator("body").getAttribute("data-head"));
  await page.waitForFunction((head) => Number(document.body.dataset.head) > head, head);
  await answered(page, 1);
  const fresh = await openSession(t, callboard, session);
  assert.deepEqual(await page.evaluate(fromLog, null), await fresh.evaluate(fromLog, null));
});

test("two tabs are in step, and both see a new title", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const session = await callboard.converse();
  const [one, two] = [await openSession(t, callboard, session), await openSession(t, callboard, session)];
  await say(one, "think about tea, then what time is it in Lima");
  await answered(one, 1);
  await answered(two, 1);
  assert.deepEqual(await two.evaluate(fromLog, null), await one.evaluate(fromLog, null));
  await one.getByRole("button", { name: "Rename" }).or(one.locator("h1 button")).first().click();
  await one.getByRole("textbox", { name: "Title" }).fill("Tea time");
  await one.keyboard.press("Enter");
  for (const page of [one, two]) await page.locator("h1", { hasText: "Tea time" }).waitFor();
  await two.locator("#sessions", { hasText: "Tea time" }).waitFor();
});

test("settings change at once and are kept; drafts are kept per session", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo");
  const page = await openSession(t, callboard, session);
  await page.getByRole("textbox", { name: "Message" }).fill("half a thought");
  await page.getByRole("button", { name: "Settings" }).click();
  const saved = page.waitForResponse((it) => it.url().endsWith("/api/settings"));
  await page.getByLabel("Tool calls look like").selectOption("timeline");
  await saved;
  assert.equal(await page.locator("html").getAttribute("data-tool-display"), "timeline");
  assert.equal(await page.locator(".tool-block").isVisible(), true);
  await page.keyboard.press("Escape");
  await page.reload();
  assert.equal(await page.locator("html").getAttribute("data-tool-display"), "timeline");
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "half a thought");
});

test("a long session loads back as you scroll, and follows its end only from there", async (t) => {
  const callboard = await startCallboard(t);
  const { id } = await callboard.api("sessions", { body: { agent: "demo" } });
  const log = [{ seq: 1, type: "session_created", agent: "demo", title: "Long" }];
  for (let n = 0; n < 120; n += 1) {
    log.push({ seq: log.length + 1, type: "user_message", messageId: `m${n}`, text: `message number ${n}` });
  }
  const at = "2026-11-15T09:00:00.000Z";
  const lines = log.map((it) => JSON.stringify({ seq: it.seq, at, sessionId: "long", ...it })).join("\n");
  const imported = await fetch(`${callboard.base}api/sessions/import`, {
    method: "POST",
    headers: { Authorization: `Bearer ${callboard.token}` },
    body: lines,
  });
  assert.equal(imported.status, 201, await imported.text());
  assert.ok(id);
  const page = await openSession(t, callboard, "long");
  await page.getByText("message number 119").waitFor();
  assert.equal(await page.locator(".message").count(), 50);
  await until(async () => {
    await page.mouse.wheel(0, -4000);
    return (await page.locator(".message").count()) === 120;
  });
  await page.evaluate(() => scrollTo(0, 0));
  assert.equal(await page.locator("#earlier").count(), 0);
  const ids = await page.locator(".message").evaluateAll((all) => all.map((it) => it.dataset.messageId));
  assert.deepEqual(ids, [...Array(120).keys()].map((n) => `m${n}`));

  await page.locator("#latest").waitFor();
  const before = await page.evaluate(() => scrollY);
  await callboard.api("sessions/long/messages", { body: { text: "help" } });
  await page.waitForFunction(() => document.querySelectorAll(".message").length >= 122);
  assert.equal(await page.evaluate(() => scrollY), before, "the reader was moved");
  await page.locator("#latest").click();
  await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 80);
});

test("opening a block does not move the line that is read", async (t) => {
  const callboard = await startCallboard(t, { files: { "notes.txt": "line\n".repeat(60) } });
  const session = await callboard.converse("read notes.txt", "read notes.txt", "write a report about tea");
  const page = await openSession(t, callboard, session, { viewport: { width: 1280, height: 500 } });
  const summary = page.locator(".activity > summary").first();
  await summary.scrollIntoViewIfNeeded();
  const top = () => summary.evaluate((it) => it.getBoundingClientRect().top);
  const before = await top();
  await summary.click();
  assert.equal(Math.round(await top()), Math.round(before));
});

test("deleting can be undone for ten seconds", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  const page = await openSession(t, callboard, session);
  const menu = () => page.locator("header.top").getByRole("button", { name: "More" }).click();
  await menu();
  await page.getByRole("menuitem", { name: /Delete/ }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  assert.equal((await callboard.api(`sessions/${session}`)).id, session);
  await menu();
  await page.getByRole("menuitem", { name: /Delete/ }).click();
  await page.goto(callboard.base);
  await until(async () => (await callboard.api("sessions")).sessions.length === 0);
});

test("an earlier message is said again in other words", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo", "help");
  const page = await openSession(t, callboard, session);
  const first = page.locator('[data-role="user"]').first();
  await first.hover();
  await first.getByRole("button", { name: "Edit and send again" }).click();
  await say(page, "what time is it in Lima");
  await page.locator("details.rewound").waitFor();
  await page.locator(".messages > .message .final", { hasText: "In Lima it is" }).waitFor();
  assert.match(await page.locator("details.rewound > summary").innerText(), /4 messages replaced/);
});

test("the export is a file that stands alone", async (t) => {
  const callboard = await startCallboard(t, { files: { "notes.txt": "buy oil" } });
  const session = await callboard.converse("read notes.txt");
  const page = await openSession(t, callboard, session);
  const shown = await page.locator(".messages").textContent();
  const response = await fetch(`${callboard.base}api/sessions/${session}/export`, {
    headers: { Authorization: `Bearer ${callboard.token}` },
  });
  const html = await response.text();
  const alone = await browser.newPage(t, { javaScriptEnabled: false, offline: true });
  await alone.setContent(html);
  assert.equal(await alone.locator(".messages").textContent(), shown);
  await alone.locator(".activity > summary").click();
  assert.equal(await alone.locator(".tool-block").first().isVisible(), true);
});

test("the question mark shows the keys, Escape closes them and does not stop the agent", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const session = await callboard.converse();
  const page = await openSession(t, callboard, session);
  await say(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.locator("#conversation").focus();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor({ state: "hidden" });
  assert.equal(await page.locator(".interrupted-mark").count(), 0);
  await page.keyboard.press("Escape");
  await page.locator(".interrupted-mark").waitFor();
});

test("the password opens the page", async (t) => {
  const callboard = await startCallboard(t, { password: "correct horse" });
  const page = await browser.newPage(t);
  await page.goto(callboard.base);
  await page.getByLabel("Password").fill("wrong horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "that is not the password" }).waitFor();
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "What shall we do?" }).waitFor();
});

// The page in a real browser, with the real server and the demo agent.

import assert from "node:assert/strict";
import { test } from "node:test";

import { listFaults, useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard } from "./callboard.mjs";
import {
  answered,
  assertSameAfterReload,
  contentWidth,
  conversationText,
  isMarked,
  mark,
  openAll,
  openSession,
  sendMessage,
  sessionOf,
} from "./drive.mjs";

const browser = useBrowser();

test("the printed address sets a cookie and leads to the start page", async (t) => {
  const callboard = await startCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(callboard.url);

  assert.equal(page.url(), callboard.base);
  await page.getByRole("heading", { name: "What would you like to do?" }).waitFor();
  const cookies = await page.context().cookies();
  assert.equal(cookies.length, 1);
  const [{ name, value, httpOnly, sameSite }] = cookies;
  assert.deepEqual(
    { name, httpOnly, sameSite },
    { name: `callboard_${new URL(callboard.base).port}`, httpOnly: true, sameSite: "Strict" },
  );
  assert.ok(!value.includes(callboard.token), "the cookie gives the token away");
});

test("without the token nothing is shown", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo");
  const page = await browser.newPage(t);
  for (const path of ["", "?token=wrong", `s/${session}`, "api/sessions"]) {
    const response = await page.goto(callboard.base + path);
    assert.equal(response?.status(), 401, path);
    assert.doesNotMatch(await page.content(), /Tokyo|What would you like to do/, path);
  }
});

test("a message, its call and the answer survive a reload", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await browser.newPage(t);
  const faults = listFaults(page);
  await page.goto(callboard.url);
  await sendMessage(page, "what time is it in Tokyo");

  await page.waitForURL(/\/s\/[\w-]+$/);
  const questions = page.locator('.message[data-role="user"]');
  await questions.waitFor();
  assert.equal(await questions.locator(".bubble").textContent(), "what time is it in Tokyo");
  await answered(page);
  const answer = page.locator('.message[data-role="assistant"]');
  const block = answer.locator(".tool-block");
  assert.equal(await block.count(), 1);
  assert.match((await block.getAttribute("class")) ?? "", /\bsuccess\b/);
  assert.equal(await block.locator(".name").textContent(), "time");
  const commentary = await answer.locator(".commentary").textContent();
  assert.match(commentary ?? "", /^Let me check what time it is/);
  assert.match(await answer.innerText(), /In Tokyo it is .*\d\d:\d\d/);

  // The second message, sent on the page of a session, loads no new page.
  await mark(page);
  await sendMessage(page, "what time is it in Paris");
  await answered(page, 2);
  assert.match(await answer.last().innerText(), /In Paris it is .*\d\d:\d\d/);
  assert.ok(await isMarked(page), "the page was loaded again");
  await assertSameAfterReload(page);
  assert.deepEqual(faults, []);
});

test("a tool block opens with arguments and result and stays open", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL, files: { "notes.txt": "buy oil" } });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "read notes.txt, then tell me a story");
  const block = page.locator(".tool-block.success > details");
  await page.locator(".activity > summary").click();
  await block.locator("> summary").click();
  await block.locator(".raw > summary").click();
  await page.getByText("Once there was").waitFor();

  assert.equal(await block.getAttribute("open"), "");
  const inside = await block.innerText();
  assert.match(inside, /"path": "notes.txt"/);
  assert.match(inside, /buy oil/);
});

test("the list marks the open session and shows new ones live", async (t) => {
  const callboard = await startCallboard(t);
  const first = await callboard.converse("what time is it in Tokyo");
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const listed = page.locator("#sessions a");
  assert.equal(await listed.count(), 1);
  assert.match(await listed.innerText(), /ready\s*what time is it in Tokyo\s+demo/);

  await mark(page);
  const second = await callboard.converse("help");
  await listed.nth(1).waitFor();
  assert.ok(await isMarked(page), "the page was loaded again");
  const addresses = await listed.evaluateAll((links) => links.map((it) => it.getAttribute("href")));
  assert.deepEqual(addresses.sort(), [`/s/${first}`, `/s/${second}`].sort());

  await page.locator(`#sessions a[href="/s/${first}"]`).click();
  await page.waitForURL(`${callboard.base}s/${first}`);
  const open = page.locator("#sessions [aria-current=page]");
  assert.equal(await open.getAttribute("href"), `/s/${first}`);
  assert.equal(await open.count(), 1);
});

test("reading works without script", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo", "write a report about tea");
  const withScript = await browser.newPage(t);
  await withScript.goto(`${callboard.base}s/${session}?token=${callboard.token}`);
  const page = await browser.newPage(t, { javaScriptEnabled: false });
  await page.goto(`${callboard.base}s/${session}?token=${callboard.token}`);

  assert.equal(page.url(), `${callboard.base}s/${session}`);
  const conversation = page.locator("#conversation");
  assert.match(await conversation.innerText(), /In Tokyo it is [^]*Report: tea/);
  assert.equal(await page.locator(".messages").textContent(), await conversationText(withScript));
  const result = page.locator(".tool-block .body").last();
  assert.ok(!(await result.isVisible()));
  await page.locator(".activity > summary").first().click();
  await page.locator(".tool-block summary").first().click();
  assert.ok(await result.isVisible(), "the tool's result does not open");
  await page.locator("noscript p").waitFor();
  assert.equal(await page.getByRole("textbox").count(), 0, "what does not work is not offered");

  await page.getByRole("searchbox").fill("Tokyo");
  await page.keyboard.press("Enter");
  await page.locator("#found a").first().click();
  assert.match(await conversation.innerText(), /In Tokyo it is/);
});

test("Escape stops a run, which stays interrupted", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.keyboard.press("Escape");

  await page.locator(".interrupted-mark").waitFor();
  await answered(page);
  const words = await page.locator(".interrupted-mark").innerText();
  assert.match(words, /Interrupted \(stopped by you after [\d.]+(ms|s)\)$/);
  assert.equal(await page.getByRole("button", { name: "Stop" }).count(), 0);
  const text = await page.locator("#conversation").innerText();
  assert.match(text, /Once there was/);
  assert.doesNotMatch(text, /somebody will open/, "the story was told to its end");
  await assertSameAfterReload(page);

  const events = await callboard.events(sessionOf(page));
  const ends = events.filter(({ type }) => ["output_cancelled", "run_finish"].includes(type));
  assert.deepEqual(
    ends.map(({ reason, status }) => reason ?? status),
    ["user_cancel", "cancelled"],
  );
});

test("the page reconnects to a restarted server and shows the cut-off run", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await callboard.kill("SIGKILL");
  await page.getByText("Connection lost").waitFor();
  await mark(page);
  const story = page.locator('.message[data-role="assistant"] .text');
  const shown = (await story.textContent()) ?? "";

  await callboard.restart();
  await page.locator(".interrupted-mark").waitFor();
  await answered(page);
  assert.ok(await isMarked(page), "the page was loaded again");
  await page.getByText("Connection lost").waitFor({ state: "hidden" });
  const kept = (await story.textContent()) ?? "";
  assert.ok(kept.startsWith(shown), `shown and then lost: ${shown}\nkept: ${kept}`);
  await assertSameAfterReload(page);

  await sendMessage(page, "what time is it in Tokyo");
  await answered(page, 2);
  assert.match(await page.locator("#conversation").innerText(), /In Tokyo it is/);
});

test("a normal run leaves no errors and no policy violations in the console", async (t) => {
  const callboard = await startCallboard(t, { files: { "README.md": "# Lamp oil" } });
  const page = await browser.newPage(t);
  const faults = listFaults(page);
  await page.goto(callboard.url);
  await sendMessage(page, "list the files, then read README.md");
  await page.waitForURL(/\/s\//);
  const sentences = ["read missing.txt", "think about tea", "write a report", "break", "help"];
  for (const [idx, text] of sentences.entries()) {
    await sendMessage(page, text);
    await answered(page, idx + 2);
  }
  await page.reload();
  await page.getByRole("link", { name: "Callboard" }).click();
  await page.getByRole("heading", { name: "What would you like to do?" }).waitFor();
  assert.deepEqual(faults, []);
});

test("a phone needs no sideways scrolling", async (t) => {
  const long = "lighthouse".repeat(30);
  const callboard = await startCallboard(t, { files: { "long.txt": long } });
  const questions = [long, "read long.txt", "write a report", "read missing.txt"];
  const session = await callboard.converse(...questions);
  const page = await browser.newPage(t, { viewport: { width: 390, height: 844 } });
  await page.goto(callboard.url);
  assert.equal(await contentWidth(page), 390);
  await page.goto(`${callboard.base}s/${session}`);
  assert.equal(await contentWidth(page), 390);
  await openAll(page);
  assert.equal(await contentWidth(page), 390);
  for (const part of ["#text", "#send", "#conversation"]) {
    const box = await page.locator(part).boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `${part} is cut off`);
  }
});

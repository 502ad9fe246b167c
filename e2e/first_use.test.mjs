// Problems that people would meet when they use the page for the first time.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { INSTANT, NATURAL, startCallboard, until } from "./callboard.mjs";
import { answered, card, field, openSession, sendMessage, seen, setRoot } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

/** @typedef {import("playwright-core").Page} Page */

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const SMALL = { viewport: { width: 1000, height: 500 } };

/** @param {Page} page @param {string} title @param {string} entry */
async function choose(page, title, entry) {
  await page.getByRole("button", { name: `More for ${title}` }).click();
  await page.getByRole("menuitem", { name: entry, exact: true }).click();
}

// Drawing scrolls the page too: it may shrink and grow again before the browser's scroll event.
test("only an action of the reader stops following the end", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: INSTANT }), "", SMALL);
  const isFollowing = () =>
    page.evaluate(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
  for (let count = 1; count <= 8; count += 1) {
    await sendMessage(page, count % 2 ? "help" : "list the files");
    await answered(page, count);
    await until(isFollowing);
  }
  const latest = page.getByRole("button", { name: "Jump to latest" });
  for (const [idx, goBack] of [() => page.mouse.wheel(0, -400), () => page.keyboard.press("PageUp")].entries()) {
    await page.mouse.move(600, 250);
    await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement).blur());
    await goBack();
    await latest.waitFor();
    await page.evaluate(() => fetch(`/api/sessions/${location.pathname.slice(3)}/messages`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ text: "help" }),
    }));
    await answered(page, 9 + idx);
    assert.ok(!(await isFollowing()), "the reader has gone back");
    await latest.click();
    await until(isFollowing);
  }
});

for (const [size, options] of Object.entries({ phone: PHONE, small: SMALL })) {
  test(`a long approval keeps the command and the buttons in view: ${size}`, async (t) => {
    const page = await browser.newPage(t, options);
    await openDrawn(page, "approval", gallery.html("approval"));
    const sheet = card(page);
    await sheet.evaluate((it) => {
      const why = document.createElement("blockquote");
      why.className = "why";
      why.textContent = "Nothing to see here. ".repeat(500);
      it.querySelector(".view")?.after(why);
    });
    const shown = sheet.getByRole("button").filter({ visible: true });
    for (const it of [sheet.locator(".command"), ...(await shown.all())]) {
      const isSeen = await it.evaluate((element) => {
        const { left, top, width, height } = element.getBoundingClientRect();
        const found = document.elementFromPoint(left + width / 2, top + height / 2);
        return !!found && element.contains(found);
      });
      assert.ok(isSeen, await it.innerText());
    }
  });
}

test("the composer has focus after a decision by key", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "run touch made");
  await card(page).waitFor();
  await page.keyboard.press("Alt+a");
  await page.keyboard.press("1");
  await answered(page);
  await page.waitForFunction(() => document.activeElement?.id === "text");
});

test("a deletion can be undone for ten seconds, like archiving", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  const other = await callboard.converse("time in Lima");
  const page = await openSession(t, browser, callboard, session);
  const undo = page.locator("#undo").getByRole("button", { name: "Undo" });
  const line = page.locator(`#sessions-${session}`);
  await choose(page, "help", "Delete");
  await page.waitForURL(callboard.base);
  assert.match(await line.innerText(), /help\s+deleted$/);
  await undo.click();
  await line.getByRole("link").click();
  await answered(page);

  await page.goto(`${callboard.base}s/${other}`);
  await choose(page, "help", "Delete");
  await undo.click();
  await line.getByRole("link").waitFor();
  assert.equal((await callboard.api("sessions")).sessions.length, 2);
});

test("archived sessions are listed and can be restored", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  await callboard.converse("time in Lima");
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const line = page.locator(`#sessions-${session}`);
  await choose(page, "help", "Archive");
  await line.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await line.waitFor();

  await choose(page, "help", "Archive");
  await line.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Archived" }).click();
  await line.waitFor();
  assert.equal(await page.locator("#sessions li[data-session-id]").count(), 1);
  await choose(page, "help", "Unarchive");
  await line.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await line.waitFor();
});

test("the list loads more at its end", async (t) => {
  const callboard = await startCallboard(t);
  for (let n = 0; n < 102; n++) await callboard.api("sessions", { body: { agent: "demo" } });
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const lines = page.locator("#sessions li[data-session-id]");
  assert.equal(await lines.count(), 100);
  await page.getByRole("link", { name: "Older sessions" }).click();
  await page.waitForFunction(() => document.querySelectorAll("#sessions li[data-session-id]").length === 102);
  assert.equal(await page.getByRole("link", { name: "Older sessions" }).count(), 0);
});

test("an edited message keeps its files and accepts new ones", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  const choosing = page.locator("#attach");
  const name = `${"a very long name of a file ".repeat(5)}.txt`;
  await choosing.setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from("one") });
  const chip = page.locator("#files button");
  const box = await chip.boundingBox();
  const end = await chip.evaluate((it) => it.getBoundingClientRect().right - it.scrollWidth);
  assert.ok(box && end > 0 && box.width <= 241, "the cross is in sight");
  assert.match(await chip.innerText(), /×$/);
  await sendMessage(page, "help");
  await answered(page);
  await page.locator(".bubble").hover();
  await page.getByRole("button", { name: "Edit and send again" }).click();
  assert.equal(await chip.count(), 1);
  await choosing.setInputFiles({ name: "two.txt", mimeType: "text/plain", buffer: Buffer.from("two") });
  await field(page).fill("help me");
  await page.keyboard.press("Enter");
  await page.locator(".messages > .message .bubble", { hasText: "help me" }).waitFor();
  const files = await seen(page.locator(".messages > .message .attachment .name"));
  assert.deepEqual(files, [name, "two.txt"]);
  assert.equal(await chip.count(), 0);
});

test("a new session can have a folder, and shows it", async (t) => {
  const callboard = await startCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  await page.getByRole("textbox", { name: "Folder" }).fill("/");
  await field(page).fill("help");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/s\//);
  assert.equal(await page.locator(".heading .folder").getAttribute("title"), "/");
  await page.goto(`${callboard.base}s/${await callboard.converse("help")}`);
  assert.equal(await page.locator(".heading .folder").getAttribute("title"), callboard.workspace);
});

test("a page without its server shows no activity", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  await page.locator(".now[data-state=running]").waitFor();
  process.kill(callboard.pid, "SIGKILL");
  await page.locator("body.offline").waitFor();
  const shown = await page.evaluate(() => {
    const after = (/** @type {string} */ name) => {
      const it = document.querySelector(name);
      return it && getComputedStyle(it, "::after").content;
    };
    const words = document.querySelector(".now .words");
    return [after(".heading .state"), after(".now"), words?.checkVisibility()];
  });
  assert.deepEqual(shown, ['"not connected"', '"Not connected"', false]);
});

test("permanent grants are listed and can be revoked", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "run touch made");
  const sheet = card(page);
  assert.match(await sheet.locator(".covers").innerText(), /apply to exactly this command/);
  await sheet.getByRole("button", { name: "Always…" }).click();
  await sheet.getByRole("button", { name: "Yes, always allow" }).click();
  await answered(page);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.locator("#grants li", { hasText: "touch made" }).getByRole("button").click();
  await until(async () => (await callboard.api("grants")).grants.length === 0);
  await page.locator("#grants li").waitFor({ state: "detached" });
});

test("without a key, a styled page explains how to sign in", async (t) => {
  const callboard = await startCallboard(t);
  const page = await browser.newPage(t);
  await page.goto(callboard.base);
  const button = page.getByRole("button", { name: "Sign in" });
  const radius = await button.evaluate((it) => getComputedStyle(it).borderRadius);
  assert.equal(radius, "6px");
  await page.getByLabel("Token").fill(callboard.token);
  await button.click();
  await field(page).waitFor();
  assert.equal(page.url(), callboard.base);
});

test("a page without script offers nothing that needs it", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  const page = await browser.newPage(t, { javaScriptEnabled: false });
  await page.goto(callboard.url);
  assert.doesNotMatch(await page.locator("main").innerText(), /below|try/i);
  assert.match(await page.locator(`#sessions-${session}`).innerText(), /\d{4}-\d\d-\d\d/);
});

test("an approval of a long line fits the page and can be denied", async (t) => {
  for (const options of [SMALL, PHONE]) {
    const page = await openSession(t, browser, await startCallboard(t), "", options);
    await sendMessage(page, `write ${"x".repeat(400)} to long.txt`);
    const { width, x } = (await card(page).boundingBox()) ?? { width: 0, x: 0 };
    assert.ok(width > 0 && x + width <= options.viewport.width, `${x} + ${width}`);
    await card(page).getByText("Add a reason").click();
    await card(page).getByRole("textbox", { name: "Reason (optional)" }).fill("too long");
    await page.keyboard.press("Escape");
    assert.ok(await card(page).isVisible(), "only the reason is closed");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.getByText("Interrupted (stopped by you").waitFor();
  }
});

test("an edited message that cannot be sent stays in the field", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await sendMessage(page, "help");
  await answered(page);
  await sendMessage(page, "tell me a story");
  await page.locator(".now[data-state=running]").waitFor();
  await page.locator(".message[data-role=user]").first().hover();
  await page.getByRole("button", { name: "Edit and send again" }).first().click();
  await field(page).fill("help me more");
  await page.keyboard.press("Enter");
  await page.getByText("the agent is working; stop it").waitFor();
  assert.equal(await field(page).inputValue(), "help me more");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Interrupted (stopped by you").waitFor();
  await field(page).focus();
  await page.keyboard.press("Enter");
  await page.locator(".bubble", { hasText: /^help me more$/ }).waitFor();
  await page.waitForFunction(() => /** @type {any} */ (document.getElementById("text")).value === "");
});

test("an edit of a queued message survives the start of its run", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  await page.locator(".now[data-state=running]").waitFor();
  await sendMessage(page, "help");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".held").waitFor();
  await page.locator(".queued summary", { hasText: "Edit" }).click();
  await page.locator(".queued textarea:focus").waitFor();
  await page.keyboard.type(" me more");
  await page.getByRole("button", { name: "Send now" }).click();
  await page.locator(".messages .bubble", { hasText: /^help$/ }).waitFor();
  await page.getByText("What you wrote is below").waitFor();
  assert.equal(await field(page).inputValue(), "help me more");
});

test("the start page names the chosen agent and sends to no other", async (t) => {
  const config = `${INSTANT}[[agents]]\nid = "other"\nkind = "openai"\nbase_url = "http://127.0.0.1:9"\nmodel = "m"\n`;
  const callboard = await startCallboard(t, { config });
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const agent = page.getByLabel("Agent");
  const example = page.getByRole("button", { name: "help", exact: true });
  await agent.selectOption("other");
  assert.equal(await field(page).getAttribute("placeholder"), "Message other…");
  assert.ok(!(await example.isVisible()));
  await page.getByRole("button", { name: "Try the built-in demo agent" }).click();
  assert.equal(await agent.inputValue(), "demo");
  assert.equal(await field(page).getAttribute("placeholder"), "Message demo…");
  await example.click();
  await page.waitForURL(/\/s\//);
  await answered(page);
});

test("a missing folder is refused in its field, a relative one is found", async (t) => {
  const callboard = await startCallboard(t);
  await mkdir(path.join(callboard.workspace, "src"));
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const folder = page.getByLabel("Working folder");
  assert.match((await folder.getAttribute("placeholder")) ?? "", new RegExp(`${callboard.workspace}$`));
  await folder.fill("/no/such");
  await field(page).fill("help");
  await page.keyboard.press("Enter");
  await page.locator("#composer").getByText("There is no folder /no/such").waitFor();
  assert.ok(await folder.evaluate((it) => it === document.activeElement), "that is where to go on");
  assert.equal(await field(page).inputValue(), "help");
  await folder.fill("src");
  assert.equal(await page.locator("#note").innerText(), "");
  await field(page).press("Enter");
  await page.waitForURL(/\/s\//);
  const { workspace } = await callboard.api(`sessions/${new URL(page.url()).pathname.slice(3)}`);
  assert.equal(workspace, path.join(callboard.workspace, "src"));
});

test("cards on a phone have one line of buttons and keep a margin", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t), "", PHONE);
  await setRoot(page, { toolDisplay: "panels" });
  for (const count of [1, 2]) {
    await sendMessage(page, "what time is it in Paris and Tokyo");
    await answered(page, count);
  }
  const tops = await page.locator(".message > footer").last().locator("> :is(span, button)").evaluateAll((all) =>
    all.filter((it) => it.checkVisibility()).map((it) => {
      const { top, height } = it.getBoundingClientRect();
      return Math.round(top + height / 2);
    }));
  assert.ok(tops.length > 2);
  assert.equal(new Set(tops).size, 1, `${tops}`);
  const gap = await page.locator(".messages").evaluate((it) => {
    const [, answer, next] = it.querySelectorAll(":scope > .message");
    const bottom = answer?.querySelector(":scope > .parts")?.getBoundingClientRect().bottom ?? 0;
    return (next?.querySelector(".bubble")?.getBoundingClientRect().top ?? 0) - bottom;
  });
  assert.ok(gap >= 16, `${gap}`);
});

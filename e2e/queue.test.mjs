// Queued messages on the page: sent during a run, edited, moved, held, steered.
//
// The agent is Callboard's own loop around a scripted model, which holds its answer until the test
// releases it.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { useStage } from "./agents.mjs";
import { listFaults, useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard } from "./callboard.mjs";
import { answered, contentWidth, field, openSession, sendMessage } from "./drive.mjs";
import { fromLog } from "./gallery.mjs";

/** @typedef {import("playwright-core").Page} Page */

const browser = useBrowser();
const stage = useStage("openai");

/** A page with an active run until the gate `story` opens, and these messages in the queue. */
async function openBusy(/** @type {any} */ t, /** @type {string[]} */ texts, options = {}) {
  const talk = await stage.open();
  const page = await openSession(t, browser, stage.callboard, talk.id, options);
  await sendMessage(page, "play:story");
  await page.getByText("Once upon a time").waitFor();
  for (const text of texts) await sendMessage(page, text);
  await waits(page, ...texts);
  return { page, talk };
}

/** Waits until the queue has exactly these messages. @param {Page} page @param {string[]} texts */
async function waits(page, ...texts) {
  await page.waitForFunction((texts) => {
    const shown = [...document.querySelectorAll(".queued .waiting")].map((it) => it.textContent);
    return JSON.stringify(shown) === JSON.stringify(texts);
  }, texts);
}

/** The messages with a completed or active run. @param {Page} page */
function messages(page) {
  return page.locator(".messages > [data-role=user] .bubble").allTextContents();
}

/** @param {Page} page */
async function assertAsLoaded(page) {
  const [head, shown] = await page.evaluate(`[document.body.dataset.head, (${fromLog})(null)]`);
  const fresh = await page.evaluate(async (head) => (await fetch(`?at=${head}`)).text(), head);
  assert.deepEqual(shown, await page.evaluate(fromLog, fresh));
}

test("queued messages are edited, moved, removed and run in order", async (t) => {
  const { page } = await openBusy(t, ["play:hello one", "two", "play:hello three"]);
  const faults = listFaults(page);
  const item = (/** @type {string} */ text) => page.locator(".queued", { hasText: text });

  await item("two").getByText("Edit", { exact: true }).click();
  const box = page.getByRole("textbox", { name: "Message that waits" }).filter({ visible: true });
  assert.ok(await box.evaluate((it) => it === document.activeElement), "one can write at once");
  await box.fill("play:recall two");
  // Actions of other clients remove nothing.
  await item("play:hello one").getByRole("button", { name: "Remove" }).click();
  await waits(page, "two", "play:hello three");
  assert.equal(await box.inputValue(), "play:recall two");
  await box.press("Enter");
  await waits(page, "play:recall two", "play:hello three");
  assert.equal(await box.count(), 0, "the editor is closed");

  await item("three").getByRole("button", { name: "Move up" }).click();
  await waits(page, "play:hello three", "play:recall two");
  await item("three").getByRole("button", { name: "Move up" }).focus();
  await page.keyboard.press("Alt+ArrowDown");
  await waits(page, "play:recall two", "play:hello three");
  const focused = await page.evaluate(() => document.activeElement?.closest(".queued")?.textContent ?? "");
  assert.match(focused, /three/, "the focus goes with it");
  await assertAsLoaded(page);
  await page.reload();
  await waits(page, "play:recall two", "play:hello three");

  stage.models.open("story");
  await answered(page, 3);
  assert.deepEqual(await messages(page), ["play:story", "play:recall two", "play:hello three"]);
  assert.equal(await page.locator(".queued").count(), 0);
  assert.deepEqual(faults, []);
});

test("stop holds the queue, which can be sent or cleared", async (t) => {
  const { page } = await openBusy(t, ["play:hello one", "play:hello two"]);
  await page.keyboard.press("Escape");
  const held = page.locator(".held");
  await held.getByText("You stopped the agent. 2 messages are held back.").waitFor();
  await page.waitForFunction(() => document.getElementById("announcer")?.textContent?.includes("held back"));
  assert.deepEqual(await messages(page), ["play:story"]);

  await sendMessage(page, "play:recall");
  await answered(page, 2);
  assert.deepEqual(await messages(page), ["play:story", "play:recall"]);
  await waits(page, "play:hello one", "play:hello two");
  await page.reload();
  await held.getByRole("button", { name: "Send now" }).click();
  await answered(page, 4);
  assert.deepEqual(await messages(page), ["play:story", "play:recall", "play:hello one", "play:hello two"]);
  assert.equal(await held.count(), 0);

  await sendMessage(page, "play:story");
  await page.locator(".typing").waitFor();
  await sendMessage(page, "never");
  await waits(page, "never");
  await page.getByRole("button", { name: "Stop" }).click();
  await held.getByText("1 message is held back.").waitFor();
  await held.getByRole("button", { name: "Clear" }).click();
  await waits(page);
  assert.ok(!(await messages(page)).includes("never"));
  await assertAsLoaded(page);
});

test("messages are steered from the composer and from the queue", async (t) => {
  const talk = await stage.open();
  const page = await openSession(t, browser, stage.callboard, talk.id);
  assert.ok(!(await page.locator("#steer").isVisible()), "there is nothing to steer");
  await sendMessage(page, "play:waiting");
  await page.locator(".now", { hasText: "Running" }).waitFor();
  await page.getByText("Enter to queue, Ctrl+Enter to steer, Esc to stop").waitFor();
  assert.ok(await page.locator("#steer").isVisible());
  await sendMessage(page, "first");
  await field(page).fill("second");
  await page.keyboard.press("Control+Enter");
  await waits(page, "first", "second");
  const second = page.locator(".queued", { hasText: "second" });
  await second.getByText("On its way").waitFor();
  await page.locator(".queued", { hasText: "first" }).getByRole("button", { name: "Steer now" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".queued button.steer").length === 0);
  writeFileSync(path.join(talk.workspace, "go"), "");
  await answered(page);
  assert.deepEqual(await page.locator(".steered .bubble").allTextContents(), ["second", "first"]);
  assert.match(await page.locator(".steered .meta").first().innerText(), /the agent has seen it/);
  assert.equal(await page.locator(".queued").count(), 0);
  await assertAsLoaded(page);
});

test("an agent that cannot be steered does not offer it", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  assert.equal(await page.locator(".at-work").innerText(), "Enter to queue, Esc to stop");
  await field(page).fill("help");
  await page.keyboard.press("Control+Enter");
  await waits(page, "help");
  assert.equal(await page.getByRole("button", { name: /steer/i }).filter({ visible: true }).count(), 0);
});

test("a phone shows all actions of the queue, also in the dark theme", async (t) => {
  const options = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, colorScheme: "dark" };
  const { page } = await openBusy(t, ["a message that is rather long, so that it needs more than one line of this screen"], options);
  assert.ok(await page.locator("#steer").isVisible());
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Send now" }).waitFor();
  assert.equal(await contentWidth(page), 360);
  for (const button of await page.locator(".queue button, .queue summary").filter({ visible: true }).all()) {
    const size = await button.boundingBox();
    assert.ok((size?.height ?? 0) >= 43.5, `${await button.innerText()} is ${size?.height} high`);
  }
});

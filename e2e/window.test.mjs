// A long conversation: the page keeps the messages near the reader, in both directions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { NATURAL, longLog, startCallboard, until } from "./callboard.mjs";
import { field, openSession, sendMessage } from "./drive.mjs";
import { fromLog } from "./gallery.mjs";

const browser = useBrowser();

/** @typedef {import("playwright-core").Page} Page */

/** Maximum number of messages on a page: those that it keeps and those of one load. */
const MOST = 150;

/** @param {any} t @param {Parameters<typeof startCallboard>[1]} [options] */
async function openLong(t, messages = 600, options) {
  const callboard = await startCallboard(t, options);
  await callboard.importLog("talk", longLog(messages));
  return { callboard, page: await openSession(t, browser, callboard, "talk") };
}

/** The numbers of the user messages on the page. @param {Page} page @returns {Promise<number[]>} */
function numbers(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll(".messages .bubble")].map((it) => Number(it.textContent?.split(" ")[1])),
  );
}

/**
 * Scrolls to one end of the loaded messages, and waits until more are loaded.
 * @param {Page} page @param {"earlier" | "later"} side
 */
async function loadMore(page, side) {
  await page.evaluate(async (side) => {
    const link = () => document.querySelector(`#${side} a`)?.getAttribute("href");
    const before = link();
    scrollTo(0, side === "earlier" ? 0 : document.documentElement.scrollHeight);
    while (link() === before) await new Promise(requestAnimationFrame);
  }, side);
}

const hasMore = (/** @type {Page} */ page, /** @type {string} */ side) => page.locator(`#${side}`).isVisible();

/** @param {Page} page */
async function goToTop(page) {
  while (await hasMore(page, "earlier")) await loadMore(page, "earlier");
}

const expected = (from = 0, to = 300) => Array.from({ length: to - from }, (_, idx) => from + idx);

test("a long conversation can be scrolled through, and the page stays small", async (t) => {
  const { page } = await openLong(t);
  assert.equal(await page.locator(".message").count(), 50);
  for (const side of /** @type {const} */ (["earlier", "later"])) {
    /** @type {Set<number>} */
    const read = new Set(await numbers(page));
    while (await hasMore(page, side)) {
      await loadMore(page, side);
      const there = await numbers(page);
      assert.deepEqual(there, expected(there[0], (there.at(-1) ?? 0) + 1), "in order, and none is missing");
      assert.ok((await page.locator(".message").count()) <= MOST);
      for (const it of there) read.add(it);
    }
    assert.deepEqual([...read].sort((a, b) => a - b), expected());
  }
});

test("the visible line stays in place while messages load and unload", async (t) => {
  const { page } = await openLong(t);
  /** @type {(() => void) | undefined} */
  let letThrough;
  await page.route(/part=messages/, async (route) => {
    await new Promise((resume) => (letThrough = () => resume(undefined)));
    await route.continue();
  });
  let loads = 0;
  for (const side of /** @type {const} */ (["earlier", "later"])) {
    while (await hasMore(page, side)) {
      const before = await page.evaluate(standNear, side);
      await until(async () => letThrough !== undefined);
      letThrough?.();
      letThrough = undefined;
      const after = await page.evaluate(whereAfterLoad, { side, ...before });
      assert.ok(Math.abs(after - before.top) < 2, `${side}: from ${before.top} to ${after} px`);
      loads += 1;
    }
  }
  assert.ok(loads > 15, `${loads} loads`);
});

/** Scrolls to where more is loaded, and waits until nothing moves. Runs in the browser. @param {string} side */
async function standNear(side) {
  const end = document.documentElement.scrollHeight - innerHeight;
  scrollTo(0, side === "earlier" ? 700 : end - 700);
  const top = (/** @type {Element | undefined} */ it) => it?.getBoundingClientRect().top ?? NaN;
  const line = [...document.querySelectorAll(".messages > *")].find((it) => top(it) > 100);
  for (let still = 0, last = NaN; still < 5; last = top(line)) {
    await new Promise(requestAnimationFrame);
    still = top(line) === last ? still + 1 : 0;
  }
  const link = document.querySelector(`#${side} a`)?.getAttribute("href");
  return { link, line: line?.id ?? "", top: top(line) };
}

/** Runs in the browser. @param {{side: string, link: string | null | undefined, line: string}} before */
async function whereAfterLoad({ side, link, line }) {
  while (document.querySelector(`#${side} a`)?.getAttribute("href") === link) {
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
  return document.getElementById(line)?.getBoundingClientRect().top ?? NaN;
}

test("a page that is not at the end offers new messages with one click", async (t) => {
  const { page, callboard } = await openLong(t);
  await goToTop(page);
  assert.deepEqual(await numbers(page), expected(0, (await numbers(page)).length));
  const shown = () => page.locator(".messages").textContent();
  const before = await shown();
  await callboard.api("sessions/talk/messages", { body: { text: "help" } });
  const head = () => page.evaluate(() => Number(document.body.dataset.head));
  const done = async () => (await callboard.api("sessions/talk")).state === "idle";
  await until(done);
  const { head: last } = await callboard.api("sessions/talk");
  await until(async () => (await head()) === last);
  assert.equal(await shown(), before);
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await page.locator(".bubble", { hasText: /^help$/ }).waitFor();
  assert.equal(await hasMore(page, "later"), false);
  assert.equal(await page.locator(".message").count(), 50);
  await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
});

test("sending a message scrolls to the end", async (t) => {
  const { page } = await openLong(t);
  await goToTop(page);
  await sendMessage(page, "help");
  await page.locator(".messages .bubble", { hasText: /^help$/ }).waitFor();
  await page.locator(".sending").waitFor({ state: "detached" });
  await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
  await field(page).waitFor();
});

test("back at the end of an active session, the page equals a loaded one", async (t) => {
  const { page, callboard } = await openLong(t, 300, { config: NATURAL });
  const text = "write a report about lamps";
  for (const goBack of [
    () => page.getByRole("button", { name: "Jump to latest" }).click(),
    async () => {
      while (await hasMore(page, "later")) await loadMore(page, "later");
    },
  ]) {
    await goToTop(page);
    await callboard.api("sessions/talk/messages", { body: { text } });
    await until(async () => (await callboard.api("sessions/talk")).state === "running");
    await goBack();
    await page.locator(".messages .typing").waitFor();
    await until(async () => (await callboard.api("sessions/talk")).state === "idle");
    await page.locator(".messages .typing").waitFor({ state: "detached" });
    const [shown, fresh] = await page.evaluate(`(async () => {
      const first = document.querySelector(".messages > :nth-last-child(40)");
      while (first.previousElementSibling) first.previousElementSibling.remove();
      const url = "/s/talk?after=" + (first.id.match(/\\d+$/)[0] - 1);
      const fresh = await (await fetch(url)).text();
      return [(${fromLog})(null), (${fromLog})(fresh)];
    })()`);
    assert.deepEqual(shown, fresh);
    await page.reload();
  }
});

test("a link to a message works at any distance", async (t) => {
  const { page, callboard } = await openLong(t);
  for (const [id, bubble] of [["m40", "Question 40"], ["r41", "Question 41"], ["m280", "Question 280"], ["m299", "Question 299"]]) {
    await page.goto(`${callboard.base}s/talk#m=${id}`);
    assertInSight(page, await restsAt(page, bubble));
    assert.equal(await page.locator(".bubble", { hasText: new RegExp(`^${bubble}$`) }).count(), 1);
    const there = await numbers(page);
    assert.deepEqual(there, expected(there[0], (there.at(-1) ?? 0) + 1));
  }
});

test("a page of the past can be scrolled and shows nothing later", async (t) => {
  const { callboard, page } = await openLong(t, 400);
  const [middle] = (await callboard.events("talk")).filter(({ messageId }) => messageId === "m149");
  await page.goto(`${callboard.base}s/talk?at=${middle.seq}`);
  const first = await numbers(page);
  assert.equal(first.at(-1), 149);
  assert.equal(await page.locator(".message").count(), 50);
  /** @type {Set<number>} */
  const read = new Set(first);
  for (const side of /** @type {const} */ (["earlier", "later"])) {
    while (await hasMore(page, side)) {
      await loadMore(page, side);
      for (const number of await numbers(page)) read.add(number);
      assert.ok((await page.locator(".message").count()) <= MOST);
    }
  }
  assert.deepEqual([...read].sort((a, b) => a - b), expected(0, 150));
  assert.deepEqual((await numbers(page)).at(-1), 149);
});

test("a page without script links to earlier and later messages", async (t) => {
  const callboard = await startCallboard(t);
  await callboard.importLog("talk", longLog(120));
  const page = await openSession(t, browser, callboard, "talk", { javaScriptEnabled: false });
  const bubbles = page.locator(".bubble");
  const first = async () => bubbles.first().innerText();
  assert.equal(await hasMore(page, "later"), false);
  await page.getByRole("link", { name: "Earlier messages" }).click();
  assert.equal(await first(), "Question 10");
  await page.getByRole("link", { name: "Earlier messages" }).click();
  assert.equal(await first(), "Question 0");
  assert.equal(await hasMore(page, "earlier"), false);
  assert.equal(await page.getByRole("button", { name: "Answer again" }).count(), 0);
  await page.getByRole("link", { name: "Later messages" }).click();
  assert.equal(await first(), "Question 10");
  await page.getByRole("link", { name: "Later messages" }).click();
  assert.equal(await first(), "Question 35");
  assert.equal(await bubbles.last().innerText(), "Question 59");
  assert.equal(await hasMore(page, "later"), false);
});

test("replacing a distant message keeps the visible line", async (t) => {
  const { page, callboard } = await openLong(t, 300);
  await goToTop(page);
  const line = page.locator(".bubble", { hasText: /^Question 12$/ });
  await line.evaluate((it) => it.scrollIntoView({ block: "center" }));
  await callboard.api("sessions/talk/retry", { method: "POST" });
  await until(async () => (await callboard.api("sessions/talk")).state === "idle");
  const { head } = await callboard.api("sessions/talk");
  await page.waitForFunction((head) => Number(document.body.dataset.head) >= head, head);
  assertInSight(page, await restsAt(page, "Question 12"));
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await page.getByText("(replaced)").waitFor();
});

/** The position when nothing moves any more, even if it is redrawn. @param {Page} page @param {string} text */
async function restsAt(page, text) {
  return page.evaluate(async (text) => {
    const find = () => [...document.querySelectorAll(".bubble")].find((it) => it.textContent === text);
    const top = () => find()?.getBoundingClientRect().top ?? NaN;
    for (let still = 0, last = NaN; still < 20; last = top()) {
      await new Promise(requestAnimationFrame);
      still = top() === last ? still + 1 : 0;
    }
    return top();
  }, text);
}

/** @param {Page} page @param {number} top */
function assertInSight(page, top) {
  assert.ok(top > 0 && top < (page.viewportSize()?.height ?? 0), `at ${top}`);
}

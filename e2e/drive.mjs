// What tests do on a page, and what they look for there.

import assert from "node:assert/strict";

/** @typedef {import("playwright-core").Page} Page */

export const LOOKS = ["widget", "badges", "panels", "timeline"];

/**
 * A page of a session; of a new one in which nothing was said yet, if none is named.
 * @param {any} t @param {any} browser @param {any} callboard
 */
export async function openSession(t, browser, callboard, session = "", options = {}) {
  const id = session || (await callboard.converse());
  const page = await browser.newPage(t, options);
  await page.goto(`${callboard.base}s/${id}?token=${callboard.token}`);
  return /** @type {Page} */ (page);
}

/** @param {Page} page */
export function sessionOf(page) {
  return new URL(page.url()).pathname.slice("/s/".length);
}

/** Where one writes. @param {Page} page */
export function field(page) {
  return page.getByRole("textbox", { name: "Message" });
}

/**
 * Sends with the Enter key, or where that makes a new line with the button, and waits until the server has it.
 * @param {Page} page @param {string} text
 */
export async function say(page, text) {
  const sent = page.waitForResponse((it) => it.url().endsWith("/messages"));
  await field(page).fill(text);
  if (await page.evaluate(() => matchMedia("(pointer: coarse)").matches)) await page.locator("#send").click();
  else await page.keyboard.press("Enter");
  assert.equal((await sent).status(), 202);
}

/** Waits until the page shows this many answers, the last of them ended. @param {Page} page */
export async function answered(page, count = 1) {
  await page.waitForFunction((count) => {
    const answers = document.querySelectorAll('.messages > .message[data-role="assistant"]');
    return answers.length === count && !document.querySelector(".messages .typing");
  }, count);
}

/** All that was said, without clocks. @param {Page} page */
export function conversationText(page) {
  return page.locator(".messages").evaluate((messages) => {
    const copy = /** @type {Element} */ (messages.cloneNode(true));
    for (const it of copy.querySelectorAll("[data-since], [data-at]")) it.remove();
    return copy.textContent;
  });
}

/** What came piece by piece is what is there when it comes at once. @param {Page} page */
export async function assertSameAfterReload(page) {
  const live = await conversationText(page);
  await page.reload();
  assert.equal(await conversationText(page), live);
}

/** The question that is shown. @param {Page} page */
export function card(page) {
  return page.locator(".card").filter({ visible: true });
}

/** The mark is lost when the page is loaded again. @param {Page} page */
export async function mark(page) {
  await page.evaluate(() => Object.assign(window, { isMarked: true }));
}

/** @param {Page} page */
export async function isMarked(page) {
  return page.evaluate(() => "isMarked" in window);
}

/** @param {Page} page */
export async function contentWidth(page) {
  return page.evaluate(() => document.documentElement.scrollWidth);
}

/** Every block that opens is opened, also those that stand in others. @param {Page} page */
export async function openAll(page) {
  await page.evaluate(() => {
    for (const it of document.querySelectorAll("details")) it.setAttribute("open", "");
  });
}

/** As the settings do. @param {Page} page @param {Record<string, string>} settings */
export async function setRoot(page, settings) {
  await page.evaluate((it) => void Object.assign(document.documentElement.dataset, it), settings);
}

/** Those that a reader sees, as one or more words each. @param {import("playwright-core").Locator} list */
export async function seen(list) {
  return (await list.filter({ visible: true }).allInnerTexts()).map((it) =>
    it.replace(/\s+/g, " ").trim(),
  );
}

/** What assistive software is told about the conversation. @param {Page} page */
export function spoken(page) {
  return page.locator("#conversation").ariaSnapshot();
}

/**
 * From now on, notes every value that an attribute has on elements that match.
 * @param {Page} page @param {string} selector @param {string} attribute
 * @returns {Promise<() => Promise<string[]>>} gives the values so far, without repeats in a row
 */
export async function noteValues(page, selector, attribute) {
  await page.evaluate(
    ([selector, attribute]) => {
      /** @type {string[]} */
      const values = [];
      const note = () => {
        for (const it of document.querySelectorAll(selector)) {
          const value = it.getAttribute(attribute) ?? "";
          if (values.at(-1) !== value) values.push(value);
        }
      };
      const changes = { subtree: true, childList: true, attributes: true };
      new MutationObserver(note).observe(document.body, changes);
      Object.assign(window, { noted: values });
    },
    [selector, attribute],
  );
  return () => page.evaluate(() => /** @type {any} */ (window).noted);
}

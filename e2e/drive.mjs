// Actions of tests on a page, and elements that they look for.

import assert from "node:assert/strict";

/** @typedef {import("playwright-core").Page} Page */

export const LOOKS = ["widget", "badges", "panels", "timeline"];

/**
 * A page of a session; by default of a new, empty one.
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

/** The composer. @param {Page} page */
export function field(page) {
  return page.getByRole("textbox", { name: "Message" });
}

/**
 * Sends with Enter, or with the button where Enter adds a line, and waits until the server has the message.
 * @param {Page} page @param {string} text
 */
export async function sendMessage(page, text) {
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

/** The text of all messages, without times. @param {Page} page */
export function conversationText(page) {
  return page.locator(".messages").evaluate((messages) => {
    const copy = /** @type {Element} */ (messages.cloneNode(true));
    for (const it of copy.querySelectorAll("[data-since], [data-at]")) it.remove();
    return copy.textContent;
  });
}

/** Checks that the streamed page equals the loaded one. @param {Page} page */
export async function assertSameAfterReload(page) {
  const live = await conversationText(page);
  await page.reload();
  assert.equal(await conversationText(page), live);
}

/** The card of an approval or a question. @param {Page} page */
export function card(page) {
  return page.locator(".card").filter({ visible: true });
}

/** A reload removes the mark. @param {Page} page */
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

/** Opens every block, including nested ones. @param {Page} page */
export async function openAll(page) {
  await page.evaluate(() => {
    for (const it of document.querySelectorAll("details")) it.setAttribute("open", "");
  });
}

/** Sets the look, like the settings. @param {Page} page @param {Record<string, string>} settings */
export async function setRoot(page, settings) {
  await page.evaluate((it) => void Object.assign(document.documentElement.dataset, it), settings);
}

/** The visible texts, one or more words each. @param {import("playwright-core").Locator} list */
export async function seen(list) {
  return (await list.filter({ visible: true }).allInnerTexts()).map((it) =>
    it.replace(/\s+/g, " ").trim(),
  );
}

/** The live announcements for screen readers. @param {Page} page */
export function spoken(page) {
  return page.locator("#conversation").ariaSnapshot();
}

/**
 * Records every value of an attribute on matching elements.
 * @param {Page} page @param {string} selector @param {string} attribute
 * @returns {Promise<() => Promise<string[]>>} returns the values so far, without adjacent repeats
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

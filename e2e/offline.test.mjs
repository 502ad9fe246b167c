// A lost connection: the page shows it immediately, and sends messages written meanwhile once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import { answered, field, openSession, sendMessage, seen, sessionOf } from "./drive.mjs";

const browser = useBrowser();

/** @param {any} callboard @param {string} session @returns {Promise<string[]>} */
const messages = async (callboard, session) =>
  (await callboard.events(session)).filter((/** @type {any} */ it) => it.type === "user_message").map((/** @type {any} */ it) => it.text);

test("the page detects a lost and a restored network", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await page.clock.install();
  // Only the browser's own event can show it: no time passes.
  await page.context().setOffline(true);
  await page.getByText("Connection lost").waitFor();
  const state = await page.locator(".heading .state").evaluate((it) => getComputedStyle(it, "::after").content);
  assert.match(state, /not connected/);
  await page.context().setOffline(false);
  await page.getByText("Connection lost").waitFor({ state: "hidden" });
  await page.keyboard.press("Escape");
  await answered(page);
});

test("a message written offline waits in the composer and is sent once", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await page.context().setOffline(true);
  await page.getByText("Connection lost").waitFor();
  await field(page).fill("what time is it in Tokyo");
  await page.keyboard.press("Enter");
  await page.getByText("Not sent yet").waitFor();
  assert.equal(await field(page).inputValue(), "what time is it in Tokyo");
  await page.context().setOffline(false);
  await answered(page);
  assert.equal(await field(page).inputValue(), "");
  assert.ok(!(await page.getByText("Not sent yet").isVisible()));
  assert.deepEqual(await messages(callboard, sessionOf(page)), ["what time is it in Tokyo"]);
});

test("a message whose response was lost is not sent twice", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await page.route("**/messages", async (route) => {
    await route.fetch();
    await route.abort();
  }, { times: 1 });
  await field(page).fill("what time is it in Tokyo");
  await page.keyboard.press("Enter");
  await page.getByText("Not sent yet").waitFor();
  await page.context().setOffline(true);
  await page.getByText("Connection lost").waitFor();
  await page.context().setOffline(false);
  await until(async () => (await field(page).inputValue()) === "");
  await answered(page);
  assert.deepEqual(await seen(page.locator(".bubble")), ["what time is it in Tokyo"]);
  assert.deepEqual(await messages(callboard, sessionOf(page)), ["what time is it in Tokyo"]);
});

test("a draft edited while offline is not sent automatically", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await page.context().setOffline(true);
  await field(page).fill("help");
  await page.keyboard.press("Enter");
  await page.getByText("Not sent yet").waitFor();
  await field(page).fill("help me");
  assert.ok(!(await page.getByText("Not sent yet").isVisible()));
  await page.context().setOffline(false);
  await page.getByText("Connection lost").waitFor({ state: "hidden" });
  assert.equal(await field(page).inputValue(), "help me");
  assert.deepEqual(await messages(callboard, sessionOf(page)), []);
});

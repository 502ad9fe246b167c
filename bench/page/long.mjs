// A session of 10,000 messages with 20,000 tool calls is opened, then read back to its beginning.

import { inWords, median, memory, noteLongTasks, openMeter, paints, withPage } from "./measure.mjs";
import { ROUNDS, longSession, withCallboard } from "./server.mjs";

/** The second argument makes it shorter, to try it out. */
const EXCHANGES = Number(process.argv[3] ?? 5_000);
const CALLS = 4;
const MESSAGES = 2 * EXCHANGES;

/** @typedef {import("playwright-core").Page} Page */

await withCallboard(longSession(EXCHANGES, CALLS), async ({ base, token }) => {
  const url = `${base}s/long?token=${token}`;
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await withPage((page) => open(page, url)));
  const figure = (/** @type {keyof typeof rounds[0]} */ name) => rounds.map((round) => round[name]);
  console.log(`opening, ${ROUNDS} rounds, median [range]:`);
  console.log(`  first paint with content ${inWords(figure("fcp"))} ms, DOM ready ${inWords(figure("ready"))} ms`);
  console.log(`  memory of the tab ${inWords(figure("footprint"))} MB, resident ${inWords(figure("resident"))} MB`);
  console.log(`  JS heap ${inWords(figure("heapMb"), 1)} MB, page ${inWords(figure("kb"))} KB`);
  await withPage((page) => readBack(page, url));
});

/** @param {Page} page @param {string} url */
async function open(page, url) {
  const read = await openMeter(page);
  await page.goto(url, { waitUntil: "load" });
  // The address with the token leads to the clean one; that navigation is the one that counts.
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  const { fcp, ready, bytes } = await paints(page);
  const { heapMb } = await read();
  return { fcp, ready, heapMb, kb: bytes / 1e3, ...(await memory(page)) };
}

/** Goes to the top until nothing is left to load. @param {Page} page @param {string} url */
async function readBack(page, url) {
  const longTasks = await noteLongTasks(page);
  await page.goto(url);
  const shown = () => page.locator(".messages > .message").count();
  const waits = [];
  let before = await shown();
  const began = performance.now();
  while (before < MESSAGES) {
    const asked = performance.now();
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForFunction(
      (before) => document.querySelectorAll(".messages > .message").length > before,
      before,
    );
    waits.push(performance.now() - asked);
    before = await shown();
  }
  const { footprint, resident } = await memory(page);
  const calls = await page.locator(".tool-block").count();
  const seconds = (performance.now() - began) / 1000;
  const [first, last] = [waits.slice(0, 20), waits.slice(-20)].map(median);
  console.log(`read back to the first of ${before} messages, ${calls} calls, in ${seconds.toFixed(1)} s:`);
  console.log(`  ${waits.length} loads, median of the first 20 ${first.toFixed(0)} ms, of the last 20 ${last.toFixed(0)} ms`);
  console.log(`  memory of the tab ${footprint.toFixed(0)} MB, resident ${resident.toFixed(0)} MB`);
  const tasks = (await longTasks.take()).sort((a, b) => b - a);
  console.log(`  ${tasks.length} tasks over 50 ms, the longest ${tasks[0] ?? 0} ms`);
}

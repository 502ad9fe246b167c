// A session of 10,000 messages with 20,000 tool calls is opened, read back to its beginning, down again for a
// while, and left for its end. Takes five minutes on a busy machine. While messages are loaded, memory is measured
// after a garbage collection that is forced through the devtools protocol: memory in use, without what
// the browser has not freed yet.

import { collect, inWords, median, memory, noteLongTasks, openMeter, paints, withPage } from "./measure.mjs";
import { ROUNDS, longSession, withCallboard } from "./server.mjs";

/** The second argument shortens the session, for trials. */
const EXCHANGES = Number(process.argv[3] ?? 5_000);
const CALLS = 4;
/** Megabytes that only the measurement uses: the debugger keeps all responses. */
let fetched = 0;
const MESSAGES = 2 * EXCHANGES;
/** Number of memory measurements while messages are loaded. */
const LOADS_A_LOOK = 10;

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
  // The address with the token redirects to the clean one; only that navigation counts.
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  const { fcp, ready, bytes } = await paints(page);
  const { heapMb } = await read();
  return { fcp, ready, heapMb, kb: bytes / 1e3, ...(await memory(page)) };
}

/**
 * Scrolls to the top until nothing is left to load, down again by a tenth, and then to the end.
 * @param {Page} page @param {string} url
 */
async function readBack(page, url) {
  const longTasks = await noteLongTasks(page);
  await page.goto(url);
  await goOn(page, "earlier", Infinity);
  await tellTasks(longTasks);
  await goOn(page, "later", MESSAGES / 500);
  await tellTasks(longTasks);
  const asked = performance.now();
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await page.waitForFunction(
    () =>
      document.querySelector("#later")?.hasAttribute("hidden") &&
      innerHeight + scrollY >= document.documentElement.scrollHeight - 2,
  );
  console.log(`jump to latest: ${(performance.now() - asked).toFixed(0)} ms`);
  await tellTasks(longTasks);
}

/**
 * Scrolls to one end repeatedly until nothing is left to load.
 * @param {Page} page @param {"earlier" | "later"} side @param {number} most loads
 */
async function goOn(page, side, most) {
  const waits = [];
  let [footprint, held] = [0, 0];
  const began = performance.now();
  for (let isOver = false; !isOver; ) {
    // In the page, so that polling costs nothing.
    const { took, isLast, messages, megabytes } = await page.evaluate(loadOne, side);
    waits.push(took);
    fetched += megabytes;
    isOver = isLast || waits.length >= most;
    held = Math.max(held, messages);
    if (!isOver && waits.length % LOADS_A_LOOK) continue;
    await collect(page);
    footprint = Math.max(footprint, (await memory(page)).footprint - fetched);
  }
  const seconds = (performance.now() - began) / 1000;
  const [first, last] = [waits.slice(0, 20), waits.slice(-20)].map(median);
  console.log(`${side} messages, ${waits.length} loads of at most 50 in ${seconds.toFixed(1)} s:`);
  console.log(`  median of the first 20 ${first.toFixed(0)} ms, of the last 20 ${last.toFixed(0)} ms`);
  console.log(`  at most ${held} messages there, memory of the tab at most ${footprint.toFixed(0)} MB`);
  console.log(`  (without ${fetched.toFixed(0)} MB of answers that the debugger keeps in the tab)`);
}

/** Runs in the browser. @param {string} side */
async function loadOne(side) {
  const link = () => document.querySelector(`#${side} a`)?.getAttribute("href");
  const before = link();
  const asked = performance.now();
  scrollTo(0, side === "earlier" ? 0 : document.documentElement.scrollHeight);
  while (link() === before) await new Promise(requestAnimationFrame);
  const isLast = document.querySelector(`#${side}`)?.hasAttribute("hidden") ?? true;
  const messages = document.querySelectorAll(".messages > .message").length;
  const took = performance.now() - asked;
  const answers = /** @type {PerformanceResourceTiming[]} */ (performance.getEntriesByType("resource"));
  const megabytes = answers.reduce((sum, it) => sum + it.decodedBodySize, 0) / 1e6;
  performance.clearResourceTimings();
  return { took, isLast, messages, megabytes };
}

/** @param {Awaited<ReturnType<typeof noteLongTasks>>} longTasks */
async function tellTasks(longTasks) {
  const tasks = (await longTasks.take()).sort((a, b) => b - a);
  console.log(`  ${tasks.length} tasks over 50 ms, the longest ${tasks[0] ?? 0} ms`);
}

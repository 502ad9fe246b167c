// Common parts of the page's benchmarks: a fresh browser for each figure, and its cost.

import { readFile } from "node:fs/promises";

import { launchBrowser } from "../../e2e/browser.mjs";

/** @typedef {import("playwright-core").Page} Page */

/**
 * A separate browser, so that earlier measurements have no effect.
 * @template T @param {(page: Page) => Promise<T>} use @returns {Promise<T>}
 */
export async function withPage(use) {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ after() {} });
    page.setDefaultTimeout(120_000);
    return await use(page);
  } finally {
    await browser.close();
  }
}

/**
 * Records tasks of more than 50 ms on every document that this page opens.
 * @param {Page} page
 */
export async function noteLongTasks(page) {
  await page.addInitScript(() => {
    /** @type {number[]} */
    const durations = [];
    Object.assign(window, { longTasks: durations });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) durations.push(Math.round(duration));
    }).observe({ type: "longtask" });
  });
  return {
    /** Returns and clears the durations of these tasks in milliseconds. @returns {Promise<number[]>} */
    take: () => page.evaluate(() => /** @type {any} */ (window).longTasks.splice(0)),
  };
}

/** CPU time of the page's main thread so far, in milliseconds. @param {Page} page */
export async function openMeter(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    const value = (/** @type {string} */ name) =>
      metrics.find((metric) => metric.name === name)?.value ?? NaN;
    const ms = (/** @type {string} */ name) => value(name) * 1000;
    return {
      busy: ms("TaskDuration"),
      script: ms("ScriptDuration"),
      style: ms("RecalcStyleDuration"),
      layout: ms("LayoutDuration"),
      heapMb: value("JSHeapUsedSize") / 1e6,
      nodes: value("Nodes"),
    };
  };
}

/** Times of events in milliseconds from the start of the navigation. @param {Page} page */
export async function paints(page) {
  return page.evaluate(() => {
    const [navigation] = /** @type {PerformanceNavigationTiming[]} */ (
      performance.getEntriesByType("navigation")
    );
    return {
      fcp: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
      ready: navigation.domContentLoadedEventEnd,
      load: navigation.loadEventEnd,
      bytes: navigation.decodedBodySize,
    };
  });
}

/**
 * Memory of the tab's process in MB: its footprint in Chromium's task manager (private pages,
 * resident or swapped), and its resident memory, of which much is the browser's code.
 * @param {Page} page
 */
export async function memory(page) {
  const browser = page.context().browser();
  const devtools = await browser?.newBrowserCDPSession();
  const { processInfo } = (await devtools?.send("SystemInfo.getProcessInfo")) ?? { processInfo: [] };
  const tabs = await Promise.all(
    processInfo.filter(({ type }) => type === "renderer").map(({ id }) => memoryOf(id)),
  );
  // A browser keeps an empty process ready beside the one in use.
  return tabs.sort((a, b) => b.footprint - a.footprint)[0];
}

/** Forces a garbage collection. @param {Page} page */
export async function collect(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  await devtools.detach();
}

/** @param {number} process */
async function memoryOf(process) {
  const status = await readFile(`/proc/${process}/status`, "utf8");
  const mb = (/** @type {string} */ name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? NaN) / 1e3;
  return { footprint: mb("RssAnon") + mb("VmSwap"), resident: mb("VmRSS") };
}

/** CPU time in milliseconds of all threads of a process. @param {number} process */
export async function cpuMs(process) {
  const stat = await readFile(`/proc/${process}/stat`, "utf8");
  // The second field is the program's name, which may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(") ") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return ticks * 10;
}

/** The median. @param {number[]} figures */
export function median(figures) {
  return [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)];
}

/** `12 [10-15]`. @param {number[]} figures */
export function inWords(figures, digits = 0) {
  const [low, high] = [Math.min(...figures), Math.max(...figures)];
  const word = (/** @type {number} */ it) => it.toFixed(digits);
  return low === high ? word(low) : `${word(median(figures))} [${word(low)}-${word(high)}]`;
}

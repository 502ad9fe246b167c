// A real browser, one for each file of tests, with a new context for each page.

import { after, before } from "node:test";

import { chromium } from "playwright-core";

const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const TIMEOUT_MS = 60_000;

export async function launchBrowser() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Chromium's own sandbox cannot be set up by root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: FLAGS,
  });
  return {
    close: () => browser.close(),

    /**
     * @param {{after: (end: () => Promise<void>) => void}} scope closes the page: a test
     * @param {import("playwright-core").BrowserContextOptions} [options]
     */
    async newPage(scope, options) {
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        locale: "en-GB",
        ...options,
      });
      scope.after(() => context.close());
      context.setDefaultTimeout(TIMEOUT_MS);
      return context.newPage();
    },
  };
}

/** The browser of a file of tests. */
export function useBrowser() {
  /** @type {Awaited<ReturnType<typeof launchBrowser>>} */
  let browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());
  return {
    newPage: (/** @type {Parameters<typeof browser.newPage>} */ ...how) => browser.newPage(...how),
  };
}

/**
 * All errors in the browser's developer tools: errors of scripts,
 * violations of the content security policy, failed requests. The list grows.
 * @param {import("playwright-core").Page} page
 * @param {string[]} [faults] of other pages
 */
export function listFaults(page, faults = []) {
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("response", (response) => {
    if (response.status() >= 400) faults.push(`${response.status()}: ${response.url()}`);
  });
  return faults;
}

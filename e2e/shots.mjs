// Pictures of the page for people to look at, in `out/`. Not a test: `npm run shots`.

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { launchBrowser } from "./browser.mjs";
import { NATURAL, startCallboard } from "./callboard.mjs";

const OUT = fileURLToPath(new URL("out/", import.meta.url));
const LOOKS = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true },
};
const FILES = {
  "README.md": "# Lamp\n\nFill it before dusk.\n",
  "todo.txt": "TODO: oil\nTODO: wick\n",
};
const SAID = [
  "what time is it in Paris and Tokyo?",
  "list the files, then read README.md and search for TODO",
  "read missing.txt",
  "think about breakfast",
  "write a report about lighthouses",
  "break",
];

/** @type {(() => Promise<void>)[]} */
const ends = [];
const scope = { after: (/** @type {() => Promise<void>} */ end) => void ends.unshift(end) };
try {
  await mkdir(OUT, { recursive: true });
  const browser = await launchBrowser();
  scope.after(browser.close);
  const callboard = await startCallboard(scope, { files: FILES });
  const slow = await startCallboard(scope, { config: NATURAL, files: FILES });
  const talk = await callboard.converse(...SAID.slice(0, 3));
  const everything = await callboard.converse(...SAID);

  for (const [name, look] of Object.entries(LOOKS)) {
    const page = await browser.newPage(scope, look);
    const shoot = (/** @type {string} */ what) =>
      page.screenshot({ path: `${OUT}${name}-${what}.png` });
    const openAll = async () => {
      for (const summary of await page.locator("details > summary").all()) await summary.click();
    };

    await page.goto(callboard.url);
    await shoot("welcome");
    await page.goto(`${callboard.base}s/${talk}`);
    await shoot("closed");
    await openAll();
    await page.locator(".tool-block").first().evaluate((it) => it.scrollIntoView());
    await shoot("open");
    await page.goto(`${callboard.base}s/${everything}`);
    await openAll();
    const size = page.viewportSize() ?? { width: 1280, height: 800 };
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.setViewportSize({ ...size, height });
    await shoot("everything");
    await page.setViewportSize(size);

    const story = await slow.converse();
    await page.goto(`${slow.base}s/${story}?token=${slow.token}`);
    await slow.api(`sessions/${story}/messages`, { body: { text: "tell me a story" } });
    await page.getByText("Once there was").waitFor();
    await shoot("running");
    await slow.api(`sessions/${story}/messages`, { body: { text: "and then the time, please" } });
    await page.locator(".queued").waitFor();
    await slow.api(`sessions/${story}/cancel`, { method: "POST" });
    await page.locator(".interrupted-mark").waitFor();
    await shoot("interrupted");
  }
} finally {
  for (const end of ends) await end();
}

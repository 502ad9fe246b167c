// Screenshots of the page for review, in `out/`: every look of the hand-written logs, light
// and dark, on a desktop and on a phone; and those of the README. Not a test: `npm run shots`.

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { launchBrowser } from "./browser.mjs";
import { LOOKS, setRoot } from "./drive.mjs";
import { drawGallery, openDrawn } from "./gallery.mjs";

const OUT = fileURLToPath(new URL("out/", import.meta.url));
const SCREENS = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: {
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    isMobile: true,
    hasTouch: true,
  },
};
/** Screenshots of the README. */
const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));
const README = {
  "page-light": { name: "tools", size: { viewport: { width: 1120, height: 720 } }, colorScheme: "light" },
  "approval-dark-phone": { name: "approval", size: SCREENS.phone, colorScheme: "dark" },
};
/** The hand-written logs are in the past; the page's clock is set shortly after them. */
const NOW = new Date("2026-11-15T09:12:00Z");

/** @type {(() => Promise<void> | void)[]} */
const ends = [];
const scope = { after: (/** @type {() => Promise<void> | void} */ end) => void ends.unshift(end) };
try {
  await mkdir(OUT, { recursive: true });
  const gallery = drawGallery(scope);
  const browser = await launchBrowser();
  scope.after(browser.close);
  /** @param {string} name @param {object} size @param {any} colorScheme */
  const open = async (name, size, colorScheme) => {
    const page = await browser.newPage(scope, { ...size, colorScheme, reducedMotion: "reduce" });
    await page.clock.setFixedTime(NOW);
    await openDrawn(page, name, gallery.html(name));
    await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
    return page;
  };
  for (const [file, { name, size, colorScheme }] of Object.entries(README)) {
    const page = await open(name, size, colorScheme);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${IMAGES}${file}.png` });
  }
  for (const [screen, size] of Object.entries(SCREENS)) {
    for (const colorScheme of ["light", "dark"]) {
      for (const name of ["home", ...gallery.names]) {
        const page = await open(name, size, colorScheme);
        const shoot = (/** @type {string} */ what) =>
          page.screenshot({ path: `${OUT}${name}-${what}-${colorScheme}-${screen}.png` });
        for (const look of name === "tools" ? LOOKS : ["widget"]) {
          await setRoot(page, { toolDisplay: look });
          await page.evaluate(() => scrollTo(0, 0));
          await shoot(look);
          await openCalls(page);
          await shoot(`${look}-open`);
          await closeCalls(page);
        }
        await page.context().close();
      }
    }
  }
} finally {
  for (const end of ends) await end();
}

/** The activity, and the first three calls of it. @param {import("playwright-core").Page} page */
async function openCalls(page) {
  await page.evaluate(() => {
    const first = [...document.querySelectorAll(".tool-block > details")].slice(0, 3);
    for (const it of [...document.querySelectorAll(".activity"), ...first]) it.setAttribute("open", "");
    scrollTo(0, 0);
  });
}

/** @param {import("playwright-core").Page} page */
async function closeCalls(page) {
  await page.evaluate(() => {
    for (const it of document.querySelectorAll(".messages details")) it.removeAttribute("open");
  });
}

// Pictures of the page for people to look at, in `out/`. Not a test: `npm run shots`.

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { launchBrowser } from "./browser.mjs";
import { drawGallery, openDrawn } from "./gallery.mjs";

const OUT = fileURLToPath(new URL("out/", import.meta.url));
const LOOKS = ["widget", "badges", "panels", "timeline"];
const SCREENS = {
  desktop: { viewport: { width: 1280, height: 860 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

/** @type {(() => void | Promise<void>)[]} */
const ends = [];
const scope = { after: (/** @type {() => any} */ end) => void ends.unshift(end) };
try {
  await mkdir(OUT, { recursive: true });
  const gallery = drawGallery(scope);
  const browser = await launchBrowser();
  scope.after(browser.close);
  for (const [screen, size] of Object.entries(SCREENS)) {
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      for (const name of ["home", ...gallery.names]) {
        const page = await browser.newPage(scope, { ...size, colorScheme, reducedMotion: "reduce" });
        await openDrawn(page, name, gallery.html(name));
        for (const look of name === "tools" ? LOOKS : ["widget"]) {
          await page.evaluate((look) => {
            document.documentElement.dataset.toolDisplay = look;
            scrollTo(0, 0);
          }, look);
          await page.screenshot({ path: `${OUT}${screen}-${colorScheme}-${name}-${look}.png` });
        }
        await page.evaluate(() => {
          document.querySelectorAll("details").forEach((it) => (it.open = true));
          scrollTo(0, 0);
        });
        await page.screenshot({ path: `${OUT}${screen}-${colorScheme}-${name}-open.png` });
        await page.close();
      }
    }
  }
} finally {
  for (const end of ends) await end();
}

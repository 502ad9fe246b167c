// Accessibility: axe-core finds nothing serious on any screen, in both themes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { useBrowser } from "./browser.mjs";
import { startCallboard } from "./callboard.mjs";
import { LOOKS, openAll, setRoot } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

const THEMES = ["light", "dark"];
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** @typedef {import("playwright-core").Page} Page */

/** @param {Page} page @param {string} where */
async function assertNothingSerious(page, where) {
  await page.evaluate(`typeof axe === "undefined" && (() => { ${AXE} })()`);
  const found = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (window).axe.run({ resultTypes: ["violations"] });
    return violations
      .filter((/** @type {any} */ it) => ["serious", "critical"].includes(it.impact))
      .map((/** @type {any} */ it) => [it.id, ...it.nodes.slice(0, 3).map((/** @type {any} */ n) => n.html.slice(0, 160))]);
  });
  assert.deepEqual(found, [], where);
}

/** In both themes, at the end of all fading. @param {Page} page @param {string} where */
async function check(page, where) {
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: /** @type {any} */ (theme), reducedMotion: "reduce" });
    await assertNothingSerious(page, `${where}, ${theme}`);
  }
}

/** @param {any} t @param {string} name @param {object} [options] */
async function open(t, name, options) {
  const page = await browser.newPage(t, options);
  await openDrawn(page, name, gallery.html(name));
  // What is out of sight is looked at as well.
  await page.addStyleTag({ content: ".message { content-visibility: visible !important }" });
  return page;
}

test("home, settings, keys and the menu", async (t) => {
  const page = await open(t, "home");
  await check(page, "home");
  for (const name of ["Settings", "Keyboard shortcuts"]) {
    await page.getByRole("button", { name }).click();
    await check(page, name);
    await page.keyboard.press("Escape");
  }
  await page.getByRole("button", { name: "More for Bad data" }).click();
  await check(page, "the menu");
});

test("every hand-written log, closed and opened", async (t) => {
  for (const name of gallery.names) {
    const page = await open(t, name);
    await check(page, `${name}, closed`);
    await openAll(page);
    await check(page, `${name}, open`);
    await page.close();
  }
});

test("every look", async (t) => {
  for (const look of LOOKS.filter((it) => it !== "widget")) {
    const page = await open(t, "tools");
    await setRoot(page, { toolDisplay: look, showTiming: "true" });
    await check(page, `${look}, closed`);
    await openAll(page);
    await check(page, `${look}, open`);
    await page.close();
  }
});

test("a phone, with its drawer closed and open", async (t) => {
  const page = await open(t, "approval", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  await check(page, "phone");
  await page.getByRole("button", { name: "Sessions" }).tap();
  await page.getByRole("navigation").waitFor();
  await check(page, "the drawer");
});

test("the form for the password, and the page for what is not there", async (t) => {
  const callboard = await startCallboard(t);
  callboard.setPassword("correct horse battery");
  const page = await browser.newPage(t);
  await page.goto(callboard.base);
  await page.getByLabel("Password").waitFor();
  await check(page, "sign in");
  await page.goto(callboard.url);
  await page.goto(`${callboard.base}s/no-such-session`);
  await check(page, "an error");
});

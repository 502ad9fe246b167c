// Accessibility: axe-core finds nothing serious on any screen, in both themes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { useBrowser } from "./browser.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { LOOKS, openAll, openSession, setRoot } from "./drive.mjs";
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

/** Checks both themes after all transitions have ended. @param {Page} page @param {string} where */
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
  // Hidden parts are checked too.
  await page.addStyleTag({ content: ".message { content-visibility: visible !important }" });
  return page;
}

test("home, settings, import, keys and the menu are accessible", async (t) => {
  const page = await open(t, "home");
  await check(page, "home");
  for (const name of ["Settings", "Import", "Keyboard shortcuts"]) {
    await page.getByRole("button", { name }).click();
    await check(page, name);
    await page.keyboard.press("Escape");
  }
  await page.getByRole("button", { name: "More for Bad data" }).click();
  await check(page, "the menu");
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await check(page, "renaming");
});

test("every hand-written log is accessible, closed and opened", async (t) => {
  for (const name of gallery.names) {
    const page = await open(t, name);
    await check(page, `${name}, closed`);
    await openAll(page);
    await check(page, `${name}, open`);
    await page.close();
  }
});

test("every look is accessible", async (t) => {
  for (const name of ["tools", "failed", "decided", "odd", "subagent"]) {
    for (const look of LOOKS.filter((it) => it !== "widget")) {
      const page = await open(t, name);
      await setRoot(page, { toolDisplay: look, showTiming: "true" });
      await check(page, `${name}, ${look}, closed`);
      await openAll(page);
      await check(page, `${name}, ${look}, open`);
      await page.close();
    }
  }
});

test("the scrolling JSON of a badge is accessible by keyboard", async (t) => {
  const callboard = await startCallboard(t);
  const zones = Array.from({ length: 80 }, (_, idx) => `zone ${idx}`);
  const call = { responseId: "r1", callId: "r1.0" };
  const args = JSON.stringify({ zones });
  await callboard.importLog("long", [
    { type: "session_created", agent: "demo", title: "Long" },
    { type: "run_start", responseId: "r1", agent: "demo", trigger: "user" },
    { ...call, type: "tool_call_start", toolName: "times", executor: "agent" },
    { ...call, type: "tool_arguments_done", arguments: args, summary: "", validation: "not_required" },
    { ...call, type: "tool_result", toolName: "times", ok: true, result: 1, durationMs: 1 },
    { type: "run_finish", responseId: "r1", status: "completed", durationMs: 1 },
  ]);
  const page = await openSession(t, browser, callboard, "long");
  await setRoot(page, { toolDisplay: "badges" });
  await page.getByRole("button", { name: "Tool call: times" }).focus();
  const tip = page.locator(".tooltip:popover-open");
  await tip.waitFor();
  await check(page, "an open tooltip");
  await page.keyboard.press("Tab");
  assert.ok(await tip.evaluate((it) => it === document.activeElement), "it has the focus, and is still open");
  await page.keyboard.press("End");
  await page.waitForFunction(() => (document.querySelector(".tooltip")?.scrollTop ?? 0) > 100);
  // The link to the call is the badge's, too.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await tip.waitFor({ state: "hidden" });
});

test("search, archive, the past and a server without agents are accessible", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo");
  const put = await callboard.converse("help");
  await callboard.api(`sessions/${put}`, { method: "PATCH", body: { archived: true } });
  await callboard.api(`sessions/${session}/messages`, { body: { text: "run touch made" } });
  await until(async () => (await callboard.api(`sessions/${session}`)).state === "waiting");
  const page = await openSession(t, browser, callboard, session);
  await page.getByRole("searchbox").fill("Tokyo");
  await page.locator("#found a").first().waitFor();
  await check(page, "search results");
  await page.goto(`${callboard.base}?archived=true`);
  await check(page, "archived");
  const { head } = await callboard.api(`sessions/${session}`);
  await page.goto(`${callboard.base}s/${session}?at=${head}`);
  await check(page, "the past");

  const empty = await startCallboard(t, { config: "demo = false\n" });
  await page.goto(empty.url);
  await page.getByText("No agent").first().waitFor();
  await check(page, "no agent");
});

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

test("a phone with a queue and exchanges is accessible, closed and opened", async (t) => {
  for (const name of ["queue", "exchange", "tools"]) {
    const page = await open(t, name, PHONE);
    await check(page, `${name} on a phone, closed`);
    await openAll(page);
    await check(page, `${name} on a phone, open`);
    await page.close();
  }
});

test("a phone is accessible with its drawer closed and open", async (t) => {
  const page = await open(t, "approval", PHONE);
  await check(page, "phone");
  await page.getByRole("button", { name: "Sessions" }).tap();
  await page.getByRole("navigation").waitFor();
  await check(page, "the drawer");
});

test("the password form and the not-found page are accessible", async (t) => {
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

// Copying code and answers from a conversation, and the layout of text
// that runs from right to left.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { startCallboard } from "./callboard.mjs";
import { openSession } from "./drive.mjs";

/** @typedef {import("playwright-core").Page} Page */

const browser = useBrowser();
const CLIPBOARD = { permissions: ["clipboard-read", "clipboard-write"] };

const FENCE = "```";
const LONG = `let long = "${"lamp oil ".repeat(40)}";`;
const ANSWER = [
  "# Title",
  "Some **bold** words and `code`.",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  `${FENCE}rust\nfn main() {\n    ${LONG}\n}\n${FENCE}`,
  `${FENCE}mermaid\ngraph TD\n${FENCE}`,
  `- an item\n\n  ${FENCE}\n  nested\n  ${FENCE}`,
].join("\n\n");

/** A session with one answer. @param {any} t @param {string} text @param {object} [options] */
async function openAnswer(t, text, options = CLIPBOARD, question = "Please.") {
  const callboard = await startCallboard(t);
  const part = { responseId: "r", partId: "r.0" };
  await callboard.importLog("told", [
    { type: "session_created", agent: "demo" },
    { type: "user_message", messageId: "m1", text: question },
    { type: "run_start", responseId: "r", agent: "demo", trigger: "user" },
    { type: "step_start", responseId: "r", index: 0 },
    { ...part, type: "text_start" },
    { ...part, type: "text_done", text },
    { type: "step_finish", responseId: "r", index: 0, finishReason: "stop" },
    { type: "run_finish", responseId: "r", status: "completed", durationMs: 1 },
  ]);
  return { callboard, page: await openSession(t, browser, callboard, "told", options) };
}

/** @param {Page} page */
const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

test("code is copied unchanged, by mouse and by keyboard", async (t) => {
  const { page } = await openAnswer(t, ANSWER);
  const blocks = page.locator(".code-block");
  assert.deepEqual(
    await blocks.locator(".code-bar").evaluateAll((all) => all.map((it) => it.dataset.language)),
    ["rust", "mermaid", ""],
  );
  const copied = ["fn main() {\n    " + LONG + "\n}", "graph TD", "nested"];
  for (const [idx, code] of copied.entries()) {
    await blocks.nth(idx).getByRole("button", { name: "Copy code" }).click();
    await page.locator("#status", { hasText: "Copied" }).waitFor();
    assert.equal(await clipboard(page), code);
  }
  await blocks.first().getByRole("button", { name: "Wrap lines" }).focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(async (code) => (await navigator.clipboard.readText()) === code, copied[0]);
});

test("a selection across a code block leaves out its header", async (t) => {
  const { page } = await openAnswer(t, ANSWER);
  const selected = await page.locator(".text").evaluate((it) => {
    getSelection()?.selectAllChildren(it);
    return `${getSelection()}`;
  });
  assert.match(selected, /fn main/);
  assert.doesNotMatch(selected, /rust|mermaid|Copy|Wrap/);
});

test("long lines of code wrap on demand, without sideways scrolling", async (t) => {
  const { page } = await openAnswer(t, ANSWER);
  const scrolls = () => page.locator(".code-block pre").first().evaluate((it) => it.scrollWidth > it.clientWidth);
  assert.equal(await scrolls(), true);
  await page.getByRole("button", { name: "Wrap lines" }).first().click();
  assert.equal(await scrolls(), false);
  await page.getByRole("button", { name: "Wrap lines" }).first().click();
  assert.equal(await scrolls(), true);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
});

test("an exported file shows the language of code but no button", async (t) => {
  const { callboard } = await openAnswer(t, ANSWER);
  const headers = { Authorization: `Bearer ${callboard.token}` };
  const html = await (await fetch(`${callboard.base}api/sessions/told/export`, { headers })).text();
  const file = await browser.newPage(t);
  await file.setContent(html);
  assert.equal(await file.locator(".code-bar button").filter({ visible: true }).count(), 0);
  const bars = file.locator(".code-bar").filter({ visible: true });
  assert.deepEqual(await bars.evaluateAll((all) => all.map((it) => it.dataset.language)), ["rust", "mermaid"]);
});

test("an answer is copied as the Markdown that the agent wrote", async (t) => {
  const { page } = await openAnswer(t, ANSWER);
  await page.getByRole("button", { name: "Copy answer" }).click();
  await page.locator("#status", { hasText: "Copied" }).waitFor();
  assert.equal(await clipboard(page), ANSWER);
});

const ARABIC = "مرحبا بالعالم";
const RIGHT_TO_LEFT = [
  `# ${ARABIC}!`,
  `${ARABIC}: هذا \`npm install --save\` نص.`,
  `- ${ARABIC}.\n- ثانيا`,
  `> ${ARABIC}.`,
  `| ${ARABIC} | b |\n|---|---|\n| واحد | two |`,
  `${FENCE}js\nlet a = 1; // ${ARABIC}\n${FENCE}`,
  "Plain English stays on the left.",
].join("\n\n");

test("text has its own direction, and code runs from left to right", async (t) => {
  const question = `${ARABIC}.\nIn English.`;
  for (const viewport of [{ width: 1280, height: 1000 }, { width: 390, height: 1000 }]) {
    const { page } = await openAnswer(t, RIGHT_TO_LEFT, { viewport }, question);
    const direction = (/** @type {string} */ selector) =>
      page.locator(selector).first().evaluate((it) => getComputedStyle(it).direction);
    for (const selector of ["h1", "p", "ul", "li", "blockquote", "table", "td"]) {
      assert.equal(await direction(`.final ${selector}`), "rtl", selector);
    }
    for (const selector of ["pre", "p code", "> p:last-child"]) {
      assert.equal(await direction(`.final ${selector}`), "ltr", selector);
    }
    assert.equal(await direction("#sessions .title"), "rtl");
    assert.equal(await direction(".heading h1"), "rtl");
    assert.equal(await direction(".bubble"), "rtl");

    // Each line of a message by itself: the first ends at the right edge, the second begins at the left.
    const [atRight, atLeft] = await page.locator(".bubble").evaluate((it) => {
      const range = document.createRange();
      range.selectNodeContents(it);
      const [bubble, rects] = [it.getBoundingClientRect(), [...range.getClientRects()]];
      const line = (/** @type {boolean} */ isFirst) => rects.filter(({ top }) => top < bubble.top + bubble.height / 2 === isFirst);
      return [
        bubble.right - Math.max(...line(true).map(({ right }) => right)) < 20,
        Math.min(...line(false).map(({ left }) => left)) - bubble.left < 20,
      ];
    });
    assert.deepEqual([atRight, atLeft], [true, true]);
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill(ARABIC);
    assert.equal(await field.evaluate((it) => getComputedStyle(it).direction), "rtl");
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/rtl-${viewport.width}.png` });
  }
});

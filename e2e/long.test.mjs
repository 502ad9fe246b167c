// Content too long for a screen or a page is shown in part, with a notice and a link to the rest.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { longLog, startCallboard } from "./callboard.mjs";
import { openSession } from "./drive.mjs";

const browser = useBrowser();
const created = { type: "session_created", agent: "demo", title: "Long" };
const responseId = "r1";

/** A log with one answer. @param {object[]} events */
function answering(...events) {
  return [
    created,
    { type: "user_message", messageId: "m1", text: "go" },
    { type: "run_start", responseId, agent: "demo", trigger: "user" },
    { type: "step_start", responseId, index: 0 },
    ...events.map((it) => ({ responseId, ...it })),
  ];
}

const call = (callId = "r1.0", toolName = "shell") => [
  { type: "tool_call_start", callId, toolName, executor: "server" },
  { type: "tool_arguments_done", callId, arguments: "{}", summary: "", validation: "not_required" },
  { type: "tool_running", callId },
];
const end = [
  { type: "step_finish", index: 0, finishReason: "stop" },
  { type: "run_finish", status: "completed", durationMs: 1 },
];

/** @param {any} t @param {object[]} log @param {object} [options] */
async function opened(t, log, options) {
  const callboard = await startCallboard(t);
  await callboard.importLog("long", log);
  return { callboard, page: await openSession(t, browser, callboard, "long", options) };
}

test("an output of ten megabytes opens as text in few elements", async (t) => {
  const delta = Array.from({ length: 1_500_000 }, (_, n) => `${n + 1}\n`).join("");
  const result = { type: "tool_result", callId: "r1.0", toolName: "shell", ok: true, durationMs: 1 };
  const log = answering(...call(), { type: "tool_output_delta", callId: "r1.0", stream: "stdout", offset: 0, delta }, result, ...end);
  const { callboard, page } = await opened(t, log);
  await page.locator(".tool-block details").first().evaluate((it) => it.setAttribute("open", ""));
  const gap = page.locator(".body.cut .gap").first();
  assert.match(await gap.innerText(), /1,500,000 lines \(10\.\d MB\): Open as text · Download/);
  assert.equal(await page.locator('[data-action="show-all"]').count(), 0);
  const href = await gap.locator("a").first().getAttribute("href");
  const headers = { Authorization: `Bearer ${callboard.token}` };
  const whole = await fetch(new URL(`${href}`, callboard.base), { headers });
  assert.equal(await whole.text(), delta);
  assert.match(`${whole.headers.get("content-security-policy")}`, /sandbox/);
  assert.match(`${whole.headers.get("content-type")}`, /^text\/plain/);
  const drawn = await fetch(new URL(`${href}&format=html`, callboard.base), { headers });
  assert.ok((await drawn.text()).length < 1000, "nobody gets it as HTML");
});

test("a message taller than the screen is folded, with and without script", async (t) => {
  const text = "A sentence of a long message. ".repeat(100);
  for (const javaScriptEnabled of [true, false]) {
    const { page } = await opened(t, [created, { type: "user_message", messageId: "m1", text }], { javaScriptEnabled });
    const height = async () => (await page.locator(".bubble").boundingBox())?.height ?? 0;
    const folded = await height();
    assert.ok(folded <= 330, `${folded}px`);
    await page.getByText("Show more").click();
    assert.ok((await height()) > folded + 50, "all of it");
    await page.getByText("Show less").click();
    assert.equal(await height(), folded);
  }
});

test("a very long message shows both ends, and the rest on demand", async (t) => {
  const text = `First words. ${"In between. ".repeat(20_000)}Last words.`;
  const { callboard, page } = await opened(t, [created, { type: "user_message", messageId: "m1", text }]);
  const shown = await page.locator(".bubble").evaluate((it) => it.textContent ?? "");
  assert.ok(shown.length < 40_000 && shown.includes("First words.") && shown.includes("Last words."), `${shown.length}`);
  await page.getByText("Show more").click();
  await page.getByText("Show all 240 KB").click();
  await page.waitForFunction((text) => document.querySelector(".bubble .fetched")?.textContent === text, text);
  await page.getByText("Show less").first().click();
  const exported = await fetch(`${callboard.base}api/sessions/long/export?format=html`, {
    headers: { Authorization: `Bearer ${callboard.token}` },
  });
  assert.ok((await exported.text()).includes(text), "a file has all of it");
});

test("an answer of many steps shows the last ones, and the rest on demand", async (t) => {
  const steps = Array.from({ length: 1000 }, (_, n) => ({ type: "notice", level: "info", text: `step ${n}` }));
  const { page } = await opened(t, answering(...steps, ...end));
  const shown = () => page.locator(".notice").count();
  assert.ok((await shown()) <= 200, `${await shown()}`);
  for (const count of [800, 700]) {
    const before = await shown();
    await page.getByText(`${count} earlier steps · Show`).click();
    await page.waitForFunction((before) => document.querySelectorAll(".notice").length === before + 100, before);
  }
  const words = await page.locator(".notice").allInnerTexts();
  assert.deepEqual(words, steps.slice(600).map(({ text }) => text));
});

test("a printed page mentions missing messages", async (t) => {
  const { page } = await opened(t, longLog(360));
  const note = page.getByText("Earlier messages are not printed. To print the whole session");
  assert.equal(await note.isVisible(), false);
  await page.emulateMedia({ media: "print" });
  assert.equal(await note.isVisible(), true);
  assert.equal(await page.getByText("Later messages are not printed").isVisible(), false);
});

test("the name of a call and its warning are both fully visible", async (t) => {
  const truncated = { totalBytes: 300_000, totalLines: 9000, shownBytes: 16_000 };
  const result = { type: "tool_result", callId: "r1.0", toolName: "shell", ok: true, durationMs: 1, truncated };
  const start = call();
  Object.assign(start[1] ?? {}, { arguments: JSON.stringify({ command: "cat words ".repeat(40) }) });
  const { page } = await opened(t, answering(...start, result, ...end));
  for (const look of ["panels", "timeline", "widget"]) {
    await page.evaluate((look) => document.documentElement.setAttribute("data-tool-display", look), look);
    await page.locator(".activity").evaluateAll((all) => all.forEach((it) => it.setAttribute("open", "")));
    for (const part of [".name", ".cut-mark"]) {
      const isWhole = await page.locator(`.tool-block summary ${part}`).evaluate((it) => it.scrollWidth <= it.clientWidth);
      assert.ok(isWhole, `${part} in ${look}`);
    }
  }
});

test("the time of a program's last line is shown if it is known", async (t) => {
  const { page } = await opened(t, [created]);
  const seen = await page.evaluate(() => {
    const line = document.createElement("div");
    line.className = "pulse-line";
    line.innerHTML = '<span>pid 7</span><span>last line <span class="clock"></span> ago</span>';
    document.body.append(line);
    const before = line.innerText;
    const clock = line.querySelector(".clock");
    if (clock) clock.textContent = "0s";
    return [before, line.innerText];
  });
  assert.doesNotMatch(`${seen[0]}`, /last line/);
  assert.match(`${seen[1]}`, /last line 0s ago/);
});

test("a page of the past and an exported file show no live state", async (t) => {
  const { callboard, page } = await opened(t, answering(...call()));
  const head = (await callboard.events("long")).find(({ type }) => type === "tool_running")?.seq;
  await page.goto(`${callboard.base}s/long?at=${head}`);
  const isStill = () => page.evaluate(() => document.getAnimations().filter((it) => it.playState === "running").length);
  assert.equal(await isStill(), 0);
  assert.equal(await page.locator(".typing").isVisible(), false);
  const word = (/** @type {import("playwright-core").Page} */ page, side = "::before") =>
    page.locator(".heading .state").evaluate((it, side) => getComputedStyle(it, side).content, side);
  assert.equal(await word(page), '"was "');
  const exported = await fetch(`${callboard.base}api/sessions/long/export?format=html`, {
    headers: { Authorization: `Bearer ${callboard.token}` },
  });
  // A separate page, because the server's policy allows no style within the page.
  await page.goto("about:blank");
  await page.setContent(await exported.text());
  assert.equal(await word(page, "::after"), '"exported"');
  assert.equal(await page.locator(".heading .state").evaluate((it) => getComputedStyle(it).fontSize), "0px");
  assert.equal(await isStill(), 0);
});

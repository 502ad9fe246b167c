// Badges: a small button for each call, which shows and copies the call.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { startCallboard } from "./callboard.mjs";
import { answered, field, openSession, sendMessage, seen, setRoot } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

const FIRST_CALL = `{
  "id": "toolu_01",
  "type": "function",
  "function": {
    "name": "Bash",
    "arguments": {
      "command": "cargo test --lib clock",
      "description": "Run the tests"
    }
  }
}`;

/** @param {any} t @param {string} name */
async function open(t, name) {
  const page = await browser.newPage(t);
  await openDrawn(page, name, gallery.html(name));
  await setRoot(page, { toolDisplay: "badges" });
  return page;
}

/** What is on the clipboard. @param {import("playwright-core").Page} page */
async function pasted(page) {
  await field(page).fill("");
  await field(page).press("ControlOrMeta+v");
  return field(page).inputValue();
}

test("X2.1 a streamed call appears as a badge", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("tools");
  const { patch } = await openDrawn(page, "tools", first);
  await setRoot(page, { toolDisplay: "badges" });
  const badges = page.locator(".tool-call-badge .label");
  const begins = patches.findIndex(({ ops }) => JSON.stringify(ops).includes("tool-call-badge"));
  for (const step of patches.slice(0, begins)) await patch(step);
  assert.deepEqual(await seen(badges), []);
  for (const step of patches.slice(begins, begins + 1)) await patch(step);
  assert.deepEqual(await seen(badges), ["Bash"]);
});

test("X2.1 a call of a running server appears as a badge without a reload", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  await setRoot(page, { toolDisplay: "badges" });
  await sendMessage(page, "what time is it in Tokyo");
  await answered(page);
  assert.deepEqual(await seen(page.locator(".tool-call-badge")), ["time"]);
});

for (const how of ["click", "Enter", "Space"]) {
  test(`X2.2 ${how} copies the call as JSON and confirms it`, async (t) => {
    const page = await open(t, "tools");
    const badge = page.getByRole("button", { name: "Tool call: Bash", exact: true });
    if (how === "click") await badge.click();
    else await badge.press(how);
    await page.getByText("Copied to clipboard").first().waitFor();
    assert.equal(await page.locator("#announcer[aria-live]").textContent(), "Copied to clipboard");
    assert.equal(await pasted(page), FIRST_CALL);
  });
}

test("X2.2 the browser's clipboard API copies the same", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo");
  const page = await openSession(t, browser, callboard, session, {
    permissions: ["clipboard-read", "clipboard-write"],
  });
  assert.ok(await page.evaluate(() => "clipboard" in navigator));
  await setRoot(page, { toolDisplay: "badges" });
  await page.getByRole("button", { name: "Tool call: time" }).click();
  await page.getByText("Copied to clipboard").first().waitFor();
  const { type, function: called } = JSON.parse(await pasted(page));
  assert.deepEqual([type, called.name, called.arguments], ["function", "time", { zone: "Asia/Tokyo" }]);
});

test("X2.2 arguments too long for the page are copied whole", async (t) => {
  const callboard = await startCallboard(t);
  const log = [
    { type: "session_created", agent: "demo", title: "Long" },
    { type: "run_start", responseId: "r1", agent: "demo", trigger: "user" },
    { type: "tool_call_start", responseId: "r1", callId: "r1.0", toolName: "write", executor: "agent" },
    {
      type: "tool_arguments_done",
      responseId: "r1",
      callId: "r1.0",
      arguments: JSON.stringify({ text: "sea ".repeat(20_000) }),
      summary: "text",
      validation: "not_required",
    },
    { type: "tool_result", responseId: "r1", callId: "r1.0", toolName: "write", ok: true, result: 1, durationMs: 1 },
    { type: "run_finish", responseId: "r1", status: "completed", durationMs: 1 },
  ];
  await callboard.importLog("long", log);
  const page = await openSession(t, browser, callboard, "long");
  await setRoot(page, { toolDisplay: "badges" });
  await page.getByRole("button", { name: "Tool call: write" }).click();
  await page.getByText("Copied to clipboard").first().waitFor();
  assert.deepEqual(JSON.parse(await pasted(page)).function.arguments, { text: "sea ".repeat(20_000) });
});

test("X2.3 the tooltip shows the JSON on hover and on focus; Escape closes it", async (t) => {
  const page = await open(t, "tools");
  const badge = page.getByRole("button", { name: "Tool call: Bash", exact: true });
  const tip = page.locator(".tooltip:popover-open");
  await badge.hover();
  await tip.waitFor();
  assert.equal(await tip.innerText(), FIRST_CALL);
  const [at, near] = await Promise.all([tip.boundingBox(), badge.boundingBox()]);
  assert.ok(at && near && Math.abs(at.x - near.x) < 8, "it stands beside its badge");
  assert.equal(await badge.getAttribute("aria-describedby"), await tip.getAttribute("id"));
  await page.mouse.move(0, 0);
  await tip.waitFor({ state: "hidden" });

  await badge.focus();
  await tip.waitFor();
  await page.keyboard.press("Escape");
  await tip.waitFor({ state: "hidden" });
  // Tab passes the arrow that opens the call and reaches the next badge.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await tip.filter({ hasText: '"name": "Read"' }).waitFor();
});

test("X2.4 all calls have badges: repeated, nameless and unreadable ones", async (t) => {
  const page = await open(t, "odd");
  const labels = await page.locator(".tool-call-badge .label").allTextContents();
  assert.deepEqual(labels.slice(0, 5), [
    "Call #1",
    '{"broken": ',
    "search",
    "search #2",
    "a_very_long_tool_name_that_does_not_fit_into_a_badge_at_all",
  ]);
  const fallback = page.locator(".tool-call-badge--fallback");
  assert.deepEqual(await fallback.locator(".label").allTextContents(), ['{"broken": ']);
  await fallback.click();
  await page.getByText("Copied to clipboard").first().waitFor();
  assert.equal(await pasted(page), '{"broken": ', "nothing of ours is put around it");
  for (const badge of await page.locator(".tool-call-badge").all()) {
    const label = await badge.locator(".label").textContent();
    assert.equal(await badge.getAttribute("aria-label"), `Tool call: ${label}`);
    assert.ok(((await badge.boundingBox())?.width ?? 999) <= 320, "long names end with dots");
  }
});

test("F21 the arrow of a badge opens and closes the call with its result", async (t) => {
  const page = await open(t, "words");
  const message = page.locator('.message[data-response-id="r6"]');
  const block = message.locator('.tool-block[data-call-id="r6.1"]');
  assert.deepEqual(await seen(message.locator(".tool-block")), []);
  const arrow = message.getByRole("link", { name: "Show call: SearchEntities, done" });
  await arrow.click();
  assert.match((await seen(block)).join(), /SearchEntities.*"entities"/);
  assert.equal((await seen(message.locator(".tool-block"))).length, 1);
  await arrow.press("Enter");
  assert.deepEqual(await seen(message.locator(".tool-block")), []);
});

test("F21 the badge of a sub-agent's call opens its outer call too", async (t) => {
  const page = await open(t, "subagent");
  await page.getByRole("link", { name: /^Show call: Glob/ }).click();
  assert.ok((await seen(page.locator(".nested .tool-block .name"))).includes("Glob"));
});

test("F21 badges distinguish the states of calls without empty space", async (t) => {
  const page = await open(t, "words");
  const badge = (/** @type {string} */ state) => page.locator(`.badge[data-state="${state}"] .tool-call-badge`).first();
  const look = (/** @type {string} */ state) =>
    badge(state).evaluate((it) => `${getComputedStyle(it).backgroundColor} ${getComputedStyle(it).outlineStyle}`);
  const looks = await Promise.all(["succeeded", "failed", "interrupted"].map(look));
  assert.equal(new Set(looks).size, 3, looks.join());
  assert.deepEqual(await seen(page.locator(".badge[data-state=interrupted] > .state").first()), ["⚠ Interrupted"]);
  assert.deepEqual(await seen(page.locator(".badge[data-state=failed] > .state").first()), ["failed"]);
  for (const it of await page.locator(".badge[data-state=succeeded] .tool-call-badge").all()) {
    const [box, label] = await Promise.all([it.boundingBox(), it.locator(".label").boundingBox()]);
    const right = (box?.x ?? 0) + (box?.width ?? 0) - (label?.x ?? 0) - (label?.width ?? 0);
    assert.ok(right < 10, `${right} pixels of nothing on the right`);
  }
});

test("R1 unreadable stored calls are badges with the raw text in every look", async (t) => {
  const page = await open(t, "words");
  const raw = '[{"id":"call_1",\n  "type":';
  for (const toolDisplay of ["widget", "badges", "panels", "timeline"]) {
    await setRoot(page, { toolDisplay });
    const badge = page.locator(".malformed .tool-call-badge--fallback");
    assert.equal(await badge.locator(".label").innerText(), raw, toolDisplay);
    await badge.click();
    await page.getByText("Copied to clipboard").first().waitFor();
    assert.equal(await pasted(page), raw, toolDisplay);
  }
});

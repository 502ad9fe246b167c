// The four looks of one page, its widget, badges and questions, on hand-written logs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import AxeBuilder from "axe-core";

import { launchBrowser, listFaults } from "./browser.mjs";
import { drawGallery, openDrawn } from "./gallery.mjs";

/** @typedef {import("playwright-core").Page} Page */

/** @type {Awaited<ReturnType<typeof launchBrowser>>} */
let browser;
/** @type {ReturnType<typeof drawGallery>} */
let gallery;
/** @type {(() => void)[]} */
const ends = [];
before(async () => {
  gallery = drawGallery({ after: (end) => void ends.push(end) });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  ends.forEach((end) => end());
});

/** A page of a log in one of the looks. */
async function open(t, name, { look = "widget", ...options } = {}) {
  const page = await browser.newPage(t, { permissions: ["clipboard-read", "clipboard-write"], ...options });
  const drawn = await openDrawn(page, name, gallery.html(name));
  await setLook(page, look);
  return { page, ...drawn };
}

/** @param {Page} page @param {string} look */
function setLook(page, look) {
  return page.evaluate((look) => void (document.documentElement.dataset.toolDisplay = look), look);
}

/** @param {Page} page */
function openAll(page) {
  return page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
}

/** What of these shows in the first answer. @param {Page} page */
function shown(page) {
  return page.evaluate(() => {
    const answer = document.querySelector('.message[data-role="assistant"]');
    const isShown = (selector) => [...answer.querySelectorAll(selector)].some((it) => it.checkVisibility({ opacityProperty: true, visibilityProperty: true }));
    const selectors = {
      widget: ".tool-widget",
      blocks: ".tool-block.success",
      failed: ".tool-block.error",
      commentary: ".commentary:not(.shown)",
      badges: ".tool-call-badge",
      final: ".final",
      timing: ".timing",
    };
    return Object.keys(selectors).filter((name) => isShown(selectors[name]));
  });
}

test("X3 each look shows what it should, and hides the rest from everybody", async (t) => {
  const { page } = await open(t, "tools");
  assert.deepEqual(await shown(page), ["widget", "final"]);
  await page.evaluate(() => document.querySelector(".activity").setAttribute("open", ""));
  assert.deepEqual(await shown(page), ["widget", "blocks", "failed", "commentary", "final"]);
  await setLook(page, "badges");
  assert.deepEqual(await shown(page), ["failed", "badges", "final"]);
  await setLook(page, "panels");
  assert.deepEqual(await shown(page), ["blocks", "failed", "commentary", "final", "timing"]);
  await setLook(page, "timeline");
  assert.deepEqual(await shown(page), ["blocks", "failed", "commentary", "final"]);
  const panel = page.locator(".tool-block.error").first();
  await setLook(page, "panels");
  assert.match(await panel.innerText(), /Bash[^]*cargo test --lib clock[^]*failed\s*\(4\.2s\)/);
  assert.match(await page.locator(".timing").first().innerText(), /^Assistant · 12s · 6,500 tokens$/);
});

test("the widget thinks, works and is complete", async (t) => {
  const states = [
    ["thinking", "thinking", /^Thinking\.\.\.$/],
    ["approval", "working", /Waiting for you: shell rm -r build/],
    ["tools", "complete", /Used 7 tools · 2 failed · 12s/],
    ["stopped", "complete", /Used 1 tool · 1 interrupted/],
  ];
  for (const [name, state, words] of states) {
    const { page } = await open(t, name);
    const widget = page.locator(".tool-widget").last();
    if (name === "tools") await page.locator(".tool-widget").first().waitFor();
    const it = name === "tools" ? page.locator(".tool-widget").first() : widget;
    assert.equal(await it.getAttribute("data-state"), state, name);
    assert.match((await it.innerText()).trim(), words, name);
  }
  const { page } = await open(t, "stopped");
  const first = page.locator('.message[data-role="assistant"]').first();
  assert.equal(await first.locator(".tool-widget").count(), 0, "a run without calls has no widget");
  assert.equal(await first.locator(".activity").isVisible(), false);
});

test("the widget names the tool that runs", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("stopped");
  const { say } = await openDrawn(page, "stopped", first);
  const isRunning = /"attr","stopped-\d+-\d+","data-state","running"/;
  const running = patches.findIndex(({ ops }) => isRunning.test(JSON.stringify(ops)));
  for (const { seq, ops } of patches.slice(0, running + 1)) say({ type: "patch", sessionId: "stopped", seq, ops });
  const widget = page.locator('.tool-widget[data-state="working"]');
  await widget.waitFor();
  assert.match(await widget.innerText(), /shell find \/ -type f/);
});

test("X2 badges appear, say what they are, and copy by mouse, Enter and Space", async (t) => {
  const { page } = await open(t, "tools", { look: "badges" });
  const badges = page.locator(".tool-call-badge");
  const labels = await badges.evaluateAll((all) => all.map((it) => it.getAttribute("aria-label")));
  assert.deepEqual(labels.slice(0, 7), [
    "Tool call: Bash", "Tool call: Read", "Tool call: Grep", "Tool call: TodoWrite", "Tool call: Edit",
    "Tool call: WebFetch", "Tool call: Bash #2",
  ]);
  const expected = {
    id: "toolu_01",
    type: "function",
    function: { name: "Bash", arguments: { command: "cargo test --lib clock", description: "Run the tests" } },
  };
  const ways = [
    () => badges.first().click(),
    () => badges.first().press("Enter"),
    () => badges.first().press("Space"),
  ];
  for (const copy of ways) {
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await page.evaluate(() => (document.getElementById("announcer").textContent = ""));
    await copy();
    await page.waitForFunction(() => document.getElementById("announcer").textContent === "Copied to clipboard");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), JSON.stringify(expected, null, 2));
  }
});

test("X2 a badge's tooltip shows on hover and on focus, and Escape closes it", async (t) => {
  const { page } = await open(t, "tools", { look: "badges" });
  const badge = page.locator(".tool-call-badge").nth(1);
  const tip = page.locator(".tooltip").nth(1);
  await badge.hover();
  await tip.waitFor({ state: "visible" });
  assert.match(await tip.innerText(), /"name": "Read"/);
  await page.keyboard.press("Escape");
  await tip.waitFor({ state: "hidden" });
  await page.mouse.move(0, 0);
  await badge.focus();
  await tip.waitFor({ state: "visible" });
});

test("X2 several calls have a badge each, and a call that cannot be read a fallback", async (t) => {
  const { page } = await open(t, "odd", { look: "badges" });
  const labels = await page.locator(".tool-call-badge .label").allInnerTexts();
  assert.deepEqual(labels.slice(0, 4), ["Call #1", '{"broken": ', "search", "search #2"].map((it) => it.trim()));
  const fallback = page.locator(".tool-call-badge--fallback");
  assert.equal(await fallback.count(), 1);
});

test("a question is answered by click and by key, with changed arguments or a note", async (t) => {
  const url = "POST /api/sessions/approval/calls/r1.1/approval";
  const answers = async (act, options) => {
    const { page, asked } = await open(t, "approval", options);
    await page.locator(".sheet").waitFor();
    const sent = page.waitForRequest((it) => it.url().endsWith("/approval"));
    await act(page, page.locator(".sheet"));
    await sent;
    return asked.filter(({ what }) => what === url).map(({ body }) => body);
  };
  const once = { decision: "accepted", scope: "once" };
  assert.deepEqual(await answers((_, sheet) => sheet.getByText("Allow once").click()), [once]);
  for (const [key, scope] of [["1", "once"], ["2", "session"], ["3", "always"]]) {
    const body = await answers(async (page) => {
      await page.locator("#conversation").focus();
      await page.keyboard.press(key);
    });
    assert.deepEqual(body, [{ decision: "accepted", scope }]);
  }
  const edited = await answers(async (_, sheet) => {
    await sheet.getByText("Change the arguments").click();
    await sheet.locator(".edited").fill('{"command": "rm -r build/tmp"}');
    await sheet.getByText("Allow once").click();
  });
  assert.deepEqual(edited, [{ ...once, arguments: '{"command": "rm -r build/tmp"}' }]);
  const denied = await answers(async (_, sheet) => {
    await sheet.getByText("Deny").click();
    await sheet.locator(".note").fill("not today");
    await sheet.getByText("Deny").click();
  });
  assert.deepEqual(denied, [{ decision: "rejected", feedback: "not today" }]);
});

test("a question cannot be overlooked", async (t) => {
  const { page } = await open(t, "approval");
  await page.waitForFunction(() => document.title.startsWith("(!) "));
  assert.match(await page.locator("#sessions li[data-state=waiting]").innerText(), /waiting for you/);
  assert.equal(await page.locator(".tool-block .approval").isVisible(), true, "in its block");
  assert.equal(await page.locator(".sheet").isVisible(), true, "in the composer's place");
});

test("X5 cancelled text and tools are marked; X6 and stay so in their place", async (t) => {
  const { page } = await open(t, "stopped", { look: "timeline" });
  const answers = page.locator('.message[data-role="assistant"]');
  assert.match(await answers.first().innerText(), /lighthouse that nobody had built[^]*Interrupted \(stopped by you/);
  const block = answers.last().locator(".tool-block");
  assert.match((await block.getAttribute("class")) ?? "", /\binterrupted\b/);
  assert.match(await block.innerText(), /⚠ Interrupted/);
  assert.equal(await block.evaluate((it) => getComputedStyle(it).borderTopStyle), "dashed");
  assert.equal(await answers.last().locator(".typing").count(), 0);
  const order = await answers.last().evaluate((it) => [...it.querySelectorAll(".text, .tool-block")].map((at) => at.className.split(" ")[0]));
  assert.deepEqual(order, ["text", "tool-block"], "the text before the call that it led to");
});

test("X5 X6 agent-to-agent (hand-written): exchanges are blocks with their answers", async (t) => {
  const { page } = await open(t, "exchange", { look: "timeline" });
  await openAll(page);
  const blocks = page.locator(".agent-callback");
  assert.equal(await blocks.count(), 2);
  assert.match(await blocks.first().innerText(), /Message to codex[^]*Is the build[^]*Yes, since 08:40/);
  assert.match(await blocks.last().innerText(), /Message to pi[^]*agent_timeout/);
  assert.match(await page.locator('[data-role="user"]').last().innerText(), /From codex/);
});

test("what a sub-agent does stands under its call", async (t) => {
  const { page } = await open(t, "subagent", { look: "timeline" });
  await openAll(page);
  const task = page.locator(".tool-block", { hasText: "Task" }).first();
  assert.equal(await task.locator(".nested .tool-block").count(), 2);
  assert.match(await task.locator(".nested").first().innerText(), /Listing first/);
});

test("rewound messages are behind a link", async (t) => {
  const { page } = await open(t, "queue");
  const rewound = page.locator("details.rewound");
  assert.match(await rewound.locator("> summary").innerText(), /2 messages replaced/);
  assert.equal(await page.getByText("And then to five.", { exact: true }).isVisible(), false);
  await rewound.locator("> summary").click();
  assert.equal(await page.getByText("And then to five.", { exact: true }).isVisible(), true);
});

test("axe finds no serious fault on any screen, in both themes", async (t) => {
  let screens = 0;
  for (const colorScheme of ["light", "dark"]) {
    for (const name of ["home", ...gallery.names]) {
      const looks = name === "tools" ? ["widget", "badges", "panels", "timeline"] : ["widget"];
      for (const look of looks) {
        const { page } = await open(t, name, { look, colorScheme, bypassCSP: true, reducedMotion: "reduce" });
        const check = async (what) => {
          await page.evaluate(AxeBuilder.source);
          const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
          const bad = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
          const found = bad.map(({ id, nodes }) => `${id}: ${nodes.map((it) => it.html).slice(0, 2).join(" ")}`);
          assert.deepEqual(found, [], `${name} ${look} ${colorScheme} ${what}`);
          screens += 1;
        };
        await check("closed");
        await openAll(page);
        await check("opened");
        if (name === "home") {
          for (const dialog of ["settings", "keys"]) {
            await page.evaluate((id) => document.getElementById(id).showModal(), dialog);
            await check(dialog);
            await page.keyboard.press("Escape");
          }
        }
        await page.close();
      }
    }
  }
  t.diagnostic(`${screens} screens`);
});

test("no page has a fault in the console, nor scrolls sideways on a phone", async (t) => {
  for (const name of ["home", ...gallery.names]) {
    const page = await browser.newPage(t, { viewport: { width: 390, height: 844 } });
    const faults = listFaults(page);
    await openDrawn(page, name, gallery.html(name));
    await openAll(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, name);
    assert.deepEqual(faults, [], name);
    await page.close();
  }
});

// Approvals: with hand-written logs, the requests of the page for a decision; with
// the demo agent, the calls that run.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import { LOOKS, answered, card, field, openSession, sendMessage, seen, sessionOf, setRoot } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

const ROUTE = "POST /api/sessions/approval/calls/r1.1/approval";
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** @param {any} t @param {object} [options] */
async function open(t, options) {
  const page = await browser.newPage(t, options);
  const drawn = await openDrawn(page, "approval", gallery.html("approval"));
  return { page, asks: card(page), ...drawn };
}

/** The requests of the page during an action. @param {{asked: any[]}} opened @param {() => Promise<void>} act */
async function answer({ asked }, act) {
  await act();
  await until(async () => asked.length > 0);
  return asked;
}

/** Waits until the page has handled all key presses. @param {import("playwright-core").Page} page */
const settled = (page) => page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume))));

/** @param {import("playwright-core").Page} page */
const focused = (page) => page.evaluate(() => document.activeElement?.id || document.activeElement?.tagName);

for (const [key, scope, name] of [
  ["1", "once", "Allow once"],
  ["2", "session", "Allow for this session"],
]) {
  test(`${name}: works by click and by the key ${key} in the card`, async (t) => {
    const expected = [{ what: ROUTE, body: { decision: "accepted", scope } }];
    const clicked = await open(t);
    const click = () => clicked.asks.getByRole("button", { name }).click();
    assert.deepEqual(await answer(clicked, click), expected);
    const pressed = await open(t);
    await pressed.page.keyboard.press("Alt+a");
    assert.deepEqual(await answer(pressed, () => pressed.page.keyboard.press(key)), expected);
  });
}

test("\"always\" takes two steps and can be left after the first", async (t) => {
  for (const how of ["click", "key"]) {
    const opened = await open(t);
    const { page, asks, asked } = opened;
    const first = async () => {
      if (how === "click") return asks.getByRole("button", { name: "Always…" }).click();
      await page.keyboard.press("Alt+a");
      return page.keyboard.press("3");
    };
    const sure = asks.getByRole("button", { name: "Yes, always allow" });
    await first();
    await sure.waitFor();
    assert.match((await seen(asks.locator(".always")))[0] ?? "", /in every session, never ask again about/);
    await page.keyboard.press("3");
    await page.keyboard.press("Escape");
    await sure.waitFor({ state: "hidden" });
    assert.deepEqual(asked, [], how);
    await first();
    const confirm = () => (how === "click" ? sure.click() : page.keyboard.press("Enter"));
    assert.deepEqual(await answer(opened, confirm), [{ what: ROUTE, body: { decision: "accepted", scope: "always" } }]);
  }
});

test("arguments can be edited, and the card shows what is wrong with them", async (t) => {
  const opened = await open(t);
  await opened.asks.getByText("Edit before running").click();
  const edited = opened.asks.getByRole("textbox", { name: "Arguments" });
  assert.equal(await edited.inputValue(), '{\n  "command": "rm -r build"\n}');
  await edited.fill('{"command": "rm -r build/tmp');
  const allow = () => opened.asks.getByRole("button", { name: "Allow once" }).click();
  await allow();
  await opened.asks.getByRole("alert").getByText(/not valid JSON/).waitFor();
  assert.deepEqual(opened.asked, []);
  await edited.fill('{"command": "rm -r build/tmp"}');
  // Typed digits are no decision.
  await edited.press("End");
  await edited.press("1");
  await edited.press("Backspace");
  const body = { decision: "accepted", scope: "once", arguments: '{"command": "rm -r build/tmp"}' };
  assert.deepEqual(await answer(opened, allow), [{ what: ROUTE, body }]);
});

test("a closed edit does not change the call", async (t) => {
  for (const how of ["Escape", "click"]) {
    const opened = await open(t);
    const summary = opened.asks.getByText("Edit before running");
    await summary.click();
    await opened.asks.getByRole("textbox", { name: "Arguments" }).fill('{"command": "rm -r /"}');
    if (how === "Escape") await opened.page.keyboard.press("Escape");
    else await summary.click();
    const allow = () => opened.asks.getByRole("button", { name: "Allow once" }).click();
    assert.deepEqual(await answer(opened, allow), [{ what: ROUTE, body: { decision: "accepted", scope: "once" } }], how);
  }
});

test("edited arguments can only be allowed once, by click and by key", async (t) => {
  const { page, asks, asked } = await open(t);
  await asks.getByText("Edit before running").click();
  await asks.getByRole("textbox", { name: "Arguments" }).fill('{"command": "true"}');
  const names = await seen(asks.locator(".decide button"));
  assert.deepEqual(names, ["Allow once 1", "Deny N"]);
  await asks.getByRole("heading").click();
  for (const key of ["2", "3"]) await page.keyboard.press(key);
  await settled(page);
  assert.deepEqual(asked, []);
  await asks.getByText("Edit before running").click();
  assert.equal((await seen(asks.locator(".decide button"))).length, 4);
});

test("deny takes one click or key, and its reason is optional", async (t) => {
  for (const how of ["click", "key", "reason", "reason and Enter"]) {
    const opened = await open(t);
    const { page, asks } = opened;
    const deny = asks.getByRole("button", { name: "Deny" });
    if (how === "key") await page.keyboard.press("Alt+a");
    if (how.startsWith("reason")) {
      await asks.getByText("Add a reason").click();
      await asks.getByRole("textbox", { name: "Reason (optional)" }).fill("Not now.");
    }
    const act = () => (how === "key" ? page.keyboard.press("n") : how.endsWith("Enter") ? page.keyboard.press("Enter") : deny.click());
    const feedback = how.startsWith("reason") ? { feedback: "Not now." } : {};
    assert.deepEqual(await answer(opened, act), [{ what: ROUTE, body: { decision: "rejected", ...feedback } }], how);
  }
});

test("an allowed call runs with edited arguments, a denied call does not run", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  const asks = card(page);
  const made = async () => (await readdir(callboard.workspace)).sort();
  /** @param {string} command @param {() => Promise<void>} decide */
  const ask = async (command, decide) => {
    const count = await page.locator('.messages > .message[data-role="assistant"]').count();
    await sendMessage(page, `run ${command}`);
    await asks.waitFor();
    assert.ok(!(await made()).includes(command.split(" ")[1] ?? ""), "nothing runs unasked");
    await decide();
    await answered(page, count + 1);
    await asks.waitFor({ state: "detached" });
  };
  await ask("touch allowed", () => asks.getByRole("button", { name: "Allow once" }).click());
  assert.deepEqual(await made(), ["allowed"]);
  await ask("touch proposed", async () => {
    await asks.getByText("Edit before running").click();
    const edited = asks.getByRole("textbox", { name: "Arguments" });
    await edited.fill('{"order": "touch changed"}');
    await asks.getByRole("button", { name: "Allow once" }).click();
    const fault = asks.getByRole("alert");
    await fault.getByText(/do not fit/).waitFor();
    assert.doesNotMatch(await fault.innerText(), /Send shell one JSON object/);
    await edited.fill('{"command": "touch changed"}');
    await asks.getByRole("button", { name: "Allow once" }).click();
  });
  assert.deepEqual(await made(), ["allowed", "changed"]);
  await ask("touch denied", async () => {
    await asks.getByText("Add a reason").click();
    await page.keyboard.press("Tab");
    await page.keyboard.type("Not here.");
    await page.keyboard.press("Enter");
  });
  assert.deepEqual(await made(), ["allowed", "changed"]);
  await setRoot(page, { toolDisplay: "timeline" });
  const decisions = await seen(page.locator(".decision"));
  assert.match(decisions[0] ?? "", /^You allowed this$/);
  assert.match(decisions[1] ?? "", /^You allowed this with other arguments/);
  assert.match(decisions[2] ?? "", /^You denied this: “Not here\.”/);
  const { messages } = await callboard.api(`sessions/${sessionOf(page)}/messages`);
  const calls = messages.flatMap((/** @type {any} */ it) => it.toolCalls ?? []);
  assert.deepEqual(
    calls.map((/** @type {any} */ it) => [it.state, it.error?.code, it.args.command]),
    [
      ["succeeded", undefined, "touch allowed"],
      ["succeeded", undefined, "touch changed"],
      ["denied", "tool_denied", "touch denied"],
    ],
  );
});

for (const [where, options] of Object.entries({ "": {}, ", on a phone": PHONE })) {
  test(`every look has one card above the composer and a link to it${where}`, async (t) => {
    const { page, asks } = await open(t, options);
    for (const look of LOOKS) {
      await setRoot(page, { toolDisplay: look });
      const shown = await seen(asks);
      assert.equal(shown.length, 1);
      assert.match(shown[0] ?? "", /^Run a command in lighthouse\/ .*rm -r build.*takes 4 GB.*Press Esc twice to stop the run/);
      assert.deepEqual(await seen(page.locator(".tool-block .approval")), ["Waiting for your decision Show"], look);
      assert.ok(await field(page).isVisible(), look);
      assert.equal(await page.getByRole("button", { name: "Allow once" }).count(), 1, look);
    }
    await setRoot(page, { toolDisplay: "widget", showToolCalls: "false" });
    assert.equal((await seen(page.locator(".tool-block .approval"))).length, 1, "also without calls");
    await page.locator(".approval").getByRole("button", { name: "Show" }).click();
    assert.ok(await asks.evaluate((it) => it === document.activeElement));
  });
}

test("the composer works while an approval is open", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "run touch made");
  await card(page).waitFor();
  await page.locator("#attach").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("hello") });
  await page.locator("#files button").waitFor();
  await sendMessage(page, "and then say hello");
  await page.locator(".queued .bubble", { hasText: "and then say hello" }).waitFor();
  assert.ok(await card(page).isVisible());
  assert.deepEqual(await readdir(callboard.workspace), []);
});

test("the tab and the list show that a session waits for a person", async (t) => {
  const { page } = await open(t);
  assert.equal(await page.title(), "(!) Clean the build folder · Callboard");
  const line = page.locator("#sessions-approval");
  assert.match(await line.innerText(), /waiting for you/);

  const other = await browser.newPage(t, PHONE);
  const { sendFrame } = await openDrawn(other, "decided", gallery.html("decided"));
  assert.equal(await other.title(), "(!) Approvals that were decided · Callboard");
  const menu = other.getByRole("button", { name: "Sessions, 1 waiting for you" });
  assert.equal(await menu.evaluate((it) => getComputedStyle(it, "::after").content), '"1"');
  assert.equal(await menu.getAttribute("data-waiting"), "1");
  sendFrame({ type: "session_deleted", id: "approval" });
  sendFrame({ type: "patch", sessions: true, ops: [] });
  await other.waitForFunction(() => document.title === "Approvals that were decided · Callboard");
  await other.getByRole("button", { name: "Sessions", exact: true }).waitFor();
});

test("an approval appears and disappears live, and its decision stays", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("decided");
  const { patch } = await openDrawn(page, "decided", first);
  /** @type {number[]} */
  const shown = [];
  for (const step of patches) {
    await patch(step);
    const count = await card(page).count();
    if (shown.at(-1) !== count) shown.push(count);
    assert.ok(await field(page).isVisible(), `the composer at ${step.seq}`);
  }
  assert.deepEqual(shown, [0, 1, 0, 1, 0, 1, 0]);
  await setRoot(page, { toolDisplay: "timeline" });
  const decisions = await seen(page.locator(".decision"));
  assert.match(decisions[0] ?? "", /^You allowed this for this session with other arguments/);
  assert.match(decisions[1] ?? "", /^You denied this: “Not in this folder\.”/);
  assert.match(decisions[2] ?? "", /^Nobody answered in time/);
});

/** A session with two approvals, and the patch that adds the second. @param {any} t */
async function openTwice(t) {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("decided");
  const drawn = await openDrawn(page, "decided", first);
  const shown = patches.filter(({ ops }) => ops?.some(([, , html]) => String(html).includes('class="card"')));
  for (const step of patches.filter(({ seq }) => seq <= (shown[0]?.seq ?? 0))) await drawn.patch(step);
  const next = patches.filter(({ seq }) => seq > (shown[0]?.seq ?? 0) && seq <= (shown[1]?.seq ?? 0));
  return { page, next, ...drawn };
}

test("a repeated key or a double click decides one approval only", async (t) => {
  for (const how of ["twice", "held", "click"]) {
    const { page, next, patch, asked } = await openTwice(t);
    const allow = card(page).getByRole("button", { name: "Allow once" });
    const at = await allow.boundingBox();
    const press = async (/** @type {number} */ clickCount) => {
      if (how === "click") {
        await page.mouse.move((at?.x ?? 0) + 5, (at?.y ?? 0) + 5);
        await page.mouse.down({ clickCount });
        await page.mouse.up({ clickCount });
      } else if (how === "twice") await page.keyboard.press("1");
      else await page.keyboard.down("1");
    };
    if (how !== "click") await page.keyboard.press("Alt+a");
    await press(1);
    await until(async () => asked.length > 0);
    for (const step of next) await patch(step);
    await press(2);
    await settled(page);
    assert.equal(asked.length, 1, how);
    await page.keyboard.up("1");
    // A deliberate decision has no delay.
    await page.keyboard.press("Alt+a");
    await page.keyboard.press("1");
    await until(async () => asked.length === 2);
  }
});

test("edits in a card survive a redraw", async (t) => {
  const opened = await open(t);
  await opened.asks.getByText("Edit before running").click();
  await opened.asks.locator(".edited").fill('{"command": "true"}');
  await opened.asks.getByText("Add a reason").click();
  await opened.asks.getByRole("textbox", { name: "Reason (optional)" }).fill("Perhaps");
  const html = await opened.page.evaluate(async () => (await fetch(location.href)).text());
  const parts = await opened.page.evaluate((html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    return [".messages > .message:last-child", ".dock"].map((it) => {
      const found = page.querySelector(it);
      return ["put", found?.id ?? "", found?.outerHTML ?? ""];
    });
  }, html);
  opened.sendFrame({ type: "patch", sessionId: "approval", seq: 1000, ops: parts });
  await opened.page.waitForFunction(() => document.body.dataset.head === "1000");
  assert.equal(await opened.asks.locator(".edited").inputValue(), '{"command": "true"}');
  assert.equal(await opened.asks.getByRole("textbox", { name: "Reason (optional)" }).inputValue(), "Perhaps");
  const allow = () => opened.asks.getByRole("button", { name: "Allow once" }).click();
  const body = { decision: "accepted", scope: "once", arguments: '{"command": "true"}' };
  assert.deepEqual(await answer(opened, allow), [{ what: ROUTE, body }]);
});

test("redrawing an open edit does not take focus from the composer", async (t) => {
  const opened = await open(t);
  const { page } = opened;
  await opened.asks.getByText("Edit before running").click();
  await page.waitForFunction(() => document.activeElement?.matches(".edited"));
  await field(page).focus();
  opened.sendFrame({ type: "reload", sessionId: "approval" });
  await page.keyboard.type("one");
  await page.waitForFunction(() => document.querySelector(".card .edit[open]"));
  await settled(page);
  await settled(page);
  await page.keyboard.type(" two");
  assert.equal(await field(page).inputValue(), "one two");
});

test("a run that asks can be stopped, and screen readers hear the approval", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("approval");
  const { patch, asked } = await openDrawn(page, "approval", first);
  for (const step of patches) await patch(step);
  assert.match((await page.locator("#announcer").textContent()) ?? "", /The agent asks: Run a command in lighthouse/);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await until(async () => asked.length > 0);
  assert.deepEqual(asked.map(({ what }) => what), ["POST /api/sessions/approval/cancel"]);
});

test("one Escape does not stop a run that asks, two in a row do", async (t) => {
  const { page, asked } = await open(t);
  await page.keyboard.press("Escape");
  await page.getByText("Press Esc again to stop the run").waitFor();
  await page.keyboard.press("a");
  await page.keyboard.press("Escape");
  await settled(page);
  assert.deepEqual(asked, [], "another key was between");
  await page.keyboard.press("Escape");
  await until(async () => asked.length > 0);
  assert.deepEqual(asked.map(({ what }) => what), ["POST /api/sessions/approval/cancel"]);
  assert.equal(await field(page).inputValue(), "a");
});

test("a held or a late second Escape does not stop a run that asks", async (t) => {
  const page = await browser.newPage(t);
  await page.clock.install();
  const { asked } = await openDrawn(page, "approval", gallery.html("approval"));
  for (let count = 0; count < 5; count += 1) await page.keyboard.down("Escape");
  await page.keyboard.up("Escape");
  await page.clock.fastForward(2100);
  await page.keyboard.press("Escape");
  await settled(page);
  assert.deepEqual(asked, []);
  await page.clock.fastForward(1900);
  await page.keyboard.press("Escape");
  await until(async () => asked.length > 0);
});

test("one Escape does not stop a run whose card is not shown yet", async (t) => {
  const callboard = await startCallboard(t, { config: NATURAL });
  const session = await callboard.converse();
  const page = await browser.newPage(t);
  let isHeld = false;
  await page.routeWebSocket(/\/ws$/, (route) => {
    const server = route.connectToServer();
    server.onMessage((frame) => {
      isHeld ||= String(frame).includes("card-head");
      if (!isHeld) route.send(frame);
    });
  });
  await page.goto(`${callboard.base}s/${session}?token=${callboard.token}`);
  await sendMessage(page, "run touch made");
  await until(async () => isHeld);
  const types = async () => (await callboard.events(session)).map(({ type }) => type);
  await page.waitForFunction(() => document.querySelector(".now")?.getAttribute("data-state") === "running");
  assert.ok((await types()).includes("tool_approval_requested"));
  await page.keyboard.press("Escape");
  await page.getByText("Press Esc again to stop the run").waitFor();
  assert.ok(!(await types()).includes("cancel_requested"));
  await page.keyboard.press("Escape");
  await until(async () => (await types()).includes("run_finish"));
});

test("the card gets focus only by an action of the person", async (t) => {
  const { page, asks, asked } = await open(t);
  const isIn = () => asks.evaluate((it) => it.contains(document.activeElement));
  assert.ok(!(await isIn()), "not when it comes");
  await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
  await page.keyboard.type("123n?/go");
  assert.equal(await field(page).inputValue(), "123n?/go");
  assert.deepEqual(asked, []);
  await page.keyboard.press("Alt+a");
  assert.ok(await isIn(), "by its shortcut");
  await page.keyboard.type("hello n");
  assert.equal(await field(page).inputValue(), "123n?/gohello n", "other letters go to the composer");
  await asks.getByRole("heading").click();
  assert.ok(await isIn(), "by a click");
  await page.keyboard.press("?");
  assert.equal(await page.getByRole("dialog", { name: "Keyboard shortcuts" }).count(), 0);
  await page.keyboard.press("Shift+Tab");
});

test("characters typed with Option on macOS stay in the composer", async (t) => {
  const { page } = await open(t);
  for (const [key, code] of [["å", "KeyA"], ["Å", "KeyA"], ["ø", "KeyO"], ["©", "KeyG"], ["Dead", "KeyN"]]) {
    await field(page).focus();
    const isTaken = await field(page).evaluate((it, event) => {
      const init = { ...event, altKey: true, bubbles: true, cancelable: true };
      return !it.dispatchEvent(new KeyboardEvent("keydown", init));
    }, { key, code });
    assert.deepEqual([isTaken, await focused(page)], [false, "text"], key);
  }
  await page.keyboard.press("Alt+a");
  assert.ok(await card(page).evaluate((it) => it === document.activeElement));
});

test("Escape keeps the text of an edited message while an approval is open", async (t) => {
  const { page, asked } = await open(t);
  await field(page).fill("draft");
  await page.locator("[data-action=edit]").first().focus();
  for (const escapes of ["draft\nClean the build folder, please. 12n", "draft"]) {
    await page.locator("[data-action=edit]").first().focus();
    await page.keyboard.press("Enter");
    await page.locator("#editing").waitFor();
    if (escapes !== "draft") await page.keyboard.type(" 12n");
    await page.keyboard.press("Escape");
    await page.locator("#editing").waitFor({ state: "hidden" });
    assert.match(await field(page).inputValue(), escapes === "draft" ? /^draft$/ : /^draft\n.+ 12n$/);
    await field(page).fill("draft");
  }
  assert.deepEqual(asked, []);
});

test("of several approvals one is shown, with a link to the next", async (t) => {
  const page = await browser.newPage(t, { viewport: { width: 640, height: 430 } });
  const { sendFrame } = await openDrawn(page, "approval", gallery.html("approval"));
  const html = await page.evaluate(() => {
    const first = document.querySelector(".card");
    const lines = first?.querySelector(".command code");
    if (lines) lines.textContent = Array.from({ length: 60 }, (_, idx) => `echo ${idx}`).join("\n");
    return first?.outerHTML ?? "";
  });
  const id = await card(page).getAttribute("id");
  const [second, third] = ["second", "third"].map((name) => html.replaceAll(`${id}`, name).replace("r1.1", name));
  // The third is of another agent in an exchange.
  const peer = `<div id="x0" class="peer"><div class="fetched"><div class="dock">${third}</div></div></div>`;
  const ops = [second, peer].map((it) => ["add", "approval-dock", it]);
  sendFrame({ type: "patch", sessionId: "approval", seq: 1000, ops });
  await page.waitForFunction(() => document.body.dataset.head === "1000");
  const dock = page.locator(".foot > .dock");
  /** @type {any[]} */
  const shown = [];
  for (let idx = 0; idx < 4; idx += 1) {
    const words = await seen(card(page).locator(".place span"));
    shown.push(await card(page).evaluateAll((all) => all.map((it) => it.dataset.callId)), ...words);
    assert.equal(await dock.evaluate((it) => it.scrollTop), 0);
    await dock.evaluate((it) => it.scrollTo(0, 300));
    assert.ok((await dock.evaluate((it) => it.scrollTop)) > 100);
    await card(page).getByRole("button", { name: "Next" }).evaluate((it) => /** @type {any} */ (it).click());
  }
  assert.deepEqual(shown, [["r1.1"], "1 of 3", ["second"], "2 of 3", ["third"], "3 of 3", ["r1.1"], "1 of 3"]);
  // Redrawn, it counts only the approvals of its own session.
  sendFrame({ type: "patch", sessionId: "approval", seq: 1001, ops: [["put", `${id}`, html]] });
  await page.waitForFunction(() => document.body.dataset.head === "1001");
  assert.deepEqual(await page.locator(".place:not([hidden]) span").allTextContents(), ["1 of 3", "2 of 3", "3 of 3"]);
  // The next approval replaces a decided one, scrolled to its top.
  await dock.evaluate((it) => it.scrollTo(0, 300));
  sendFrame({ type: "patch", sessionId: "approval", seq: 1002, ops: [["drop", "second"]] });
  await page.waitForFunction(() => document.body.dataset.head === "1002");
  assert.deepEqual(await seen(card(page).locator(".place span")), ["1 of 2"]);
  assert.equal(await dock.evaluate((it) => it.scrollTop), 0);
});

for (const [name, viewport] of Object.entries({
  "320x568": { width: 320, height: 568 },
  "390x844": { width: 390, height: 844 },
  "640x430": { width: 640, height: 430 },
  "844x390": { width: 844, height: 390 },
  "1280x800": { width: 1280, height: 800 },
})) {
  test(`a card fits its screen with its buttons in view: ${name}`, async (t) => {
    const callboard = await startCallboard(t);
    const page = await openSession(t, browser, callboard, "", { viewport });
    const content = Array.from({ length: 400 }, (_, idx) => `step ${idx}`).join(" ");
    await sendMessage(page, `write ${content} and the end to long.txt`);
    await card(page).waitFor();
    assert.match(await card(page).innerText(), /Create long\.txt.*step 0 .*hidden · Show all.*the end/s);
    const screen = await page.evaluate(() => {
      const box = (/** @type {string} */ selector) => {
        const it = document.querySelector(selector)?.getBoundingClientRect();
        return { top: it?.top ?? NaN, bottom: it?.bottom ?? NaN, left: it?.left ?? NaN, right: it?.right ?? NaN };
      };
      const dock = box(".dock");
      const buttons = [...document.querySelectorAll(".card .buttons button, .card .covers")]
        .filter((it) => it.checkVisibility())
        .map((it) => it.getBoundingClientRect())
        .map(({ top, bottom, left, right }) => ({ top, bottom, left, right }));
      const moreLabel = getComputedStyle(document.querySelector(".decide") ?? document.body, "::before").content;
      const scroller = document.querySelector(".dock");
      const isCut = !!scroller && scroller.scrollHeight > scroller.clientHeight + 8;
      return { dock, buttons, moreLabel, isCut, composer: box("#composer"), width: document.documentElement.scrollWidth };
    });
    const { dock, buttons, composer } = screen;
    assert.ok(screen.width <= viewport.width, "no sideways scrolling");
    assert.ok(dock.top >= 0 && dock.bottom <= composer.top, JSON.stringify(screen));
    assert.ok(composer.bottom <= viewport.height, JSON.stringify(screen));
    assert.ok(buttons.length >= 4);
    for (const it of buttons) {
      assert.ok(it.top >= dock.top && it.bottom <= dock.bottom && it.left >= 0 && it.right <= viewport.width, JSON.stringify(screen));
    }
    assert.equal(/\d+ more lines: scroll to see them/.test(screen.moreLabel), screen.isCut);
    await card(page).getByRole("link", { name: "Show all" }).first().click();
    await card(page).getByText("step 220").first().waitFor();
  });
}

for (const viewport of [{ width: 320, height: 568 }, { width: 640, height: 430 }]) {
  test(`a card counts its hidden lines: ${viewport.width}x${viewport.height}`, async (t) => {
    const callboard = await startCallboard(t);
    const page = await openSession(t, browser, callboard, "", { viewport });
    // It counts as short and is shown in full.
    const words = Array.from({ length: 250 }, (_, idx) => `step${idx}`).join(" ");
    await sendMessage(page, `write ${words} to long.txt`);
    await card(page).waitFor();
    /** Whether the word is visible and not covered. @param {string} word */
    const isSeen = (word) => card(page).evaluate((card, word) => {
      const walk = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        const at = node.nodeValue?.indexOf(word) ?? -1;
        if (at < 0) continue;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        const { x, y, width, height } = range.getBoundingClientRect();
        return document.elementFromPoint(x + width / 2, y + height / 2) === node.parentElement;
      }
      return false;
    }, word);
    const more = async () => {
      const content = await page.locator(".decide").evaluate((it) => getComputedStyle(it, "::before").content);
      return Number(/(\d+) more lines/.exec(content)?.[1] ?? 0);
    };
    assert.ok(await isSeen("apply to"), "the scope");
    assert.ok(await isSeen("Create"), "the headline");
    const before = await more();
    assert.ok(before > 10 && !(await isSeen("step249")), `${before}`);
    const dock = page.locator(".foot > .dock");
    await dock.evaluate((it) => it.scrollBy(0, 100));
    await until(async () => (await more()) === before - 5);
    await dock.evaluate((it) => it.scrollTo(0, it.scrollHeight));
    await until(async () => (await more()) === 0);
    await until(() => isSeen("step249"));
    assert.ok(await isSeen("apply to"));
  });
}

test("a queued message is edited with Save and Cancel and keeps the focus", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await sendMessage(page, "run touch made");
  await card(page).waitFor();
  for (const text of ["first", "second"]) await sendMessage(page, text);
  const queued = page.locator(".queued", { hasText: "first" });
  const rewrite = async () => {
    await queued.getByText("Edit", { exact: true }).click();
    await page.waitForFunction(() => document.activeElement?.matches(".queued textarea"));
    await page.keyboard.type(" changed");
  };
  await rewrite();
  await page.locator(".queued").getByRole("button", { name: "Cancel" }).filter({ visible: true }).click();
  assert.equal(await queued.locator(".bubble").innerText(), "first");
  assert.notEqual(await focused(page), "BODY");
  await rewrite();
  await page.keyboard.press("Enter");
  await page.locator(".queued .bubble", { hasText: "first changed" }).waitFor();
  assert.notEqual(await focused(page), "BODY");
  for (const left of [1, 0]) {
    await page.locator(".queued").first().getByRole("button", { name: "Remove" }).click();
    await until(async () => (await page.locator(".queued").count()) === left);
    assert.notEqual(await focused(page), "BODY");
  }
});

test("a lasting permission can be undone for ten seconds", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  const asks = card(page);
  for (const [idx, scope] of /** @type {const} */ (["session", "always"]).entries()) {
    await sendMessage(page, `run touch ${scope}`);
    if (scope === "session") await asks.getByRole("button", { name: "Allow for this session" }).click();
    else {
      await asks.getByRole("button", { name: "Always…" }).click();
      await asks.getByRole("button", { name: "Yes, always allow" }).click();
    }
    await page.locator("#undo").getByRole("button", { name: "Undo" }).click();
    await page.locator("#undo").waitFor({ state: "hidden" });
    await answered(page, 2 * idx + 1);
    await sendMessage(page, `run touch ${scope}`);
    await asks.waitFor();
    await asks.getByRole("button", { name: "Deny" }).click();
    await answered(page, 2 * idx + 2);
    assert.equal(await page.locator("#undo").getByRole("button", { name: "Undo" }).count(), 0, "once and deny are final");
  }
  assert.deepEqual((await callboard.api("grants")).grants, []);
});

test("Undo stays for ten seconds, and stays if it fails", async (t) => {
  const page = await browser.newPage(t);
  await page.clock.install();
  await openDrawn(page, "approval", gallery.html("approval"));
  await page.route(/\/undo$/, (route) =>
    route.fulfill({ status: 507, json: { error: { code: "storage", message: "the disk is full" } } }),
  );
  await card(page).getByRole("button", { name: "Allow for this session" }).click();
  const undo = page.locator("#undo").getByRole("button", { name: "Undo" });
  await undo.waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("Press Esc again to stop the run").waitFor();
  await page.clock.fastForward(5000);
  await undo.click();
  await page.getByText("That did not work: the disk is full").waitFor();
  await page.clock.fastForward(4500);
  assert.ok(await undo.isVisible());
  await undo.focus();
  await page.clock.fastForward(1000);
  await undo.waitFor({ state: "detached" });
  assert.equal(await focused(page), "text");
});

test("a session grant shows its rule and can be revoked", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  await setRoot(page, { toolDisplay: "timeline" });
  await sendMessage(page, "run touch made");
  await card(page).getByRole("button", { name: "Allow for this session" }).click();
  await answered(page);
  await sendMessage(page, "run touch made");
  await answered(page, 2);
  const decisions = await seen(page.locator(".decision"));
  assert.deepEqual(decisions, ["You allowed this for this session", "Allowed by your rule: for this session, exactly this command"]);
  await page.getByRole("button", { name: "Settings" }).click();
  const grants = page.locator("#grants");
  await grants.getByText("Allowed in this session").waitFor();
  assert.match((await seen(grants.locator("li")))[0] ?? "", /^Exactly the command touch made by demo in .*Revoke$/);
  await grants.getByRole("button", { name: "Revoke" }).click();
  await grants.locator("li").waitFor({ state: "detached" });
  assert.deepEqual((await callboard.api(`sessions/${sessionOf(page)}/grants`)).grants, []);
  await page.keyboard.press("Escape");
  await sendMessage(page, "run touch made");
  await card(page).waitFor();
});

// Questions of an agent: on hand-written logs, what the page asks of the server when one is answered; with
// the demo agent, what then really runs.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { LOOKS, answered, field, hasRead, openSession, say, seen, sessionOf, setRoot } from "./drive.mjs";
import { openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

const ROUTE = "POST /api/sessions/approval/calls/r1.1/approval";

/** @param {any} t */
async function open(t) {
  const page = await browser.newPage(t);
  const drawn = await openDrawn(page, "approval", gallery.html("approval"));
  return { page, sheet: page.getByRole("alertdialog"), ...drawn };
}

/** What the page asks of the server for this. @param {{asked: any[]}} opened @param {() => Promise<void>} act */
async function answer({ asked }, act) {
  await act();
  await until(async () => asked.length > 0);
  return asked;
}

for (const [key, scope, name] of [
  ["1", "once", "Allow once"],
  ["2", "session", "Allow for this session"],
  ["3", "always", "Always allow"],
]) {
  test(`${name}: by click and by the key ${key}`, async (t) => {
    const expected = [{ what: ROUTE, body: { decision: "accepted", scope } }];
    const clicked = await open(t);
    const click = () => clicked.sheet.getByRole("button", { name }).click();
    assert.deepEqual(await answer(clicked, click), expected);
    const pressed = await open(t);
    assert.deepEqual(await answer(pressed, () => pressed.page.keyboard.press(key)), expected);
  });
}

test("the arguments can be changed before it is allowed", async (t) => {
  const opened = await open(t);
  await opened.sheet.getByText("Change the arguments").click();
  const edited = opened.sheet.getByRole("textbox", { name: "Arguments" });
  assert.equal(await edited.inputValue(), '{\n  "command": "rm -r build"\n}');
  await edited.fill('{"command": "rm -r build/tmp"}');
  // Digits that are written are no answer.
  await edited.press("End");
  await edited.press("1");
  await edited.press("Backspace");
  const allow = () => opened.sheet.getByRole("button", { name: "Allow once" }).click();
  const body = { decision: "accepted", scope: "once", arguments: '{"command": "rm -r build/tmp"}' };
  assert.deepEqual(await answer(opened, allow), [{ what: ROUTE, body }]);
});

test("deny with a note, by click and by the key N", async (t) => {
  const body = { decision: "rejected", feedback: "Not now." };
  for (const how of ["click", "key"]) {
    const opened = await open(t);
    const deny = opened.sheet.getByRole("button", { name: "Deny" });
    if (how === "click") await deny.click();
    else await opened.page.keyboard.press("n");
    const note = opened.sheet.getByRole("textbox", { name: "Why not" });
    await note.waitFor();
    assert.ok(await note.evaluate((it) => it === document.activeElement), "the note has the focus");
    await opened.page.keyboard.type("Not now.");
    const send = () => (how === "click" ? deny.click() : opened.page.keyboard.press("Enter"));
    assert.deepEqual(await answer(opened, send), [{ what: ROUTE, body }], how);
  }
});

test("with a running agent: what was allowed runs, as it was changed, and what was denied does not", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  const sheet = page.getByRole("alertdialog");
  const made = async () => (await readdir(callboard.workspace)).sort();
  /** @param {string} command @param {() => Promise<void>} decide */
  const ask = async (command, decide) => {
    const count = await page.locator('.messages > .message[data-role="assistant"]').count();
    await say(page, `run ${command}`);
    await hasRead(page);
    assert.ok(!(await made()).includes(command.split(" ")[1] ?? ""), "nothing runs unasked");
    await decide();
    await answered(page, count + 1);
    await sheet.waitFor({ state: "detached" });
  };
  await ask("touch allowed", () => sheet.getByRole("button", { name: "Allow once" }).click());
  assert.deepEqual(await made(), ["allowed"]);
  await ask("touch proposed", async () => {
    await sheet.getByText("Change the arguments").click();
    await sheet.getByRole("textbox", { name: "Arguments" }).fill('{"command": "touch changed"}');
    await sheet.getByRole("button", { name: "Allow once" }).click();
  });
  assert.deepEqual(await made(), ["allowed", "changed"]);
  await ask("touch denied", async () => {
    await page.keyboard.press("n");
    await page.keyboard.type("Not here.");
    await page.keyboard.press("Enter");
  });
  assert.deepEqual(await made(), ["allowed", "changed"]);
  await setRoot(page, { toolDisplay: "timeline" });
  const decisions = await seen(page.locator(".decision"));
  assert.match(decisions[0] ?? "", /^Allowed by user/);
  assert.match(decisions[1] ?? "", /^Allowed by user with changed arguments/);
  assert.match(decisions[2] ?? "", /^Denied by user: “Not here\.”/);
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

test("deny without a note", async (t) => {
  const opened = await open(t);
  const deny = opened.sheet.getByRole("button", { name: "Deny" });
  await deny.click();
  assert.deepEqual(await answer(opened, () => deny.click()), [{ what: ROUTE, body: { decision: "rejected" } }]);
});

test("what will run, and why, stands in place of the composer and in its block, in every look", async (t) => {
  const { page, sheet } = await open(t);
  for (const look of LOOKS) {
    await setRoot(page, { toolDisplay: look });
    const [asked] = await seen(sheet);
    assert.match(asked ?? "", /Waiting for you: shell .*rm -r build.*takes 4 GB/);
    assert.equal((await seen(page.locator(".tool-block .approval"))).length, 1, look);
    assert.ok(!(await field(page).isVisible()), look);
  }
  await setRoot(page, { toolDisplay: "widget", showToolCalls: "false" });
  assert.equal((await seen(page.locator(".tool-block .approval"))).length, 1, "also without calls");
});

test("the tab and the list say that a session waits, until it does not", async (t) => {
  const { page } = await open(t);
  assert.equal(await page.title(), "(!) Clean the build folder · Callboard");
  const line = page.locator("#sessions-approval");
  assert.match(await line.innerText(), /waiting for you/);

  const other = await browser.newPage(t);
  const { say } = await openDrawn(other, "decided", gallery.html("decided"));
  assert.equal(await other.title(), "(!) Approvals that were decided · Callboard");
  say({ type: "session_deleted", id: "approval" });
  say({ type: "patch", sessions: true, ops: [] });
  await other.waitForFunction(() => document.title === "Approvals that were decided · Callboard");
});

test("a question comes and goes live, and its answer stays with the call", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("decided");
  const { patch } = await openDrawn(page, "decided", first);
  const sheet = page.getByRole("alertdialog");
  /** @type {number[]} */
  const shown = [];
  for (const step of patches) {
    await patch(step);
    const count = await sheet.count();
    if (shown.at(-1) !== count) shown.push(count);
    assert.equal(await field(page).isVisible(), count === 0, `the composer at ${step.seq}`);
  }
  assert.deepEqual(shown, [0, 1, 0, 1, 0, 1, 0]);
  await setRoot(page, { toolDisplay: "timeline" });
  const decisions = await seen(page.locator(".decision"));
  assert.match(decisions[0] ?? "", /^Allowed for this session by user with changed arguments/);
  assert.match(decisions[1] ?? "", /^Denied by user: “Not in this folder\.”/);
  assert.match(decisions[2] ?? "", /^Nobody answered in time/);
});

test("whoever is writing when a question comes does not answer it by writing", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("approval");
  const { patch, asked } = await openDrawn(page, "approval", first);
  for (const step of patches.slice(0, -1)) await patch(step);
  await field(page).focus();
  await page.keyboard.type("item ");
  for (const step of patches.slice(-1)) await patch(step);
  await page.getByRole("alertdialog").waitFor();
  await page.keyboard.type("123 n");
  assert.equal(await field(page).inputValue(), "item 123 n");
  assert.deepEqual(asked, []);
});

/** A session that has asked twice, and the patch with which the second question comes. @param {any} t */
async function openTwice(t) {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("decided");
  const drawn = await openDrawn(page, "decided", first);
  const shown = patches.filter(({ ops }) => ops?.some(([, , html]) => String(html).includes("alertdialog")));
  for (const step of patches.filter(({ seq }) => seq <= (shown[0]?.seq ?? 0))) await drawn.patch(step);
  await hasRead(page);
  const next = patches.filter(({ seq }) => seq > (shown[0]?.seq ?? 0) && seq <= (shown[1]?.seq ?? 0));
  return { page, next, ...drawn };
}

test("a key that is pressed twice or held, or a double click, answers one question and not the next", async (t) => {
  for (const how of ["twice", "held", "click"]) {
    const { page, next, patch, asked } = await openTwice(t);
    const allow = page.getByRole("alertdialog").getByRole("button", { name: "Allow once" });
    const at = await allow.boundingBox();
    const act = async () => {
      if (how === "click") await page.mouse.click((at?.x ?? 0) + 5, (at?.y ?? 0) + 5);
      else if (how === "twice") await page.keyboard.press("1");
      else await page.keyboard.down("1");
    };
    await act();
    await until(async () => asked.length > 0);
    for (const step of next) await patch(step);
    await act();
    await page.waitForFunction(() => !document.body.matches(".just-asked"));
    if (how === "held") await act();
    assert.equal(asked.length, 1, how);
    await page.keyboard.up("1");
    await page.keyboard.press("1");
    await until(async () => asked.length === 2);
  }
});

test("what is changed in the block counts where it is allowed in the sheet, and stays when all is drawn again", async (t) => {
  const opened = await open(t);
  const block = opened.page.locator(".approval");
  await block.getByText("Change the arguments").click();
  await block.locator(".edited").fill('{"command": "true"}');
  await opened.sheet.getByRole("button", { name: "Deny" }).click();
  await opened.sheet.getByRole("textbox", { name: "Why not" }).fill("Perhaps");
  const html = await opened.page.evaluate(async () => (await fetch(location.href)).text());
  const parts = await opened.page.evaluate((html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    return [".messages > .message:last-child", ".dock"].map((it) => {
      const found = page.querySelector(it);
      return ["put", found?.id ?? "", found?.outerHTML ?? ""];
    });
  }, html);
  opened.say({ type: "patch", sessionId: "approval", seq: 1000, ops: parts });
  await opened.page.waitForFunction(() => document.body.dataset.head === "1000");
  assert.equal(await block.locator(".edited").inputValue(), '{"command": "true"}');
  assert.ok(await block.locator(".edited").isVisible());
  assert.equal(await opened.sheet.getByRole("textbox", { name: "Why not" }).inputValue(), "Perhaps");
  const allow = () => opened.sheet.getByRole("button", { name: "Allow once" }).click();
  const body = { decision: "accepted", scope: "once", arguments: '{"command": "true"}' };
  assert.deepEqual(await answer(opened, allow), [{ what: ROUTE, body }]);
});

test("the agent can be stopped while it asks, and who does not see the question hears of it", async (t) => {
  const page = await browser.newPage(t);
  const { first, patches } = gallery.replay("approval");
  const { patch, asked } = await openDrawn(page, "approval", first);
  for (const step of patches) await patch(step);
  assert.match((await page.locator("#announcer").textContent()) ?? "", /The agent asks: .*Waiting for you: shell/);
  await page.getByRole("button", { name: "Stop the agent" }).click();
  await until(async () => asked.length > 0);
  assert.deepEqual(asked.map(({ what }) => what), ["POST /api/sessions/approval/cancel"]);
});

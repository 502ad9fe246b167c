// Actions on sessions and messages: write, rename, delete, search, edit, configure, sign in.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard, until } from "./callboard.mjs";
import {
  answered,
  assertSameAfterReload,
  conversationText,
  field,
  openSession,
  sendMessage,
  seen,
  sessionOf,
} from "./drive.mjs";

const browser = useBrowser();

/** @typedef {import("playwright-core").Page} Page */

/** An entry of a session's menu. @param {Page} page @param {string} title @param {string} entry */
async function choose(page, title, entry) {
  await page.getByRole("button", { name: `More for ${title}` }).click();
  await page.getByRole("menuitem", { name: entry, exact: true }).click();
}

test("a draft is kept for each session until it is sent", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard);
  const [one, two] = [page.url(), `${callboard.base}s/${await callboard.converse()}`];
  await field(page).fill("half a thought");
  await page.goto(two);
  assert.equal(await field(page).inputValue(), "");
  await field(page).fill("another");
  await page.goto(one);
  assert.equal(await field(page).inputValue(), "half a thought");
  await page.goto(two);
  assert.equal(await field(page).inputValue(), "another");
  await sendMessage(page, "help");
  await page.reload();
  assert.equal(await field(page).inputValue(), "");
});

test("a sent message shows immediately, and its record replaces it", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  const held = hold(page);
  await field(page).fill("what time is it in Tokyo");
  await page.keyboard.press("Enter");
  await page.locator(".sending .bubble").waitFor();
  assert.deepEqual(await seen(page.locator(".bubble")), ["what time is it in Tokyo"]);
  assert.equal(await field(page).inputValue(), "");
  (await held)("go");
  await answered(page);
  assert.equal(await page.locator(".sending").count(), 0);
  assert.deepEqual(await seen(page.locator(".bubble")), ["what time is it in Tokyo"]);
});

test("a message that cannot be sent returns to the composer", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  const held = hold(page);
  await field(page).fill("one");
  await page.keyboard.press("Enter");
  await page.locator(".sending").waitFor();
  await field(page).fill("two");
  (await held)("fail");
  await page.getByText("the server cannot be reached").waitFor();
  assert.equal(await field(page).inputValue(), "one\ntwo");
  assert.equal(await page.locator(".sending").count(), 0);
});

/** Holds the next message. @param {Page} page @returns {Promise<(what: "go" | "fail") => void>} */
function hold(page) {
  return new Promise((resolve) => {
    void page.route("**/messages", async (route) => {
      const what = await new Promise((decide) => resolve(decide));
      return what === "go" ? route.continue() : route.abort();
    });
  });
}

test("Enter sends, and Shift+Enter adds a line", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  await field(page).focus();
  const before = (await field(page).boundingBox())?.height ?? 0;
  await page.keyboard.type("help");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("please");
  assert.equal(await field(page).inputValue(), "help\nplease");
  assert.ok(((await field(page).boundingBox())?.height ?? 0) > before);
  await page.keyboard.press("Enter");
  await answered(page);
  assert.deepEqual(await page.locator(".bubble").allTextContents(), ["help\nplease"]);
});

test("a message sent during a run is shown as queued and can be removed", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  await sendMessage(page, "help");
  const queued = page.locator(".queued");
  await queued.getByText("starts when the agent has finished").waitFor();
  assert.equal(await page.locator(".sending").count(), 0);
  await queued.getByRole("button", { name: "Remove" }).click();
  await queued.waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await answered(page);
});

test("a session is renamed everywhere, and no text is lost", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo");
  const page = await openSession(t, browser, callboard, session);
  const title = page.getByRole("textbox", { name: "Title" });
  const rename = page.locator(".heading").getByRole("button", { name: "Rename" });
  await rename.click();
  assert.equal(await title.inputValue(), "what time is it in Tokyo");
  await title.fill("Not this");
  await title.press("Escape");
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "what time is it in Tokyo");
  await rename.click();
  await title.fill("  ");
  await title.press("Enter");
  assert.ok(await title.isVisible(), "no title is none");
  await title.fill(" Clocks ");
  await title.press("Enter");
  await page.locator("#sessions .title", { hasText: "Clocks" }).waitFor();
  await page.waitForFunction(() => document.title === "Clocks · Callboard");
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Clocks");
  await choose(page, "Clocks", "Rename");
  assert.equal(await title.inputValue(), "Clocks");
  await title.fill("Watches");
  await page.route("**/api/sessions/*", (route) => route.abort(), { times: 1 });
  await title.press("Enter");
  await page.getByText("That did not work").waitFor();
  assert.equal(await title.inputValue(), "Watches");
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await page.locator("#sessions .title", { hasText: "Watches" }).waitFor();
  await page.reload();
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Watches");
});

test("a session that waits for a person is always in view", async (t) => {
  const callboard = await startCallboard(t);
  const { id: waits } = await callboard.api("sessions", { body: { agent: "demo", title: "Asks" } });
  const ask = async (/** @type {string} */ text) => {
    await callboard.api(`sessions/${waits}/messages`, { body: { text } });
    await until(async () => (await callboard.api(`sessions/${waits}`)).state === "waiting");
  };
  await ask("run touch one");
  for (let idx = 0; idx < 105; idx++) await callboard.api("sessions", { body: { agent: "demo" } });
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const first = page.locator("#sessions > li").nth(1);
  const isCalledFor = async () => {
    await page.waitForFunction(() => document.title.startsWith("(!) "));
    assert.equal((await seen(page.locator("#sessions > li")))[0], "Waiting for you");
    assert.match(await first.innerText(), /waiting for you\s+Asks/);
    assert.equal(await page.locator("#sessions [data-state=waiting] > a").count(), 1, "once");
  };
  for (const path of ["", "?archived=true", `s/${await callboard.converse("help")}`]) {
    await page.goto(callboard.base + path);
    await isCalledFor();
    const [call] = (await callboard.events(waits)).filter(({ type }) => type === "tool_call_start").slice(-1);
    await callboard.api(`sessions/${waits}/calls/${call?.callId}/approval`, { body: { decision: "rejected" } });
    await page.waitForFunction(() => !document.title.startsWith("(!) "));
    assert.equal(await page.getByText("Waiting for you").count(), 0);
    await until(async () => (await callboard.api(`sessions/${waits}`)).state === "idle");
    await ask("run touch two");
    await isCalledFor();
  }
});

test("an archived session leaves the list and can be restored", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  const page = await openSession(t, browser, callboard, session);
  const line = page.locator(`#sessions-${session}`);
  await choose(page, "help", "Archive");
  await page.locator(".heading[data-archived]").waitFor();
  assert.match(await page.locator(".heading").innerText(), /archived/);
  await line.waitFor({ state: "detached" });
  assert.equal((await callboard.api(`sessions/${session}`)).archived, true);
  await page.reload();
  assert.equal(await line.count(), 0, "it stays away");
  await callboard.api(`sessions/${session}`, { method: "PATCH", body: { archived: false } });
  await line.waitFor();
  await page.locator(".heading:not([data-archived])").waitFor();
});

test("a line separates the list from the archive link", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  await callboard.api(`sessions/${session}`, { method: "PATCH", body: { archived: true } });
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  const line = await page.locator(".elsewhere").evaluate((it) => {
    const { borderTopWidth, borderTopColor } = getComputedStyle(it);
    return { borderTopWidth, isSeen: borderTopColor !== getComputedStyle(/** @type {Element} */ (it.parentElement)).backgroundColor };
  });
  assert.deepEqual(line, { borderTopWidth: "1px", isSeen: true });
  await page.goto(`${callboard.base}?archived=true`);
  const left = (/** @type {string} */ selector) =>
    page.locator(selector).first().evaluate((it) => {
      const text = document.createRange();
      text.selectNodeContents(it);
      return text.getBoundingClientRect().left;
    });
  assert.equal(await left("#sidebar h2"), await left("#sessions .day"));
});

test("a current list is not redrawn on a reconnect", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  const page = await browser.newPage(t);
  /** @type {any[]} */
  const frames = [];
  page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => frames.push(JSON.parse(String(payload)))));
  // The settings come after the list.
  const connected = (/** @type {number} */ times) => until(async () => frames.filter(({ type }) => type === "settings").length === times);
  await page.goto(callboard.url);
  await connected(1);
  const line = page.locator(`#sessions-${session}`);
  await line.evaluate((it) => Object.assign(it, { isSame: true }));
  await page.context().setOffline(true);
  await page.getByText("Connection lost").waitFor();
  await page.context().setOffline(false);
  await connected(2);
  assert.deepEqual(frames.filter(({ type, sessions }) => type === "patch" && sessions), []);
  assert.ok(await line.evaluate((it) => /** @type {any} */ (it).isSame), "the element is the same");
});

test("sessions are grouped by day in the reader's time zone", async (t) => {
  const callboard = await startCallboard(t);
  const ages = { today: 0, yesterday: 1, week: 6, older: 50 };
  const noon = new Date().setUTCHours(12, 0, 0, 0);
  for (const [id, days] of Object.entries(ages)) {
    const at = new Date(noon - days * 86_400_000).toISOString();
    await callboard.importLog(id, [{ type: "session_created", agent: "demo", title: id, at }]);
  }
  const timeZone = "Europe/Paris";
  const monthOf = { month: "long", year: "numeric", timeZone };
  const older = new Date(noon - ages.older * 86_400_000).toLocaleDateString("en", /** @type {any} */ (monthOf));
  const page = await browser.newPage(t, { timezoneId: timeZone });
  await page.clock.install({ time: noon });
  await page.goto(callboard.url);
  const words = () => page.locator("#sessions :is(.day, .title)").allInnerTexts();
  const first = ["Today", "today", "Yesterday", "yesterday", "Previous 7 days", "week"];
  assert.deepEqual(await words(), [...first, older, "older"]);
  await callboard.api("sessions/week/messages", { body: { text: "help" } });
  // A session with a new message belongs to today.
  await until(async () => `${(await words()).filter((it) => /^[A-Z]/.test(it))}` === `${["Today", "Yesterday", older]}`);
  await page.clock.fastForward(86_400_000);
  assert.ok((await words()).includes("Previous 7 days"), "yesterday is two days ago");
});

test("search finds words in all sessions and links to them", async (t) => {
  const callboard = await startCallboard(t);
  const clocks = await callboard.converse("what time is it in Tokyo", "help", "write a report about tea");
  await callboard.converse("help");
  const page = await browser.newPage(t);
  await page.goto(callboard.url);
  await page.keyboard.press("Tab");
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("tokyo");
  const hit = page.locator("#found a").first();
  await hit.waitFor();
  assert.match(await hit.innerText(), /Tokyo/);
  assert.ok((await page.locator("#found mark").count()) > 0, "the word is marked");
  assert.match((await page.locator("#found .ago").first().textContent()) ?? "", /^\d+[smhd]$/);
  const lines = await page.locator("#found a").evaluateAll((hits) =>
    hits.map((it) => ({
      session: it.getAttribute("href")?.split("#")[0],
      hasTitle: !!it.querySelector(":scope > span[dir]:not(.snippet)"),
    })),
  );
  assert.ok(lines.length > 1);
  for (const [at, { session, hasTitle }] of lines.entries()) {
    assert.equal(hasTitle, session !== lines[at - 1]?.session, `hit ${at}`);
  }
  await hit.click();
  await page.waitForURL(new RegExp(`/s/${clocks}#m=`));
  await page.locator("#query").fill("no-such-word-anywhere");
  await page.getByText("No results").waitFor();
  await page.locator("#query").press("Escape");
  await page.locator("#sessions li").first().waitFor();
});

test("an earlier message can be edited, and a link shows what it replaced", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  await sendMessage(page, "what time is it in Tokyo");
  await answered(page);
  await sendMessage(page, "help");
  await answered(page, 2);
  const first = page.locator('.message[data-role="user"]').first();
  await first.hover();
  await first.getByRole("button", { name: "Edit and send again" }).click();
  assert.equal(await field(page).inputValue(), "what time is it in Tokyo");
  await page.getByText("everything after this message will be replaced").waitFor();
  await field(page).fill("what time is it in Paris");
  await page.keyboard.press("Enter");
  const rewound = page.locator(".rewound");
  await rewound.waitFor();
  await page.getByText("In Paris it is").waitFor();
  await answered(page);
  assert.equal(await rewound.locator("> summary").innerText(), "4 earlier messages (replaced)");
  const bubbles = page.locator(".bubble");
  assert.deepEqual(await seen(bubbles), ["what time is it in Paris"]);
  await rewound.locator("> summary").click();
  const shown = await bubbles.filter({ visible: true }).allTextContents();
  assert.deepEqual(shown, ["what time is it in Tokyo", "help", "what time is it in Paris"]);
  await assertSameAfterReload(page);
  assert.equal(await field(page).inputValue(), "");
});

test("settings apply immediately, after a reload and in other tabs", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("what time is it in Tokyo");
  const page = await openSession(t, browser, callboard, session);
  const other = await openSession(t, browser, callboard, session);
  await page.getByRole("button", { name: "Settings" }).click();
  const saved = () => page.waitForResponse((it) => it.url().endsWith("/api/settings"));
  for (const [name, choice, isOn] of /** @type {[string, string, boolean][]} */ ([
    ["Tool calls", "badges", true],
    ["Theme", "dark", true],
    ["Show time, tokens and cost", "", true],
  ])) {
    const answer = saved();
    if (choice) await page.getByRole("combobox", { name }).selectOption(choice);
    else await page.getByLabel(name).setChecked(isOn);
    assert.equal((await answer).status(), 200);
  }
  const look = (/** @type {Page} */ it) =>
    it.evaluate(() => {
      const { toolDisplay, theme, showTiming } = document.documentElement.dataset;
      return { toolDisplay, theme, showTiming };
    });
  const wanted = { toolDisplay: "badges", theme: "dark", showTiming: "true" };
  assert.deepEqual(await look(page), wanted);
  await page.keyboard.press("Escape");
  assert.deepEqual(await seen(page.locator(".tool-call-badge")), ["time"]);
  await page.reload();
  assert.deepEqual(await look(page), wanted);
  await other.reload();
  assert.deepEqual(await look(other), wanted);
});

test("? lists the keys, and each works", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t));
  await field(page).blur();
  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await sheet.waitFor();
  assert.match(await sheet.innerText(), /Esc\s+close what is open; if nothing is, stop the agent/);
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "hidden" });
  await page.locator("body").press("h");
  await page.keyboard.type("ow?");
  assert.equal(await field(page).inputValue(), "how?", "text goes to the composer, and is no shortcut there");
  await field(page).fill("");
  await sendMessage(page, "what time is it in Tokyo");
  await answered(page);
  await field(page).blur();
  await page.keyboard.press("Alt+o");
  await page.locator(".tool-block").first().waitFor();
  await page.keyboard.press("Alt+n");
  await page.getByRole("heading", { name: "What would you like to do?" }).waitFor();
});

test("Escape closes one layer at a time before it stops the run", async (t) => {
  const page = await openSession(t, browser, await startCallboard(t, { config: NATURAL }));
  await sendMessage(page, "tell me a story");
  await page.getByText("Once there was").waitFor();
  /** @type {string[]} */
  const stops = [];
  page.on("request", (it) => new URL(it.url()).pathname.endsWith("/cancel") && stops.push(it.url()));
  const bubble = page.locator('.message[data-role="user"]').first();
  await bubble.hover();
  await bubble.getByRole("button", { name: "Edit and send again" }).click();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menu").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "hidden" });
  assert.ok(await page.locator("#editing").isVisible(), "one thing at a time");
  await page.keyboard.press("Escape");
  await page.locator("#editing").waitFor({ state: "hidden" });
  assert.deepEqual(stops, []);
  await page.keyboard.press("Escape");
  await answered(page);
  assert.equal(stops.length, 1);
  assert.match(await conversationText(page), /Interrupted/);
});

test("the menu works by keyboard", async (t) => {
  const callboard = await startCallboard(t);
  const page = await openSession(t, browser, callboard, await callboard.converse("help"));
  await page.getByRole("button", { name: "More", exact: true }).press("Enter");
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  assert.equal(await focused(), "Rename");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "Archive");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(), "Delete");
  const link = page.getByRole("menuitem", { name: "Export as HTML" });
  assert.equal(await link.getAttribute("href"), `/api/sessions/${sessionOf(page)}/export?format=html`);
  assert.ok(!(await page.getByText("Raw output").isVisible()), "no program has written anything");
  await page.getByRole("menuitem", { name: "Rename" }).press("Enter");
  await page.getByRole("dialog", { name: "Rename" }).waitFor();
});

test("a server with a password asks for it", async (t) => {
  const callboard = await startCallboard(t);
  callboard.setPassword("correct horse battery");
  const page = await browser.newPage(t);
  await page.goto(callboard.base);
  await page.getByLabel("Password").fill("wrong horse battery");
  await page.keyboard.press("Enter");
  await page.getByText("the password is wrong").waitFor();
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "What would you like to do?" }).waitFor();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("link", { name: "Sign out" }).click();
  await page.getByLabel("Password").waitFor();
});

test("renaming and archiving keep the position in the list", async (t) => {
  const callboard = await startCallboard(t);
  const oldest = await callboard.converse("time in Lima");
  for (let n = 0; n < 40; n++) await callboard.api("sessions", { body: { agent: "demo", title: `Session ${n}` } });
  const { updatedAt } = await callboard.api(`sessions/${oldest}`);
  const page = await openSession(t, browser, callboard, oldest);
  const line = page.locator(`#sessions-${oldest}`);
  const isInView = () =>
    line.evaluate((it) => {
      const { top, bottom } = it.getBoundingClientRect();
      const list = /** @type {Element} */ (it.closest(".scroller")).getBoundingClientRect();
      return top >= list.top - 1 && bottom <= list.bottom + 1;
    });
  assert.ok(await isInView());
  const place = () => line.evaluate((it) => [...(it.parentElement?.querySelectorAll("[data-session-id]") ?? [])].indexOf(it));
  assert.equal(await place(), 40);
  await callboard.api(`sessions/${oldest}`, { method: "PATCH", body: { title: "Clocks" } });
  await line.getByText("Clocks").waitFor();
  assert.equal(await place(), 40);
  await callboard.api(`sessions/${oldest}`, { method: "PATCH", body: { archived: true } });
  await line.waitFor({ state: "detached" });
  assert.equal((await callboard.api(`sessions/${oldest}`)).updatedAt, updatedAt);
});

test("the first message is the title, shortened, and an edit changes it", async (t) => {
  const callboard = await startCallboard(t);
  const words = "please look for the keeper of the lighthouse who forgot to fill the lamps with oil";
  const page = await openSession(t, browser, callboard, await callboard.converse(words));
  const title = page.getByRole("heading", { level: 1 });
  assert.equal(await title.innerText(), words);
  assert.ok(await title.evaluate((it) => it.scrollWidth <= it.clientWidth), "there is room for all of it");
  const first = page.locator('.message[data-role="user"]').first();
  await first.hover();
  await first.getByRole("button", { name: "Edit and send again" }).click();
  await field(page).fill("what time is it in Paris");
  await page.keyboard.press("Enter");
  await page.locator(".heading h1", { hasText: "what time is it in Paris" }).waitFor();
  await page.locator("#sessions .title", { hasText: "what time is it in Paris" }).waitFor();
});

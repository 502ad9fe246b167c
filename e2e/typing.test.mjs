// Typed text decides nothing. While 200 questions appear, random text is typed at random moments: no question is
// answered or withdrawn, and no letter is lost, also not where Enter has opened an earlier message for editing or
// saved a title. SEED repeats a run.

import assert from "node:assert/strict";
import { test } from "node:test";

import { startStage } from "./agents.mjs";
import { useBrowser } from "./browser.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { card, field, openSession, sessionOf } from "./drive.mjs";

const browser = useBrowser();
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
/** Questions of the demo agent in a session, sessions, and questions of Claude Code: 200 in all. */
const DEMO = 20;
const SESSIONS = 9;
const CLAUDE = 20;
/** The first message of every session, which can be edited. */
const FIRST = "play:hello";
const PLACES = /** @type {const} */ (["empty", "draft", "page", "edit", "dialog"]);
/** Keys that would decide in the card are frequent. */
const LETTERS = [..."1123nny0456789abcdefghijklmopqrstuvwxzNAO"];

/** mulberry32 */
function random(seed = 0) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    below: (/** @type {number} */ n) => Math.floor(next() * n),
    chance: (/** @type {number} */ p) => next() < p,
    /** @template T @param {readonly T[]} list */
    of: (list) => /** @type {T} */ (list[Math.floor(next() * list.length)]),
  };
}

/** A simulated person who types on a page, and the typed text. */
class Typist {
  typed = "";
  last = "";
  /** Enter would press a button. */
  isOnButton = false;
  /** An earlier message is in the composer; Enter would send it again. */
  isEditing = false;

  /** @param {import("playwright-core").Page} page @param {ReturnType<typeof random>} chance @param {typeof PLACES[number]} place */
  constructor(page, chance, place) {
    this.page = page;
    this.chance = chance;
    this.place = place;
  }

  async begin() {
    const { page } = this;
    await field(page).fill(this.place === "draft" ? "draft" : "");
    if (this.place === "draft") this.typed = "draft";
    if (this.place === "dialog") {
      await page.locator(".titled > button").click();
      await page.getByRole("textbox", { name: "Title" }).fill("");
    } else await this.turn();
  }

  /** Moves the focus to a possible place before an approval appears. */
  async turn() {
    const { page } = this;
    if (this.place === "page") await page.evaluate(() => /** @type {any} */ (document.activeElement)?.blur());
    else if (this.place === "edit") await page.locator("[data-action=edit]").first().focus();
    else await field(page).focus();
    this.isOnButton = this.place === "edit";
  }

  /** One key. Enter on other buttons than the pencil and a second Escape are more than text. @param {{enter?: boolean, escape?: boolean}} [keys] */
  async press({ enter = true, escape = false } = {}) {
    const { chance } = this;
    const isAside = ["page", "edit"].includes(this.place);
    if (isAside && chance.chance(0.2)) await this.turn();
    const isOnPencil = this.isOnButton && this.place === "edit";
    const key =
      escape && this.last !== "Escape" && chance.chance(0.15) ? "Escape"
      : enter && !this.isEditing && (isOnPencil || !this.isOnButton) && chance.chance(0.1) ? "Enter"
      : !isAside && chance.chance(0.1) ? " "
      : chance.of(LETTERS);
    await this.page.keyboard.press(key);
    if (key === "Escape") this.isEditing = false;
    if (key === "Enter" && isOnPencil) Object.assign(this, { isEditing: true, isOnButton: false });
    if (key.length === 1) {
      this.typed += key;
      this.isOnButton = false;
    }
    this.last = key;
  }

  /** The page shows whether it edits: the pencil may have been redrawn between focus and Enter. */
  edits() {
    return this.page.locator("#editing").isVisible();
  }

  async text() {
    const isOpen = await this.page.locator("#renaming").evaluate((it) => /** @type {any} */ (it).open);
    if (isOpen) return this.page.getByRole("textbox", { name: "Title" }).inputValue();
    const draft = (await this.edits()) ? await this.page.evaluate((key) => localStorage.getItem(key), `draft:${sessionOf(this.page)}`) : "";
    return `${draft}${await field(this.page).inputValue()}`;
  }
}

/** Without blanks, which messages do not begin or end with, and the message that is edited. @param {string} text */
const letters = (text) => text.replaceAll(new RegExp(`\\s|${FIRST}`, "g"), "");

/**
 * Types while a question appears, and a while after.
 * @param {any} callboard @param {import("playwright-core").Page} page @param {string} session
 * @param {string} text @param {ReturnType<typeof random>} chance @param {string} about
 */
async function typeAtQuestion(callboard, page, session, text, chance, about) {
  const typist = new Typist(page, chance, chance.of(PLACES));
  const when = `${about}, focus: ${typist.place}, SEED=${SEED}`;
  const before = (await callboard.events(session)).at(-1)?.seq ?? 0;
  /** @returns {Promise<any[]>} */
  const since = async () => (await callboard.events(session)).filter((/** @type {any} */ it) => it.seq > before);
  await typist.begin();
  for (let left = chance.below(8); left > 0; left -= 1) await typist.press({ enter: false });
  await callboard.api(`sessions/${session}/messages`, { body: { text } });
  const inDialog = typist.place === "dialog";
  while ((await page.locator(".card").count()) === 0) await typist.press({ enter: !inDialog });
  for (let left = 2 + chance.below(10); left > 0; left -= 1) await typist.press({ enter: !inDialog });
  let typed = typist.typed;
  if (inDialog) {
    assert.equal(await typist.text(), typed, when);
    const isSaved = !!typed.trim() && chance.chance(0.5);
    await page.keyboard.press(isSaved ? "Enter" : "Escape");
    if (isSaved) await page.waitForFunction((title) => document.querySelector("h1")?.textContent === title, typed.trim());
    await page.locator("#renaming").waitFor({ state: "hidden" });
    Object.assign(typist, { last: "Escape", place: "page", isOnButton: true });
    typist.typed = typed = "";
  }
  for (let left = 2 + chance.below(16); left > 0; left -= 1) await typist.press({ escape: true });
  typed = typist.typed;
  // A sent message is pending until the server has it.
  await page.waitForFunction(() => !document.querySelector("#pending > *"));
  const events = await since();
  const decided = events.filter(({ type }) => /^(tool_approval_resolved|cancel_requested|output_cancelled|run_finish)$/.test(type));
  assert.deepEqual(decided, [], when);
  assert.ok(await card(page).isVisible(), when);
  const sent = events.filter((/** @type {any} */ it) => it.type === "message_queued" && it.clientId);
  const kept = sent.map(({ text }) => text).join("") + (await typist.text());
  assert.equal(letters(kept), letters(typed), when);
  if (await typist.edits()) await page.locator("[data-action=stop-editing]").click();
  await callboard.api(`sessions/${session}/queue`, { method: "DELETE" });
  return { call: events.find(({ type }) => type === "tool_approval_requested").callId, since };
}

/** @param {any} callboard @param {string} session @param {string} call @param {() => Promise<any[]>} since */
async function deny(callboard, session, call, since) {
  await callboard.api(`sessions/${session}/calls/${call}/approval`, { body: { decision: "rejected" } });
  await until(async () => (await since()).some(({ type }) => type === "run_finish"));
}

test(`${DEMO * SESSIONS} approvals of the demo agent are not decided by typing`, async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const chance = random(SEED);
  const callboard = await startCallboard(t);
  for (let round = 0; round < SESSIONS; round += 1) {
    const session = await callboard.converse(FIRST);
    const page = await openSession(t, browser, callboard, session);
    for (let number = 0; number < DEMO; number += 1) {
      const about = `demo ${round}.${number}`;
      const { call, since } = await typeAtQuestion(callboard, page, session, `run touch f${number}`, chance, about);
      await deny(callboard, session, call, since);
      await page.locator(".card").waitFor({ state: "detached" });
    }
    await page.context().close();
  }
});

test(`${CLAUDE} approvals of Claude Code are not decided by typing`, async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const chance = random(SEED + 1);
  const stage = await startStage(t, "claude");
  const { callboard } = stage;
  const { id: session } = await stage.open({ asks: true });
  const page = await openSession(t, browser, callboard, session);
  await callboard.api(`sessions/${session}/messages`, { body: { text: FIRST } });
  await until(async () => (await callboard.events(session)).some(({ type }) => type === "run_finish"));
  for (let number = 0; number < CLAUDE; number += 1) {
    const { call, since } = await typeAtQuestion(callboard, page, session, "play:asking", chance, `claude ${number}`);
    await deny(callboard, session, call, since);
    await page.locator(".card").waitFor({ state: "detached" });
  }
});

test("control: the same keys decide in the card and stop the run", async (t) => {
  const callboard = await startCallboard(t);
  const session = await callboard.converse("help");
  const page = await openSession(t, browser, callboard, session);
  const last = async (/** @type {RegExp} */ type) => (await callboard.events(session)).findLast((/** @type {any} */ it) => type.test(it.type));
  for (const [keys, decision] of /** @type {const} */ ([["1", "accepted"], ["2", "accepted"], ["n", "rejected"]])) {
    await callboard.api(`sessions/${session}/messages`, { body: { text: `run touch file${keys}` } });
    await card(page).waitFor();
    await page.keyboard.press("Alt+a");
    await page.keyboard.type(`${keys}more text`);
    await page.locator(".card").waitFor({ state: "detached" });
    assert.equal((await last(/^tool_approval_resolved$/))?.decision, decision, keys);
    assert.equal(await field(page).inputValue(), "more text", "what follows goes to the composer");
    await field(page).fill("");
    await until(async () => (await last(/^run_/))?.type === "run_finish");
  }
  await callboard.api(`sessions/${session}/messages`, { body: { text: "run touch stopped" } });
  await card(page).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await until(async () => (await last(/^run_/))?.type === "run_finish");
  assert.equal((await last(/^run_finish$/))?.status, "cancelled");
});

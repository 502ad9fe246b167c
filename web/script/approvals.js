// Approvals: decisions are made in a card, or by its keys while it has focus; then the reader goes on writing.

import { all, byId, closestOrSelf, find, foot, page } from "./dom.js";
import { request } from "./server.js";
import { focusComposer } from "./focus.js";
import { announce, offerUndo } from "./status.js";

/** Height of a line in a card, in pixels. */
const LINE = 20;
/** Fewer hidden pixels than this are only padding. */
const PADDING = 8;

const state = {
  /** Ids of the cards that were announced. @type {string[]} */
  announced: [],
  /** Id of the card that is shown; it stays until it is decided. */
  shown: "",
  /** Hides all cards but the shown one. */
  sheet: new CSSStyleSheet(),
};

export function init() {
  document.adoptedStyleSheets.push(state.sheet);
  addEventListener("resize", updateMore);
  addEventListener("scroll", updateMore, true);
  foot.addEventListener("keydown", denyOnEnter);
}

/** Enter in the field for a reason denies. @param {KeyboardEvent} event */
function denyOnEnter({ key, isComposing, target }) {
  const note = key === "Enter" && !isComposing && target?.closest(".note");
  if (note) find("[data-action=deny]", closestOrSelf(note, ".card"))?.click();
}

export function cards() {
  return all(".card", foot);
}

/** Shows one card of all, and announces new ones; focus stays with the reader's text. */
export function updateCards() {
  const ids = cards().map(({ id }) => id);
  // Cards that were drawn again count only their own session's.
  if (ids.length || state.announced.length) showCard(state.shown);
  if (ids.join() === state.announced.join()) return;
  const fresh = cards().find(({ id }) => !state.announced.includes(id));
  state.announced = ids;
  if (fresh) announce(`The agent asks: ${find("h2", fresh)?.textContent}. Alt+A goes to the question.`);
}

/** Says how many lines of a card are hidden below its buttons. */
export function updateMore() {
  const dock = find(".dock:has(.card)", foot);
  const hidden = dock ? dock.scrollHeight - dock.scrollTop - dock.clientHeight : 0;
  const isMore = hidden > PADDING;
  if (isMore) foot.style.setProperty("--more", `"↓ ${Math.ceil(hidden / LINE)} more lines: scroll to see them"`);
  byId("more-below")?.toggleAttribute("hidden", !isMore);
}

/** Shows one card, or the first if it is gone; cards of other agents count too. @param {string} id */
function showCard(id) {
  const all = cards();
  const card = all.find((card) => card.id === id) ?? all[0];
  if (card?.id !== state.shown) {
    const dock = find(".dock", foot);
    if (dock) dock.scrollTop = 0;
    state.shown = card?.id ?? "";
    state.sheet.replaceSync(card ? `.card:not(#${CSS.escape(state.shown)}) { display: none }` : "");
  }
  for (const [idx, card] of all.entries()) numberCard(card, idx, all.length);
  updateMore();
}

/** @param {HTMLElement} card @param {number} idx @param {number} count */
function numberCard(card, idx, count) {
  const place = find(".place", card);
  const text = `${idx + 1} of ${count}`;
  if (place && find("span", place)?.textContent !== text) find("span", place)?.replaceChildren(text);
  place?.toggleAttribute("hidden", count < 2);
}

/** @param {HTMLElement | undefined} card */
export function goToCard(card) {
  if (!card) return;
  showCard(card.id);
  card.focus({ preventScroll: true });
}

/**
 * Sends a decision; one that covers more than this call can be undone.
 * @param {HTMLElement} button @param {object} decision @param {string} [scope]
 */
async function decide(button, decision, scope = "once") {
  const card = closestOrSelf(button, ".card");
  const call = encodeURIComponent(card.dataset.callId ?? "");
  const { sessionId } = closestOrSelf(card, "[data-session-id]").dataset;
  const path = `/api/sessions/${sessionId}/calls/${call}/approval`;
  await request("POST", path, decision);
  const focused = document.activeElement;
  if (focused === page || card.contains(focused)) focusComposer();
  if (scope === "once") return;
  const text = scope === "always" ? "Always allowed" : "Allowed for this session";
  offerUndo(text, () => request("POST", `${path}/undo`));
}

/**
 * Returns the edited arguments, which must be JSON; those of a closed box are out of view and do not count.
 * @param {HTMLElement} button @param {string} box
 */
function changedArguments(button, box) {
  const field = find(`${box}[open] .edited`, closestOrSelf(button, ".card"));
  if (!field || field.value === field.defaultValue) return undefined;
  try {
    JSON.parse(field.value);
  } catch {
    throw new Error("the edited arguments are not valid JSON. Check quotes, commas and brackets.");
  }
  return field.value;
}

/** Opens or closes the second step that "always" needs. @param {HTMLElement} within @param {boolean} isOpen */
export function confirmAlways(within, isOpen) {
  const card = closestOrSelf(within, ".card");
  const always = find(".always", card);
  if (!always) return;
  always.hidden = !isOpen;
  updateMore();
  find(isOpen ? "button" : "[data-action=always]", isOpen ? always : card)?.focus();
}

/**
 * Returns the answer to a form's question; typed text replaces one choice and is added to several.
 * @param {HTMLElement} question
 */
function answerTo(question) {
  const { kind, many } = question.dataset;
  const inputs = all("input:checked, input:not([type=radio], [type=checkbox])", question);
  const given = inputs.flatMap(({ value }) => value.trim() || []);
  if (kind === "boolean") return given.length > 0;
  if (kind === "array") return given;
  if (kind === "number") return given[0] && Number(given[0]);
  return (many ? given.join(", ") : given.at(-1)) || undefined;
}

/** @type {Actions} */
export const actions = {
  "go-to-card": (button) => goToCard(cards().find((card) => card.dataset.callId === button.dataset.callId)),
  "next-card": (button) => {
    const all = cards();
    const own = closestOrSelf(button, ".card");
    const idx = all.findIndex((card) => card === own);
    goToCard(all[(idx + 1) % all.length]);
  },
  allow: (button) => {
    const changed = changedArguments(button, ".edit:not(.correction)");
    const { scope } = button.dataset;
    return decide(button, { decision: "accepted", scope, arguments: changed }, scope);
  },
  always: (button) => confirmAlways(button, true),
  "not-always": (button) => confirmAlways(button, false),
  deny: (button) => {
    const feedback = find(".note", closestOrSelf(button, ".card"))?.value.trim() || undefined;
    return decide(button, { decision: "rejected", feedback });
  },
  /** Denies with the corrected arguments as feedback, for programs that accept no changed arguments. */
  correct: (button) => {
    const changed = changedArguments(button, ".correction");
    if (!changed) throw new Error("please correct the arguments first.");
    return decide(button, { decision: "rejected", feedback: `Use these arguments instead: ${changed}` });
  },
  answer: (button) => {
    const questions = all("fieldset", closestOrSelf(button, ".card"));
    const answers = Object.fromEntries(questions.map((it) => [it.dataset.question, answerTo(it)]));
    const isMissing = questions.some(
      ({ dataset }) => !dataset.optional && answers[dataset.question ?? ""] === undefined,
    );
    if (isMissing) throw new Error("please answer every question.");
    return decide(button, { decision: "accepted", arguments: { answers } });
  },
};

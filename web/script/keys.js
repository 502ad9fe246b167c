// Keys: shortcuts, which the page names in `aria-keyshortcuts`, Escape, and typing that goes to the composer.

import { all, find, foot, page, required } from "./dom.js";
import { postToSession } from "./server.js";
import { report, showStatus } from "./status.js";
import { head } from "./connection.js";
import { cards, confirmAlways, goToCard } from "./approvals.js";
import { closeBox } from "./queue.js";
import { focusField, isEditing, leaveEditing } from "./composer.js";
import { clearSearch } from "./list.js";
import { hideTooltip, isDrawerOpen, isTooltipShown, setDrawer } from "./frame.js";
import { isRunning } from "./updates.js";

const TWICE_MS = 2000;
const EDITABLE = "input:not([type=checkbox], [type=radio]), textarea, select";
const LAST_CALLS =
  ".message:nth-last-child(1 of [data-activity]:not([data-activity=none])) > .parts > .activity > summary";
/** The key code of a key that an input method takes, in Safari. */
const COMPOSING = 229;

const state = {
  /** When Escape was pressed while a card was open, if no other key was pressed since. */
  escapedAt: -Infinity,
};

export function init() {
  addEventListener("keydown", onKeydown);
}

/** @param {KeyboardEvent} event */
function onKeydown(event) {
  if (event.isComposing || event.keyCode === COMPOSING) return;
  if (event.key === "Escape") return onEscape(event);
  state.escapedAt = -Infinity;
  const target = shortcutTarget(event);
  if (!target) return typeIntoComposer(event);
  event.preventDefault();
  // A key that is held down must not decide anything.
  if (event.repeat && target.closest(".card")) return;
  if (target === required("query")) {
    setDrawer(true);
    required("query").select();
  } else if (target.matches(".card")) goToCard(target);
  else target.click();
}

/**
 * Closes the topmost open thing; if nothing is open, stops the run, at the second press if a card is open.
 * @param {KeyboardEvent} event
 */
function onEscape(event) {
  if (event.repeat) return;
  const isTwice = event.timeStamp - state.escapedAt < TWICE_MS;
  state.escapedAt = -Infinity;
  const box = event.target?.closest(":is(.edit, .reason)[open]");
  if (box) return closeBox(box);
  const card = event.target?.closest(".card");
  const always = card && find(".always:not([hidden])", card);
  if (always) return confirmAlways(always, false);
  // The browser closes dialogs and menus.
  if (!isTooltipShown() && find("dialog[open], .menu:popover-open")) return;
  event.preventDefault();
  if (hideTooltip()) return;
  if (isDrawerOpen()) setDrawer(false);
  else if (isEditing()) leaveEditing();
  else if (clearSearch()) return;
  else if (head() && isRunning()) stopRun(isTwice);
}

/** @param {boolean} isTwice */
function stopRun(isTwice) {
  if (isTwice) required("stop").click();
  else if (find(".dock:not(:empty)", foot)) askForSecondEscape();
  else report(stopUnlessAsking());
}

function askForSecondEscape() {
  state.escapedAt = performance.now();
  showStatus("Press Esc again to stop the run.", TWICE_MS);
}

/** Stops the run, unless the server waits for a decision that the page does not show yet. */
async function stopUnlessAsking() {
  await postToSession(page, "cancel?unlessAsking=true").catch((error) => {
    if (error.code !== "awaiting_decision") throw error;
    askForSecondEscape();
  });
}

/** Names a key as `aria-keyshortcuts` does. @param {KeyboardEvent} event */
function keyName({ key, code, ctrlKey, metaKey, altKey }) {
  // With Alt a letter key may type another character.
  const name = altKey ? code.replace("Key", "") : key.length > 1 ? key : key.toUpperCase();
  return { name, keys: `${ctrlKey || metaKey ? "Control+" : ""}${altKey ? "Alt+" : ""}${name}` };
}

/** Returns the element that a key acts on, the nearest first. @param {KeyboardEvent} event */
function shortcutTarget(event) {
  const { key, altKey, shiftKey, target } = event;
  const { name, keys } = keyName(event);
  const named = `[aria-keyshortcuts~="${CSS.escape(keys)}"]`;
  const isEnter = key === "Enter";
  // On-screen keyboards have no other key for a new line.
  const breaksLine = shiftKey || (!keys.startsWith("Control") && matchMedia("(pointer: coarse)").matches);
  if (isEnter && (breaksLine || !target?.closest("textarea"))) return null;
  const isTyping = !!target?.closest(EDITABLE);
  // With Option, macOS types other characters: å, and the first half of ñ.
  const isCharacter = altKey && (key === "Dead" || (key.length === 1 && key.toUpperCase() !== name));
  if (isCharacter && isTyping) return null;
  // The keys of a card are letters and digits: they act inside it, but not in its text fields.
  const near = target?.closest(isTyping ? ".queued, #composer" : ".queued, #composer, .card");
  const button = near && all(named, near).find((element) => element.checkVisibility());
  if (button || isEnter) return button;
  const isPlain = !/^(Control|Alt)/.test(keys);
  if (isPlain && (isTyping || target?.closest("dialog") || cards().length)) return null;
  if (keys === "Alt+O") return find(LAST_CALLS);
  return all(`:is(#sidebar, .foot) ${named}:not(.card *)`).find((element) => element.checkVisibility());
}

/** Focuses the composer for a character that no other field takes. @param {KeyboardEvent} event */
function typeIntoComposer(event) {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  const isCommand = (ctrlKey || metaKey || altKey) && !event.getModifierState("AltGraph");
  // Space scrolls, and presses buttons.
  if (key.length > 1 || key === " " || isCommand) return;
  const isTaken = target?.closest(`${EDITABLE}, dialog[open], .menu`);
  if (!isTaken && required("text").checkVisibility()) focusField();
}

// Focus: changes to the document never drop it to the page itself.

import { find, page, required } from "./dom.js";

/**
 * Returns the element with the same id in another tree; a field for edited arguments has none and is found by
 * its parent.
 * @param {any} element @param {any} tree
 */
export function findCounterpart({ id, parentElement }, tree) {
  const place = tree.getElementById(id || parentElement?.id || "-");
  return id ? place : place && find(".edited", place);
}

/** Focuses the composer; on a phone, where that would open the keyboard, the conversation. */
export function focusComposer() {
  const isPrecise = matchMedia("(pointer: fine)").matches;
  required(isPrecise ? "text" : "conversation").focus({ preventScroll: true });
}

/** Makes a change, then focuses the successor of an element that lost focus by it. @param {() => void} change */
export function keepFocus(change) {
  const before = /** @type {any} */ (document.activeElement);
  const { id, parentElement, selectionStart, selectionEnd } = before;
  change();
  if (document.activeElement !== page || before === page) return;
  const next = findCounterpart({ id, parentElement }, document);
  if (next) next.focus({ preventScroll: true });
  else focusComposer();
  // Buttons and checkboxes have no selection.
  if (selectionStart) next?.setSelectionRange(selectionStart, selectionEnd);
}

// Messages to the reader: the status line, the announcer for screen readers, and Undo.

import { create, required } from "./dom.js";
import { keepFocus } from "./focus.js";

const state = {
  /** The message that returns whenever another one is over. */
  lasting: "",
  statusTimer: 0,
  undoTimer: 0,
};

const SHOWN_MS = 6000;
const UNDO_MS = 10_000;

/** @param {string} text @param {number} [ms] */
export function showStatus(text, ms = SHOWN_MS) {
  clearTimeout(state.statusTimer);
  required("status").replaceChildren(...(text ? [text] : []));
  if (text !== state.lasting) state.statusTimer = setTimeout(() => showStatus(state.lasting), ms);
}

/** Shows a message until another lasting one replaces it. @param {string} text */
export function showLasting(text) {
  if (!text && !state.lasting) return;
  state.lasting = text;
  showStatus(text);
}

/** @param {string} text */
export function announce(text) {
  required("announcer").textContent = text;
}

/** Shows the error of a promise that fails. @param {Promise<unknown>} work @param {string} [failed] */
export function report(work, failed = "That did not work") {
  return work.catch(({ message }) => showStatus(`${failed}: ${message}`));
}

/** Offers Undo, beside any status message. @param {string} text @param {() => Promise<unknown>} undo */
export function offerUndo(text, undo) {
  const button = create("button", { type: "button" }, "Undo");
  const close = () => button.isConnected && keepFocus(() => required("undo").replaceChildren());
  button.onclick = () => report(undo().then(close));
  clearTimeout(state.undoTimer);
  required("undo").replaceChildren(text, button);
  state.undoTimer = setTimeout(close, UNDO_MS);
}

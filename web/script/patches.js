// Patches: the server's changes to elements, applied without losing the state that the reader made.

import { all, byId, parse, required } from "./dom.js";
import { findCounterpart, keepFocus } from "./focus.js";

const state = {
  /** The button that the session menu is anchored to. @type {HTMLElement | null} */
  menuButton: null,
};

/** Sets the button that must survive patches while the session menu is open. @param {HTMLElement} button */
export function keepMenuButton(button) {
  state.menuButton = button;
}

/** Returns the label of the link to a whole body; it changes when the body grows. @param {Element | null} body */
export function showAllLabel(body) {
  return `${body?.querySelector(".show-all")?.textContent}`;
}

/**
 * Replaces an element; details that are open, fetched bodies, typed text and focus are kept.
 * @param {Element} old @param {DocumentFragment} fresh
 */
export function replaceElement(old, fresh) {
  for (const { id } of all("details[open]", old)) fresh.getElementById(id)?.setAttribute("open", "");
  if (old.matches("[open]")) fresh.firstElementChild?.setAttribute("open", "");
  for (const fetched of all(".fetched", old)) {
    const place = fresh.getElementById(fetched.parentElement?.id ?? "");
    // A body that has grown since is offered again.
    fetched.classList.toggle("stale", fetched.dataset.of !== showAllLabel(place));
    place?.append(fetched);
  }
  for (const field of all("textarea, .note", old)) {
    const { value, defaultValue, hidden } = field;
    if (value !== defaultValue) Object.assign(findCounterpart(field, fresh) ?? {}, { value, hidden });
  }
  const { menuButton } = state;
  if (menuButton && required("menu").matches(":popover-open")) {
    fresh.getElementById(menuButton.id)?.replaceWith(menuButton);
  }
  keepFocus(() => old.replaceWith(fresh));
}

/**
 * Inserts an element, or replaces it if it exists: fetched content may be ahead of the patches.
 * @param {string} html @param {(fresh: DocumentFragment) => void} insert
 */
function insertOrReplace(html, insert) {
  const fresh = parse(html);
  const old = byId(fresh.firstElementChild?.id ?? "");
  if (old) replaceElement(old, fresh);
  else insert(fresh);
}

/** @type {Ops} */
const ops = {
  put: (target, html) => replaceElement(target, parse(html)),
  add: (target, html) => insertOrReplace(html, (fresh) => target.append(fresh)),
  before: (target, html) => insertOrReplace(html, (fresh) => target.before(fresh)),
  move(target, next) {
    const list = /** @type {any} */ (target.parentElement);
    // Not every browser can move an element without removing it.
    (list.moveBefore ?? list.insertBefore).call(list, target, byId(next));
  },
  text: (target, more) => (target.lastChild instanceof Text ? target.lastChild.appendData(more) : target.append(more)),
  attr: (target, name, value) => (value === null ? target.removeAttribute(name) : target.setAttribute(name, value)),
  drop: (target) => target.remove(),
};

const INSERTIONS = ["add", "before"];

/** Applies a patch; returns the tool blocks that elements were inserted into. @param {Patch} patch */
export function applyOps(patch) {
  /** @type {Set<HTMLElement>} */
  const blocks = new Set();
  keepFocus(() => {
    for (const [name, id, ...rest] of patch) {
      const target = byId(id);
      if (!target) continue;
      ops[name]?.(target, ...rest);
      const block = INSERTIONS.includes(name) && target.closest(".tool-block");
      if (block) blocks.add(block);
    }
  });
  return blocks;
}

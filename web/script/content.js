// The content of messages: bodies that are fetched when they are opened, copying, and text that is held back.

import { all, byId, closestOrSelf, create, find, foot, page, parse, root } from "./dom.js";
import { getHtml, request } from "./server.js";
import { announce, report, showStatus } from "./status.js";
import { showAllLabel } from "./patches.js";
import { isOpen, sendFrame } from "./connection.js";
import { updateCards, updateMore } from "./approvals.js";
import { stopFollowing } from "./reading.js";

const COPIED_MS = 1500;

const state = {
  /** Bodies that are being fetched. @type {WeakSet<Element>} */
  fetching: new WeakSet(),
};

export function init() {
  addEventListener("toggle", ({ target }) => fetchOpened(/** @type {any} */ (target)), true);
  addEventListener("animationstart", ({ target }) => skipWaited(/** @type {any} */ (target).getAnimations()));
  skipWaited(document.getAnimations());
}

/**
 * Ends the delay of held-back text that has waited elsewhere: before a reload, or in another tab.
 * @param {any[]} animations
 */
function skipWaited(animations) {
  for (const animation of animations) {
    const message = /^(held|give-way)$/.test(animation.animationName) && animation.effect.target.closest(".message");
    const text = message && find(".undecided", message);
    if (text) animation.currentTime = Math.max(0, Date.now() - Number(text.dataset.begun));
  }
}

/**
 * Fetches the bodies that are open around an element: highlighted files, answers of other sessions, long arguments.
 * @param {Element} element
 */
export function fetchOpened(element) {
  const within = element.closest(".tool-block") ?? foot;
  for (const body of all(":is(.file, .peer, .edit)[data-src]:not(:has(.fetched))", within)) {
    const isWanted = body.closest("details")?.matches("[open]") ?? isOpen();
    if (!isWanted || state.fetching.has(body)) continue;
    state.fetching.add(body);
    report(fetchBody(body, body.dataset.src ?? "").finally(() => state.fetching.delete(body)));
  }
  updateMore();
}

/**
 * Adds the whole of a body that was cut or is not highlighted yet.
 * @param {HTMLElement} body @param {string} url
 */
async function fetchBody(body, url) {
  const html = await getHtml(url);
  find(".fetched.stale", body)?.remove();
  if (find(".fetched", body)) return;
  body.append(create("div", { class: "fetched", "data-of": showAllLabel(body) }, parse(html)));
  updateCards();
  const { sessionId, head } = find(".embedded", body)?.dataset ?? {};
  if (head) sendFrame({ type: "subscribe", sessionId, after: Number(head), view: "html" });
}

/**
 * Fetches the embedded parts of other sessions again, after their patches were missed.
 * @param {string} [selector]
 */
export function refetchEmbedded(selector = "") {
  for (const embedded of all(`.embedded${selector}`)) {
    const place = closestOrSelf(embedded, ".peer");
    find(".fetched", place)?.remove();
    report(fetchBody(place, place.dataset.src ?? ""));
  }
}

/** Focuses the field of an edit box that was opened. @param {Element} block */
export function focusEditField(block) {
  const field = block.matches(".edit[open]") && find("textarea", block);
  if (!field) return;
  field.focus();
  field.setSelectionRange(-1, -1);
}

/** Opens or closes the block that a badge stands for, and everything around it. @param {HTMLElement} link */
function toggleCall(link) {
  const own = byId(link.getAttribute("href")?.slice(1) ?? "");
  const block = own?.parentElement;
  const exchange = block && find(":scope > .nested > .exchange > details", block);
  stopFollowing();
  if (!(exchange ?? own)?.toggleAttribute("open")) return;
  for (let outer = block; outer; outer = outer.parentElement?.closest(".tool-block")) {
    outer.firstElementChild?.setAttribute("open", "");
  }
  block?.scrollIntoView({ block: "nearest" });
}

/** Returns the text of an element as it is copied. @param {HTMLElement} element */
function copiedText(element) {
  // Folded JSON is hidden, but part of the text.
  return find(".json", element)?.textContent ?? element.innerText.replace(/\n$/, "");
}

/** @param {string} text */
async function copy(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyBySelection(text);
  announce("Copied to clipboard");
  showStatus("Copied to clipboard", COPIED_MS);
}

/** Copies over plain http, where the clipboard API does not exist. @param {string} text */
function copyBySelection(text) {
  const area = create("textarea", { class: "sr" }, text);
  const focused = find(":focus");
  page.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  focused?.focus();
}

/** @type {Actions} */
export const actions = {
  /** Copies the whole text, also of a body that is shown cut. */
  copy: async (button) => {
    const { of, src } = button.dataset;
    const near = closestOrSelf(button, ".code-block, .message, .section, .badge");
    const url = src ?? find(`${of} .show-all`, near)?.getAttribute("href");
    return copy(url ? await (await request("GET", url)).text() : all(`${of}`, near).map(copiedText).join("\n\n"));
  },
  wrap: () => page.classList.toggle("wrapped"),
  "open-call": toggleCall,
  "show-all": (link) => {
    stopFollowing();
    return fetchBody(closestOrSelf(link, ".cut"), `${link.getAttribute("href")}&format=html`);
  },
  "show-less": (button) => find(".fetched", closestOrSelf(button, ".cut"))?.remove(),
  "show-picture": (link) => {
    const src = link.getAttribute("href") ?? "";
    // The page may load pictures from elsewhere only if the reader has allowed it.
    if (root.dataset.remoteImages !== "true") open(src, "_blank", "noopener");
    else link.replaceChildren(create("img", { src, alt: link.innerText }));
  },
};

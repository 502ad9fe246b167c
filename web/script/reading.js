// Reading: the page follows the end only while the reader is there, and keeps only the messages near the reader.

import { all, byId, find, page, parse, required, root } from "./dom.js";
import { getPage } from "./server.js";
import { report } from "./status.js";
import { replaceElement } from "./patches.js";
import { head, setHead, subscribe } from "./connection.js";

/** Number of messages that are kept; those that are dropped are loaded again when the reader comes near. */
const KEPT = 100;
/** Messages nearer to the screen than this many pixels are loaded. */
const NEAR = 1200;
/** Query of a page that shows a past state: it loads nothing newer. */
const PAST = page.dataset.past ? `at=${page.dataset.past}&` : "";

const state = {
  following: true,
  lastScroll: 0,
  lastHeight: 0,
  /** The load that is in progress. @type {Promise<void> | undefined} */
  loading: undefined,
  onRedrawn: () => {},
};

/** @param {{ onRedrawn: () => void }} handlers called after the whole session is drawn again */
export function init(handlers) {
  Object.assign(state, handlers);
  history.scrollRestoration = "manual";
  addEventListener("scroll", onScroll);
  addEventListener("resize", follow);
  new ResizeObserver(follow).observe(page);
  addEventListener("hashchange", () => report(goToTarget()));
}

function list() {
  return find(".messages") ?? root;
}

function hasEnd() {
  return !list().matches(".partial");
}

/** @param {number} [slack] distance that still counts, in pixels */
function isAtEnd(slack = 80) {
  return hasEnd() && innerHeight + scrollY >= root.scrollHeight - slack;
}

export function isFollowing() {
  return state.following;
}

export function stopFollowing() {
  state.following = false;
}

export function followIfAtEnd() {
  state.following = isAtEnd(2);
}

export function follow() {
  if (state.following) scrollTo(0, root.scrollHeight);
  rememberScroll();
  updateEdges();
}

export async function followAgain() {
  state.following = true;
  return hasEnd() ? follow() : reload();
}

function rememberScroll() {
  state.lastScroll = scrollY;
  state.lastHeight = root.scrollHeight;
}

/** Shows the button to the end where it is needed, and loads messages that the reader comes near. */
function updateEdges() {
  // Setting `hidden` to the value it has would restyle the page.
  byId("latest")?.toggleAttribute("hidden", state.following || isAtEnd());
  if (scrollY < NEAR) report(loadMore("earlier"));
  if (!state.following && innerHeight + scrollY > root.scrollHeight - NEAR) report(loadMore("later"));
}

/** Returns whether the reader has scrolled back; content that shrinks moves the page too, but only a little. */
function hasScrolledBack() {
  const { lastScroll, lastHeight } = state;
  return scrollY < lastScroll && (root.scrollHeight === lastHeight || !isAtEnd(innerHeight / 2));
}

/** Stops following if the reader has scrolled back; the scroll event comes only with the next frame. */
export function noticeScrollBack() {
  if (hasScrolledBack()) state.following = false;
}

function onScroll() {
  if (hasScrolledBack()) state.following = false;
  else if (isAtEnd()) state.following = true;
  rememberScroll();
  updateEdges();
}

/** Returns the number of a message's first record. @param {Element | undefined} message */
function firstRecord(message) {
  return Number(message?.id.match(/\d+$/));
}

/** @param {string} id */
function topOf(id) {
  return byId(id)?.getBoundingClientRect().top ?? 0;
}

/** Returns the messages of this session, without embedded ones of other sessions. */
function messages() {
  return all(":scope > .message, :scope > .rewound > .message", list());
}

/** Returns the message that is read, and all after it. */
function messagesFromView() {
  return messages().filter((message) => message.getBoundingClientRect().bottom > 0);
}

/**
 * Lays out messages in full, so that estimated heights become real and nothing moves later.
 * @param {Element[]} messages
 */
function measure(messages) {
  const sheet = new CSSStyleSheet();
  const ids = messages.map(({ id }) => `#${CSS.escape(id)}`);
  // The attributes of messages are the server's, so they are not used as a mark.
  sheet.replaceSync(`:is(${ids}) { content-visibility: visible }`);
  document.adoptedStyleSheets.push(sheet);
  const drop = () => (document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet));
  requestAnimationFrame(() => requestAnimationFrame(drop));
}

/**
 * Changes the list while the line that is read stays in place, or the next one if that is dropped.
 * @param {() => void} change
 */
function keepPlace(change) {
  const before = messagesFromView().map(({ id }) => ({ id, top: topOf(id) }));
  change();
  const kept = before.find(({ id }) => byId(id));
  if (kept) scrollBy(0, topOf(kept.id) - kept.top);
  rememberScroll();
}

/** Drops messages far before the reader, or far after. @param {"earlier" | "later"} side */
export function dropFar(side) {
  const isAfter = side === "later";
  const items = [...list().children];
  const far = (isAfter ? items.slice(KEPT) : items.slice(0, -KEPT)).filter((item) => {
    const { top, bottom } = item.getBoundingClientRect();
    return isAfter ? top > 3 * innerHeight : bottom < -2 * innerHeight;
  });
  if (!far.length) return;
  for (const item of far) item.remove();
  const link = required(side);
  const kept = messages();
  const from = isAfter ? `after=${firstRecord(kept.at(-1))}` : `before=${firstRecord(kept[0])}`;
  find("a", link)?.setAttribute("href", `?${PAST}${from}`);
  link.hidden = false;
  // Without its id no patch appends to the list; it would append in the wrong place.
  if (isAfter) Object.assign(list(), { id: "", className: "messages partial" });
}

/**
 * Subscribes again from the older of two moments: that of the fetched page and that of this one.
 * @param {Document} fetched @param {number} [since]
 */
function catchUp(fetched, since = head()) {
  const fetchedHead = Number(fetched.body.dataset.head);
  if (PAST || fetchedHead === head()) return;
  setHead(Math.min(fetchedHead, since));
  subscribe();
}

/** Loads the messages before or after, and drops as many on the other side. @param {"earlier" | "later"} side */
async function load(side) {
  const currentUrl = () => find(`#${side} a`)?.getAttribute("href");
  const url = currentUrl();
  if (!url) return;
  const fetched = await getPage(`${url}&part=messages`);
  const more = find(".messages", fetched);
  // The list may have been drawn again meanwhile.
  if (!more || currentUrl() !== url) return;
  keepPlace(() => {
    measure([...more.children]);
    if (side === "earlier") list().prepend(...more.children);
    else {
      list().append(...more.children);
      Object.assign(list(), { id: more.id, className: more.className });
    }
    byId(side)?.replaceWith(...all(`#${side}`, fetched));
    dropFar(side === "earlier" ? "later" : "earlier");
  });
  catchUp(fetched);
}

/** Loads more unless a load is in progress. @param {"earlier" | "later"} side */
function loadMore(side) {
  return (state.loading ??= load(side).finally(() => (state.loading = undefined)));
}

const REDRAWN = ".heading, .sequence, .messages, .queue:not(#pending), .now, .dock, #earlier, #later";

/**
 * Draws the session again: its end, the message that is read, or the place that the query names.
 * @param {{ query?: string, since?: number }} [place]
 */
export async function reload({ query, since } = {}) {
  const [read] = state.following ? [] : messagesFromView();
  const from = query ?? (read ? `after=${firstRecord(read) - 1}` : "");
  const fetched = await getPage(`${location.pathname}?${PAST}${from}`);
  keepPlace(() => {
    for (const fresh of all(REDRAWN, fetched)) {
      const old = fresh.matches(".messages") ? list() : byId(fresh.id);
      if (old) replaceElement(old, parse(fresh.outerHTML));
    }
    measure(messages());
  });
  catchUp(fetched, since);
  state.onRedrawn();
  follow();
}

/** Goes to the message that the address names, as the results of a search do. */
export async function goToTarget() {
  const [, id] = location.hash.split("#m=");
  if (!id) return;
  const name = CSS.escape(decodeURIComponent(id));
  const target = () => find(`[data-message-id=${name}], [data-response-id=${name}]`, list());
  state.following = false;
  if (!target()) await reload({ query: `message=${id}` });
  measure(messages());
  (target() ?? list().firstElementChild)?.scrollIntoView({ block: "center" });
}

/** @type {Actions} */
export const actions = { latest: followAgain };

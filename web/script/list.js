// The session list: days as headings, more sessions, and the search in its place.

import { all, byId, create, find, header, required, sessionId } from "./dom.js";
import { getPage } from "./server.js";
import { report } from "./status.js";
import { sendFrame } from "./connection.js";
import { dayName, refreshAges } from "./clock.js";

const PAGE_SIZE = 100;
const TYPING_MS = 200;
const REGROUP_MS = 60_000;

const query = required("query");

const state = {
  /** Number of sessions that are listed. */
  limit: PAGE_SIZE,
  searchTimer: 0,
};

export function init() {
  query.oninput = () => searchSoon(TYPING_MS);
  groupByDay();
  setInterval(groupByDay, REGROUP_MS);
  find("#sessions [aria-current]")?.scrollIntoView({ block: "nearest" });
}

export function subscribeToList() {
  const archived = !!find("#sessions[data-archived]");
  const version = byId("sessions")?.dataset.version;
  sendFrame({ type: "subscribe", sessions: true, view: "html", archived, limit: state.limit, version });
}

/** Marks the open session, and puts a heading before the first session of each day. */
export function groupByDay() {
  find(`#sessions-${sessionId} a`)?.setAttribute("aria-current", "page");
  for (const heading of all("#sessions .day:not([id])")) heading.remove();
  let last = "";
  for (const time of all("#sessions li:not([data-state=waiting]) [data-at]")) {
    const day = dayName(Number(time.dataset.at));
    if (day !== last) time.closest("li")?.before(create("li", { class: "day" }, day));
    last = day;
  }
}

/** Shows on the drawer's button how many other sessions wait for the reader. */
export function countWaiting() {
  const waiting = all("#sessions [data-state=waiting] a:not([aria-current])").length;
  const drawer = find(".drawer", header);
  drawer?.setAttribute("data-waiting", `${waiting || ""}`);
  drawer?.setAttribute("aria-label", waiting ? `Sessions, ${waiting} waiting for you` : "Sessions");
}

async function search() {
  const words = query.value.trim();
  const fetched = words && (await getPage(`/?part=found&q=${encodeURIComponent(words)}`));
  if (query.value.trim() !== words) return;
  if (fetched) required("found").replaceWith(...all("#found", fetched));
  else required("found").hidden = true;
  refreshAges(required("sidebar"));
}

/** Searches once nothing was typed for this long. @param {number} ms */
export function searchSoon(ms) {
  clearTimeout(state.searchTimer);
  state.searchTimer = setTimeout(() => report(search()), ms);
}

/** Clears the search; returns whether there was one. */
export function clearSearch() {
  if (!query.value) return false;
  query.value = "";
  searchSoon(0);
  return true;
}

/** @type {Actions} */
export const actions = {
  "more-sessions": () => {
    state.limit += PAGE_SIZE;
    subscribeToList();
  },
};

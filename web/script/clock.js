// Times as text: ages that count up, and days of the reader's calendar.

import { all, page, required } from "./dom.js";

/** Formats an age: `12s`, `5m`, `3h`, `2d`. @param {number} seconds */
function formatAge(seconds) {
  const units = Object.entries({ d: 86_400, h: 3600, m: 60 });
  const [unit, length] = units.find(([, length]) => seconds >= length) ?? ["s", 1];
  return `${Math.max(0, Math.floor(seconds / length))}${unit}`;
}

/**
 * Rewrites all ages; in the conversation they stand still while the server is not heard.
 * @param {ParentNode} within
 */
export function refreshAges(within) {
  if (within !== required("sidebar") && page.matches(".offline")) return;
  for (const element of all("[data-since], [data-at]", within)) {
    const text = formatAge((Date.now() - Number(element.dataset.since ?? element.dataset.at)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** @param {number} time */
function midnightBefore(time) {
  return new Date(time).setHours(0, 0, 0, 0);
}

/** Names the day or month of a time. @param {number} time */
export function dayName(time) {
  const days = Math.max(0, Math.round((midnightBefore(Date.now()) - midnightBefore(time)) / 86_400_000));
  if (days < 8) return ["Today", "Yesterday"][days] ?? "Previous 7 days";
  return new Date(time).toLocaleDateString("en", { month: "long", year: "numeric" });
}

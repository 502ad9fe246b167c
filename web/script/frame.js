// The frame around the conversation: the drawer of narrow screens, and tooltips of badges.

import { find, header, page } from "./dom.js";

const TOOLTIP_DELAY_MS = 150;
/** Swipes that open the drawer begin this near to the edge, in pixels. */
const EDGE = 32;
const SWIPE = 60;

const state = {
  /** Where the last touch began. */
  touch: { x: 0, y: 0 },
  /** The tooltip that is shown, or about to be. @type {HTMLElement | null} */
  tooltip: null,
  tooltipTimer: 0,
};

export function init() {
  addEventListener("pointerdown", ({ x, y }) => (state.touch = { x, y }));
  addEventListener("touchend", swipe);
  addEventListener("mouseover", ({ target }) => showTooltip(target));
  addEventListener("focusin", ({ target }) => showTooltip(target));
  addEventListener("focusout", ({ relatedTarget }) => showTooltip(relatedTarget));
}

/** @param {boolean} open */
export function setDrawer(open) {
  page.classList.toggle("drawer-open", open);
}

/** Returns whether the drawer is open; on wide screens the list is no drawer. */
export function isDrawerOpen() {
  return page.matches(".drawer-open") && !!find(".drawer", header)?.checkVisibility();
}

/** @param {TouchEvent} event */
function swipe({ changedTouches }) {
  const { clientX = 0, clientY = 0 } = changedTouches[0] ?? {};
  const { x, y } = state.touch;
  const across = clientX - x;
  if (Math.abs(across) < Math.max(SWIPE, 2 * Math.abs(clientY - y))) return;
  if (across < 0 || x < EDGE) setDrawer(across > 0);
}

export function isTooltipShown() {
  return !!state.tooltip;
}

/** Hides the tooltip; returns whether there was one. */
export function hideTooltip() {
  const { tooltip } = state;
  clearTimeout(state.tooltipTimer);
  if (tooltip?.isConnected) tooltip.hidePopover();
  state.tooltip = null;
  return !!tooltip;
}

/**
 * Shows the tooltip of the badge under the pointer, or else of the focused one.
 * @param {EventTarget | null} target
 */
function showTooltip(target) {
  const badge = target?.closest(".badge") ?? document.activeElement?.closest(".badge");
  const next = badge ? find(".tooltip", badge) : null;
  if (next === state.tooltip) return;
  hideTooltip();
  state.tooltip = next;
  state.tooltipTimer = setTimeout(() => next?.showPopover(), TOOLTIP_DELAY_MS);
}

/** @type {Actions} */
export const actions = { drawer: () => setDrawer(!isDrawerOpen()) };

// Queued messages: reordering, rewriting and removing them.

import { closestOrSelf, find, sessionId } from "./dom.js";
import { sendFrame } from "./connection.js";

/** Returns the field of a queued message that is being rewritten. */
export function findRewriteField() {
  return find(".queued .edit[open] textarea");
}

/** Closes a box that opens in place, and focuses its summary. @param {Element | null | undefined} box */
export function closeBox(box) {
  if (!box) return;
  box.removeAttribute("open");
  find("summary", box)?.focus();
}

/** @type {Actions} */
export const actions = {
  queue: (button) => {
    const { type, messageId, position } = button.dataset;
    const box = button.closest(".edit");
    const text = box ? find("textarea", box)?.value : undefined;
    sendFrame({ type, sessionId, messageId, position: Number(position ?? 0), text });
    closeBox(box);
  },
  "stop-rewriting": (button) => {
    const box = closestOrSelf(button, ".edit");
    const field = find("textarea", box);
    if (field) field.value = field.defaultValue;
    closeBox(box);
  },
};

// The page's script. The server draws everything and sends patches; the script applies them, sends the reader's
// messages and decisions, and keeps the reader's own state: open blocks, scroll position, drafts. All other
// state can be rebuilt by the server.

import { find, foot, required } from "./dom.js";
import { postToSession } from "./server.js";
import { report } from "./status.js";
import { refreshAges } from "./clock.js";
import * as connection from "./connection.js";
import * as reading from "./reading.js";
import * as approvals from "./approvals.js";
import * as content from "./content.js";
import * as uploads from "./uploads.js";
import * as queue from "./queue.js";
import * as composer from "./composer.js";
import * as sessions from "./sessions.js";
import * as list from "./list.js";
import * as settings from "./settings.js";
import * as frame from "./frame.js";
import * as keys from "./keys.js";
import { applyPatch, receive, updateSummary } from "./updates.js";

const AGES_MS = 1000;

/** The effects of buttons, by their `data-action`. @type {Actions} */
const actions = {
  ...reading.actions,
  ...approvals.actions,
  ...content.actions,
  ...uploads.actions,
  ...queue.actions,
  ...composer.actions,
  ...sessions.actions,
  ...list.actions,
  ...settings.actions,
  ...frame.actions,
};

function onOpen() {
  list.subscribeToList();
  connection.subscribe();
  content.refetchEmbedded();
  composer.sendUnsent();
  content.fetchOpened(foot);
}

/** @param {MouseEvent} event */
function onClick(event) {
  const { target, ctrlKey, metaKey } = event;
  const block = target?.closest("summary")?.parentElement;
  if (block) keepLineOnToggle(block);
  if (!target?.closest("#sidebar, [data-action=drawer]")) frame.setDrawer(false);
  const button = target?.closest("[data-action]");
  if (!button || ctrlKey || metaKey) return;
  event.preventDefault();
  runAction(button, event.detail > 1);
}

/**
 * Opening a block pushes down the content below it; the page stops following, so that the block stays in view.
 * @param {HTMLElement} block
 */
function keepLineOnToggle(block) {
  reading.stopFollowing();
  const onToggle = () => {
    reading.followIfAtEnd();
    content.focusEditField(block);
  };
  block.addEventListener("toggle", onToggle, { once: true });
}

/** @param {HTMLElement} button @param {boolean} isRepeated whether the click is the second of a double click */
function runAction(button, isRepeated) {
  const card = button.closest(".card");
  const fault = card && find(".fault", card);
  // The second click may meet the next card, which the reader has not read.
  if (fault && isRepeated) return;
  if (fault) fault.textContent = "";
  const { action = "" } = button.dataset;
  // Actions of the server alone are posted by name: cancel, retry, continue.
  const work = (async () => (actions[action] ?? postToSession)(button, action))();
  if (!fault) report(work);
  else work.catch(({ message }) => (fault.textContent = `That did not work: ${message}`));
}

/** @param {SubmitEvent} event */
function onSubmit(event) {
  if (event.target === required("composer")) report(composer.send());
  else if (event.target === required("search")) list.searchSoon(0);
  else if (event.target === required("retitle")) report(sessions.saveTitle());
  else return;
  event.preventDefault();
}

addEventListener("click", onClick);
addEventListener("submit", onSubmit);
reading.init({ onRedrawn: () => applyPatch([]) });
approvals.init();
content.init();
uploads.init();
composer.init();
sessions.init();
list.init();
settings.init();
frame.init();
keys.init();
reading.follow();
approvals.updateCards();
updateSummary();
setInterval(() => refreshAges(document), AGES_MS);
report(reading.goToTarget());
connection.init({ onOpen, onFrame: receive });

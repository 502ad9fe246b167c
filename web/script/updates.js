// Updates: frames of the server, and everything on the page that follows from them.

import { all, byId, find, foot, header, required, sessionId } from "./dom.js";
import { goHome } from "./server.js";
import { announce, showStatus } from "./status.js";
import { applyOps } from "./patches.js";
import { head, reconnect, setHead } from "./connection.js";
import { refreshAges } from "./clock.js";
import { dropFar, follow, isFollowing, noticeScrollBack, reload } from "./reading.js";
import { updateCards } from "./approvals.js";
import { fetchOpened, refetchEmbedded } from "./content.js";
import { findRewriteField } from "./queue.js";
import { addToDraft, dropDelivered } from "./composer.js";
import { countWaiting, groupByDay } from "./list.js";
import { applySettings } from "./settings.js";

const SUMMARY_DELAY_MS = 100;
const RECONNECT_MS = 500;

const state = {
  summaryTimer: 0,
  wasRunning: false,
  /** The announcement of held messages, as of the last summary. */
  held: "",
};

export function isRunning() {
  return !!find(".now:is([data-state=running], [data-state=waiting])", foot);
}

/** @param {any} frame */
export function receive({ type, sessionId: about, seq, ops, message, id, settings }) {
  if (type === "patch") applyPatch(ops);
  if (type === "settings") applySettings(settings);
  if (about && about !== sessionId) {
    if (type === "reload") refetchEmbedded(`[data-session-id="${about}"]`);
  } else if (about && seq > head()) setHead(seq);
  // Without a successful reload no patch would arrive any more.
  else if (type === "reload") reload({ since: Infinity }).catch(() => reconnect(RECONNECT_MS));
  else if (type === "error") showStatus(message);
  else if (type === "session_deleted" && id === sessionId) goHome();
  else if (type === "session_deleted") byId(`sessions-${id}`)?.remove();
}

/** Applies a patch, and brings the rest of the page up to date. @param {Patch} patch */
export function applyPatch(patch) {
  const rewritten = findRewriteField();
  noticeScrollBack();
  const blocks = applyOps(patch);
  for (const block of blocks) fetchOpened(block);
  if (rewritten && rewritten.value !== rewritten.defaultValue && !byId(rewritten.id)) {
    addToDraft(rewritten.value);
    showStatus("That message has begun as it was. What you wrote is below.");
  }
  dropDelivered();
  if (patch.some(([, id]) => id.startsWith("sessions"))) groupByDay();
  updateCards();
  fetchOpened(foot);
  // Before the next frame: content that shrinks and grows again must not move the page.
  if (isFollowing()) follow();
  state.summaryTimer ||= setTimeout(updateSummary, SUMMARY_DELAY_MS);
}

/** Updates the title, labels and ages; patches call it with a delay, because they can be many. */
export function updateSummary() {
  state.summaryTimer = 0;
  updateTitle();
  announceChanges();
  required("send").ariaLabel = isRunning() ? "Queue" : "Send";
  if (isFollowing()) dropFar("earlier");
  countWaiting();
  refreshAges(foot);
  refreshAges(required("sidebar"));
}

function updateTitle() {
  const title = find("h1", header)?.textContent;
  const isAnyWaiting = find("#sessions [data-state=waiting]");
  document.title = (isAnyWaiting ? "(!) " : "") + (title ? `${title} · Callboard` : "Callboard");
}

/** Announces the end of a run and a changed number of queued messages. */
function announceChanges() {
  const running = isRunning();
  const held = find(".held p")?.textContent ?? `${all(".queued").length || "No"} messages wait`;
  const { wasRunning, held: heldBefore } = state;
  const news = [wasRunning && !running && "The agent has finished.", heldBefore && heldBefore !== held && held];
  const text = news.filter(Boolean).join(" ");
  if (text) announce(text);
  Object.assign(state, { wasRunning: running, held });
}

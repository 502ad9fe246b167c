// The composer: the draft, editing an earlier message, and sending.

import { all, closestOrSelf, create, find, required, sessionId } from "./dom.js";
import { requestJson } from "./server.js";
import { report, showStatus } from "./status.js";
import { attachedFiles, fileKeys, newKey, setFiles } from "./uploads.js";
import { reconnect } from "./connection.js";
import { followAgain } from "./reading.js";
import { cards } from "./approvals.js";

const DRAFT_KEY = `draft:${sessionId ?? ""}`;
const OFFLINE_RETRY_MS = 2000;

const field = required("text");

const state = {
  /** Id of the earlier message that is being edited, and its text before. */
  edited: "",
  original: "",
  /** Files of the draft, while another message is edited. @type {Upload[]} */
  draftFiles: [],
  /**
   * The message that could not be sent; sent again unchanged, it keeps its idempotency key.
   * @type {OutgoingMessage | undefined}
   */
  unsent: undefined,
  /** The session that the first message creates. @type {Promise<string> | undefined} */
  created: undefined,
  /** The agent and folder that it is created for, as JSON. */
  createdFor: "",
  /** The deliveries so far; messages are sent in the order in which they were written. @type {Promise<unknown>} */
  deliveries: Promise.resolve(),
};

export function init() {
  field.oninput = onInput;
  if (!sessionId) {
    required("agent").onchange = updatePlaceholders;
    required("folder").oninput = () => showFolderError("");
  }
  stopEditing();
}

export function focusField() {
  field.focus();
}

/** Stores the draft, if the browser allows it. @param {string} text */
function storeDraft(text) {
  try {
    localStorage.setItem(DRAFT_KEY, text);
  } catch {
    // The draft is kept as long as the page is.
  }
}

function storedDraft() {
  try {
    return localStorage.getItem(DRAFT_KEY) ?? "";
  } catch {
    return "";
  }
}

function onInput() {
  if (!state.edited) storeDraft(field.value);
  updateNote();
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** @param {string} text */
function setText(text) {
  field.value = text;
  onInput();
  field.focus();
}

/** Adds a text that would be lost to the draft. @param {string} text */
export function addToDraft(text) {
  setText([field.value, text].filter(Boolean).join("\n"));
}

/** Returns whether the composer holds a message that could not be sent because the server was not reached. */
function holdsUnsent() {
  const { unsent } = state;
  return !!unsent?.isOffline && isSameMessage(unsent, field.value.trim(), attachedFiles());
}

/** Sends the message that waits for the connection, if there is one. */
export function sendUnsent() {
  if (holdsUnsent()) report(send(state.unsent?.mode));
}

/** @param {OutgoingMessage} message @param {string} text @param {Upload[]} files */
function isSameMessage(message, text, files) {
  return message.text === text && message.replaces === state.edited && fileKeys(message.files) === fileKeys(files);
}

function updateNote() {
  const problem = !sessionId && required("folder").validationMessage;
  const note = problem || (holdsUnsent() ? "Not sent yet. It is sent when the connection is back." : "");
  required("note").textContent = note;
}

/** Creates the session for the first message, unless one was created for this agent and folder. */
function createSession() {
  const start = { agent: required("agent").value, workspace: required("folder").value.trim() || undefined };
  const startJson = JSON.stringify(start);
  if (startJson !== state.createdFor) state.created = undefined;
  state.createdFor = startJson;
  state.created ??= requestJson("POST", "/api/sessions", start).then(({ id }) => id);
  state.created.catch(() => (state.created = undefined));
  return state.created;
}

/**
 * Sends the composer's message, or an example; the field is free for the next message immediately.
 * @param {string} [mode] @param {string} [example]
 */
export async function send(mode = "queue", example) {
  const text = example ?? field.value.trim();
  const files = example ? [] : attachedFiles();
  if (!text && !files.length) return;
  const { unsent, edited } = state;
  const isRetry = unsent && isSameMessage(unsent, text, files);
  const outgoing = { text, files, mode, replaces: edited, clientId: isRetry ? unsent.clientId : newKey() };
  const pending = showPending(outgoing);
  if (edited) stopEditing();
  else if (!example) {
    setText("");
    setFiles([]);
  }
  report(followAgain());
  state.deliveries = state.deliveries.then(() => report(deliver(outgoing, pending), "Couldn't send"));
}

/** @param {OutgoingMessage} outgoing */
function showPending({ text, files, clientId }) {
  const bubble = create("div", { class: "bubble" }, text || files.map(({ name }) => name).join(", "));
  const attributes = { id: clientId, class: "message sending", "data-role": "user", "aria-label": "You" };
  const pending = create("article", attributes, bubble);
  required("pending").append(pending);
  return pending;
}

/** @param {OutgoingMessage} outgoing @param {HTMLElement} pending */
async function deliver(outgoing, pending) {
  const { text, files, mode, clientId, replaces } = outgoing;
  try {
    const attachments = await Promise.all(files.map((file) => file.sent));
    const id = sessionId ?? (await createSession());
    const body = { text, clientId, attachments, mode, replaces: replaces || undefined };
    const { state: queued, messageId } = await requestJson("POST", `/api/sessions/${id}/messages`, body);
    if (state.unsent?.clientId === clientId) state.unsent = undefined;
    pending.dataset.messageId = messageId;
    dropDelivered();
    if (mode === "steer" && queued === "queued") showStatus("The agent cannot take it now: it is queued.");
    // Leaving earlier would abort the requests of later messages.
    if (!sessionId && !find("#pending > :not([data-message-id])")) location.href = `/s/${id}`;
  } catch (/** @type {any} */ error) {
    pending.remove();
    takeBack(outgoing, error);
    if (error.code === "invalid_request" && !sessionId) showFolderError(error.message);
    else throw error;
  }
}

/**
 * Returns a message that was not sent to the composer.
 * @param {OutgoingMessage} outgoing @param {{ code: string }} error
 */
function takeBack(outgoing, error) {
  const { text, files, replaces } = outgoing;
  const isOffline = error.code === "offline";
  state.unsent = { ...outgoing, isOffline };
  if (replaces && !state.edited) edit(replaces, text, files);
  else {
    setFiles([...files, ...attachedFiles()]);
    setText(field.value ? `${text}\n${field.value}` : text);
  }
  // A failed request means that the WebSocket is lost too; once it is back, the message is sent.
  if (isOffline) reconnect(OFFLINE_RETRY_MS);
}

/** Removes pending messages that the log shows. */
export function dropDelivered() {
  for (const pending of all("#pending > *")) {
    const messageId = CSS.escape(pending.dataset.messageId ?? "-");
    const sameMessage = `[data-client-id="${pending.id}"], [data-message-id="${messageId}"]`;
    if (find(`:is(.messages, .queue:not(#pending)) :is(${sameMessage})`)) pending.remove();
  }
}

/**
 * Puts a message into the composer: an earlier one by its id, or the draft.
 * @param {string} id @param {string} text @param {Upload[]} files
 */
function edit(id, text, files) {
  if (!state.edited) state.draftFiles = attachedFiles();
  state.edited = id;
  state.original = text;
  required("editing").hidden = !id;
  setFiles(files);
  setText(text);
}

function stopEditing() {
  edit("", storedDraft(), state.edited ? state.draftFiles : attachedFiles());
}

export function isEditing() {
  return !!state.edited;
}

/**
 * Ends editing by Escape; while a card is open the key may be meant for it, so changed text is added to the draft.
 */
export function leaveEditing() {
  const changed = cards().length && field.value !== state.original ? field.value : "";
  stopEditing();
  if (changed) addToDraft(changed);
}

function updatePlaceholders() {
  const { value, selectedOptions } = required("agent");
  field.placeholder = `Message ${value}…`;
  required("folder").placeholder = `Folder: ${selectedOptions[0]?.dataset.folder}`;
}

/** Shows an error of the folder beside its field until the field changes. @param {string} problem */
function showFolderError(problem) {
  required("folder").setCustomValidity(problem);
  required("folder").focus();
  updateNote();
}

/** @type {Actions} */
export const actions = {
  steer: () => send("steer"),
  example: (button) => send("queue", button.innerText),
  edit: (button) => {
    const message = closestOrSelf(button, ".message");
    const attached = all("[data-file]", message).map(({ dataset }) => JSON.parse(dataset.file ?? ""));
    const files = attached.map((file) => ({ name: file.name, key: file.blob, sent: Promise.resolve(file) }));
    edit(message.dataset.messageId ?? "", find(".bubble", message)?.textContent ?? "", files);
  },
  "stop-editing": stopEditing,
  /** Chooses another agent; the reader always does that. */
  choose: (button) => {
    required("agent").value = button.dataset.agent ?? "";
    updatePlaceholders();
  },
};

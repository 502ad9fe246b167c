// Sessions: the menu that renames, archives and deletes them, and the import of files.

import { all, byId, create, find, header, required, sessionId } from "./dom.js";
import { request, requestJson } from "./server.js";
import { offerUndo } from "./status.js";
import { keepMenuButton } from "./patches.js";

const menu = required("menu");

const state = {
  /** The session that the menu was opened for. */
  subject: "",
};

export function init() {
  menu.onclick = () => menu.hidePopover();
  menu.addEventListener("keydown", moveInMenu);
  required("transcripts").onchange = async () => {
    for (const file of required("transcripts").files ?? []) await importFile(file);
    required("transcripts").value = "";
  };
  const [, deletedId] = location.hash.split("#deleted=");
  if (!deletedId) return;
  history.replaceState(null, "", "/");
  offerRestore(deletedId);
}

/** @param {KeyboardEvent} event */
function moveInMenu({ key }) {
  const items = all("[role=menuitem]:not([hidden])", menu);
  const idx = items.findIndex((item) => item.matches(":focus"));
  if (key === "ArrowDown") items[(idx + 1) % items.length]?.focus();
  if (key === "ArrowUp") items.at(idx - 1)?.focus();
}

function isArchived() {
  return !!(byId(`sessions-${state.subject}`) ?? find(".heading", header))?.dataset.archived;
}

/** @param {string} id @param {object} change */
export function updateSession(id, change) {
  return request("PATCH", `/api/sessions/${id}`, change);
}

/** Sets the title; the dialog stays open until the server has accepted it. */
export async function saveTitle() {
  await updateSession(state.subject, { title: required("title").value.trim() });
  required("renaming").close();
}

/** @param {HTMLElement} button */
function openMenu(button) {
  const subject = button.closest("#sessions li")?.dataset.sessionId ?? sessionId ?? "";
  state.subject = subject;
  required("archive").textContent = isArchived() ? "Unarchive" : "Archive";
  for (const link of all("[data-path]", menu))
    link.setAttribute("href", `/api/sessions/${subject}/${link.dataset.path}`);
  required("raw").hidden = subject !== sessionId || !find(".raw-link");
  keepMenuButton(button);
  menu.showPopover({ source: button });
}

/** @param {HTMLElement} button */
function openRenaming(button) {
  if (button.role !== "menuitem") state.subject = sessionId ?? "";
  const { subject } = state;
  const title = subject === sessionId ? find("h1", header) : find(`#sessions-${subject} .title`);
  required("title").value = title?.textContent ?? "";
  required("renaming").showModal();
  required("title").select();
}

async function toggleArchived() {
  const { subject } = state;
  const archived = !isArchived();
  await updateSession(subject, { archived });
  const text = archived ? "Archived" : "No longer archived";
  offerUndo(text, () => updateSession(subject, { archived: !archived }));
}

/** Deletes the session after a delay on the server, in which it can be restored. */
async function deleteSession() {
  const { subject } = state;
  await request("DELETE", `/api/sessions/${subject}?seconds=10`);
  if (subject === sessionId) location.href = `/#deleted=${subject}`;
  else offerRestore(subject);
}

/** @param {string} id */
function offerRestore(id) {
  offerUndo("Deleted", () => request("POST", `/api/sessions/${id}/restore`));
}

/** @param {File} file */
async function importFile(file) {
  const line = create("li", {}, `${file.name}: `);
  required("imported").append(line);
  const path = `/api/sessions/import?format=${required("format").value}`;
  const imported = await requestJson("POST", path, undefined, { body: file }).catch((error) =>
    line.append(error.message),
  );
  if (!imported) return;
  const { id, title, goesOnHere, addedTurns } = imported;
  const result = goesOnHere ? "goes on here, nothing added" : `turns added: ${addedTurns}`;
  line.append(create("a", { href: `/s/${id}` }, title), `, ${result}`);
}

/** @type {Actions} */
export const actions = {
  "session-menu": openMenu,
  rename: openRenaming,
  archive: toggleArchived,
  delete: deleteSession,
};

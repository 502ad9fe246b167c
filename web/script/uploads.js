// Files attached to the message that is being written: uploaded immediately, shown as chips.

import { create, page, required } from "./dom.js";
import { requestJson } from "./server.js";
import { showStatus } from "./status.js";

const state = {
  /** @type {Upload[]} */
  files: [],
};

export function init() {
  addEventListener("paste", takeFiles);
  addEventListener("drop", takeFiles);
  addEventListener("dragover", (event) => event.preventDefault());
  for (const type of ["dragover", "dragleave", "drop"]) addEventListener(type, markDragging);
  required("attach").onchange = () => {
    attach(required("attach").files ?? []);
    required("attach").value = "";
  };
}

/** @param {any} event */
function markDragging({ type, relatedTarget, dataTransfer }) {
  // A drag that leaves one element for another is still over the page.
  const isOver = type === "dragover" || relatedTarget;
  page.classList.toggle("dragging", !!isOver && dataTransfer.types.includes("Files"));
}

/** Attaches the files of a paste or a drop. @param {any} event */
function takeFiles(event) {
  const { files } = event.clipboardData ?? event.dataTransfer;
  if (!files.length) return;
  event.preventDefault();
  attach(files);
}

/** Returns a key that is unique among messages and uploads. */
export function newKey() {
  return `${Date.now()}-${Math.random().toString(36).slice(2)}`;
}

export function attachedFiles() {
  return state.files;
}

/** @param {Upload[]} files */
export function fileKeys(files) {
  return files.map(({ key }) => key).join();
}

/** @param {File} file @returns {Promise<object>} */
async function upload(file) {
  const { blob, size } = await requestJson("POST", "/api/blobs", undefined, { body: file });
  return { blob, size, name: file.name, mediaType: file.type || "application/octet-stream" };
}

/** @param {Iterable<File>} files */
function attach(files) {
  for (const file of files) {
    const added = { name: file.name, key: newKey(), sent: upload(file) };
    setFiles([...state.files, added]);
    added.sent.catch((error) => {
      remove(added);
      showStatus(`${file.name} could not be attached: ${error.message}`);
    });
  }
}

/** @param {Upload} upload */
function remove(upload) {
  setFiles(state.files.filter((other) => other !== upload));
}

/** @param {Upload[]} files */
export function setFiles(files) {
  state.files = files;
  required("files").replaceChildren(...files.map(createChip));
  required("files").hidden = !files.length;
}

/** @param {Upload} upload */
function createChip(upload) {
  const name = create("span", { class: "name" }, upload.name);
  const chip = create("button", { type: "button", title: `Remove ${upload.name}` }, name, "×");
  chip.onclick = () => remove(upload);
  upload.sent.then(
    ({ blob, mediaType }) => {
      // SVG may hold script.
      const isPicture = /^image\/[^s]/.test(mediaType);
      if (isPicture) chip.prepend(create("img", { src: `/api/blobs/${blob}`, alt: "" }));
    },
    () => {},
  );
  return chip;
}

/** @type {Actions} */
export const actions = { attach: () => required("attach").click() };

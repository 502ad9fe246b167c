// Settings: attributes of the root, saved on the server and kept the same on all open pages; and signing out.

import { all, byId, closestOrSelf, find, required, root, sessionId } from "./dom.js";
import { getPage, goHome, request } from "./server.js";
import { report } from "./status.js";
import { updateSession } from "./sessions.js";

const state = {
  /** The settings as the server last sent them. @type {DOMStringMap} */
  saved: { ...root.dataset },
};

export function init() {
  required("settings").onchange = save;
}

/**
 * Applies the settings that have changed on the server since it last sent them.
 * @param {Record<string, unknown>} settings
 */
export function applySettings(settings) {
  for (const [name, value] of Object.entries(settings)) {
    if (state.saved[name] === `${value}`) continue;
    state.saved[name] = `${value}`;
    // The pictures that a page may load are fixed when it is loaded.
    if (name !== "remoteImages") root.dataset[name] = `${value}`;
    const control = find(`[name="${name}"]`, required("settings"));
    if (control) Object.assign(control, typeof value === "boolean" ? { checked: value } : { value });
  }
}

/** @param {Event} event */
function save({ target }) {
  const { name, type, checked, value } = /** @type {any} */ (target);
  const chosen = type === "checkbox" ? checked : value;
  root.dataset[name] = `${chosen}`;
  const saved = request("PATCH", "/api/settings", { [name]: chosen });
  report(name === "remoteImages" ? saved.then(() => location.reload()) : saved);
}

/** @type {Actions} */
export const actions = {
  settings: async () => {
    required("settings").showModal();
    byId("grants")?.replaceWith(...all("#grants", await getPage(`/?part=grants&session=${sessionId ?? ""}`)));
  },
  revoke: async (button) => {
    await request("DELETE", button.dataset.grant ?? "");
    closestOrSelf(button, "li").remove();
  },
  "use-folder": (button) => updateSession(sessionId ?? "", { workspace: button.dataset.folder }),
  // The answer leads to a page that needs the sign-in that has just ended.
  "sign-out": () => fetch("/sign-out", { method: "POST" }).then(goHome),
  "sign-out-everywhere": () => request("POST", "/api/sign-out-everywhere").then(goHome),
};

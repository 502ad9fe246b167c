// HTTP requests to the server.

import { closestOrSelf } from "./dom.js";

/**
 * Sends a request, with the body as JSON; throws the error that the server answers.
 * @param {string} method @param {string} path @param {unknown} [body] @param {RequestInit} [options]
 */
export async function request(method, path, body, options) {
  const headers = { "content-type": "application/json" };
  const json = body === undefined ? {} : { headers, body: JSON.stringify(body) };
  const response = await fetch(path, { method, ...json, ...options }).catch(() => {
    throw failure("offline", "the server cannot be reached. Is it running?");
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw failure(error?.code, error?.message ?? `the server answered ${response.status}.`);
}

/** @param {string | undefined} code @param {string} message */
function failure(code, message) {
  return Object.assign(new Error(message), { code: code ?? "" });
}

/** @param {Parameters<typeof request>} args */
export async function requestJson(...args) {
  return (await request(...args)).json();
}

/** Returns the HTML at a path; any other content is an error and never parsed as HTML. @param {string} path */
export async function getHtml(path) {
  const response = await request("GET", path);
  if (/^text\/html\b/.test(response.headers.get("content-type") ?? "")) return response.text();
  throw new Error("the server answered with something else than a page.");
}

/** @param {string} path */
export async function getPage(path) {
  return new DOMParser().parseFromString(await getHtml(path), "text/html");
}

/**
 * Posts to the session that an element belongs to.
 * @param {HTMLElement} element @param {string} action
 */
export function postToSession(element, action) {
  return request("POST", `/api/sessions/${closestOrSelf(element, "[data-session-id]").dataset.sessionId}/${action}`);
}

export function goHome() {
  location.href = "/";
}

// The document: its fixed regions, and helpers to find and create elements.

export const page = document.body;
export const root = document.documentElement;
/** The id of the session that the page shows, if any. */
export const sessionId = page.dataset.sessionId;
// Lookups around a long conversation search these regions, not the whole document.
export const header = find("main > header") ?? root;
export const foot = find(".foot") ?? root;

/** @param {string} id */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Returns an element that every page has.
 * @template {keyof PageElements} Id
 * @param {Id} id
 * @returns {PageElements[Id]}
 */
export function required(id) {
  return /** @type {any} */ (byId(id));
}

/** @param {string} selector @param {ParentNode} [within] */
export function find(selector, within = document) {
  return within.querySelector(selector);
}

/** @param {string} selector @param {ParentNode} [within] */
export function all(selector, within = document) {
  return [...within.querySelectorAll(selector)];
}

/**
 * Returns the nearest enclosing element that matches, or the element itself if none does.
 * @param {HTMLElement} element @param {string} selector
 */
export function closestOrSelf(element, selector) {
  return element.closest(selector) ?? element;
}

/** @param {string} tag @param {Record<string, string>} attributes @param {(Node | string)[]} children */
export function create(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** @param {string} html */
export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

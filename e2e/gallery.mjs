// Pages of hand-written logs in a real browser, with the page's own script and stylesheet, and a
// connection that sends messages of the test. There is no server: `render` has drawn everything.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const ORIGIN = "http://callboard.test/";
/** The stylesheet as the server sends it, part of each gallery. */
let stylesheet = "";
const TYPES = { ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };

/**
 * @typedef {{
 *   first: string,
 *   patches: {seq: number, ops: (string | null)[][] | null}[],
 *   pages: Record<string, string>,
 *   part: {seq: number, pages: Record<string, string>} | null,
 * }} Replay
 */

/**
 * Draws all logs of a folder.
 * @param {{after: (end: () => void) => void}} scope removes the pages again
 * @param {string[]} logs a folder instead of that of the hand-written logs
 */
export function drawGallery(scope, ...logs) {
  const folder = mkdtempSync(path.join(tmpdir(), "callboard-gallery-"));
  scope.after(() => rmSync(folder, { recursive: true, force: true }));
  const args = ["run", "--quiet", "--locked", "-p", "render", "--example", "gallery"];
  execFileSync("cargo", [...args, "--", folder, ...logs], { cwd: ROOT, stdio: "inherit" });
  const read = (/** @type {string} */ name) => readFileSync(path.join(folder, name), "utf8");
  stylesheet = read("page.css");
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return {
    names: names.map((name) => path.basename(name, ".json")),
    html: (/** @type {string} */ name) => read(`${name}.html`),
    replay: (/** @type {string} */ name) => /** @type {Replay} */ (JSON.parse(read(`${name}.json`))),
  };
}

/** The hand-written logs, for a file of tests. */
export function useGallery() {
  const ends = /** @type {(() => void)[]} */ ([]);
  const gallery = /** @type {ReturnType<typeof drawGallery>} */ ({});
  before(() => {
    Object.assign(gallery, drawGallery({ after: (end) => void ends.push(end) }));
  });
  after(() => ends.forEach((end) => end()));
  return gallery;
}

/**
 * Opens a page as a server would send it.
 * @param {import("playwright-core").Page} page
 * @param {string} name of the session, or `home`
 * @param {string} html
 */
export async function openDrawn(page, name, html) {
  /** @type {import("playwright-core").WebSocketRoute | undefined} */
  let socket;
  let drawn = html;
  /** @type {{what: string, body: any}[]} */
  const asked = [];
  /** @type {any[]} */
  const frames = [];
  /** @type {string[]} */
  const elsewhere = [];
  await page.routeWebSocket(/\/ws$/, (route) => {
    socket = route;
    route.onMessage((frame) => void frames.push(JSON.parse(String(frame))));
  });
  await page.route("**/*", (route) => {
    const request = route.request();
    const { origin, pathname, searchParams } = new URL(request.url());
    if (`${origin}/` !== ORIGIN) {
      elsewhere.push(request.url());
      return route.abort();
    }
    if (pathname.startsWith("/assets/")) return sendAsset(route, path.basename(pathname));
    // Earlier and later messages are not drawn and never load.
    if (searchParams.has("part")) return undefined;
    if (!pathname.startsWith("/api/")) {
      return route.fulfill({ body: drawn, contentType: "text/html; charset=utf-8" });
    }
    // Highlighted files are not drawn: they stay plain.
    if (pathname.endsWith("/output")) return undefined;
    asked.push({ what: `${request.method()} ${pathname}`, body: request.postDataJSON() });
    return route.fulfill({ json: {} });
  });
  await page.goto(`${ORIGIN}${name === "home" ? "" : `s/${name}`}`);
  while (!socket) await new Promise((resume) => setTimeout(resume, 5));
  const sendFrame = (/** @type {object} */ frame) => socket?.send(JSON.stringify(frame));
  return {
    /** HTTP requests of the page. */
    asked,
    /** WebSocket messages of the page. */
    frames,
    /** Requests to other hosts. */
    elsewhere,
    sendFrame,
    /**
     * Says a patch of the log, and waits until it is there.
     * @param {Replay["patches"][0]} patch @param {string} [fresh] the page, where patches do not lead to it
     */
    async patch({ seq, ops }, fresh = drawn) {
      drawn = fresh;
      sendFrame(ops ? { type: "patch", sessionId: name, seq, ops } : { type: "reload", sessionId: name });
      await page.waitForFunction((seq) => document.body.dataset.head === String(seq), seq);
    },
  };
}

/** @param {import("playwright-core").Route} route @param {string} file */
function sendAsset(route, file) {
  const contentType = TYPES[/** @type {keyof typeof TYPES} */ (path.extname(file))];
  if (file === "page.css") return route.fulfill({ body: stylesheet, contentType });
  const folder = file.endsWith(".js") ? "web/script" : "web";
  return route.fulfill({ path: path.join(ROOT, folder, file), contentType });
}

/**
 * The part of a page that comes from the log, without the state of the reader: open blocks, fetched
 * bodies, clocks. Runs in the browser.
 * @param {string | null} html HTML of another page; by default this one
 */
export function fromLog(html) {
  const from = html === null ? document : new DOMParser().parseFromString(html, "text/html");
  return [".heading", ".sequence", ".messages", ".queue", ".foot > .now", ".dock"].map((name) => {
    const element = from.querySelector(name)?.cloneNode(true);
    if (!(element instanceof Element)) return `no ${name}`;
    for (const it of element.querySelectorAll("details")) it.removeAttribute("open");
    for (const it of element.querySelectorAll(".fetched")) it.remove();
    for (const it of element.querySelectorAll("[data-since], [data-at]")) it.textContent = "";
    // Attributes have no order.
    for (const it of [element, ...element.querySelectorAll("*")]) {
      const attributes = [...it.attributes].sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const { name } of attributes) it.removeAttribute(name);
      for (const { name, value } of attributes) it.setAttribute(name, value);
    }
    return element.outerHTML;
  });
}

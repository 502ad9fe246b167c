// A page of 1,000 messages with 5,000 tool calls, with `content-visibility` and without.
//
// Readers never get such a page: a session opens with its last 50 messages. It shows the effect of the
// stylesheet while a long session is read back. The pages come from memory, without script.

import { once } from "node:events";
import { createServer } from "node:http";

import { inWords, median, memory, openMeter, paints, withPage } from "./measure.mjs";
import { ROUNDS, longSession, withCallboard } from "./server.mjs";

const EXCHANGES = 500;
const CALLS = 10;

/** @typedef {{html: string, css: string}} Variant */

const served = await withCallboard(longSession(EXCHANGES, CALLS), async (callboard) => {
  const text = async (/** @type {string} */ path) => {
    const headers = { Authorization: `Bearer ${callboard.token}` };
    return (await fetch(callboard.base + path, { headers })).text();
  };
  const html = await wholePage(text);
  const [, stylesheet = ""] = /href="\/(assets\/[^"]+\.css)"/.exec(html) ?? [];
  return { html, css: await text(stylesheet) };
});

const html = served.html.replace(/<script.*?<\/script>|<link rel="modulepreload"[^>]*>/g, "");
const css = served.css.replaceAll("content-visibility: auto", "content-visibility: visible");
/** @type {Record<string, Variant>} */
const VARIANTS = {
  ours: { html, css: served.css },
  without: { html, css },
  "without, all open": { html: html.replaceAll("<details", "<details open"), css },
};

const server = createServer(({ url = "" }, response) => {
  const [, name = ""] = url.split("/").map(decodeURIComponent);
  const variant = VARIANTS[name];
  const isStylesheet = url.endsWith("/page.css");
  const kind = isStylesheet ? "text/css" : "text/html; charset=utf-8";
  response.writeHead(variant ? 200 : 404, { "content-type": kind });
  response.end(isStylesheet ? variant?.css : variant?.html.replaceAll("/assets/", `/${name}/`));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());

/** @type {Record<string, Awaited<ReturnType<typeof measure>>[]>} */
const figures = Object.fromEntries(Object.keys(VARIANTS).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const name of Object.keys(VARIANTS)) {
    const url = `http://127.0.0.1:${port}/${encodeURIComponent(name)}/`;
    figures[name].push(await withPage((page) => measure(page, url)));
  }
}
server.close();
report();

/**
 * The page with everything that was read back: every window of the session in one list.
 * @param {(path: string) => Promise<string>} text
 */
async function wholePage(text) {
  const windows = [await text("s/long")];
  const earlier = () => /id="earlier"[^>]*>\s*<a[^>]* href="([^"]+)"/.exec(windows.at(-1) ?? "")?.[1];
  for (let link = earlier(); link; link = earlier()) {
    windows.push(await text(`${link.slice(1).replaceAll("&amp;", "&")}&part=messages`));
  }
  return withPage((page) => page.evaluate(join, windows));
}

/** Runs in the browser. @param {string[]} windows the last one first */
function join(windows) {
  const [whole, ...before] = windows.map((it) => new DOMParser().parseFromString(it, "text/html"));
  const list = whole.querySelector(".messages");
  for (const it of before) list?.prepend(...(it.querySelector(".messages")?.children ?? []));
  return `<!doctype html>${whole.documentElement.outerHTML}`;
}

/** @param {import("playwright-core").Page} page @param {string} url */
async function measure(page, url) {
  const read = await openMeter(page);
  await page.goto(url, { waitUntil: "load" });
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  const { fcp, ready, load } = await paints(page);
  const { busy, nodes } = await read();
  return { fcp, ready, load, busy, nodes, ...(await memory(page)) };
}

function report() {
  const messages = html.split('class="message"').length - 1;
  console.log(`${messages} messages, ${(html.length / 1e6).toFixed(1)} MB of HTML, ${ROUNDS} rounds, median [range]`);
  /** @type {(name: string, what: keyof typeof figures[""][0]) => number[]} */
  const column = (name, what) => figures[name].map((it) => it[what]);
  const columns = /** @type {const} */ (["fcp", "ready", "load", "busy", "footprint", "resident"]);
  for (const name of Object.keys(VARIANTS)) {
    const cells = columns.map((what) => {
      const ratio = median(column("ours", what)) / median(column(name, what));
      return `${what} ${inWords(column(name, what))}${name === "ours" ? "" : ` (ratio ${ratio.toFixed(2)})`}`;
    });
    console.log(`${name}: ${cells.join(", ")}`);
  }
}

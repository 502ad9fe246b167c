// An answer of 50 KB at 300 deltas a second: the cost for the browser's main thread, on our page and on a
// page with streamdown, and for the server, with and without an open page.
//
// All pages get the same text from the same server over a WebSocket: ours as patches, the others as records.
// Ours follows the end and highlights code; the others do neither.

import { buildSync } from "esbuild";
import { fileURLToPath } from "node:url";

import { END, answer } from "./answer.mjs";
import { cpuMs, inWords, median, memory, noteLongTasks, openMeter, withPage } from "./measure.mjs";
import { startModel } from "./model.mjs";
import { ROUNDS, withCallboard } from "./server.mjs";

/** @typedef {import("./server.mjs").Callboard} Callboard */
/** @typedef {import("playwright-core").Page} Page */

const SIDES = {
  ours: openOurs,
  streamdown: peer("delta"),
  "streamdown, once a frame": peer("frame"),
};
const bundle = buildSync({
  entryPoints: [fileURLToPath(new URL("peer.jsx", import.meta.url))],
  bundle: true,
  minify: true,
  write: false,
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "error",
});
const script = bundle.outputFiles[0].text;

const text = answer();
const model = await startModel(text, { pieceLength: 10, perSecond: 300 });
await withCallboard({ config: model.agent }, async (callboard) => {
  /** @type {Record<string, Awaited<ReturnType<typeof measure>>[]>} */
  const figures = { ours: [], streamdown: [], "streamdown, once a frame": [] };
  /** @type {number[]} */
  const alone = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, open] of Object.entries(SIDES)) {
      figures[name].push(await withPage((page) => measure(callboard, page, open)));
    }
    alone.push((await say(callboard, await create(callboard))) / model.deltas);
  }
  report(figures, alone);
});
model.stop();

/** @param {Callboard} callboard @param {Page} page @param {typeof openOurs} open */
async function measure(callboard, page, open) {
  const session = await create(callboard);
  const longTasks = await noteLongTasks(page);
  await open(page, callboard, session);
  const read = await openMeter(page);
  await longTasks.take();
  const before = await read();
  const server = await say(callboard, session);
  await page.waitForFunction((end) => document.body.textContent?.includes(end), END, { polling: 200 });
  const after = await read();
  const headings = await page.locator("h2:not(dialog h2)").count();
  if (headings !== text.match(/^## /gm)?.length) throw new Error(`${headings} headings are shown`);
  return {
    busy: after.busy - before.busy,
    script: after.script - before.script,
    style: after.style - before.style,
    layout: after.layout - before.layout,
    heapMb: after.heapMb,
    serverUs: (server * 1000) / model.deltas,
    longTasks: await longTasks.take(),
    ...(await memory(page)),
  };
}

/** @param {Callboard} callboard */
async function create(callboard) {
  const { id } = await callboard.api("sessions", { body: { agent: "model" } });
  return /** @type {string} */ (id);
}

/**
 * Lets the model answer and returns the server's CPU time in milliseconds.
 * @param {Callboard} callboard @param {string} session
 */
async function say(callboard, session) {
  const before = await cpuMs(callboard.pid);
  await callboard.api(`sessions/${session}/messages`, { body: { text: "go" } });
  for (;;) {
    await new Promise((resume) => setTimeout(resume, 500));
    const { state } = await callboard.api(`sessions/${session}`);
    if (state === "idle") return (await cpuMs(callboard.pid)) - before;
    if (state === "failed") throw new Error("the run has failed");
  }
}

/** @param {Page} page @param {Callboard} callboard @param {string} session */
async function openOurs(page, callboard, session) {
  const patched = page.waitForEvent("websocket").then((socket) =>
    socket.waitForEvent("framereceived", ({ payload }) => `${payload}`.includes(`"patch","sessionId"`)),
  );
  await page.goto(`${callboard.base}s/${session}?token=${callboard.token}`);
  await patched;
}

/** @param {string} every @returns {typeof openOurs} */
function peer(every) {
  return (page, callboard, session) => openPeer(every, page, callboard, session);
}

/**
 * From the server's own address, so that the page is authorized.
 * @param {string} every @param {Page} page @param {Callboard} callboard @param {string} session
 */
async function openPeer(every, page, { base, token }, session) {
  // The browser does not know that responses intercepted here came from loopback.
  await page.context().grantPermissions(["local-network-access"]);
  await page.route(`${base}peer.js`, (route) =>
    route.fulfill({ contentType: "text/javascript", body: script }),
  );
  const body = `<!doctype html><meta charset="utf-8"><div id="answer"></div><script src="/peer.js"></script>`;
  await page.route(`${base}peer?*`, (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto(`${base}peer?session=${session}&token=${token}&every=${every}`);
  await page.waitForFunction(() => document.title === "ready");
}

/** @param {Record<string, Awaited<ReturnType<typeof measure>>[]>} figures @param {number[]} alone */
function report(figures, alone) {
  const kb = (text.length / 1e3).toFixed(0);
  console.log(`${kb} KB in ${model.deltas} deltas, ${ROUNDS} rounds, alternating, median [range]`);
  const busy = (/** @type {string} */ name) => median(figures[name].map((it) => it.busy));
  for (const [name, rounds] of Object.entries(figures)) {
    const all = (/** @type {"busy" | "script" | "style" | "layout" | "heapMb" | "footprint" | "serverUs"} */ what) =>
      inWords(rounds.map((it) => it[what]));
    const long = rounds.map((it) => it.longTasks);
    console.log(`${name}: main thread busy ${all("busy")} ms (ratio ${(busy("ours") / busy(name)).toFixed(2)})`);
    console.log(`  script ${all("script")}, style ${all("style")}, layout ${all("layout")} ms`);
    console.log(`  tasks over 50 ms by round: ${long.map((it) => it.join("+") || "none").join(", ")}`);
    console.log(`  heap ${all("heapMb")}, tab ${all("footprint")} MB; server ${all("serverUs")} us a delta`);
  }
  console.log(`nobody looks: server ${inWords(alone.map((ms) => ms * 1000))} us a delta`);
}

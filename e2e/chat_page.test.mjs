// The unchanged example `examples/ai-sdk`: `useChat` in a browser, on another origin than Callboard.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { listFaults, useBrowser } from "./browser.mjs";
import { startCallboard } from "./callboard.mjs";

const EXAMPLE = fileURLToPath(new URL("../examples/ai-sdk/", import.meta.url));

const browser = useBrowser();

/** The packages of the example as installed here. */
const here = {
  name: "here",
  setup(/** @type {import("esbuild").PluginBuild} */ build) {
    const installed = { ai: "ai-6", "@ai-sdk/react": "ai-react-6" };
    build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      if (!importer.startsWith(EXAMPLE)) return undefined;
      const name = /** @type {Record<string, string>} */ (installed)[path] ?? path;
      return build.resolve(name, { resolveDir: import.meta.dirname, kind });
    });
  },
};

/** Serves the example, built as its `package.json` says. @param {any} t */
async function serveExample(t) {
  const options = { bundle: true, write: false, jsx: /** @type {const} */ ("automatic"), plugins: [here] };
  const built = await build({ ...options, entryPoints: [`${EXAMPLE}chat.jsx`] });
  const page = await readFile(`${EXAMPLE}index.html`, "utf8");
  const server = createServer((request, response) => {
    const isScript = request.url === "/chat.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? built.outputFiles?.[0].text : page);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return `http://127.0.0.1:${port}`;
}

test("the AI SDK example chats, asks, runs its tool and survives a reload", async (t) => {
  const origin = await serveExample(t);
  const config = `[server]\nallowed_origins = ["${origin}"]\n[demo]\npace = "instant"\n`;
  const callboard = await startCallboard(t, { config });
  const page = await browser.newPage(t);
  const faults = listFaults(page);
  const settings = { url: callboard.base.replace(/\/$/, ""), token: callboard.token };
  await page.addInitScript((it) => void (/** @type {any} */ (globalThis).CALLBOARD = it), settings);
  await page.goto(origin);
  const sendMessage = async (/** @type {string} */ text) => {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.getByRole("button", { name: "Send" }).click();
  };

  await sendMessage("hello");
  await page.getByText("I am the demo agent").waitFor();
  await sendMessage("run echo one > made.txt");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.locator(".call", { hasText: "output-available" }).first().waitFor();
  await sendMessage("use the client tool page_title");
  await page.locator("article").last().getByText("says:").waitFor();
  assert.match(await page.locator("article").last().innerText(), /A chat with Callboard/);

  const shown = await page.locator("article").allInnerTexts();
  await page.reload();
  await page.getByText("I am the demo agent").waitFor();
  assert.deepEqual(await page.locator("article").allInnerTexts(), shown);
  // A new chat is requested before it exists.
  assert.deepEqual(faults.filter((it) => !/404/.test(it)), []);
});

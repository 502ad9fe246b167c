// The page's script and these tests are plain JavaScript; their types stand in comments, and the compiler
// checks them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { get } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startCallboard } from "./callboard.mjs";

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

for (const [what, project] of [["the page's script", "tsconfig.json"], ["the tests", "tsconfig.tests.json"]]) {
  test(`the types of ${what} are correct`, () => {
    const compiler = here("node_modules/typescript/bin/tsc");
    const args = [compiler, "--project", here(project)];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });
}

test("the page's script and style are formatted", () => {
  const formatter = here("node_modules/prettier/bin/prettier.cjs");
  const args = [formatter, "--check", here("../web/script"), here("../web/style")];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

/** Limits of the compressed bytes that a browser gets; neither may grow. The aim for the script is 25,000. */
const SENT_MAX = { script: 30_500, style: 21_400 };

test("script and style stay within their size limits", async (t) => {
  const callboard = await startCallboard(t);
  const headers = { authorization: `Bearer ${callboard.token}` };
  const page = await (await fetch(callboard.base, { headers })).text();
  const paths = [...page.matchAll(/(?:href|src)="\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path);
  const sent = { script: 0, style: 0 };
  for (const path of paths) {
    const length = await sentLength(callboard.base + path);
    sent[path.endsWith(".js") ? "script" : "style"] += length;
  }
  const sizes = `${sent.script} bytes of script and ${sent.style} of style are sent`;
  t.diagnostic(sizes);
  assert.ok(sent.script > 0 && sent.style > 0, sizes);
  assert.ok(sent.script <= SENT_MAX.script && sent.style <= SENT_MAX.style, sizes);
});

/** The compressed size of a file as sent. @param {string} url @returns {Promise<number>} */
function sentLength(url) {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers: { "accept-encoding": "gzip" } }, (response) => {
      assert.equal(response.statusCode, 200, url);
      assert.equal(response.headers["content-encoding"], "gzip", url);
      let length = 0;
      response.on("data", (chunk) => (length += chunk.length));
      response.on("end", () => resolve(length));
    });
    request.on("error", reject);
  });
}

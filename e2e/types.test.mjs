// The page's script and these tests are plain JavaScript; their types stand in comments, and the compiler
// checks them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startCallboard } from "./callboard.mjs";

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

for (const [what, project] of [["the page's script", "tsconfig.json"], ["the tests", "tsconfig.tests.json"]]) {
  test(`the types of ${what} hold`, () => {
    const compiler = here("node_modules/typescript/bin/tsc");
    const args = [compiler, "--project", here(project)];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });
}

test("the page's script stays small, as it is sent", async (t) => {
  const callboard = await startCallboard(t);
  const script = await (await fetch(`${callboard.base}assets/page.js`)).text();
  t.diagnostic(`${script.length} bytes`);
  assert.ok(script.length < 35_000, `${script.length} bytes`);
});

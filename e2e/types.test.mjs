// The page's script and these tests are plain JavaScript; their types stand in comments, and the compiler
// checks them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
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

// The aim is 25,000 bytes as it is sent. Until it is reached neither size may grow.
const WRITTEN_MAX = 52_300;
const SENT_MAX = 41_400;

test("the page's script does not grow, as it is written and as it is sent", async (t) => {
  const callboard = await startCallboard(t);
  const sent = (await (await fetch(`${callboard.base}assets/page.js`)).text()).length;
  const { size: written } = statSync(here("../web/page.js"));
  const sizes = `${written} bytes are written, ${sent} are sent`;
  t.diagnostic(sizes);
  assert.ok(written <= WRITTEN_MAX && sent <= SENT_MAX, sizes);
});

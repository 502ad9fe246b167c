// `useChat` of versions 4 to 7 in a browser: the unchanged hooks, each on a page of its own.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";

import { hook, serveHooks } from "./ai_sdk.mjs";
import { listFaults, useBrowser } from "./browser.mjs";
import { takeCases } from "./chat_cases.mjs";

const browser = useBrowser();
/** @type {(() => Promise<void>)[]} */
const ends = [];
const origin = await serveHooks({ after: (end) => after(end) });
/** @type {string[]} */
const faults = [];

async function newPage() {
  const page = await browser.newPage({ after: (end) => void ends.push(end) });
  listFaults(page, faults);
  return page;
}

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const HOOKS = [4, 5, 6, 7].map((profile) => hook(profile, origin, newPage));
takeCases(HOOKS, [origin]);

test("no page has logged an error", () => {
  // Two cases expect a refusal: an unknown agent and a wrong key.
  const isOfKey = (/** @type {string} */ it) => /^401: .*\/api\/chat/.test(it) || /401 \(Unauthorized\)/.test(it);
  assert.equal(faults.filter(isOfKey).length, 2 * HOOKS.length);
  assert.deepEqual(faults.filter((it) => !/nobody|400 \(Bad Request\)/.test(it) && !isOfKey(it)), []);
});

// The law in a real browser: a patched page equals the page that would be loaded now, and blocks that
// the reader opened stay open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { listFaults, useBrowser } from "./browser.mjs";
import { NATURAL, startCallboard } from "./callboard.mjs";
import { drawGallery, fromLog, openDrawn, useGallery } from "./gallery.mjs";

const browser = useBrowser();
const gallery = useGallery();

test("patches of every hand-written log give the loaded page", async (t) => {
  assert.ok((await followPatches(t, gallery)) > 300);
});

test("patches of recordings of real agents give the loaded page", async (t) => {
  const logs = fileURLToPath(new URL("../crates/backends/fixtures/logs", import.meta.url));
  assert.ok((await followPatches(t, drawGallery(t, logs))) > 200);
});

/**
 * Returns the number of compared cuts.
 * @param {import("node:test").TestContext} t @param {ReturnType<typeof drawGallery>} gallery
 */
async function followPatches(t, gallery) {
  let cuts = 0;
  for (const name of gallery.names) {
    const { first, patches, pages } = gallery.replay(name);
    cuts += await checkPatches(t, name, first, patches, pages);
  }
  t.diagnostic(`${cuts} cuts compared in ${gallery.names.length} logs`);
  return cuts;
}

test("patches leave a page alone that does not reach the end", async (t) => {
  let cuts = 0;
  for (const name of gallery.names) {
    const { patches, part } = gallery.replay(name);
    if (!part) continue;
    const first = part.pages[part.seq] ?? "";
    cuts += await checkPatches(t, name, first, patches.filter(({ seq }) => seq > part.seq), part.pages);
  }
  t.diagnostic(`${cuts} cuts compared`);
  assert.ok(cuts > 50);
});

/**
 * Returns the number of compared moments.
 * @param {import("node:test").TestContext} t @param {string} name @param {string} first
 * @param {import("./gallery.mjs").Replay["patches"]} patches @param {Record<string, string>} pages
 */
async function checkPatches(t, name, first, patches, pages) {
  const page = await browser.newPage(t);
  const faults = listFaults(page);
  const { patch } = await openDrawn(page, name, first);
  /** @type {Set<string>} */
  const opened = new Set();
  let cuts = 0;
  for (const step of patches) {
    const fresh = pages[step.seq];
    await patch(step, fresh);
    const closed = await page.evaluate(closedOf, [...opened]);
    assert.deepEqual(closed, [], `${name} at ${step.seq}: what the reader opened stays open`);
    for (const id of await page.evaluate(openOne)) opened.add(id);
    if (fresh === undefined) continue;
    const [shown, expected] = [null, fresh].map((html) => page.evaluate(fromLog, html));
    assertSame(await shown, await expected, `${name} at ${step.seq}`);
    cuts += 1;
  }
  assert.deepEqual(faults, []);
  await page.close();
  return cuts;
}

/** Reports only the first difference. @param {string[]} shown @param {string[]} expected @param {string} when */
function assertSame(shown, expected, when) {
  const [a, b] = [shown.join("\n"), expected.join("\n")];
  if (a === b) return;
  let at = 0;
  while (a[at] === b[at]) at += 1;
  const around = (/** @type {string} */ text) => text.slice(Math.max(0, at - 200), at + 200);
  assert.equal(around(a), around(b), when);
}

/** Opens the first closed block and returns its id. Runs in the browser. */
function openOne() {
  const closed = document.querySelector(":is(.messages, .queue) details[id]:not([open])");
  closed?.setAttribute("open", "");
  return closed ? [closed.id] : [];
}

/** The given blocks that are not open. Runs in the browser. @param {string[]} ids */
function closedOf(ids) {
  return ids.filter((id) => document.getElementById(id)?.hasAttribute("open") === false);
}

test("the page of a running agent always equals the loaded page", async (t) => {
  const callboard = await startCallboard(t, {
    config: NATURAL,
    files: { "notes.txt": "buy oil\nTODO: wick\n" },
  });
  const page = await browser.newPage(t);
  const session = await callboard.converse();
  await page.goto(`${callboard.base}s/${session}?token=${callboard.token}`);
  const text = "list the files, then read notes.txt, search for TODO and write a report about lamps";
  await callboard.api(`sessions/${session}/messages`, { body: { text: text } });

  let cuts = 0;
  for (let isOver = false; !isOver; cuts += 1) {
    const [head, shown] = await page.evaluate(
      `[document.body.dataset.head, (${fromLog})(null)]`,
    );
    const fresh = await page.evaluate(
      async (head) => (await fetch(`?at=${head}`)).text(),
      head,
    );
    assertSame(shown, await page.evaluate(fromLog, fresh), `at ${head}`);
    isOver = fresh.includes('data-state="complete"') && !fresh.includes('class="typing"');
  }
  t.diagnostic(`${cuts} cuts compared`);
  assert.ok(cuts > 10, `${cuts} cuts`);
});

// Kills the server at random moments of a long import. After each start the session is complete or
// absent in the API, the list, the page and the search; and nothing is left of it on the disk.
//
//     CALLBOARD_BIN=target/release/callboard node e2e/import_faults.mjs [kills] [turns]
//
// By default 50 kills of 33,333 turns. CI runs a smaller version: `import/faults.rs`.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { logLines, longLog, startCallboard, until } from "./callboard.mjs";

const KILLS = Number(process.argv[2] ?? 50);
const TURNS = Number(process.argv[3] ?? 33_333);
const RECORDS = 1 + 7 * TURNS;

/** @type {(() => Promise<void>)[]} */
const ends = [];
const callboard = await startCallboard({ after: (end) => void ends.push(end) });
try {
  const log = logLines("long", longLog(2 * TURNS));
  const whole = await seconds(() => post(log));
  console.log(`${TURNS} turns, ${Math.round(log.length / 1e6)} MB, imported in ${whole.toFixed(1)} s`);
  assert.equal(await isThere(), true);
  await remove();

  let complete = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const imported = post(log).catch(() => undefined);
    // It takes longer than the first, because the earlier rows are deleted meanwhile.
    await sleep(Math.random() * whole * 3e3);
    await callboard.kill();
    await imported;
    await callboard.restart();
    if (await isThere()) {
      complete += 1;
      await remove();
    }
  }
  console.log(`${KILLS} kills: ${complete} times all was there, ${KILLS - complete} times nothing`);
  // Hidden rows would increase the used size.
  await until(async () => (await used()) < 2e6);

  const gone = new AbortController();
  const left = post(log, gone.signal).catch(() => undefined);
  await sleep((whole / 2) * 1e3);
  gone.abort();
  await left;
  await until(async () => (await used()) < 2e6);
  assert.equal(await isThere(), false);
  console.log("a client that went away: nothing is left");
} finally {
  for (const end of ends) await end();
}

async function isThere() {
  const { sessions } = await callboard.api("sessions");
  const isListed = sessions.some((/** @type {{id: string}} */ { id }) => id === "long");
  const { hits } = await callboard.api("search?q=Question&limit=1");
  const headers = { Authorization: `Bearer ${callboard.token}` };
  const session = await fetch(`${callboard.base}api/sessions/long`, { headers });
  const page = await fetch(`${callboard.base}s/long`, { headers });
  assert.deepEqual([hits.length > 0, session.ok, page.ok], [isListed, isListed, isListed]);
  if (isListed) assert.equal((await session.json()).head, RECORDS);
  return isListed;
}

async function remove() {
  await callboard.api("sessions/long", { method: "DELETE" });
  // The deletion can be undone until the server ends.
  await until(async () => !(await isThere()));
}

/** Used bytes of the database. */
async function used() {
  const { total } = await callboard.api("sizes");
  return total.database - total.free;
}

/** @param {string} body @param {AbortSignal} [signal] */
async function post(body, signal) {
  const headers = { Authorization: `Bearer ${callboard.token}` };
  const url = `${callboard.base}api/sessions/import`;
  const response = await fetch(url, { method: "POST", headers, body, signal });
  assert.equal(response.status, 201, await response.text());
}

/** @param {() => Promise<unknown>} act */
async function seconds(act) {
  const began = performance.now();
  await act();
  return (performance.now() - began) / 1e3;
}

// A server for one measurement, stopped after it.

import { execFileSync } from "node:child_process";
import path from "node:path";

import { BINARY, startCallboard } from "../../e2e/callboard.mjs";

/** @typedef {Awaited<ReturnType<typeof startCallboard>>} Callboard */

/**
 * @template T
 * @param {Parameters<typeof startCallboard>[1]} options @param {(callboard: Callboard) => Promise<T>} use
 */
export async function withCallboard(options, use) {
  /** @type {(() => Promise<void>)[]} */
  const ends = [];
  try {
    return await use(await startCallboard({ after: (end) => void ends.push(end) }, options));
  } finally {
    for (const end of ends) await end();
  }
}

/**
 * For `withCallboard`: a log of the session `long` with `questions` questions and answers, each
 * with `calls` calls.
 * @param {number} exchanges @param {number} calls
 */
export function longSession(exchanges, calls) {
  const program = path.join(path.dirname(BINARY), "long_session");
  const fill = (/** @type {string} */ data) =>
    void execFileSync(program, [data, `${exchanges}`, `${calls}`]);
  return { fill };
}

/** Number of measurements: the first argument, by default five. */
export const ROUNDS = Number(process.argv[2] ?? 5);

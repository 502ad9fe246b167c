// A server for as long as a figure takes, ended with it.

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
 * For `withCallboard`: a log with the session `long`, of so many questions with their answers, each of
 * them after so many calls.
 * @param {number} exchanges @param {number} calls
 */
export function longSession(exchanges, calls) {
  const program = path.join(path.dirname(BINARY), "long_session");
  const fill = (/** @type {string} */ data) =>
    void execFileSync(program, [data, `${exchanges}`, `${calls}`]);
  return { fill };
}

/** How often to measure: the first argument, else five times. */
export const ROUNDS = Number(process.argv[2] ?? 5);

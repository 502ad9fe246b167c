// Claude Code, Codex and Pi on one Callboard ask each other.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startTogether } from "./agents.mjs";

/** @type {Awaited<ReturnType<typeof startTogether>>} */
let stage;
/** @type {(() => Promise<void>)[]} */
const ends = [];
before(async () => {
  stage = await startTogether({ after: (end) => void ends.push(end) }, "claude");
});
after(async () => {
  for (const end of ends) await end();
});

/** The chain of exchanges with their replies. @param {any} answer @returns {Promise<string[]>} */
async function trail(answer) {
  const exchange = answer.parts.find((/** @type {any} */ it) => it.type === "exchange");
  if (!exchange) return [];
  const { messages } = await stage.callboard.api(`sessions/${exchange.sessionId}/messages`);
  assert.equal(messages[0].from.exchangeId, exchange.id, "both logs name the exchange");
  return [`${exchange.agent}: ${exchange.result}`, ...(await trail(messages[1]))];
}

test("Claude Code asks Codex, which asks Pi, which asks the demo agent", async () => {
  const talk = await stage.open({ agent: "claude" });
  const answer = await talk.answerTo("play:toCodex");
  assert.equal(answer.content, "Codex has answered.");
  const [codex, pi, demo, ...more] = await trail(answer);
  assert.deepEqual([codex, pi, more], ["codex: Pi has answered.", "pi: Now I know the time.", []]);
  assert.match(demo ?? "", /^demo: In Paris it is/);
});

test("Codex asks Pi", async () => {
  const talk = await stage.open({ agent: "codex" });
  const answer = await talk.answerTo("play:toPi");
  assert.equal(answer.content, "Pi has answered.");
  assert.equal((await trail(answer))[0], "pi: Now I know the time.");
});

test("Pi asks Claude Code", async () => {
  const talk = await stage.open({ agent: "pi" });
  const answer = await talk.answerTo("play:toClaude");
  assert.equal(answer.content, "Claude has answered.");
  assert.deepEqual(await trail(answer), ["claude: Hello! This answer comes in several small pieces."]);
});

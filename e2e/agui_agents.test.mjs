// AG-UI with every agent: Callboard's own loop around a model, and the real command-line agents.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { RELEASES, assertKept, calls, complaints, of, openAgent, runWell } from "./ag_ui.mjs";
import { KINDS, useStage } from "./agents.mjs";

const TIMEOUT_MS = 60_000;
const [, , NEWEST] = RELEASES;

for (const kind of KINDS) {
  describe(kind, () => {
    const stage = useStage(kind);

    /** A client of a new session. @param {boolean} asks */
    const open = async (asks) => {
      const { id } = await stage.open({ asks });
      return openAgent(NEWEST, stage.callboard, { threadId: id });
    };

    test("a conversation has thinking and calls", { timeout: TIMEOUT_MS }, async () => {
      const agent = await open(false);
      for (const scenario of ["hello", "thinking", "parallel", "failing"]) {
        await runWell(agent, `play:${scenario}`);
        await assertKept(agent, stage.callboard);
      }
      assert.equal(of(agent, "user").length, 4);
      assert.equal(calls(agent).length, of(agent, "tool").length, "every call has its result");
      assert.ok(calls(agent).length >= 4);
      assert.deepEqual(complaints, []);
    });

    // The old Codex needs no approval for what its sandbox allows.
    for (const approved of kind === "codexExec" ? [] : [true, false]) {
      test(`a call that the reader ${approved ? "allows" : "refuses"}`, { timeout: TIMEOUT_MS }, async () => {
        const agent = await open(true);
        const { last } = await runWell(agent, "play:asking");
        const [{ id: interruptId }] = last.outcome.interrupts;
        await assertKept(agent, stage.callboard);
        await runWell(agent, undefined, { resume: [{ interruptId, status: "resolved", payload: { approved } }] });
        assert.equal(/error/.test(of(agent, "tool")[0].content), !approved);
        await assertKept(agent, stage.callboard);
      });
    }
  });
}

// The unchanged example `examples/ag-ui`: a conversation in the terminal.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startCallboard } from "./callboard.mjs";

const EXAMPLE = fileURLToPath(new URL("../examples/ag-ui/talk.mjs", import.meta.url));
const INSTALLED = fileURLToPath(new URL("node_modules/ag-ui-1", import.meta.url));

/** The example with its package as installed here. @param {any} t */
async function installedExample(t) {
  const folder = await mkdtemp(path.join(tmpdir(), "callboard-e2e-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(path.join(folder, "node_modules/@ag-ui"), { recursive: true });
  await symlink(INSTALLED, path.join(folder, "node_modules/@ag-ui/client"));
  await copyFile(EXAMPLE, path.join(folder, "talk.mjs"));
  return path.join(folder, "talk.mjs");
}

test("the AG-UI example chats, asks, runs its tool and prints an address", async (t) => {
  const callboard = await startCallboard(t);
  const prompts = ["hello", "run echo one > made.txt", "use the client tool local_time"];
  const env = { ...process.env, CALLBOARD_URL: callboard.base.replace(/\/$/, ""), CALLBOARD_TOKEN: callboard.token };
  const child = spawn(process.execPath, [await installedExample(t), ...prompts], { env });
  t.after(() => child.kill());
  let printed = "";
  child.stdout.on("data", (text) => (printed += text));
  child.stderr.on("data", (text) => (printed += text));
  child.stdin.end("y\n");
  const [code] = await once(child, "exit");
  assert.equal(code, 0, printed);
  assert.match(printed, /demo agent[^]*May shell run\?[^]*\[gave [^]*\[local_time/);
  const [, id] = /\/s\/(\S+)/.exec(printed) ?? [];
  const { messages } = await callboard.api(`sessions/${id}/messages?format=agui`);
  const sent = messages.filter((/** @type {any} */ it) => it.role === "user");
  assert.deepEqual(sent.map((/** @type {any} */ it) => it.content), prompts);
  assert.match(messages.at(-1).content, new RegExp(String(new Date().getFullYear())));
});

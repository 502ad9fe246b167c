// Stored conversations of programs are imported on the page.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { listFaults, useBrowser } from "./browser.mjs";
import { INSTANT, startCallboard } from "./callboard.mjs";
import { answered, openSession, sendMessage } from "./drive.mjs";

const browser = useBrowser();

/** @param {string} name */
const kept = (name) => fileURLToPath(new URL(`../crates/backends/fixtures/import/${name}`, import.meta.url));

test("files of all programs are imported, others are reported", async (t) => {
  const callboard = await startCallboard(t, {});
  const nothing = path.join(callboard.workspace, "nothing.jsonl");
  await writeFile(nothing, '{"what": "is this?"}\n');
  const page = await browser.newPage(t);
  const faults = listFaults(page);
  await page.goto(`${callboard.base}?token=${callboard.token}`);
  await page.getByRole("button", { name: "Import" }).click();
  const files = ["claude/two-turns.jsonl", "codex/app-tools.jsonl", "pi/0.73/tools.jsonl"].map(kept);
  await page.getByLabel("Files", { exact: true }).setInputFiles([...files, nothing]);
  const lines = page.locator("#imported li");
  await lines.nth(3).getByText("no conversation of Claude Code, Codex or Pi").waitFor();
  for (const [n, turns] of [2, 1, 1].entries()) {
    assert.match(await lines.nth(n).innerText(), new RegExp(`, turns added: ${turns}$`));
  }
  await page.getByLabel("Files", { exact: true }).setInputFiles(files[0] ?? "");
  await lines.nth(4).getByText("turns added: 0").waitFor();
  await lines.first().getByRole("link").click();
  await page.locator(".messages .message[data-role=assistant]").nth(1).waitFor();
  // The browser reports the refusal too.
  assert.deepEqual(faults.filter((it) => !/400/.test(`${it}`)), []);
});

test("the folder of an imported session is used after a confirmation", async (t) => {
  const callboard = await startCallboard(t, { config: INSTANT });
  const folder = path.join(path.dirname(callboard.workspace), "elsewhere");
  await mkdir(folder);
  await writeFile(path.join(folder, "found.txt"), "Here it is.");
  await callboard.importLog("log", [
    { type: "session_created", agent: "demo", workspace: folder, workspaceConfirmed: true, title: "Imported" },
  ]);
  const page = await openSession(t, browser, callboard, "log");
  await sendMessage(page, "read found.txt");
  await answered(page);
  assert.equal(await page.locator(".tool-block.error").count(), 1, "the file is not in the agent's own folder");
  const notice = page.locator(".suggestion .notice");
  assert.match(await notice.innerText(), new RegExp(`names the folder ${folder}, which is not confirmed`));
  await notice.getByRole("button", { name: "Use this folder" }).click();
  await notice.waitFor({ state: "detached" });
  assert.equal((await callboard.api("sessions/log")).workspace, folder);
  await sendMessage(page, "read found.txt");
  await answered(page, 2);
  assert.equal(await page.locator(".tool-block.success").count(), 1);
});

// The Node of the package `node`, for tests that need a newer one than the machine may have.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const NODE = fileURLToPath(import.meta.resolve("node/bin/node"));
const MARK = "CALLBOARD_E2E_PINNED_NODE";

/**
 * True in the pinned Node. In another Node, the file is run again in the pinned one: its tests report to the
 * parent of this process, as if they were its own.
 * @param {string} file
 */
export async function runsOnPinnedNode(file) {
  if (process.env[MARK]) return true;
  const child = spawn(NODE, [fileURLToPath(file)], { stdio: "inherit", env: { ...process.env, [MARK]: "1" } });
  const kill = () => child.kill();
  process.once("exit", kill);
  const [code] = await once(child, "exit");
  process.off("exit", kill);
  process.exitCode = code ?? 1;
  return false;
}

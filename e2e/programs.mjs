// The real command-line agents: pinned packages, installed once, each with a home of its own and a scripted
// model. `node programs.mjs` installs them all.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = process.env.CALLBOARD_E2E_CACHE ?? fileURLToPath(new URL(".programs", import.meta.url));
const PLATFORM = `${process.platform}-${process.arch}`;

/**
 * `file` is the executable below `node_modules`. Claude Code's is created by a script of its
 * package, as a copy of the one in the package for the platform.
 */
const PACKAGES = {
  claude: {
    name: "@anthropic-ai/claude-code",
    version: "2.1.325",
    file: `@anthropic-ai/claude-code-${PLATFORM}/claude`,
  },
  codex: { name: "@openai/codex", version: "0.166.0", file: ".bin/codex" },
  pi: { name: "@mariozechner/pi-coding-agent", version: "0.73.1", file: ".bin/pi" },
};

/** @typedef {keyof typeof PACKAGES} Program */
export const PROGRAMS = /** @type {Program[]} */ (Object.keys(PACKAGES));

/** Returns the executable, after installing its package from npm's registry if it is missing. @param {Program} program */
export async function installed(program) {
  const { name, version, file } = PACKAGES[program];
  const folder = path.join(CACHE, `${program}-${version}`);
  if (!existsSync(folder)) {
    await mkdir(CACHE, { recursive: true });
    // It gets its name when it is complete.
    const draft = await mkdtemp(path.join(CACHE, "draft-"));
    const options = ["--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--prefix", draft];
    const { status, stderr } = spawnSync("npm", ["install", ...options, `${name}@${version}`], { encoding: "utf8" });
    // Another process may have installed it meanwhile.
    if (status === 0) await rename(draft, folder).catch(() => {});
    await rm(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw new Error(`npm cannot get ${name}@${version}:\n${stderr}`);
  }
  return path.join(folder, "node_modules", file);
}

/**
 * Fills the home folder of a program, and returns the environment in which the program finds the model.
 * @param {Program} program @param {string} home @param {string} models such as `http://127.0.0.1:1234`
 * @param {number} retries number of retries when the model fails
 * @returns {Promise<{env: Record<string, string>, model?: string}>}
 */
export async function settle(program, home, models, retries) {
  const { env, model, files } = HOMES[program](home, models, retries);
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(home, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return { env: { HOME: home, ...env }, model };
}

/**
 * Sends one message to the program in a folder, without Callboard, and waits for the answer.
 * @param {Program} program @param {{home: string, models: string, folder: string}} where @param {string} text
 */
export async function runWithoutCallboard(program, { home, models, folder }, text) {
  const { env } = await settle(program, home, models, 0);
  const options = { cwd: folder, env: { PATH: process.env.PATH, ...env } };
  const child = spawn(await installed(program), [...ONE_SHOT[program], text], { ...options, stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.on("data", (it) => (output += it));
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${program} ended with ${code}:\n${output}`);
}

/** Arguments for one answer without approvals. @type {Record<Program, string[]>} */
const ONE_SHOT = {
  claude: ["--permission-mode", "bypassPermissions", "-p"],
  codex: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
  pi: ["--model", "scripted/scripted", "-p"],
};

/** The conversation files of a program. @param {string} home */
export async function conversationFiles(home) {
  const all = await readdir(home, { recursive: true });
  return all.filter((it) => /(projects|sessions)\/.*\.jsonl$/.test(it)).map((it) => path.join(home, it));
}

/**
 * @typedef {{env: Record<string, string>, model?: string, files: Record<string, string>}} Home
 * @type {Record<Program, (home: string, models: string, retries: number) => Home>}
 */
const HOMES = {
  claude: (_, models, retries) => ({
    env: {
      ANTHROPIC_BASE_URL: models,
      ANTHROPIC_API_KEY: "nothing",
      CLAUDE_CODE_MAX_RETRIES: `${retries}`,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
      DISABLE_AUTOUPDATER: "1",
      // Otherwise it refuses to run as root without approvals.
      IS_SANDBOX: "1",
    },
    files: {},
  }),

  codex: (home, models, retries) => ({
    env: { CODEX_HOME: path.join(home, ".codex"), SCRIPTED_KEY: "nothing" },
    files: {
      ".codex/config.toml": `
        model = "gpt-5.5"
        model_provider = "scripted"
        model_reasoning_summary = "auto"
        [model_providers.scripted]
        name = "Scripted"
        base_url = "${models}/v1"
        wire_api = "responses"
        env_key = "SCRIPTED_KEY"
        request_max_retries = 0
        stream_max_retries = ${retries}
        supports_websockets = false`,
    },
  }),

  pi: (_, models, retries) => ({
    env: { PI_OFFLINE: "1" },
    model: "scripted/scripted",
    files: {
      ".pi/agent/settings.json": JSON.stringify({
        retry: { enabled: retries > 0, maxRetries: retries, baseDelayMs: 1, provider: { maxRetries: 0 } },
      }),
      ".pi/agent/models.json": JSON.stringify({
        providers: {
          scripted: {
            baseUrl: models,
            api: "anthropic-messages",
            apiKey: "nothing",
            models: [
              {
                id: "scripted",
                reasoning: true,
                input: ["text", "image"],
                contextWindow: 200_000,
                maxTokens: 32_000,
                cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
              },
            ],
          },
        },
      }),
    },
  }),
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const it of PROGRAMS) console.log(await installed(it));
}

// Tools of a real MCP server, the reference server, over stdio and over HTTP: used by a model, shown on
// the page, and killed during a call.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { useBrowser } from "./browser.mjs";
import { startCallboard, until } from "./callboard.mjs";
import { answered, assertSameAfterReload, openAll, openSession, sendMessage } from "./drive.mjs";
import { startModel } from "./models.mjs";

const browser = useBrowser();

const EVERYTHING = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

/** Transports of the reference server. Each returns a section of the configuration and a function that kills it. */
const WAYS = {
  /** @param {any} _t */
  async stdio(_t) {
    const command = JSON.stringify([process.execPath, EVERYTHING, "stdio"]);
    return {
      section: `command = ${command}`,
      /** @param {any} callboard */
      async kill(callboard) {
        const { servers } = await callboard.api("mcp");
        process.kill(servers[0].pid, "SIGKILL");
      },
    };
  },

  /** The next server listens on the port of the killed one. @param {any} t */
  async http(t) {
    const port = await freePort();
    let server = await serve(t, port);
    return {
      section: `url = "http://127.0.0.1:${port}/mcp"`,
      async kill() {
        const gone = once(server, "exit");
        server.kill("SIGKILL");
        await gone;
        server = await serve(t, port);
      },
    };
  },
};

/** @param {any} t @param {number} port */
async function serve(t, port) {
  const child = spawn(process.execPath, [EVERYTHING, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  let output = "";
  child.stderr.on("data", (text) => (output += text));
  await until(async () => output.includes("listening"));
  return child;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}

/** @param {any} t @param {keyof typeof WAYS} way */
async function start(t, way) {
  const model = await startModel(t);
  const server = await WAYS[way](t);
  const config =
    `demo = false\n${model.agent}\n[[mcp_servers]]\nid = "everything"\n${server.section}\n` +
    '[approvals]\n"everything__*" = "allow"\n"everything__get-env" = "ask"\n';
  const callboard = await startCallboard(t, { config });
  const { id } = await callboard.api("sessions", { body: {} });
  const page = await openSession(t, browser, callboard, id);
  return { model, server, callboard, session: id, page };
}

/** The tool result in the model's last request. @param {{asked: any[]}} model */
function toolResult(model) {
  const results = model.asked.at(-1).messages.filter((/** @type {any} */ it) => it.role === "tool");
  return JSON.parse(results.at(-1).content);
}

for (const way of /** @type {(keyof typeof WAYS)[]} */ (Object.keys(WAYS))) {
  test(`${way}: texts, data, pictures and progress are shown`, async (t) => {
    const { model, callboard, page } = await start(t, way);
    model.willAnswer({ call: "everything__echo", arguments: { message: "hello" } }, { text: "Done." });
    await sendMessage(page, "echo");
    await answered(page);
    assert.deepEqual(toolResult(model), { text: "Echo: hello" });
    const names = model.asked[0].tools.map((/** @type {any} */ it) => it.function.name);
    assert.ok(names.includes("everything__get-sum") && names.includes("time"), names.join());

    const place = { location: "Chicago" };
    model.willAnswer({ call: "everything__get-structured-content", arguments: place }, { text: "Done." });
    await sendMessage(page, "weather");
    await answered(page, 2);
    assert.equal(toolResult(model).structured.temperature, 36);

    model.willAnswer({ call: "everything__get-tiny-image" }, { text: "A picture." });
    await sendMessage(page, "picture");
    await answered(page, 3);
    await openAll(page);
    const picture = page.locator(".tool-block img").first();
    await picture.scrollIntoViewIfNeeded();
    await until(() => picture.evaluate((it) => /** @type {HTMLImageElement} */ (it).naturalWidth > 0));
    const shown = model.asked.at(-1).messages.at(-1);
    assert.equal(shown.role, "user");
    assert.match(shown.content[1].image_url.url, /^data:image\/png;base64,/);

    const steps = { duration: 1, steps: 3 };
    model.willAnswer({ call: "everything__trigger-long-running-operation", arguments: steps }, { text: "Done." });
    await sendMessage(page, "wait");
    await answered(page, 4);
    await openAll(page);
    await page.getByText("1/3\n2/3\n3/3").waitFor();

    const { servers } = await callboard.api("mcp");
    assert.equal(servers[0].state, "ready");
    await assertSameAfterReload(page);
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("region", { name: "MCP servers" }).getByText(/ready, \d+ tools/).waitFor();
  });

  test(`${way}: a server killed during a call is used again`, async (t) => {
    const { model, server, callboard, page } = await start(t, way);
    const long = { duration: 60, steps: 600 };
    model.willAnswer(
      { call: "everything__trigger-long-running-operation", arguments: long },
      { text: "It broke." },
      { call: "everything__echo", arguments: { message: "again" } },
      { text: "It works." },
    );
    await sendMessage(page, "wait");
    await page.locator('.tool-block[data-state="running"]').waitFor({ state: "attached" });
    await openAll(page);
    await page.getByText("2/600").waitFor();
    await server.kill(callboard);
    await answered(page);
    assert.equal(toolResult(model).error.code, "tool_failed");
    await page.getByText(/The MCP server 'everything' cannot be used/).first().waitFor();
    await sendMessage(page, "again");
    await answered(page, 2);
    assert.deepEqual(toolResult(model), { text: "Echo: again" });
  });
}

test("a call that needs an approval is asked about on the page", async (t) => {
  const { model, page } = await start(t, "stdio");
  model.willAnswer({ call: "everything__get-env" }, { text: "Thanks." });
  await sendMessage(page, "environment");
  await page.getByRole("button", { name: "Allow once" }).first().click();
  await answered(page);
  assert.match(toolResult(model).text, /PATH/);
});

test("the agent works without a server that does not start", async (t) => {
  const model = await startModel(t);
  const config = `demo = false\n${model.agent}\n[[mcp_servers]]\nid = "gone"\ncommand = ["/does/not/exist"]\n`;
  const callboard = await startCallboard(t, { config });
  const { id } = await callboard.api("sessions", { body: {} });
  const page = await openSession(t, browser, callboard, id);
  model.willAnswer({ text: "Hello." });
  await sendMessage(page, "hello");
  await answered(page);
  await page.reload();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByText(/does.not.exist.* cannot be started/).waitFor();
});

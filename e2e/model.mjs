// A model service that says what the test tells it to: one answer a request, in order.

import { once } from "node:events";
import { createServer } from "node:http";

/**
 * @typedef {{call: string, arguments?: object} | {text: string} | {delta: object, finish: string}} Said
 * @param {{after: (end: () => Promise<void>) => void}} scope ends the service: a test, or a suite
 */
export async function startModel(scope) {
  /** @type {Said[]} */
  const script = [];
  /** @type {any[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    asked.push(JSON.parse(body));
    response.writeHead(200, { "content-type": "text/event-stream" });
    const said = script.shift() ?? { text: "Nothing more to say." };
    const choice = { index: 0, delta: delta(said, asked.length), finish_reason: reason(said) };
    response.end(`data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  scope.after(async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    /** For the configuration of an agent. */
    agent: `[[agents]]\nid = "model"\nkind = "openai"\nbase_url = "http://127.0.0.1:${port}/v1"\nmodel = "scripted"\n`,
    /** The bodies of all requests. */
    asked,
    /** @param {Said[]} said */
    willSay: (...said) => script.push(...said),
  };
}

/** @param {Said} said @param {number} n */
function delta(said, n) {
  if ("text" in said) return { content: said.text };
  if ("delta" in said) return said.delta;
  const call = { name: said.call, arguments: JSON.stringify(said.arguments ?? {}) };
  return { tool_calls: [{ index: 0, id: `call_${n}`, type: "function", function: call }] };
}

/** @param {Said} said */
function reason(said) {
  if ("delta" in said) return said.finish;
  return "text" in said ? "stop" : "tool_calls";
}

// A model service that says what the test tells it to: one answer a request, in order.

import { once } from "node:events";
import { createServer } from "node:http";

/**
 * `after` holds the rest of a text back.
 * @typedef {{call: string, arguments?: object}} Call
 * @typedef {Call | {calls: Call[]} | {refusal: string} | {text: string, after?: Promise<unknown>, rest?: string}} Said
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
    const said = script.shift() ?? { text: "Nothing more to say." };
    if ("refusal" in said) {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: said.refusal } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (/** @type {object} */ delta, /** @type {string | null} */ finish_reason) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    send(delta(said, asked.length), null);
    if ("rest" in said) {
      await said.after;
      send({ content: said.rest }, null);
    }
    send({}, reason(said));
    response.end("data: [DONE]\n\n");
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

/** @param {Exclude<Said, {refusal: string}>} said @param {number} n */
function delta(said, n) {
  if ("text" in said) return { content: said.text };
  const calls = "calls" in said ? said.calls : [said];
  const tool_calls = calls.map(({ call, arguments: given = {} }, index) => {
    const id = `call_${n}_${index}`;
    return { index, id, type: "function", function: { name: call, arguments: JSON.stringify(given) } };
  });
  return { tool_calls };
}

/** @param {Said} said */
function reason(said) {
  return "text" in said ? "stop" : "tool_calls";
}

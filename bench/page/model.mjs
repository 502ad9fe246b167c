// A model behind an OpenAI-compatible API that streams one text in pieces at a steady rate.

import { once } from "node:events";
import { createServer } from "node:http";

/**
 * @param {string} text @param {{pieceLength: number, perSecond: number}} pace
 */
export async function startModel(text, { pieceLength, perSecond }) {
  const pieces = text.match(new RegExp(`[^]{1,${pieceLength}}`, "g")) ?? [];
  const server = createServer(async (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    const began = performance.now();
    for (const [n, piece] of pieces.entries()) {
      const wait = began + (n * 1000) / perSecond - performance.now();
      if (wait > 0) await new Promise((resume) => setTimeout(resume, wait));
      response.write(chunk({ content: piece }));
    }
    response.write(chunk({}, "stop"));
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    deltas: pieces.length,
    /** The configuration of the agent that uses it. */
    agent: `[[agents]]\nid = "model"\nkind = "openai"\nbase_url = "http://127.0.0.1:${port}/v1"\nmodel = "scripted"\ntools = []\n`,
    stop: () => server.close(),
  };
}

/** @param {object} delta @param {string | null} reason */
function chunk(delta, reason = null) {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  const body = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted", choices };
  return `data: ${JSON.stringify(body)}\n\n`;
}

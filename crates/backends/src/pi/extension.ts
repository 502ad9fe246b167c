// Callboard's extension for Pi: it asks Callboard about tool calls, and gives Pi Callboard's tools.
//
// Callboard starts Pi with this file and three variables:
//   CALLBOARD_PERMISSION_MODE              "auto" lets every call run
//   CALLBOARD_TOOLS_URL, ..._TOOLS_TOKEN   an MCP server over streamable HTTP
//
// A question is an `input` dialog. Its placeholder is the call, as JSON, and what is typed in is the
// decision: {"allow": true, "input": {...}?} or {"allow": false, "reason": "..."}. No decision is a no.

// Kept where a reload of the extensions finds it, and out of the commands' environment.
const { mode, url, token } = ((globalThis as any).callboard ??= {
  mode: process.env.CALLBOARD_PERMISSION_MODE,
  url: process.env.CALLBOARD_TOOLS_URL,
  token: process.env.CALLBOARD_TOOLS_TOKEN,
});
delete process.env.CALLBOARD_TOOLS_URL;
delete process.env.CALLBOARD_TOOLS_TOKEN;

export default async function (pi: any) {
  const ours = new Set<string>();
  if (mode !== "auto") {
    pi.on("tool_call", (event: any, ctx: any) => {
      // Callboard decides about its own tools when their calls come.
      return ours.has(event.toolName) ? undefined : ask(event, ctx);
    });
    // Before Pi reads its first command. Callboard gives it nothing to do until it has heard this.
    pi.on("session_start", (_: any, ctx: any) => ctx.ui.setStatus("callboard", "asks"));
  }
  if (url) {
    try {
      const { tools } = await request("tools/list", {}, AbortSignal.timeout(10_000));
      for (const tool of tools) {
        ours.add(tool.name);
        pi.registerTool(asPiTool(tool));
      }
    } catch (error) {
      console.error(`Callboard's tools are missing: ${error}`);
    }
  }
}

async function ask(event: any, ctx: any) {
  const { toolCallId, toolName, input } = event;
  const call = JSON.stringify({ toolCallId, toolName, input });
  const answer = await ctx.ui.input("callboard:tool_call", call, { signal: ctx.signal });
  const decision = answer === undefined ? {} : JSON.parse(answer);
  if (decision.allow !== true) {
    return { block: true, reason: decision.reason ?? "Nobody allowed this call; nothing ran." };
  }
  if (decision.input) {
    // Pi runs the object that it gave us, not one that we put in its place.
    for (const name of Object.keys(input)) delete input[name];
    Object.assign(input, decision.input);
  }
  return undefined;
}

function asPiTool(tool: any) {
  return {
    name: tool.name,
    label: tool.title ?? tool.name,
    description: tool.description ?? "",
    promptSnippet: tool.description?.split("\n")[0],
    parameters: tool.inputSchema,
    async execute(toolCallId: string, args: any, signal?: AbortSignal, onUpdate?: any) {
      onUpdate?.({ content: [], details: undefined }); // It runs: nobody is asked.
      const params = { name: tool.name, arguments: args, _meta: { toolCallId } };
      const result = await request("tools/call", params, signal);
      if (result.isError) throw new Error(textOf(result.content));
      return { content: result.content, details: result.structuredContent };
    },
  };
}

function textOf(content: any[]): string {
  return content.map((it) => it.text ?? "").join("\n");
}

let lastId = 0;

async function request(method: string, params: any, signal?: AbortSignal): Promise<any> {
  const response = await fetch(url, {
    method: "POST",
    signal,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params }),
  });
  const body = await response.text();
  if (!response.ok) throw new Error(`Callboard answered ${response.status}: ${body}`);
  const { result, error } = answerIn(body, response.headers.get("content-type") ?? "");
  if (error) throw new Error(error.message);
  return result;
}

// The one message of the body that answers: alone, or the last of a stream of events.
function answerIn(body: string, type: string): any {
  if (!type.startsWith("text/event-stream")) return JSON.parse(body);
  const data = body.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  const messages = data.map((line) => line.slice(5).trim()).filter(Boolean).map((it) => JSON.parse(it));
  return messages.findLast((it) => it.id !== undefined && it.method === undefined);
}

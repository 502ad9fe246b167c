// Talks to an agent of Callboard in the terminal, through AG-UI.
//
//   npm install
//   CALLBOARD_TOKEN=... npm start -- "run ls -l" "what is my clock set to?"
//
// Each argument is sent as a message; without any, the lines that you type. CALLBOARD_URL names the server, and
// CALLBOARD_AGENT the agent, such as `claude`.

import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline";

import { HttpAgent } from "@ag-ui/client";

const server = process.env.CALLBOARD_URL ?? "http://127.0.0.1:4520";
const agentName = process.env.CALLBOARD_AGENT;

const agent = new HttpAgent({
  url: `${server}/api/agui${agentName ? `/${agentName}` : ""}`,
  headers: { Authorization: `Bearer ${process.env.CALLBOARD_TOKEN}` },
  // The thread is the session: the same id continues the same conversation.
  threadId: process.env.CALLBOARD_SESSION ?? crypto.randomUUID(),
});

/** Tools that this program runs. */
const tools = [
  { name: "local_time", description: "The time on the user's own clock", parameters: { type: "object", properties: {} } },
];
const runTool = { local_time: () => new Date().toString() };

const printer = {
  onReasoningMessageContentEvent: ({ event }) => stdout.write(event.delta),
  onTextMessageContentEvent: ({ event }) => stdout.write(event.delta),
  onTextMessageEndEvent: () => stdout.write("\n"),
  onToolCallEndEvent: ({ toolCallName, toolCallArgs }) => console.log(`[${toolCallName} ${JSON.stringify(toolCallArgs)}]`),
  onToolCallResultEvent: ({ event }) => console.log(`[gave ${event.content.slice(0, 200)}]`),
  onRunErrorEvent: ({ event }) => console.error(`The run failed: ${event.message}`),
};

const lines = createInterface({ input: stdin })[Symbol.asyncIterator]();
const ask = async (question) => {
  stdout.write(question);
  const { value, done } = await lines.next();
  return done ? undefined : value;
};

/** Runs until the agent needs nothing more from this program. */
async function answer() {
  let interrupts = [];
  const listener = { ...printer, onRunFinishedEvent: ({ event }) => void (interrupts = event.outcome?.interrupts ?? []) };
  await agent.runAgent({ tools }, listener);
  for (;;) {
    const open = openCalls();
    if (interrupts.length === 0 && open.length === 0) return;
    const resume = [];
    for (const { id: interruptId, message } of interrupts) {
      const approved = (await ask(`${message} (y/n) `)) === "y";
      resume.push({ interruptId, status: "resolved", payload: { approved } });
    }
    for (const { id, function: { name } } of open) {
      agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: id, content: runTool[name]() });
    }
    interrupts = [];
    await agent.runAgent({ tools, ...(resume.length > 0 ? { resume } : {}) }, listener);
  }
}

/** Calls of our tools that have no result yet. */
function openCalls() {
  const given = new Set(agent.messages.map(({ toolCallId }) => toolCallId));
  const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []);
  return calls.filter(({ id, function: { name } }) => name in runTool && !given.has(id));
}

async function say(content) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  await answer();
}

for (const text of process.argv.slice(2)) await say(text);
if (process.argv.length === 2) {
  for (let text = await ask("> "); text; text = await ask("> ")) await say(text);
}
console.log(`The conversation is at ${server}/s/${agent.threadId}`);
process.exit();

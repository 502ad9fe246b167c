// `useChat` of every version behind one set of names, for a test to call: versions by the names that this is
// built with. What the hook holds is also on the page, as JSON.

import { useChat } from "@ai-sdk/react";
import * as ai from "ai";
import { useRef } from "react";
import { createRoot } from "react-dom/client";

const { base, token, profile, id, agent, messages, tools, outputs = {}, errors = {}, byHand, asIs } = window.SETTINGS;
const headers = { Authorization: `Bearer ${token}`, "x-callboard-profile": String(profile) };
const path = agent ? `/${agent}` : "";

/** Versions 5 to 7. */
function useNow() {
  const self = useRef();
  const chat = useChat({
    id,
    messages,
    transport: new ai.DefaultChatTransport({ api: `${base}api/chat${path}`, headers, body: { tools } }),
    sendAutomaticallyWhen: (chat) =>
      !byHand &&
      (ai.lastAssistantMessageIsCompleteWithToolCalls(chat) ||
        ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(chat)),
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      const call = { tool: toolName, toolCallId };
      const give = self.current.addToolOutput ?? self.current.addToolResult;
      if (toolName in outputs) give({ ...call, output: outputs[toolName] });
      if (toolName in errors) give({ ...call, state: "output-error", errorText: errors[toolName] });
    },
  });
  self.current = chat;
  return {
    ...chat,
    send: (message, more) => chat.sendMessage(typeof message === "string" ? { text: message, ...more } : message),
    resume: () => chat.resumeStream(),
    decide: chat.addToolApprovalResponse,
  };
}

/** Version 4, whose hook sends the results of `onToolCall` by itself. */
function useThen() {
  const chat = useChat({
    id,
    initialMessages: messages,
    api: `${base}api/chat/v4${path}`,
    headers,
    body: { tools },
    maxSteps: byHand ? 1 : 5,
    sendExtraMessageFields: !asIs,
    onToolCall: ({ toolCall }) => outputs[toolCall.toolName],
  });
  return {
    ...chat,
    send: (text, { files } = {}) => {
      const experimental_attachments = files?.map(({ mediaType, filename, url }) => ({ name: filename, contentType: mediaType, url }));
      return chat.append({ role: "user", content: text }, { experimental_attachments });
    },
    resume: () => chat.experimental_resume(),
    regenerate: () => chat.reload(),
  };
}

const useThis = profile === 4 ? useThen : useNow;

function Chat() {
  const chat = useThis();
  window.chat = chat;
  const { messages, status, error } = chat;
  return <pre>{JSON.stringify({ messages, status, error: error?.message })}</pre>;
}

createRoot(document.getElementById("root")).render(<Chat />);

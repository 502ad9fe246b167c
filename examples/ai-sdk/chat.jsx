// A whole chat with Callboard in one page: text, thinking, tools, approvals, a tool of the page, stop
// and resume. The chat's id is in the address, so that a reload finds it.

import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const { url, token } = window.CALLBOARD;
const headers = { Authorization: `Bearer ${token}` };
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;

// A tool that the page runs: the agent knows it, and the page returns the result.
const tools = { page_title: { description: "The title of the user's page", parameters: { type: "object" } } };

const transport = new DefaultChatTransport({ api: `${url}/api/chat`, headers, body: { tools } });

function Chat({ earlier }) {
  const [text, setText] = useState("");
  const chat = useChat({
    id,
    messages: earlier,
    transport,
    resume: true,
    sendAutomaticallyWhen: (chat) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(chat) || lastAssistantMessageIsCompleteWithToolCalls(chat),
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      if (toolName === "page_title") chat.addToolOutput({ tool: toolName, toolCallId, output: document.title });
    },
  });
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  const send = (event) => {
    event.preventDefault();
    chat.sendMessage({ text });
    setText("");
  };
  // Closing the stream would not stop the agent. A request stops it, and the stream ends by itself.
  const stop = () => fetch(`${url}/api/sessions/${id}/cancel`, { method: "POST", headers });
  return (
    <>
      {chat.messages.map((message) => (
        <article key={message.id} className={message.role}>
          {message.parts.map((part, idx) => (
            <Part key={idx} part={part} answer={chat.addToolApprovalResponse} />
          ))}
        </article>
      ))}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        {isBusy ? <button type="button" onClick={stop}>Stop</button> : <button>Send</button>}
      </form>
    </>
  );
}

function Part({ part, answer }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "reasoning") return <p><i>{part.text}</i></p>;
  if (!part.type.startsWith("tool-")) return null;
  return (
    <div className="call">
      <b>{part.type.slice("tool-".length)}</b> <code>{JSON.stringify(part.input)}</code> {part.state}
      {part.state === "approval-requested" &&
        [true, false].map((approved) => (
          <button key={String(approved)} onClick={() => answer({ id: part.approval.id, approved })}>
            {approved ? "Allow" : "Refuse"}
          </button>
        ))}
      {part.state === "output-available" && <pre>{JSON.stringify(part.output)}</pre>}
      {part.state === "output-error" && <pre>{part.errorText}</pre>}
    </div>
  );
}

/** Earlier messages, if the chat is not new. */
function App() {
  const [earlier, setEarlier] = useState();
  useEffect(() => {
    fetch(`${url}/api/sessions/${id}/messages?format=ui`, { headers })
      .then((response) => (response.ok ? response.json() : { messages: [] }))
      .then(({ messages }) => setEarlier(messages));
  }, []);
  return earlier && <Chat earlier={earlier} />;
}

createRoot(document.getElementById("root")).render(<App />);

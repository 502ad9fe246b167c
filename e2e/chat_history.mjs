// Conversations of other programs, which chats import.

/** @typedef {import("./ai_sdk.mjs").Client} Client */

export const PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const FILE = { type: "file", mediaType: "image/png", filename: "dot.png", url: PICTURE };
export const LINK = { type: "file", mediaType: "image/png", url: "https://example.com/dot.png" };

const SIGNED = { anthropic: { signature: "s" } };

/** A call with an approval. @param {string} id @param {boolean} approved @param {object} more */
const asked = (id, approved, more) => ({ type: "tool-rm", toolCallId: id, input: {}, approval: { id: `approval_${id}`, approved }, ...more });

/** Additional parts of later versions. @param {Client} client @returns {any[]} */
export const newParts = ({ profile }) => [
  ...(profile < 6 ? [] : [asked("c4", true, { state: "output-available", output: "gone" }), asked("c5", false, { state: "output-denied" })]),
  ...(profile < 7 ? [] : [{ type: "custom", kind: "openai.compaction" }, { type: "reasoning-file", mediaType: "image/png", url: PICTURE }]),
];

/** A conversation of another program, with every kind of part. */
export const HISTORY = [
  { id: "u1", role: "user", parts: [FILE, { type: "text", text: "Look" }] },
  {
    id: "a1",
    role: "assistant",
    parts: [
      { type: "step-start" },
      { type: "reasoning", id: "t1", text: "Hm.", state: "done", providerMetadata: SIGNED },
      { type: "text", text: "I will look.", state: "done", providerMetadata: SIGNED },
      {
        type: "tool-look",
        toolCallId: "c1",
        state: "output-available",
        input: { at: 1 },
        output: { seen: true },
        providerExecuted: true,
        callProviderMetadata: SIGNED,
      },
      { type: "dynamic-tool", toolName: "mcp_touch", toolCallId: "c3", state: "output-available", input: {}, output: "soft" },
      { type: "tool-touch", toolCallId: "c2", state: "output-error", input: {}, errorText: "Too hot." },
      { type: "step-start" },
      { type: "source-url", sourceId: "s1", url: "https://example.com", title: "Example" },
      { type: "source-document", sourceId: "s2", mediaType: "application/pdf", title: "Paper", filename: "p.pdf" },
      { type: "file", mediaType: "image/png", filename: "dot.png", url: PICTURE, providerMetadata: SIGNED },
      { type: "data-weather", id: "w", data: { sun: true } },
      { type: "text", text: "A dot.", state: "done" },
    ],
  },
];

/** The conversation in version 4, which has fewer kinds of parts. */
export const HISTORY_4 = [
  {
    id: "u1",
    role: "user",
    content: "Look",
    parts: [{ type: "text", text: "Look" }],
    experimental_attachments: [{ name: "dot.png", contentType: "image/png", url: PICTURE }],
  },
  {
    id: "a1",
    role: "assistant",
    content: "I will look.A dot.",
    parts: [
      { type: "step-start" },
      { type: "reasoning", reasoning: "Hm.", details: [{ type: "text", text: "Hm." }] },
      { type: "text", text: "I will look." },
      {
        type: "tool-invocation",
        toolInvocation: { state: "result", step: 0, toolCallId: "c1", toolName: "look", args: { at: 1 }, result: { seen: true } },
      },
      {
        type: "tool-invocation",
        toolInvocation: {
          state: "result",
          step: 0,
          toolCallId: "c2",
          toolName: "touch",
          args: {},
          result: { error: { code: "tool_error", message: "Too hot." } },
        },
      },
      { type: "step-start" },
      { type: "text", text: "A dot." },
    ],
  },
];

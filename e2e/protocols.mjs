// The three protocols of model services: parsing a request, and encoding a model's turn.
//
// Nothing here waits or writes: `encode` yields the events of a response and the gates between them.

/**
 * The parts of a model's turn, in order. A gate holds the parts after it, a cut closes the
 * connection, a failure is sent before it; a tool without JSON arguments has `text` instead of `args`.
 * @typedef {{kind: "gate", name: string} | {kind: "cut"} | {kind: "fail"}} Gate
 * @typedef {{kind: "text", pieces: (string | Gate)[]}} Text
 * @typedef {{kind: "thinking", pieces: (string | Gate)[]}} Thinking
 * @typedef {Text | Thinking} Words
 * @typedef {{kind: "call", id: string, name: string, args?: object, text?: string}} Call
 * @typedef {Words | Call | Gate} Part
 *
 * The messages to the model and the results of its calls, in order.
 * @typedef {{text: string} | {result: string}} Entry
 * @typedef {{entries: Entry[], tools: string[]}} Asked
 *
 * @typedef {{event?: string, data: unknown}} Sent
 * @typedef {object} Protocol
 * @property {(body: any) => Asked} read
 * @property {(status: number, message: string) => object} refuse
 * @property {() => Sent} fail events of a failure in the middle of an answer
 * @property {(turn: Part[], id: string, model: string) => Iterable<Gate | Sent>} encode
 * @property {(turn: Part[], id: string, model: string) => object} [encodeWhole] for clients that do not stream
 */

/** @type {Record<string, Protocol>} */
export const PROTOCOLS = {
  "/v1/messages": {
    read: readMessages,
    refuse: refuseMessages,
    fail: failMessages,
    encode: encodeMessages,
    encodeWhole: encodeWholeMessage,
  },
  "/v1/responses": { read: readResponses, refuse: refuseOpenai, fail: failResponses, encode: encodeResponses },
  "/v1/chat/completions": { read: readChat, refuse: refuseOpenai, fail: failChat, encode: encodeChat },
};

/** @param {Part} part @returns {part is Gate} */
function isGate(part) {
  return part.kind === "gate" || part.kind === "cut" || part.kind === "fail";
}

/** Pieces as small as those of real services. @param {string} text */
function cut(text) {
  return text.match(/[^]{1,9}/g) ?? [];
}

/**
 * Text in pieces, with the gates at their places.
 * @param {Words} words @param {(piece: string) => Sent} sent @returns {Iterable<Gate | Sent>}
 */
function* encodePieces(words, sent) {
  for (const it of words.pieces) {
    if (typeof it === "string") yield* cut(it).map(sent);
    else yield it;
  }
}

/** @param {Words} words */
function wholeText(words) {
  return words.pieces.filter((it) => typeof it === "string").join("");
}

/** @param {any} content a string, or a list of blocks @returns {Entry[]} */
function textsIn(content) {
  if (typeof content === "string") return [{ text: content }];
  return content.map((/** @type {any} */ block) => ({ text: block.text ?? "" }));
}

// --- Anthropic's messages ----------------------------------------------------------------------

/** @param {any} body @returns {Asked} */
function readMessages({ messages, tools = [] }) {
  const users = messages.filter((/** @type {any} */ it) => it.role === "user");
  const blocks = users.flatMap((/** @type {any} */ it) =>
    typeof it.content === "string" ? [{ text: it.content }] : it.content,
  );
  const entries = blocks.map((/** @type {any} */ it) =>
    it.type === "tool_result" ? { result: it.tool_use_id } : { text: it.text ?? "" },
  );
  return { entries, tools: tools.map((/** @type {any} */ it) => it.name) };
}

/** @param {number} status @param {string} message */
function refuseMessages(status, message) {
  /** @type {Record<number, string>} */
  const types = { 400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error" };
  return { type: "error", error: { type: types[status] ?? "api_error", message } };
}

/** @returns {Sent} */
function failMessages() {
  return named({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
}

/** @param {any} data @returns {Sent} */
const named = (data) => ({ event: data.type, data });

const MESSAGES_USAGE = {
  input_tokens: 100,
  cache_creation_input_tokens: 20,
  cache_read_input_tokens: 300,
  output_tokens: 1,
};

/** Words alone. @type {Required<Protocol>["encodeWhole"]} */
function encodeWholeMessage(turn, id, model) {
  const content = turn.flatMap((it) => (it.kind === "text" ? [{ type: "text", text: wholeText(it) }] : []));
  const stop = { stop_reason: "end_turn", stop_sequence: null };
  const usage = { ...MESSAGES_USAGE, output_tokens: 30 };
  return { id: `msg_${id}`, type: "message", role: "assistant", model, content, ...stop, usage };
}

/** @type {Protocol["encode"]} */
function* encodeMessages(turn, id, model) {
  const stop = { stop_reason: null, stop_sequence: null };
  const start = { id: `msg_${id}`, type: "message", role: "assistant", model, content: [], ...stop };
  yield named({ type: "message_start", message: { ...start, usage: MESSAGES_USAGE } });
  let index = 0;
  for (const part of turn) {
    if (isGate(part)) yield part;
    else yield* encodeBlock(part, index++);
  }
  const reason = turn.some((it) => it.kind === "call") ? "tool_use" : "end_turn";
  yield named({ type: "message_delta", delta: { ...stop, stop_reason: reason }, usage: { output_tokens: 30 } });
  yield named({ type: "message_stop" });
}

/** @param {Words | Call} part @param {number} index */
function* encodeBlock(part, index) {
  const start = (/** @type {object} */ block) => named({ type: "content_block_start", index, content_block: block });
  const delta = (/** @type {object} */ it) => named({ type: "content_block_delta", index, delta: it });
  if (part.kind === "text") {
    yield start({ type: "text", text: "" });
    yield* encodePieces(part, (text) => delta({ type: "text_delta", text }));
  } else if (part.kind === "thinking") {
    yield start({ type: "thinking", thinking: "", signature: "" });
    yield* encodePieces(part, (thinking) => delta({ type: "thinking_delta", thinking }));
    yield delta({ type: "signature_delta", signature: "c2lnbmVk" });
  } else {
    const { id, name, args } = part;
    yield start({ type: "tool_use", id, name, input: {} });
    for (const it of cut(JSON.stringify(args))) yield delta({ type: "input_json_delta", partial_json: it });
  }
  yield named({ type: "content_block_stop", index });
}

// --- OpenAI's responses ------------------------------------------------------------------------

/** @param {any} body @returns {Asked} */
function readResponses({ input, tools = [] }) {
  const entries = input.flatMap((/** @type {any} */ it) => {
    if (it.type.endsWith("_output")) return [{ result: it.call_id }];
    return it.type === "message" && it.role === "user" ? textsIn(it.content) : [];
  });
  return { entries, tools: tools.flatMap(responseTools) };
}

/** The tools of an MCP server share a namespace. @param {any} tool @returns {string[]} */
function responseTools(tool) {
  if (tool.type !== "namespace") return [tool.name ?? tool.type];
  return tool.tools.map((/** @type {any} */ it) => `${tool.name}__${it.name}`);
}

/** @param {number} status @param {string} message */
function refuseOpenai(status, message) {
  /** @type {Record<number, string>} */
  const codes = { 401: "invalid_api_key", 429: "rate_limit_exceeded" };
  const code = codes[status] ?? null;
  return { error: { message, type: code ?? "server_error", param: null, code } };
}

/** @returns {Sent} */
function failResponses() {
  const error = { code: "server_error", message: "Overloaded" };
  return named({ type: "response.failed", response: { id: "resp_failed", status: "failed", error } });
}

/** @type {Protocol["encode"]} */
function* encodeResponses(turn, id, model) {
  const response = { id: `resp_${id}`, object: "response", created_at: 0, model };
  yield named({ type: "response.created", response: { ...response, status: "in_progress", output: [] } });
  const hasCall = turn.some((it) => it.kind === "call");
  const output = [];
  for (const part of turn) {
    if (isGate(part)) {
      yield part;
      continue;
    }
    const { item, done, deltas } = responseItem(part, `${id}_${output.length}`, hasCall);
    const place = { output_index: output.length, item_id: item.id };
    yield named({ type: "response.output_item.added", ...place, item });
    for (const it of deltas) {
      yield "kind" in it ? it : named({ .../** @type {object} */ (it.data), ...place, type: it.event });
    }
    output.push({ ...item, ...done });
    yield named({ type: "response.output_item.done", ...place, item: output.at(-1) });
  }
  const usage = {
    input_tokens: 400,
    input_tokens_details: { cached_tokens: 300 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 430,
  };
  yield named({ type: "response.completed", response: { ...response, status: "completed", output, usage } });
}

/**
 * An item at its start, the differences at its end, and the events between.
 * @param {Words | Call} part @param {string} id @param {boolean} hasCall
 * @returns {{item: any, done: object, deltas: Iterable<Gate | Sent>}}
 */
function responseItem(part, id, hasCall) {
  if (part.kind === "call") return responseCall(part, id);
  const text = wholeText(part);
  if (part.kind === "thinking") {
    const sent = (/** @type {string} */ delta) => ({
      event: "response.reasoning_summary_text.delta",
      data: { summary_index: 0, delta },
    });
    const added = { event: "response.reasoning_summary_part.added", data: { summary_index: 0 } };
    return {
      item: { id: `rs_${id}`, type: "reasoning", summary: [] },
      done: { summary: [{ type: "summary_text", text }], encrypted_content: "c2VjcmV0" },
      deltas: [added, ...encodePieces(part, sent)],
    };
  }
  const phase = hasCall ? "commentary" : "final_answer";
  const sent = (/** @type {string} */ delta) => ({
    event: "response.output_text.delta",
    data: { content_index: 0, delta },
  });
  return {
    item: { id: `msg_${id}`, type: "message", status: "in_progress", role: "assistant", content: [], phase },
    done: { status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
    deltas: encodePieces(part, sent),
  };
}

/** @param {Call} call @param {string} itemId */
function responseCall({ id, name, args, text }, itemId) {
  const [, namespace, own] = /^(mcp__.+?|multi_agent_v1)__(.+)$/.exec(name) ?? [];
  const called = namespace ? { namespace, name: own } : { name };
  const item = { id: `fc_${itemId}`, status: "in_progress", call_id: id, ...called };
  if (text !== undefined) {
    return {
      item: { ...item, type: "custom_tool_call", input: "" },
      done: { status: "completed", input: text },
      deltas: cut(text).map((delta) => ({ event: "response.custom_tool_call_input.delta", data: { delta } })),
    };
  }
  const written = JSON.stringify(args);
  return {
    item: { ...item, type: "function_call", arguments: "" },
    done: { status: "completed", arguments: written },
    deltas: cut(written).map((delta) => ({ event: "response.function_call_arguments.delta", data: { delta } })),
  };
}

// --- OpenAI's chat completions -----------------------------------------------------------------

/** @param {any} body @returns {Asked} */
function readChat({ messages, tools = [] }) {
  const entries = messages.flatMap((/** @type {any} */ it) => {
    if (it.role === "tool") return [{ result: it.tool_call_id }];
    return it.role === "user" ? textsIn(it.content) : [];
  });
  return { entries, tools: tools.map((/** @type {any} */ it) => it.function.name) };
}

/** @returns {Sent} */
function failChat() {
  return { data: { error: { message: "Overloaded", type: "server_error", param: null, code: null } } };
}

/** @type {Protocol["encode"]} */
function* encodeChat(turn, id, model) {
  const chunk = { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created: 0, model };
  const sent = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) => ({
    data: { ...chunk, choices: [{ index: 0, delta, finish_reason: reason }] },
  });
  yield sent({ role: "assistant", content: "" });
  let index = 0;
  for (const part of turn) {
    if (isGate(part)) yield part;
    else if (part.kind === "text") yield* encodePieces(part, (content) => sent({ content }));
    else if (part.kind === "thinking") yield* encodePieces(part, (it) => sent({ reasoning_content: it }));
    else {
      const { id, name, args } = part;
      const call = (/** @type {object} */ it) => sent({ tool_calls: [{ index, ...it }] });
      yield call({ id, type: "function", function: { name, arguments: "" } });
      for (const it of cut(JSON.stringify(args))) yield call({ function: { arguments: it } });
      index += 1;
    }
  }
  yield sent({}, index > 0 ? "tool_calls" : "stop");
  const usage = { prompt_tokens: 400, completion_tokens: 30, total_tokens: 430 };
  yield { data: { ...chunk, choices: [], usage } };
  yield { data: "[DONE]" };
}

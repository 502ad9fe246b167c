// Milliseconds that a library needs from a stream's bytes to the final message.
//
//   node reduce.mjs ai|openai text|tools <how many>

import { DefaultChatTransport, readUIMessageStream } from 'ai';
import OpenAI from 'openai';

const PIECE = 16 * 1024;
const ARGUMENT_DELTAS = 20;

const [library, kind, count] = process.argv.slice(2);
const libraries = { ai: [aiEvents, withAi], openai: [openaiEvents, withOpenai] };
const [events, reduce] = libraries[library];

await reduce(bytes(events('text', 1000)));
await reduce(bytes(events('tools', 20)));
const body = bytes(events(kind, Number(count)));
const began = performance.now();
const size = await reduce(body);
console.log(performance.now() - began);
const expected = kind === 'text' ? 7 * Number(count) : Number(count);
if (size !== expected) throw new Error(`${size} instead of ${expected}`);

function bytes(events) {
  const text = [...events].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return new TextEncoder().encode(`${text}data: [DONE]\n\n`);
}

function response(body) {
  let at = 0;
  const stream = new ReadableStream({
    pull(controller) {
      if (at >= body.length) return controller.close();
      controller.enqueue(body.subarray(at, at + PIECE));
      at += PIECE;
    },
  });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
}

function* aiEvents(kind, count) {
  yield { type: 'start', messageId: 'm1' };
  yield { type: 'start-step' };
  if (kind === 'text') {
    yield { type: 'text-start', id: 't1' };
    for (let n = 0; n < count; n++) yield { type: 'text-delta', id: 't1', delta: 'a word ' };
    yield { type: 'text-end', id: 't1' };
  } else {
    for (let n = 0; n < count; n++) {
      const call = { toolCallId: `call-${n}` };
      yield { type: 'tool-input-start', ...call, toolName: 'write' };
      const pieces = argumentPieces();
      for (const inputTextDelta of pieces) yield { type: 'tool-input-delta', ...call, inputTextDelta };
      yield { type: 'tool-input-available', ...call, toolName: 'write', input: JSON.parse(pieces.join('')) };
      yield { type: 'tool-output-available', ...call, output: { ok: true } };
    }
  }
  yield { type: 'finish-step' };
  yield { type: 'finish' };
}

async function withAi(body) {
  const transport = new DefaultChatTransport({ api: 'http://127.0.0.1/', fetch: async () => response(body) });
  const stream = await transport.sendMessages({
    trigger: 'submit-message', chatId: 'c1', messages: [], abortSignal: undefined,
  });
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  const [text] = last.parts.filter((part) => part.type === 'text');
  return text ? text.text.length : last.parts.filter((part) => part.state === 'output-available').length;
}

function* openaiEvents(kind, count) {
  const chunk = (delta, finish_reason = null) => ({
    id: 'c1', object: 'chat.completion.chunk', created: 1741570283, model: 'm', choices: [{ index: 0, delta, finish_reason }],
  });
  yield chunk({ role: 'assistant' });
  if (kind === 'text') {
    for (let n = 0; n < count; n++) yield chunk({ content: 'a word ' });
  } else {
    for (let index = 0; index < count; index++) {
      yield chunk({ tool_calls: [{ index, id: `call-${index}`, type: 'function', function: { name: 'write', arguments: '' } }] });
      for (const piece of argumentPieces()) yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  yield chunk({}, kind === 'text' ? 'stop' : 'tool_calls');
}

async function withOpenai(body) {
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://127.0.0.1/', fetch: async () => response(body) });
  const stream = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  const { message } = (await stream.finalChatCompletion()).choices[0];
  return message.content ? message.content.length : message.tool_calls.length;
}

function argumentPieces() {
  return ['{"text":"', ...Array(ARGUMENT_DELTAS - 2).fill('a word '), '"}'];
}

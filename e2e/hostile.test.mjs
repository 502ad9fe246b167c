// Hostile texts of agents, tools and people are shown, and nothing in them runs.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { listFaults, useBrowser } from "./browser.mjs";
import { logLines, startCallboard } from "./callboard.mjs";
import { LOOKS, openAll, setRoot } from "./drive.mjs";
import { drawGallery, openDrawn } from "./gallery.mjs";
import { PAYLOADS } from "./payloads.mjs";

const browser = useBrowser();

/** Number of messages on a page, with their answers and the notice of the import. */
const AT_ONCE = 24;
const KNOWN_TOOLS = ["shell", "Read", "Edit", "Grep", "TodoWrite", "WebFetch", "Task"];
/** The HTML of the whole page. */
const ELEMENTS = `a article aside b blockquote br button code dd del details div dl dt em fieldset footer form h1 h2 h3 h4 h5 h6
  g header hr i input kbd label legend li main mark nav noscript ol option p path pre s section select span strong sub
  summary sup svg symbol circle rect line polyline polygon use table tbody td text textarea th thead title tr ul`.split(/\s+/);

/** The payloads in every field that an agent, a tool or a person controls. @param {string[]} payloads */
function hostileLog(payloads) {
  /** @type {object[]} */
  const log = [{ type: "session_created", agent: "demo", title: payloads[0] }];
  for (const [idx, payload] of payloads.entries()) {
    // A log and its ids may come from an untrusted source.
    const responseId = `../r${idx}?${payload}#`;
    const known = KNOWN_TOOLS[idx % KNOWN_TOOLS.length] ?? "";
    log.push(
      { type: "user_message", messageId: `m${idx}/${payload}`, text: payload, attachments: [file(payload)] },
      { type: "run_start", responseId, agent: payload, model: payload, trigger: "user" },
      { type: "step_start", responseId, index: 0 },
      ...part("thinking", responseId, `${responseId}.0`, payload),
      ...part("text", responseId, `${responseId}.1`, payload),
      ...call(responseId, `${responseId}.2`, payload, JSON.stringify({ [payload]: payload }), payload),
      ...call(responseId, `${responseId}.3`, known, hostileArguments(payload), payload),
      { type: "notice", responseId, level: idx % 2 ? "info" : "error", text: payload },
      { type: "unrecognized", responseId, source: payload, raw: payload },
      { type: "agent_message", responseId, exchangeId: `x${idx}"${payload}`, direction: "sent", agent: payload, text: payload },
      { type: "step_finish", responseId, index: 0, finishReason: "tool-calls" },
      { type: "step_start", responseId, index: 1 },
      ...part("text", responseId, `${responseId}.4`, payload),
      { type: "step_finish", responseId, index: 1, finishReason: "stop" },
      { type: "run_finish", responseId, status: "failed", error: { code: "upstream_error", message: payload }, durationMs: 1 },
    );
  }
  return log;
}

const file = (/** @type {string} */ name) => ({
  blob: "0".repeat(64),
  name,
  mediaType: "text/html",
  size: 1,
});

/** @param {string} kind @param {string} responseId @param {string} partId @param {string} text */
function part(kind, responseId, partId, text) {
  const half = [...text].length / 2;
  const deltas = [[...text].slice(0, half).join(""), [...text].slice(half).join("")];
  return [
    { type: `${kind}_start`, responseId, partId },
    ...deltas.map((delta) => ({ type: `${kind}_delta`, responseId, partId, delta })),
    { type: `${kind}_done`, responseId, partId, text },
  ];
}

/** @param {string} responseId @param {string} callId @param {string} toolName @param {string} args @param {string} text */
function call(responseId, callId, toolName, args, text) {
  const it = { responseId, callId };
  return [
    { ...it, type: "tool_call_start", toolName, executor: "agent", arguments: args },
    { ...it, type: "tool_arguments_done", arguments: args, summary: text, validation: "not_required" },
    { ...it, type: "tool_running" },
    { ...it, type: "tool_output_delta", stream: "stdout", offset: 0, delta: text },
    { ...it, type: "tool_output_delta", stream: "stderr", offset: 0, delta: text },
    {
      ...it,
      type: "tool_result",
      toolName,
      ok: callId.endsWith("2"),
      result: { [text]: text, text, matches: [{ path: text, line: 1, text }] },
      error: callId.endsWith("2") ? undefined : { code: "tool_error", message: text },
      durationMs: 1,
    },
  ];
}

/** Fields that the views of known tools read. @param {string} text */
function hostileArguments(text) {
  return JSON.stringify({
    command: text,
    file_path: text,
    path: text,
    pattern: text,
    old_string: text,
    new_string: `${text}!`,
    url: text,
    prompt: text,
    description: text,
    todos: [{ content: text, status: text }],
  });
}

/** Checks that no script ran and no request left the page. @param {import("playwright-core").Page} page @param {string} base */
async function watch(page, base) {
  const signs = /** @type {string[]} */ ([]);
  page.on("dialog", (dialog) => {
    signs.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(base) && !request.url().startsWith("data:")) signs.push(request.url());
  });
  page.on("popup", () => signs.push("a window"));
  return signs;
}

/** Elements of the page that the server did not draw. Runs in the browser. @param {string[]} elements */
function strangers(elements) {
  const known = new Set(elements);
  return [...document.body.querySelectorAll("*:not(#text, dialog, dialog *)")].flatMap((it) => {
    const wrong = [];
    if (!known.has(it.tagName.toLowerCase())) wrong.push(it.tagName);
    // A text may contain links, pictures on request and ticked boxes, but nothing active.
    // The bar above each code block is ours: it copies the block and wraps its lines.
    const isOurs = it.matches(".code-bar > button:is([data-action=wrap], [data-action=copy][data-of=code])");
    const isControl = it.matches(".text :is(button, form, input:not([disabled]), select, textarea, [data-action]:not(.remote-image))");
    if (isControl && !isOurs) wrong.push("a control");
    for (const { name, value } of it.attributes) {
      if (/^on|^style$|^srcdoc$|^formaction$|^ping$|^background$|^srcset$|^poster$/i.test(name)) wrong.push(name);
      if (/^(href|src|action|xlink:href)$/i.test(name) && !/^(https?:|mailto:|\/(?!\/)|#)/i.test(value)) wrong.push(`${name}=${value}`);
      if (name === "id" && /[^\w.-]/.test(value)) wrong.push(`id=${value}`);
      if (name === "class" && /[^\w\s.-]/.test(value)) wrong.push(`class=${value}`);
    }
    return wrong.map((what) => `${what} in ${it.outerHTML.slice(0, 200)}`);
  });
}

/** @param {import("playwright-core").Page} page @param {string[]} payloads @param {string[]} signs @param {string} where */
async function assertHarmless(page, payloads, signs, where) {
  await openAll(page);
  for (const look of LOOKS) {
    await setRoot(page, { toolDisplay: look, theme: "light" });
    await page.evaluate(() => scrollTo(0, 0));
  }
  assert.deepEqual(await page.evaluate(strangers, ELEMENTS), [], where);
  const bubbles = await page.locator(".messages > .message > .bubble").allTextContents();
  // Parsers of HTML skip the character 0.
  const asText = (/** @type {string} */ it) => it.replace(/\r\n?/g, "\n").replaceAll("\u0000", "");
  assert.deepEqual(bubbles.map(asText), payloads.map(asText), where);
  assert.equal(await page.locator(".messages .tool-block[data-call-id]").count(), 2 * payloads.length, where);
  assert.equal(await page.evaluate(() => "wasRun" in window), false, where);
  assert.deepEqual(signs, [], where);
}

/** @returns {string[][]} */
const portions = () =>
  Array.from({ length: Math.ceil(PAYLOADS.length / AT_ONCE) }, (_, idx) =>
    PAYLOADS.slice(idx * AT_ONCE, (idx + 1) * AT_ONCE),
  );

test("there are over two hundred payloads", () => assert.ok(PAYLOADS.length > 200));

// Once as served, and once without the content security policy, so that escaping alone must suffice.
for (const bypassCSP of [false, true]) {
  const how = bypassCSP ? "by escaping alone" : "as served";
  test(`no payload runs or breaks the page (${how})`, async (t) => {
    const callboard = await startCallboard(t);
    for (const [idx, payloads] of portions().entries()) {
      await callboard.importLog(`hostile-${idx}`, hostileLog(payloads));
    }
    for (const [idx, payloads] of portions().entries()) {
      const page = await browser.newPage(t, { bypassCSP });
      const faults = listFaults(page);
      const signs = await watch(page, callboard.base);
      await page.goto(`${callboard.base}s/hostile-${idx}?token=${callboard.token}`);
      await assertHarmless(page, payloads, signs, `hostile-${idx}`);
      assert.deepEqual(faults, [], `hostile-${idx}`);
      await page.context().close();
    }
  });
}

test("an id in a log leads to no other address", async (t) => {
  const callboard = await startCallboard(t);
  const responseId = "../events?after=0#";
  const callId = `${responseId}.0`;
  const text = `<img src=x onerror="window.wasRun=alert(1)">`;
  await callboard.importLog("addressed", [
    { type: "session_created", agent: "demo", title: text },
    { type: "user_message", messageId: "m", text, attachments: [{ ...file(text), blob: "../agents?#" }] },
    { type: "run_start", responseId, agent: "demo", trigger: "user" },
    ...call(responseId, callId, "read_file", JSON.stringify({ path: "a.rs" }), text).slice(0, 3),
    { type: "tool_result", responseId, callId, toolName: "read_file", ok: true, result: "fn main() {}", durationMs: 1 },
    { type: "run_finish", responseId, status: "completed", durationMs: 1 },
  ]);
  const page = await browser.newPage(t, { bypassCSP: true });
  const faults = listFaults(page);
  const signs = await watch(page, callboard.base);
  await page.goto(`${callboard.base}s/addressed?token=${callboard.token}`);
  const fetched = page.waitForResponse((it) => it.url().includes("format=html"));
  await openAll(page);
  assert.match((await fetched).url(), /calls\/\.\.%2Fevents%3Fafter%3D0%23\.0\/output\?stream=file/);
  await page.locator(".file .fetched .hl-keyword").first().waitFor({ state: "attached" });
  assert.match((await page.locator(".attachment").getAttribute("href")) ?? "", /^\/api\/blobs\/[^/?#]+$/);
  assert.deepEqual(await page.evaluate(strangers, ELEMENTS), []);
  assert.deepEqual([signs, faults], [[], []]);
});

/** A word that finds one portion only. @param {number} portion */
const wordOf = (portion) => `portion${String.fromCharCode("a".charCodeAt(0) + portion)}`;

test("no payload runs in titles, lists and search results", async (t) => {
  const callboard = await startCallboard(t);
  for (const [idx, title] of PAYLOADS.entries()) {
    const text = `${wordOf(Math.floor(idx / AT_ONCE))} ${title}`;
    await callboard.importLog(`title-${idx}`, [
      { type: "session_created", agent: title, title },
      { type: "user_message", messageId: "m", text },
    ]);
  }
  const page = await browser.newPage(t, { bypassCSP: true });
  const faults = listFaults(page);
  const signs = await watch(page, callboard.base);
  // The rest of the list arrives over the connection.
  const connected = page.waitForEvent("websocket").then((socket) =>
    socket.waitForEvent("framereceived", ({ payload }) => `${payload}`.includes('"type":"subscribed"')),
  );
  await page.goto(callboard.url);
  await connected;
  const lines = page.locator("#sessions [data-session-id]");
  for (let shown = 100; shown < PAYLOADS.length; shown += 100) {
    await page.getByRole("link", { name: "Older sessions" }).click();
    await lines.nth(shown).waitFor({ state: "attached" });
  }
  assert.equal(await lines.count(), PAYLOADS.length);
  assert.deepEqual(await page.evaluate(strangers, ELEMENTS), [], "the list");
  for (const [idx, payloads] of portions().entries()) {
    await page.getByRole("searchbox").fill(wordOf(idx));
    await page.waitForFunction(
      ([word, count]) => {
        const found = [...document.querySelectorAll("#found li")];
        return found.length === count && found.every((it) => it.textContent?.includes(`${word}`));
      },
      [wordOf(idx), payloads.length],
    );
    assert.deepEqual(await page.evaluate(strangers, ELEMENTS), [], wordOf(idx));
  }
  assert.equal(await page.evaluate(() => "wasRun" in window), false);
  assert.deepEqual([signs, faults], [[], []]);
});

/** Approvals and questions with a payload in each field. @param {string[]} payloads */
function hostileQuestions(payloads) {
  const responseId = "r0";
  const asked = payloads.flatMap((payload, idx) => {
    const callId = `${responseId}.${2 * idx + 1}`;
    const toolName = idx % 2 ? payload : (KNOWN_TOOLS[idx % KNOWN_TOOLS.length] ?? "");
    const question = { question: payload, header: payload, options: [{ label: payload, description: payload }] };
    const options = {
      scopes: ["once", "session", "always"],
      canEdit: true,
      reason: payload,
      covers: `${toolName}: ${payload}`,
      target: idx % 3 ? undefined : { path: payload, size: 9, text: payload },
      form: idx % 4 ? undefined : [question],
    };
    return [
      ...part("text", responseId, `${responseId}.${2 * idx}`, payload),
      { type: "tool_call_start", responseId, callId, toolName, executor: "agent" },
      { type: "tool_arguments_done", responseId, callId, arguments: hostileArguments(payload), summary: payload, validation: "pending" },
      { type: "tool_approval_requested", responseId, callId, options },
    ];
  });
  return [
    { type: "session_created", agent: "demo", title: "Questions" },
    { type: "run_start", responseId, agent: "demo", trigger: "user" },
    { type: "step_start", responseId, index: 0 },
    ...asked,
  ];
}

test("no payload runs in approvals, loaded or live", async (t) => {
  const logs = mkdtempSync(path.join(tmpdir(), "callboard-hostile-"));
  t.after(() => rmSync(logs, { recursive: true }));
  for (const [idx, payloads] of portions().entries()) {
    writeFileSync(path.join(logs, `asks${idx}.jsonl`), logLines(`asks${idx}`, hostileQuestions(payloads)));
  }
  const gallery = drawGallery(t, logs);
  for (const [idx, payloads] of portions().entries()) {
    const name = `asks${idx}`;
    const { first, patches } = gallery.replay(name);
    for (const html of [gallery.html(name), first]) {
      const page = await browser.newPage(t);
      const faults = listFaults(page);
      const signs = await watch(page, "http://callboard.test/");
      const { sendFrame } = await openDrawn(page, name, html);
      if (html === first) for (const { seq, ops } of patches) sendFrame({ type: "patch", sessionId: name, seq, ops });
      await page.waitForFunction((count) => document.querySelectorAll(".card").length === count, payloads.length);
      await openAll(page);
      assert.deepEqual(await page.evaluate(strangers, ELEMENTS), [], name);
      assert.equal(await page.evaluate(() => "wasRun" in window), false, name);
      assert.deepEqual([signs, faults], [[], []], name);
      await page.context().close();
    }
  }
});

test("no payload runs in an exported file, by escaping alone", async (t) => {
  const callboard = await startCallboard(t);
  const folder = mkdtempSync(path.join(tmpdir(), "callboard-hostile-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [idx, payloads] of portions().entries()) {
    await callboard.importLog(`hostile-${idx}`, hostileLog(payloads));
    const response = await fetch(`${callboard.base}api/sessions/hostile-${idx}/export?format=html`, {
      headers: { Authorization: `Bearer ${callboard.token}` },
    });
    const file = path.join(folder, `${idx}.html`);
    writeFileSync(file, await response.text());
    const page = await browser.newPage(t, { bypassCSP: true });
    const faults = listFaults(page);
    const signs = await watch(page, "file:");
    await page.goto(pathToFileURL(file).href);
    await assertHarmless(page, payloads, signs, `hostile-${idx}`);
    assert.deepEqual(faults, [], `hostile-${idx}`);
    await page.context().close();
  }
});

test("no payload runs or breaks the page in patches", async (t) => {
  const logs = mkdtempSync(path.join(tmpdir(), "callboard-hostile-"));
  t.after(() => rmSync(logs, { recursive: true }));
  for (const [idx, payloads] of portions().entries()) {
    writeFileSync(path.join(logs, `live${idx}.jsonl`), logLines(`live${idx}`, hostileLog(payloads)));
  }
  const gallery = drawGallery(t, logs);
  for (const [idx, payloads] of portions().entries()) {
    const page = await browser.newPage(t);
    const faults = listFaults(page);
    const signs = await watch(page, "http://callboard.test/");
    const { first, patches } = gallery.replay(`live${idx}`);
    const { sendFrame } = await openDrawn(page, `live${idx}`, first);
    for (const { seq, ops } of patches) sendFrame({ type: "patch", sessionId: `live${idx}`, seq, ops });
    const last = String(patches.at(-1)?.seq);
    await page.waitForFunction((last) => document.body.dataset.head === last, last);
    await assertHarmless(page, payloads, signs, `live${idx}`);
    assert.deepEqual(faults, [], `live${idx}`);
    await page.context().close();
  }
});

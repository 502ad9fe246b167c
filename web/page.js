// The page's script. The server draws everything and sends patches; this applies them, sends what the
// reader says, and keeps what is the reader's own: what is open, where they read, what they write.
// It holds nothing that the server cannot rebuild.

const page = document.body;
const session = page.dataset.sessionId;
const root = document.documentElement;
/** @type {ParentNode} */
const anywhere = document;

/** @type {Actions} */
const actions = {};

const get = (id = "") => document.getElementById(id);

/** @type {Sure} */
const sure = (id) => /** @type {any} */ (get(id));

const find = (selector = "", within = anywhere) => within.querySelector(selector);

const all = (selector = "", within = anywhere) => [...within.querySelectorAll(selector)];

const up = (it = page, selector = "") => it.closest(selector) ?? it;

/** @param {Record<string, string>} attributes @param {(Node | string)[]} inside */
function element(tag = "", attributes, ...inside) {
  const it = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, value);
  it.append(...inside);
  return it;
}

/** @param {unknown} [body] @param {RequestInit} [more] */
async function request(method = "GET", path = "", body, more) {
  const headers = { "content-type": "application/json" };
  const sent = body === undefined ? {} : { headers, body: JSON.stringify(body) };
  const response = await fetch(path, { method, ...sent, ...more }).catch(() => {
    throw failure("offline", "the server cannot be reached. Is it running?");
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw failure(error?.code, error?.message ?? `the server answered ${response.status}.`);
}

const failure = (code = "", words = "") => Object.assign(new Error(words), { code });

/** @param {Parameters<typeof request>} what */
const json = async (...what) => (await request(...what)).json();

/** Of what is no HTML, nothing is made HTML. */
async function fetchHtml(path = "") {
  const response = await request("GET", path);
  if (/^text\/html\b/.test(response.headers.get("content-type") ?? "")) return response.text();
  throw new Error("the server answered with something else than a page.");
}

const fetchPage = async (path = "") => new DOMParser().parseFromString(await fetchHtml(path), "text/html");

/** Of the session that something stands in. @param {object} [body] */
const ask = (it = page, what = "", body) =>
  request("POST", `/api/sessions/${up(it, "[data-session-id]").dataset.sessionId}/${what}`, body);

const goHome = () => (location.href = "/");

// What the page says

/** Said until it is not true any more. */
let lasting = "";
let silence = 0;

function say(words = "", ms = 6000) {
  clearTimeout(silence);
  sure("status").replaceChildren(...(words ? [words] : []));
  if (words !== lasting) silence = setTimeout(() => say(lasting), ms);
}

const announce = (words = "") => (sure("announcer").textContent = words);

/** @param {Promise<unknown>} work */
const report = (work, failed = "That did not work") => work.catch(({ message }) => say(`${failed}: ${message}`));

// Patches

function parse(html = "") {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** @param {Element | null} body */
const offer = (body) => `${body?.querySelector(".show-all")?.textContent}`;

/** The same in what was drawn since; arguments to be changed have no name. @param {any} it @param {any} within */
function twin({ id, parentElement }, within) {
  const place = within.getElementById(id || parentElement?.id || "-");
  return id ? place : place && find(".edited", place);
}

/** What the reader opened, fetched or focused stays. @param {Element} old @param {DocumentFragment} fresh */
function swap(old, fresh) {
  for (const { id } of all("details[open]", old)) fresh.getElementById(id)?.setAttribute("open", "");
  if (old.matches("[open]")) fresh.firstElementChild?.setAttribute("open", "");
  for (const it of all(".fetched", old)) {
    const place = fresh.getElementById(it.parentElement?.id ?? "");
    // More has come since: it is offered again.
    it.classList.toggle("stale", it.dataset.of !== offer(place));
    place?.append(it);
  }
  for (const it of all("textarea, .note", old)) {
    const { value, defaultValue, hidden } = it;
    if (value !== defaultValue) Object.assign(twin(it, fresh) ?? {}, { value, hidden });
  }
  // A menu hangs on its button.
  if (menu.matches(":popover-open")) fresh.getElementById(opener.id)?.replaceWith(opener);
  keepingFocus(() => old.replaceWith(fresh));
}

/** Focus never falls to the page itself. On a phone the composer would open the keyboard. */
const focusComposer = () =>
  (matchMedia("(pointer: fine)").matches ? field : sure("conversation")).focus({ preventScroll: true });

function keepingFocus(change = () => {}) {
  const before = /** @type {any} */ (document.activeElement);
  const { id, parentElement, selectionStart, selectionEnd } = before;
  change();
  if (document.activeElement !== page || before === page) return;
  const next = twin({ id, parentElement }, document);
  if (next) next.focus({ preventScroll: true });
  else focusComposer();
  // Buttons and boxes to tick have none.
  if (selectionStart) next?.setSelectionRange(selectionStart, selectionEnd);
}

/** @param {(fresh: DocumentFragment) => void} place */
function come(html = "", near = page, place) {
  const fresh = parse(html);
  const old = get(fresh.firstElementChild?.id);
  // What was fetched may be ahead of the patches.
  if (old) swap(old, fresh);
  else place(fresh);
  opened({ target: near });
}

/** @type {Ops} */
const ops = {
  put: (it, html) => swap(it, parse(html)),
  add: (it, html) => come(html, it, (fresh) => it.append(fresh)),
  before: (it, html) => come(html, it, (fresh) => it.before(fresh)),
  move(it, next) {
    const list = /** @type {any} */ (it.parentElement);
    // Not every browser moves without taking out.
    (list.moveBefore ?? list.insertBefore).call(list, it, get(next));
  },
  text: (it, more) => (it.lastChild instanceof Text ? it.lastChild.appendData(more) : it.append(more)),
  attr: (it, name, value) => (value === null ? it.removeAttribute(name) : it.setAttribute(name, value)),
  drop: (it) => it.remove(),
};

// Long conversations are searched for nothing that stands around them.
const top = find("main > header") ?? root;
const foot = find(".foot") ?? root;
const isRunning = () => !!find(".now:is([data-state=running], [data-state=waiting])", foot);
let wasRunning = false;
let wasWaiting = "";
let settling = 0;

/** @param {Patch} list */
function patch(list) {
  const rewritten = find(".queued .edit[open] textarea");
  // The browser tells of it only with the next frame.
  if (hasGoneBack()) following = false;
  keepingFocus(() => {
    for (const [name, id, ...rest] of list) {
      const it = get(id);
      if (it) ops[name]?.(it, ...rest);
    }
  });
  if (rewritten && rewritten.value !== rewritten.defaultValue && !get(rewritten.id)) {
    write([field.value, rewritten.value].filter(Boolean).join("\n"));
    say("That message has begun as it was. What you wrote is below.");
  }
  dropSent();
  if (list.some(([, id]) => id.startsWith("sessions"))) listChanged();
  noteQuestions();
  opened({ target: foot });
  // At once: of what has shrunk the browser tells when it has grown again.
  if (following) follow();
  settling ||= setTimeout(settle, 100);
}

/** What is in the log is not on its way any more. */
function dropSent() {
  for (const it of all("#pending > *")) {
    const named = `[data-client-id="${it.id}"], [data-message-id="${CSS.escape(it.dataset.messageId ?? "-")}"]`;
    if (find(`:is(.messages, .queue:not(#pending)) :is(${named})`)) it.remove();
  }
}

/** What need not be done for each word that comes. */
function settle() {
  settling = 0;
  const title = find("h1", top)?.textContent;
  const asks = find("#sessions [data-state=waiting]");
  document.title = (asks ? "(!) " : "") + (title ? `${title} · Callboard` : "Callboard");
  const runs = isRunning();
  const waits = find(".held p")?.textContent ?? `${all(".queued").length || "No"} messages wait`;
  const news = [wasRunning && !runs && "The agent has finished.", wasWaiting && wasWaiting !== waits && waits];
  const words = news.filter(Boolean).join(" ");
  if (words) announce(words);
  [wasRunning, wasWaiting] = [runs, waits];
  sure("send").ariaLabel = runs ? "Queue" : "Send";
  if (following) dropFar();
  const waiting = all("#sessions [data-state=waiting] a:not([aria-current])").length;
  const drawer = find(".drawer", top);
  drawer?.setAttribute("data-waiting", `${waiting || ""}`);
  drawer?.setAttribute("aria-label", waiting ? `Sessions, ${waiting} waiting for you` : "Sessions");
  tick(foot);
  tick(sure("sidebar"));
}

const midnight = (at = Date.now()) => new Date(at).setHours(0, 0, 0, 0);

/** In the reader's own calendar. */
function day(at = 0) {
  const days = Math.max(0, Math.round((midnight() - midnight(at)) / 86_400_000));
  if (days < 8) return ["Today", "Yesterday"][days] ?? "Previous 7 days";
  return new Date(at).toLocaleDateString("en", { month: "long", year: "numeric" });
}

function listChanged() {
  find(`#sessions-${session} a`)?.setAttribute("aria-current", "page");
  for (const it of all("#sessions .day:not([id])")) it.remove();
  let last = "";
  for (const it of all("#sessions li:not([data-state=waiting]) [data-at]")) {
    const next = day(Number(it.dataset.at));
    if (next !== last) it.closest("li")?.before(element("li", { class: "day" }, next));
    last = next;
  }
}

// The connection

/** The last number that this page has seen; none where it shows the past. */
let seq = Number(page.dataset.head);
let delay = 250;
/** @type {WebSocket} */
let socket;
let isHeard = true;

// A server that is frozen, or behind a network that is gone, does not hang up.
setInterval(() => {
  if (!isHeard) return lost(500);
  isHeard = socket.readyState !== 1;
  if (!isHeard) tell({ type: "ping" });
}, 15_000);

function tell(frame = {}) {
  if (socket.readyState !== 1) throw new Error("the server is not connected. Try again in a moment.");
  socket.send(JSON.stringify(frame));
}

function subscribe() {
  if (session && seq) tell({ type: "subscribe", sessionId: session, after: seq, view: "html" });
}

/** @param {any} frame */
function receive({ type, sessionId, seq: head, ops, message, id, settings }) {
  if (type === "patch") patch(ops);
  if (type === "settings") applySettings(settings);
  if (sessionId && sessionId !== session) {
    if (type === "reload") embedAgain(`[data-session-id="${sessionId}"]`);
  } else if (sessionId && head > seq) page.dataset.head = seq = head;
  // Without it nothing would come any more.
  else if (type === "reload") reload("", Infinity).catch(() => lost(500));
  else if (type === "error") say(message);
  else if (type === "session_deleted" && id === session) goHome();
  else if (type === "session_deleted") get(`sessions-${id}`)?.remove();
}

/** How much of the list is shown. */
let listed = 100;

function watchList() {
  const archived = !!find("#sessions[data-archived]");
  const version = get("sessions")?.dataset.version;
  tell({ type: "subscribe", sessions: true, view: "html", archived, limit: listed, version });
}

actions["more-sessions"] = () => {
  listed += 100;
  watchList();
};

let reconnecting = 0;

function connect() {
  clearTimeout(reconnecting);
  socket = new WebSocket(`ws${location.protocol.slice(4)}//${location.host}/ws`);
  socket.onopen = () => {
    delay = 250;
    if (lasting) say((lasting = ""));
    page.classList.remove("offline");
    watchList();
    subscribe();
    embedAgain();
    if (isUnsent()) report(send(unsent?.mode));
    opened({ target: foot });
  };
  socket.onmessage = ({ data }) => {
    isHeard = true;
    receive(JSON.parse(data));
  };
  // Signed out: the server shows the page to sign in.
  socket.onclose = ({ code }) => (code === 4401 ? location.reload() : lost());
}

function lost(ms = delay) {
  // A farewell that nobody hears takes a minute.
  socket.onclose = null;
  socket.close();
  isHeard = true;
  // The first try comes so soon that a short break needs no words.
  if (ms > 250) {
    page.classList.add("offline");
    say((lasting = "Connection lost. Reconnecting…"));
  }
  clearTimeout(reconnecting);
  reconnecting = setTimeout(connect, ms * (0.75 + Math.random() / 2));
  delay = Math.min(ms * 2, 5000);
}

addEventListener("offline", () => lost(500));
addEventListener("online", () => socket.readyState > 1 && connect());

// Reading: the page follows its end only while the reader is there, and keeps only what is near

/** So many messages stay. What is dropped is loaded again when it is near. */
const KEPT = 100;
/** What is nearer to the screen than so many pixels is loaded. */
const NEAR = 1200;
let following = true;
let lastScroll = 0;
let lastHeight = 0;
const latest = get("latest");
const list = () => find(".messages") ?? root;
/** Whatever is loaded is of the moment that this page shows. */
const past = page.dataset.past ? `at=${page.dataset.past}&` : "";
const hasEnd = () => !list().matches(".partial");
const atEnd = (slack = 80) => hasEnd() && innerHeight + scrollY >= root.scrollHeight - slack;

function follow() {
  if (following) scrollTo(0, root.scrollHeight);
  noteScroll();
  moved();
}

function noteScroll() {
  lastScroll = scrollY;
  lastHeight = root.scrollHeight;
}

function moved() {
  // To set `hidden` again would style the page again.
  latest?.toggleAttribute("hidden", following || atEnd());
  if (scrollY < NEAR) report(loadMore("earlier"));
  if (!following && innerHeight + scrollY > root.scrollHeight - NEAR) report(loadMore("later"));
}

async function followAgain() {
  following = true;
  return hasEnd() ? follow() : reload();
}

actions.latest = followAgain;

/** The reader, and not what has shrunk: that moves the page too, a little. */
const hasGoneBack = () => scrollY < lastScroll && (root.scrollHeight === lastHeight || !atEnd(innerHeight / 2));

addEventListener("scroll", () => {
  if (hasGoneBack()) following = false;
  else if (atEnd()) following = true;
  noteScroll();
  moved();
});
addEventListener("resize", follow);
addEventListener("resize", () => noteMore());
new ResizeObserver(follow).observe(page);

/** Where in the log a message begins. @param {Element} [message] */
const begin = (message) => Number(message?.id.match(/\d+$/));

const topOf = (id = "") => get(id)?.getBoundingClientRect().top ?? 0;

/** Those of this session; what others said may stand within. */
const shown = () => all(":scope > .message, :scope > .rewound > .message", list());

/** The message that is read, and all after it. */
const seen = () => shown().filter((it) => it.getBoundingClientRect().bottom > 0);

/** Guessed heights become real, and what is far moves nothing later. @param {Element[]} messages */
function measure(messages = shown()) {
  const sheet = new CSSStyleSheet();
  const ids = messages.map(({ id }) => `#${CSS.escape(id)}`);
  // Not by a mark on the messages: those are the server's.
  sheet.replaceSync(`:is(${ids}) { content-visibility: visible }`);
  document.adoptedStyleSheets.push(sheet);
  const drop = () => (document.adoptedStyleSheets = document.adoptedStyleSheets.filter((it) => it !== sheet));
  requestAnimationFrame(() => requestAnimationFrame(drop));
}

/** Whatever it does to the list, the line that is read stays; if that is dropped, the next. */
function keepPlace(change = () => {}) {
  const read = seen().map(({ id }) => ({ id, before: topOf(id) }));
  change();
  const { id, before = 0 } = read.find(({ id }) => get(id)) ?? {};
  if (id) scrollBy(0, topOf(id) - before);
  noteScroll();
}

/** Drops messages that are far after the reader, or far before. */
function dropFar(isAfter = false) {
  const items = [...list().children];
  const far = (isAfter ? items.slice(KEPT) : items.slice(0, -KEPT)).filter((it) => {
    const { top, bottom } = it.getBoundingClientRect();
    return isAfter ? top > 3 * innerHeight : bottom < -2 * innerHeight;
  });
  if (!far.length) return;
  for (const it of far) it.remove();
  const side = sure(isAfter ? "later" : "earlier");
  const kept = shown();
  const from = isAfter ? `after=${begin(kept.at(-1))}` : `before=${begin(kept[0])}`;
  find("a", side)?.setAttribute("href", `?${past}${from}`);
  side.hidden = false;
  // Without its name nothing is added to the list: it would stand in the wrong place.
  if (isAfter) Object.assign(list(), { id: "", className: "messages partial" });
}

/** What was fetched and what is here may be of two moments: patches since the earlier meet both. */
function meet(fresh = document, since = seq) {
  const head = Number(fresh.body.dataset.head);
  if (past || head === seq) return;
  page.dataset.head = `${(seq = Math.min(head, since))}`;
  subscribe();
}

/** Loads what is before or after, and drops as much on the other side. */
async function load(side = "") {
  const link = () => find(`#${side} a`)?.getAttribute("href");
  const url = link();
  if (!url) return;
  const fresh = await fetchPage(`${url}&part=messages`);
  const more = find(".messages", fresh);
  // All may have been drawn again meanwhile.
  if (!more || link() !== url) return;
  keepPlace(() => {
    measure([...more.children]);
    if (side === "earlier") list().prepend(...more.children);
    else {
      list().append(...more.children);
      Object.assign(list(), { id: more.id, className: more.className });
    }
    get(side)?.replaceWith(...all(`#${side}`, fresh));
    dropFar(side === "earlier");
  });
  meet(fresh);
}

/** @type {Promise<void> | undefined} */
let loading;
/** Once at a time. */
const loadMore = (side = "") => (loading ??= load(side).finally(() => (loading = undefined)));

/** Draws everything again: the end, what is read, or another place. */
async function reload(from = "", since = seq) {
  const [read] = following ? [] : seen();
  const fresh = await fetchPage(`${location.pathname}?${past}${from || (read ? `after=${begin(read) - 1}` : "")}`);
  keepPlace(() => {
    for (const it of all(".heading, .sequence, .messages, .queue:not(#pending), .now, .dock, #earlier, #later", fresh)) {
      const old = it.matches(".messages") ? list() : get(it.id);
      if (old) swap(old, parse(it.outerHTML));
    }
    measure();
  });
  meet(fresh, since);
  patch([]);
  follow();
}

/** Goes to what a search has found, wherever it is. */
async function goToTarget() {
  const [, id] = location.hash.split("#m=");
  if (!id) return;
  const name = CSS.escape(decodeURIComponent(id));
  const target = () => find(`[data-message-id=${name}], [data-response-id=${name}]`, list());
  following = false;
  if (!target()) await reload(`message=${id}`);
  measure();
  (target() ?? list().firstElementChild)?.scrollIntoView({ block: "center" });
}

addEventListener("hashchange", () => report(goToTarget()));

/** `12s`, `5m`, `3h`, `2d`. */
function age(seconds = 0) {
  const units = Object.entries({ d: 86_400, h: 3600, m: 60 });
  const [unit, length] = units.find(([, it]) => seconds >= it) ?? ["s", 1];
  return `${Math.max(0, Math.floor(seconds / length))}${unit}`;
}

/** @param {ParentNode} within */
function tick(within) {
  if (within !== sure("sidebar") && page.matches(".offline")) return;
  for (const it of all("[data-since], [data-at]", within)) {
    const words = age((Date.now() - Number(it.dataset.since ?? it.dataset.at)) / 1000);
    if (it.textContent !== words) it.textContent = words;
  }
}

// Writing

const field = sure("text");
const composer = sure("composer");
/** @type {Upload[]} */
let uploads = [];
/** The message that is being written anew, and its words. */
let edited = "";
let original = "";
/** The files of the message that was begun before. @type {Upload[]} */
let draftFiles = [];
const draft = `draft:${session ?? ""}`;

/** A browser may not let anything be kept. @param {string} [text] */
function keepDraft(text) {
  try {
    if (text !== undefined) localStorage.setItem(draft, text);
    return localStorage.getItem(draft) ?? "";
  } catch {
    return text ?? "";
  }
}

function fieldChanged() {
  if (!edited) keepDraft(field.value);
  noteUnsent();
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

function write(text = "") {
  field.value = text;
  fieldChanged();
  field.focus();
}

const newKey = () => `${Date.now()}-${Math.random().toString(36).slice(2)}`;

const keys = (files = uploads) => files.map(({ key }) => key).join();

/** @param {File} file @returns {Promise<object>} */
async function upload(file) {
  const { blob, size } = await json("POST", "/api/blobs", undefined, { body: file });
  return { blob, size, name: file.name, mediaType: file.type || "application/octet-stream" };
}

/** @param {Iterable<File>} files */
function attach(files) {
  for (const file of files) {
    const it = { name: file.name, key: newKey(), sent: upload(file) };
    setUploads([...uploads, it]);
    it.sent.catch((error) => {
      setUploads(uploads.filter((other) => other !== it));
      say(`${file.name} could not be attached: ${error.message}`);
    });
  }
}

/** @param {any} event */
function takeFiles(event) {
  const { files } = event.clipboardData ?? event.dataTransfer;
  if (!files.length) return;
  event.preventDefault();
  attach(files);
}

function setUploads(next = uploads) {
  uploads = next;
  const chips = next.map((upload) => {
    const name = element("span", { class: "name" }, upload.name);
    const chip = element("button", { type: "button", title: `Remove ${upload.name}` }, name, "×");
    chip.onclick = () => setUploads(uploads.filter((it) => it !== upload));
    const show = ({ blob = "", mediaType = "" }) =>
      /^image\/[^s]/.test(mediaType) && chip.prepend(element("img", { src: `/api/blobs/${blob}`, alt: "" }));
    upload.sent.then(show, () => {});
    return chip;
  });
  sure("files").replaceChildren(...chips);
  sure("files").hidden = !chips.length;
}

/** What could not be sent: who sends it again sends the same. @type {Said | undefined} */
let unsent;

/** The composer holds a message that only the connection has kept back. */
const isUnsent = () => !!unsent?.isOffline && isSame(unsent);

function noteUnsent() {
  const problem = !session && sure("folder").validationMessage;
  sure("note").textContent = problem || (isUnsent() ? "Not sent yet. It is sent when the connection is back." : "");
}

/** @param {Said} said */
const isSame = ({ text, replaces, files }, written = field.value.trim(), attached = uploads) =>
  text === written && replaces === edited && keys(files) === keys(attached);

/** The session of the first message, and what it was made for. @type {Promise<string> | undefined} */
let made;
let madeFor = "";

/** In a new session, unless one was made already. */
function makeSession() {
  const start = { agent: sure("agent").value, workspace: sure("folder").value.trim() || undefined };
  const words = JSON.stringify(start);
  if (words !== madeFor) made = undefined;
  madeFor = words;
  made ??= json("POST", "/api/sessions", start).then(({ id }) => id);
  made.catch(() => (made = undefined));
  return made;
}

/** Messages go in the order in which they were said. @type {Promise<unknown>} */
let going = Promise.resolve();

/** What is typed while a message is on its way is the next message. */
async function send(mode = "queue", example = "") {
  const text = example || field.value.trim();
  const files = example ? [] : uploads;
  if (!text && !files.length) return;
  const again = unsent && isSame(unsent, text, files) && unsent.clientId;
  const said = { text, files, mode, replaces: edited, clientId: again || newKey() };
  const bubble = element("div", { class: "bubble" }, text || files.map((it) => it.name).join(", "));
  const pending = element("article", { id: said.clientId, class: "message sending", "data-role": "user", "aria-label": "You" }, bubble);
  sure("pending").append(pending);
  if (edited) edit();
  else if (!example) {
    write();
    setUploads([]);
  }
  report(followAgain());
  going = going.then(() => report(deliver(said, pending), "Couldn't send"));
}

/** @param {Said} said @param {HTMLElement} pending */
async function deliver(said, pending) {
  const { text, files, mode, clientId, replaces } = said;
  try {
    const attachments = await Promise.all(files.map((it) => it.sent));
    const id = session ?? (await makeSession());
    const body = { text, clientId, attachments, mode, replaces: replaces || undefined };
    const { state, messageId } = await json("POST", `/api/sessions/${id}/messages`, body);
    if (unsent?.clientId === clientId) unsent = undefined;
    pending.dataset.messageId = messageId;
    dropSent();
    if (mode === "steer" && state === "queued") say("The agent cannot take it now: it is queued.");
    // Who leaves sooner takes back what is still on its way.
    if (!session && !find("#pending > :not([data-message-id])")) location.href = `/s/${id}`;
  } catch (/** @type {any} */ error) {
    pending.remove();
    unsent = { ...said, isOffline: error.code === "offline" };
    if (replaces && !edited) edit(replaces, text, files);
    else {
      setUploads([...files, ...uploads]);
      write(field.value ? `${text}\n${field.value}` : text);
    }
    // Offline counts for HTTP and the WebSocket alike; once back, the message is sent.
    if (unsent.isOffline) lost(2000);
    if (error.code === "invalid_request" && !session) checkFolder(error.message);
    else throw error;
  }
}

/** Another message, or the one that was begun before. @param {Upload[]} [files] */
function edit(id = "", text = keepDraft(), files = draftFiles) {
  if (!edited) draftFiles = uploads;
  edited = id;
  original = text;
  sure("editing").hidden = !id;
  setUploads(files);
  write(text);
}

actions["stop-editing"] = () => edit();

/** Escape may be meant for a question: changed words become part of the draft. */
function leaveEditing() {
  const isKept = cards().length && field.value !== original;
  edit("", isKept ? [keepDraft(), field.value].filter(Boolean).join("\n") : keepDraft());
}

actions.edit = (button) => {
  const message = up(button, ".message");
  const had = all("[data-file]", message).map((it) => JSON.parse(it.dataset.file ?? ""));
  const files = had.map((it) => ({ name: it.name, key: it.blob, sent: Promise.resolve(it) }));
  edit(message.dataset.messageId, find(".bubble", message)?.textContent ?? "", files);
};
actions.example = (button) => send("queue", button.innerText);
/** Nobody is taken to another agent unseen. */
actions.choose = (button) => {
  sure("agent").value = button.dataset.agent ?? "";
  agentChanged();
};

function agentChanged() {
  const { value, selectedOptions } = sure("agent");
  field.placeholder = `Message ${value}…`;
  sure("folder").placeholder = `Folder: ${selectedOptions[0]?.dataset.folder}`;
}

/** Shows a folder error beside its field until the field changes. */
function checkFolder(problem = "") {
  sure("folder").setCustomValidity(problem);
  sure("folder").focus();
  noteUnsent();
}
actions.attach = () => sure("attach").click();
actions.steer = () => send("steer");
actions.queue = (button) => {
  const { type, messageId, position = 0 } = button.dataset;
  const box = button.closest(".edit");
  const text = box?.querySelector("textarea")?.value;
  tell({ type, sessionId: session, messageId, position: Number(position), text });
  closeBox(box);
};
actions["stop-rewriting"] = (button) => {
  const box = up(button, ".edit");
  const text = find("textarea", box);
  if (text) text.value = text.defaultValue;
  closeBox(box);
};

/** @param {Element | null} box */
function closeBox(box) {
  if (!box) return;
  box.removeAttribute("open");
  find("summary", box)?.focus();
}

// Text that is held back for a moment

/** Who loads the page again, or was away, does not wait again. @param {any[]} animations */
function skipWaited(animations) {
  for (const it of animations) {
    const message = /^(held|give-way)$/.test(it.animationName) && it.effect.target.closest(".message");
    const text = message && find(".undecided", message);
    if (text) it.currentTime = Math.max(0, Date.now() - Number(text.dataset.begun));
  }
}

addEventListener("animationstart", ({ target }) => skipWaited(/** @type {any} */ (target).getAnimations()));
skipWaited(document.getAnimations());

// Copying and opening

async function copy(text = "") {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    // Over plain http there is no other way.
    const area = element("textarea", { class: "sr" }, text);
    const focused = find(":focus");
    page.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    focused?.focus();
  }
  announce("Copied to clipboard");
  say("Copied to clipboard", 1500);
}

/** What is shown may be cut. */
actions.copy = async (button) => {
  const { of, src } = button.dataset;
  const near = up(button, ".code-block, .message, .section, .badge");
  const url = src ?? find(`${of} .show-all`, near)?.getAttribute("href");
  // What is folded is not seen, and belongs to it.
  const text = (it = page) => find(".json", it)?.textContent ?? it.innerText.replace(/\n$/, "");
  return copy(url ? await (await request("GET", url)).text() : all(`${of}`, near).map(text).join("\n\n"));
};

actions.wrap = () => page.classList.toggle("wrapped");

/** All of what was cut, or has no colours yet. */
async function complete(body = page, url = "") {
  const html = await fetchHtml(url);
  find(".fetched.stale", body)?.remove();
  if (find(".fetched", body)) return;
  body.append(element("div", { class: "fetched", "data-of": offer(body) }, parse(html)));
  noteQuestions();
  const { sessionId, head } = find(".embedded", body)?.dataset ?? {};
  if (head) tell({ type: "subscribe", sessionId, after: Number(head), view: "html" });
}

/** Bodies that are being fetched. @type {WeakSet<Element>} */
const fetching = new WeakSet();

/** In the box that the reader has opened. @param {Element} block */
function focusEdit(block) {
  const box = block.matches(".edit[open]") && find("textarea", block);
  if (!box) return;
  box.focus();
  box.setSelectionRange(-1, -1);
}

/** Colours, other answers and long arguments come when somebody looks. @param {{ target: any }} event */
function opened({ target }) {
  for (const it of all(":is(.file, .peer, .edit)[data-src]:not(:has(.fetched))", target?.closest(".tool-block") ?? foot)) {
    const isOpen = it.closest("details")?.matches("[open]") ?? socket?.readyState === 1;
    if (!isOpen || fetching.has(it)) continue;
    fetching.add(it);
    report(complete(it, it.dataset.src).finally(() => fetching.delete(it)));
  }
  noteMore();
}

/** What is shown of other sessions, where patches do not reach. */
function embedAgain(which = "") {
  for (const it of all(`.embedded${which}`)) {
    const place = up(it, ".peer");
    find(".fetched", place)?.remove();
    report(complete(place, place.dataset.src));
  }
}

addEventListener("toggle", opened, true);
/** The block of a badge, and all that it stands in. */
actions["open-call"] = (link) => {
  const own = get(link.getAttribute("href")?.slice(1));
  const block = own?.parentElement;
  const asked = block && find(":scope > .nested > .exchange > details", block);
  following = false;
  const opens = (asked ?? own)?.toggleAttribute("open");
  if (!opens) return;
  for (let it = block; it; it = it.parentElement?.closest(".tool-block")) it.firstElementChild?.setAttribute("open", "");
  block?.scrollIntoView({ block: "nearest" });
};
addEventListener("scroll", noteMore, true);
actions["show-all"] = (link) => {
  following = false;
  return complete(up(link, ".cut"), `${link.getAttribute("href")}&format=html`);
};
actions["show-picture"] = (link) => {
  const src = link.getAttribute("href") ?? "";
  // The server lets the page show it only if the reader has said so.
  if (root.dataset.remoteImages !== "true") open(src, "_blank", "noopener");
  else link.replaceChildren(element("img", { src, alt: link.innerText }));
};
actions["show-less"] = (button) => find(".fetched", up(button, ".cut"))?.remove();

// Approvals

// A decision is made in the card, or by its keys while focus is there; then the reader goes on writing.
/** Offers Undo after a session or always decision. @param {object} answer */
async function decide(button = page, answer, scope = "once") {
  const card = up(button, ".card");
  const call = encodeURIComponent(card.dataset.callId ?? "");
  const path = `/api/sessions/${up(card, "[data-session-id]").dataset.sessionId}/calls/${call}/approval`;
  await request("POST", path, answer);
  const focused = document.activeElement;
  if (focused === page || card.contains(focused)) focusComposer();
  if (scope === "once") return;
  offerUndo(scope === "always" ? "Always allowed" : "Allowed for this session", () => request("POST", `${path}/undo`));
}

const cards = () => all(".card", foot);
/** The height of a line in a card. */
const LINE = 20;
let asked = "";

/** Those who do not see it are told; nobody is taken away from what they write. */
function noteQuestions() {
  const next = cards().map(({ id }) => id).join();
  // What was drawn again counts its own questions only.
  if (next || asked) showCard();
  if (next === asked) return;
  const fresh = cards().find(({ id }) => !asked.split(",").includes(id));
  asked = next;
  if (fresh) announce(`The agent asks: ${find("h2", fresh)?.textContent}. Alt+A goes to the question.`);
}

/** Says how much of a card is below its buttons. */
function noteMore() {
  const dock = find(".dock:has(.card)", foot);
  const hidden = dock ? dock.scrollHeight - dock.scrollTop - dock.clientHeight : 0;
  if (hidden > 8) foot.style.setProperty("--more", `"↓ ${Math.ceil(hidden / LINE)} more lines: scroll to see them"`);
  get("more-below")?.toggleAttribute("hidden", hidden <= 8);
}

/** The question that is shown. It stays until it is decided, whatever others come. */
let current = "";
const otherCards = new CSSStyleSheet();
document.adoptedStyleSheets.push(otherCards);

/** Shows one question of all, those of other agents included, from its beginning. */
function showCard(id = current) {
  const all = cards();
  const card = all.find((it) => it.id === id) ?? all[0];
  const dock = find(".dock", foot);
  if (card?.id !== current) {
    if (dock) dock.scrollTop = 0;
    current = card?.id ?? "";
    otherCards.replaceSync(card ? `.card:not(#${CSS.escape(current)}) { display: none }` : "");
  }
  for (const [idx, it] of all.entries()) {
    const place = find(".place", it);
    const words = `${idx + 1} of ${all.length}`;
    if (place && find("span", place)?.textContent !== words) find("span", place)?.replaceChildren(words);
    place?.toggleAttribute("hidden", all.length < 2);
  }
  noteMore();
}

/** @param {HTMLElement | undefined} card */
function goToCard(card) {
  if (!card) return;
  showCard(card.id);
  card.focus({ preventScroll: true });
}

actions["go-to-card"] = (button) => goToCard(cards().find((it) => it.dataset.callId === button.dataset.callId));
actions["next-card"] = (button) => {
  const all = cards();
  goToCard(all[(all.indexOf(/** @type {any} */ (up(button, ".card"))) + 1) % all.length]);
};

/** The edited arguments, which must be JSON. A closed edit is not in view and counts for nothing. */
function changedArguments(button = page, kind = "") {
  const field = find(`${kind}[open] .edited`, up(button, ".card"));
  if (!field || field.value === field.defaultValue) return undefined;
  try {
    JSON.parse(field.value);
  } catch {
    throw new Error("the edited arguments are not valid JSON. Check quotes, commas and brackets.");
  }
  return field.value;
}

actions.allow = (button) => {
  const changed = changedArguments(button, ".edit:not(.correction)");
  const { scope } = button.dataset;
  return decide(button, { decision: "accepted", scope, arguments: changed }, scope);
};
/** For good only by a second step. */
function askAlways(button = page, isAsked = true) {
  const card = up(button, ".card");
  const always = find(".always", card);
  if (!always) return;
  always.hidden = !isAsked;
  noteMore();
  find(isAsked ? "button" : "[data-action=always]", isAsked ? always : card)?.focus();
}
actions.always = (button) => askAlways(button);
actions["not-always"] = (button) => askAlways(button, false);
actions.deny = (button) => {
  const feedback = find(".note", up(button, ".card"))?.value.trim() || undefined;
  return decide(button, { decision: "rejected", feedback });
};
/** For a program that runs no other arguments than its own: it hears what they should have been. */
actions.correct = (button) => {
  const changed = changedArguments(button, ".correction");
  if (!changed) throw new Error("please correct the arguments first.");
  return decide(button, { decision: "rejected", feedback: `Use these arguments instead: ${changed}` });
};

/** Other words win over a choice, and stand beside several. */
function answerTo(question = page) {
  const { kind, many } = question.dataset;
  const inputs = all("input:checked, input:not([type=radio], [type=checkbox])", question);
  const given = inputs.flatMap(({ value }) => value.trim() || []);
  if (kind === "boolean") return given.length > 0;
  if (kind === "array") return given;
  if (kind === "number") return given[0] && Number(given[0]);
  return (many ? given.join(", ") : given.at(-1)) || undefined;
}

actions.answer = (button) => {
  const questions = all("fieldset", up(button, ".card"));
  const answers = Object.fromEntries(questions.map((it) => [it.dataset.question, answerTo(it)]));
  const isMissing = ({ dataset } = page) => !dataset.optional && answers[dataset.question ?? ""] === undefined;
  if (questions.some(isMissing)) throw new Error("please answer every question.");
  return decide(button, { decision: "accepted", arguments: { answers } });
};

// Sessions: rename, archive, delete

const menu = sure("menu");
/** The session that the menu is about, and the button that opened it. */
let subject = "";
let opener = page;
const isArchived = () => !!(get(`sessions-${subject}`) ?? find(".heading", top))?.dataset.archived;

const update = (id = "", change = {}) => request("PATCH", `/api/sessions/${id}`, change);

actions["session-menu"] = (button) => {
  subject = button.closest("#sessions li")?.dataset.sessionId ?? session ?? "";
  sure("archive").textContent = isArchived() ? "Unarchive" : "Archive";
  for (const it of all("[data-path]", menu)) it.setAttribute("href", `/api/sessions/${subject}/${it.dataset.path}`);
  sure("raw").hidden = subject !== session || !find(".raw-link");
  menu.showPopover({ source: (opener = button) });
};
menu.onclick = () => menu.hidePopover();
menu.addEventListener("keydown", ({ key }) => {
  const items = all("[role=menuitem]:not([hidden])", menu);
  const at = items.findIndex((it) => it.matches(":focus"));
  if (key === "ArrowDown") items[(at + 1) % items.length]?.focus();
  if (key === "ArrowUp") items.at(at - 1)?.focus();
});

actions.rename = (button) => {
  if (button.role !== "menuitem") subject = session ?? "";
  const title = subject === session ? find("h1", top) : find(`#sessions-${subject} .title`);
  sure("title").value = title?.textContent ?? "";
  sure("renaming").showModal();
  sure("title").select();
};
/** What was typed stays until the server took it. */
async function retitle() {
  await update(subject, { title: sure("title").value.trim() });
  sure("renaming").close();
}

let undoEnd = 0;

/** For ten seconds, whatever else the page says meanwhile. @param {() => Promise<unknown>} back */
function offerUndo(words = "", back) {
  const undo = element("button", { type: "button" }, "Undo");
  const close = () => undo.isConnected && keepingFocus(() => sure("undo").replaceChildren());
  undo.onclick = () => report(back().then(close));
  clearTimeout(undoEnd);
  sure("undo").replaceChildren(words, undo);
  undoEnd = setTimeout(close, 10_000);
}

actions.archive = async () => {
  const [id, archived] = [subject, !isArchived()];
  await update(id, { archived });
  offerUndo(archived ? "Archived" : "No longer archived", () => update(id, { archived: !archived }));
};

/** The server waits ten seconds before it deletes. */
actions.delete = async () => {
  await request("DELETE", `/api/sessions/${subject}?seconds=10`);
  if (subject === session) location.href = `/#deleted=${subject}`;
  else deleted(subject);
};

const deleted = (id = "") => offerUndo("Deleted", () => request("POST", `/api/sessions/${id}/restore`));

/** @param {File} file */
async function importFile(file) {
  const line = element("li", {}, `${file.name}: `);
  sure("imported").append(line);
  const path = `/api/sessions/import?format=${sure("format").value}`;
  const made = await json("POST", path, undefined, { body: file }).catch((error) => line.append(error.message));
  if (!made) return;
  const words = made.goesOnHere ? "goes on here, nothing added" : `turns added: ${made.addedTurns}`;
  line.append(element("a", { href: `/s/${made.id}` }, made.title), `, ${words}`);
}

// The frame: drawer, dialogs, and what all buttons share

const setDrawer = (open = false) => page.classList.toggle("drawer-open", open);
/** Where there is room for the list it is no drawer. */
const isDrawerOpen = () => page.matches(".drawer-open") && !!find(".drawer", top)?.checkVisibility();

actions.drawer = () => setDrawer(!isDrawerOpen());
actions.settings = async () => {
  sure("settings").showModal();
  get("grants")?.replaceWith(...all("#grants", await fetchPage(`/?part=grants&session=${session ?? ""}`)));
};
actions.revoke = async (button) => {
  await request("DELETE", button.dataset.grant);
  up(button, "li").remove();
};
actions["use-folder"] = (button) => update(session, { workspace: button.dataset.folder });
// The answer leads to a page that is closed now.
actions["sign-out"] = () => fetch("/sign-out", { method: "POST" }).then(goHome);
actions["sign-out-everywhere"] = () => request("POST", "/api/sign-out-everywhere").then(goHome);

addEventListener("click", (event) => {
  const { target, ctrlKey, metaKey } = event;
  // Opening a block pushes down what is below it; the line that is read stays.
  const block = target?.closest("summary")?.parentElement;
  if (block) following = false;
  const toggled = () => {
    following = atEnd(2);
    if (block) focusEdit(block);
  };
  block?.addEventListener("toggle", toggled, { once: true });
  if (!target?.closest("#sidebar, [data-action=drawer]")) setDrawer();
  const button = target?.closest("[data-action]");
  if (!button || ctrlKey || metaKey) return;
  event.preventDefault();
  const card = button.closest(".card");
  const fault = card && find(".fault", card);
  // The second click of two may meet the next question, which nobody has read.
  if (fault && event.detail > 1) return;
  if (fault) fault.textContent = "";
  const { action = "" } = button.dataset;
  // What only the server does is asked of it by name: cancel, retry, continue.
  const work = (async () => (actions[action] ?? ask)(button, action))();
  if (!fault) report(work);
  else work.catch(({ message }) => (fault.textContent = `That did not work: ${message}`));
});

let swipe = { x: 0, y: 0 };
addEventListener("pointerdown", ({ x, y }) => (swipe = { x, y }));
addEventListener("touchend", ({ changedTouches }) => {
  const { clientX = 0, clientY = 0 } = changedTouches[0] ?? {};
  const across = clientX - swipe.x;
  if (Math.abs(across) < Math.max(60, 2 * Math.abs(clientY - swipe.y))) return;
  if (across < 0 || swipe.x < 32) setDrawer(across > 0);
});

// Tooltips of badges

/** @type {HTMLElement | null | undefined} */
let tip;
let tipDelay = 0;

function hideTip() {
  clearTimeout(tipDelay);
  if (tip?.isConnected) tip.hidePopover();
  tip = null;
}

/** Of the badge under the pointer, else of the one in focus. @param {{ target: any }} event */
function showTip({ target }) {
  const badge = target?.closest(".badge") ?? document.activeElement?.closest(".badge");
  const next = badge && find(".tooltip", badge);
  if (next === tip) return;
  hideTip();
  tip = next;
  tipDelay = setTimeout(() => next?.showPopover(), 150);
}

addEventListener("mouseover", showTip);
addEventListener("focusin", showTip);
addEventListener("focusout", ({ relatedTarget }) => showTip({ target: relatedTarget }));

// Search

const query = sure("query");
let searchDelay = 0;

async function search() {
  const words = query.value.trim();
  const fresh = words && (await fetchPage(`/?part=found&q=${encodeURIComponent(words)}`));
  if (query.value.trim() !== words) return;
  if (fresh) sure("found").replaceWith(...all("#found", fresh));
  else sure("found").hidden = true;
  tick(sure("sidebar"));
}

function searchSoon(ms = 0) {
  clearTimeout(searchDelay);
  searchDelay = setTimeout(() => report(search()), ms);
}

// Keys

/** When Escape was pressed while a question was open, and no other key since. */
let escapedAt = -Infinity;
const TWICE_MS = 2000;

/** What is open on top closes; else the run stops, one that asks at the second press. @param {KeyboardEvent} event */
function escape(event) {
  // A key that is held is pressed once.
  if (event.repeat) return;
  const isTwice = event.timeStamp - escapedAt < TWICE_MS;
  escapedAt = -Infinity;
  const box = event.target?.closest(":is(.edit, .reason)[open]");
  if (box) return closeBox(box);
  const card = event.target?.closest(".card");
  const always = card && find(".always:not([hidden])", card);
  if (always) return askAlways(always, false);
  // The browser closes these.
  if (!tip && find("dialog[open], .menu:popover-open")) return;
  event.preventDefault();
  if (tip) hideTip();
  else if (isDrawerOpen()) setDrawer();
  else if (edited) leaveEditing();
  else if (query.value) {
    query.value = "";
    searchSoon();
  } else if (seq && isRunning()) {
    if (isTwice) sure("stop").click();
    else if (find(".dock:not(:empty)", foot)) askForEscape();
    else report(stopUnlessAsking());
  }
}

function askForEscape() {
  escapedAt = performance.now();
  say("Press Esc again to stop the run.", TWICE_MS);
}

/** The server may have asked something that this page does not show yet. */
async function stopUnlessAsking() {
  await ask(page, "cancel?unlessAsking=true").catch((error) => {
    if (error.code !== "awaiting_decision") throw error;
    askForEscape();
  });
}

const WRITES = "input:not([type=checkbox], [type=radio]), textarea, select";

/** What a key is for; nearest first. @param {KeyboardEvent} event */
function shortcut({ key, code, ctrlKey, metaKey, altKey, shiftKey, target }) {
  // With Alt a letter may be another sign.
  const name = altKey ? code.replace("Key", "") : key.length > 1 ? key : key.toUpperCase();
  const keys = `${ctrlKey || metaKey ? "Control+" : ""}${altKey ? "Alt+" : ""}${name}`;
  const named = `[aria-keyshortcuts~="${CSS.escape(keys)}"]`;
  const isEnter = key === "Enter";
  // Keyboards on a screen have no other way to a new line.
  const breaksLine = shiftKey || (!keys.startsWith("Control") && matchMedia("(pointer: coarse)").matches);
  if (isEnter && (breaksLine || !target?.closest("textarea"))) return null;
  const isWriting = !!target?.closest(WRITES);
  // With Option, macOS writes other signs: å, and the first half of ñ.
  const isSign = altKey && (key === "Dead" || (key.length === 1 && key.toUpperCase() !== name));
  if (isSign && isWriting) return null;
  // The keys of a card are letters and digits: they act in it, and not where one writes.
  const near = target?.closest(isWriting ? ".queued, #composer" : ".queued, #composer, .card");
  const button = near && all(named, near).find((it) => it.checkVisibility());
  if (button || isEnter) return button;
  const isPlain = !/^(Control|Alt)/.test(keys);
  if (isPlain && (isWriting || target?.closest("dialog") || cards().length)) return null;
  if (keys === "Alt+O") return find(LAST_CALLS);
  return all(`:is(#sidebar, .foot) ${named}:not(.card *)`).find((it) => it.checkVisibility());
}

/** Text typed where nothing takes it goes to the composer. @param {KeyboardEvent} event */
function typed(event) {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  const isCommand = (ctrlKey || metaKey || altKey) && !event.getModifierState("AltGraph");
  // Space scrolls, and presses buttons.
  if (key.length > 1 || key === " " || isCommand) return;
  if (!target?.closest(`${WRITES}, dialog[open], .menu`) && field.checkVisibility()) field.focus();
}

const LAST_CALLS =
  ".message:nth-last-child(1 of [data-activity]:not([data-activity=none])) > .parts > .activity > summary";

addEventListener("keydown", (event) => {
  // Keys also make words of an input method; 229 is how Safari says so.
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "Escape") return escape(event);
  escapedAt = -Infinity;
  const it = shortcut(event);
  if (!it) return typed(event);
  event.preventDefault();
  // A key that is held decides nothing.
  if (event.repeat && it.closest(".card")) return;
  if (it === query) {
    setDrawer(true);
    query.select();
  } else if (it.matches(".card")) goToCard(it);
  else it.click();
});

// Wiring

addEventListener("submit", (event) => {
  if (event.target === composer) report(send());
  else if (event.target === sure("search")) searchSoon();
  else if (event.target === sure("retitle")) report(retitle());
  else return;
  event.preventDefault();
});
foot.addEventListener("keydown", ({ key, isComposing, target }) => {
  const note = key === "Enter" && !isComposing && target?.closest(".note");
  if (note) find("[data-action=deny]", up(note, ".card"))?.click();
});
field.oninput = fieldChanged;
addEventListener("paste", takeFiles);
sure("attach").onchange = () => {
  attach(sure("attach").files ?? []);
  sure("attach").value = "";
};
sure("transcripts").onchange = async () => {
  for (const file of sure("transcripts").files ?? []) await importFile(file);
  sure("transcripts").value = "";
};
addEventListener("dragover", (event) => event.preventDefault());
for (const type of ["dragover", "dragleave", "drop"]) {
  addEventListener(type, (/** @type {any} */ event) => {
    // A drag that leaves one element for another is still over the page.
    const isOver = type === "dragover" || event.relatedTarget;
    page.classList.toggle("dragging", !!isOver && event.dataTransfer.types.includes("Files"));
  });
}
addEventListener("drop", takeFiles);
query.oninput = () => searchSoon(200);
if (!session) {
  sure("agent").onchange = agentChanged;
  sure("folder").oninput = () => checkFolder();
}

/** The settings as the server last said them: what changes there changes here, and nothing else. */
const known = { ...root.dataset };

/** @param {Record<string, unknown>} settings */
function applySettings(settings) {
  for (const [name, value] of Object.entries(settings)) {
    if (known[name] === `${value}`) continue;
    known[name] = `${value}`;
    // What a page may load is said once, when it is made.
    if (name !== "remoteImages") root.dataset[name] = `${value}`;
    const control = find(`[name="${name}"]`, sure("settings"));
    if (control) Object.assign(control, typeof value === "boolean" ? { checked: value } : { value });
  }
}

sure("settings").onchange = ({ target }) => {
  const { name, type, checked, value } = /** @type {any} */ (target);
  const chosen = type === "checkbox" ? checked : value;
  root.dataset[name] = `${chosen}`;
  const saved = request("PATCH", "/api/settings", { [name]: chosen });
  // What a page may load is said once, when it is made.
  report(name === "remoteImages" ? saved.then(() => location.reload()) : saved);
};

history.scrollRestoration = "manual";
edit();
follow();
noteQuestions();
settle();
listChanged();
find("#sessions [aria-current]")?.scrollIntoView({ block: "nearest" });
setInterval(() => tick(document), 1000);
setInterval(listChanged, 60_000);
report(goToTarget());
const [, gone] = location.hash.split("#deleted=");
if (gone) {
  history.replaceState(null, "", "/");
  deleted(gone);
}
connect();

// The page's script: sends messages, and asks the server for the page again when something changed.
// It holds nothing that the server cannot rebuild.

const session = document.body.dataset.sessionId;
const form = /** @type {HTMLFormElement} */ (document.getElementById("composer"));
const field = /** @type {HTMLTextAreaElement} */ (document.getElementById("text"));
const stop = /** @type {HTMLButtonElement} */ (document.getElementById("stop"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));

status.textContent = "";

/** @param {string} path @param {object} [body] */
async function post(path, body) {
  const response = await fetch(path, { method: "POST", body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

let sending = false;

/** What is typed while a message is on its way is the next message. */
async function send() {
  const text = field.value.trim();
  if (!text || sending) return;
  sending = true;
  field.value = "";
  try {
    const agent = form.dataset.agent;
    const id = session ?? (await post("/api/sessions", { agent })).id;
    await post(`/api/sessions/${id}/messages`, { text, clientId: crypto.randomUUID() });
    if (!session) location.href = `/s/${id}`;
  } catch (error) {
    field.value = field.value ? `${text}\n${field.value}` : text;
    throw error;
  } finally {
    sending = false;
  }
}

/** @param {Promise<unknown>} work */
async function report(work) {
  try {
    await work;
    status.textContent = "";
  } catch (error) {
    status.textContent = `That did not work: ${/** @type {Error} */ (error).message}`;
  }
}

const cancel = () => report(post(`/api/sessions/${session}/cancel`));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  report(send());
});
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  report(send());
});
stop.addEventListener("click", cancel);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !stop.hidden) cancel();
});

/** What the reader opened stays open; whoever reads at the end stays at the end. */
function replace(/** @type {Document} */ fresh) {
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const opened = [...document.querySelectorAll("#conversation details")].map(
    (block) => /** @type {HTMLDetailsElement} */ (block).open,
  );
  for (const id of ["sessions", "heading", "conversation"]) {
    const next = fresh.getElementById(id);
    if (next) document.getElementById(id)?.replaceWith(next);
  }
  // Blocks are only ever added at the end.
  document.querySelectorAll("#conversation details").forEach((block, n) => {
    if (opened[n]) block.setAttribute("open", "");
  });
  document.title = fresh.title;
  document.body.dataset.head = fresh.body.dataset.head;
  stop.hidden = /** @type {HTMLButtonElement} */ (fresh.getElementById("stop")).hidden;
  if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
}

let asking = false;
let changed = false;

/** One request at a time, and the last change is always seen. */
async function refresh() {
  changed = true;
  if (asking) return;
  asking = true;
  try {
    while (changed) {
      changed = false;
      const response = await fetch(location.href);
      if (response.ok) replace(new DOMParser().parseFromString(await response.text(), "text/html"));
      await new Promise((resume) => setTimeout(resume, 100));
    }
  } finally {
    asking = false;
  }
}

let delay = 250;

function watch() {
  const socket = new WebSocket(`ws${location.protocol.slice(4)}//${location.host}/ws`);
  socket.addEventListener("open", () => {
    delay = 250;
    status.textContent = "";
    socket.send(JSON.stringify({ type: "subscribe", sessions: true }));
    const after = Number(document.body.dataset.head);
    if (session) socket.send(JSON.stringify({ type: "subscribe", sessionId: session, after }));
  });
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.type === "error") status.textContent = frame.message;
    else if (frame.type !== "subscribed") report(refresh());
  });
  socket.addEventListener("close", () => {
    status.textContent = "The server is gone; trying again…";
    setTimeout(watch, delay);
    delay = Math.min(delay * 2, 5000);
  });
}

watch();
scrollTo(0, document.documentElement.scrollHeight);

// The WebSocket: keeps it open, subscribes, and says when the server is lost.

import { page, sessionId } from "./dom.js";
import { showLasting } from "./status.js";

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 5000;
const PING_MS = 15_000;
/** The close code for a sign-in that has ended. */
const SIGNED_OUT = 4401;

const state = {
  /** The last record that the page shows; NaN on pages that show no session or a past one. */
  head: Number(page.dataset.head),
  /** @type {WebSocket | undefined} */
  socket: undefined,
  /** Whether a frame has arrived since the last ping. */
  isResponsive: true,
  retryDelay: FIRST_DELAY_MS,
  retryTimer: 0,
  onOpen: () => {},
  /** @type {(frame: any) => void} */
  onFrame: () => {},
};

/** @param {{ onOpen: () => void, onFrame: (frame: any) => void }} handlers */
export function init(handlers) {
  Object.assign(state, handlers);
  setInterval(ping, PING_MS);
  addEventListener("offline", () => reconnect(500));
  addEventListener("online", () => Number(state.socket?.readyState) > WebSocket.OPEN && connect());
  connect();
}

export function isOpen() {
  return state.socket?.readyState === WebSocket.OPEN;
}

/** Detects a server that is frozen, or behind a broken network: neither closes the connection. */
function ping() {
  if (!state.isResponsive) return reconnect(500);
  state.isResponsive = !isOpen();
  if (!state.isResponsive) sendFrame({ type: "ping" });
}

/** @param {object} frame */
export function sendFrame(frame) {
  if (!isOpen()) throw new Error("the server is not connected. Try again in a moment.");
  state.socket?.send(JSON.stringify(frame));
}

export function head() {
  return state.head;
}

/** @param {number} head */
export function setHead(head) {
  state.head = head;
  page.dataset.head = `${head}`;
}

/** Subscribes to the patches of the session after the head. */
export function subscribe() {
  if (sessionId && state.head) sendFrame({ type: "subscribe", sessionId, after: state.head, view: "html" });
}

function connect() {
  clearTimeout(state.retryTimer);
  const socket = new WebSocket(`ws${location.protocol.slice(4)}//${location.host}/ws`);
  state.socket = socket;
  socket.onopen = () => {
    state.retryDelay = FIRST_DELAY_MS;
    showLasting("");
    page.classList.remove("offline");
    state.onOpen();
  };
  socket.onmessage = ({ data }) => {
    state.isResponsive = true;
    state.onFrame(JSON.parse(data));
  };
  // After a sign-out the server answers with the page to sign in.
  socket.onclose = ({ code }) => (code === SIGNED_OUT ? location.reload() : reconnect(state.retryDelay));
}

/** Drops the connection and tries again after about this time. @param {number} ms */
export function reconnect(ms) {
  const { socket } = state;
  // A server that does not answer delays the close event by a minute.
  if (socket) socket.onclose = null;
  socket?.close();
  state.isResponsive = true;
  // The first try comes so soon that a short interruption is not mentioned.
  if (ms > FIRST_DELAY_MS) {
    page.classList.add("offline");
    showLasting("Connection lost. Reconnecting…");
  }
  clearTimeout(state.retryTimer);
  state.retryTimer = setTimeout(connect, ms * (0.75 + Math.random() / 2));
  state.retryDelay = Math.min(ms * 2, LONGEST_DELAY_MS);
}

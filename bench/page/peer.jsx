// A page for comparison: the same records, drawn with React and streamdown.
//
// `?every=delta` draws each delta when it arrives, `?every=frame` all deltas since the last frame.

import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Streamdown } from "streamdown";

const { session, token, every } = Object.fromEntries(new URLSearchParams(location.search));

/** @param {(more: string) => void} add */
function listen(add) {
  const socket = new WebSocket(`ws://${location.host}/ws?token=${token}`);
  socket.onopen = () =>
    socket.send(JSON.stringify({ type: "subscribe", sessionId: session, after: 0, deltas: true }));
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.type === "caught_up") document.title = "ready";
    if (frame.type === "text_delta") add(frame.delta);
  };
}

/** @param {(more: string) => void} add */
function oncePerFrame(add) {
  let waiting = "";
  return (/** @type {string} */ more) => {
    if (!waiting) {
      requestAnimationFrame(() => {
        add(waiting);
        waiting = "";
      });
    }
    waiting += more;
  };
}

function Answer() {
  const [text, setText] = useState("");
  useEffect(() => {
    const add = (/** @type {string} */ more) => setText((before) => before + more);
    listen(every === "frame" ? oncePerFrame(add) : add);
  }, []);
  return <Streamdown>{text}</Streamdown>;
}

createRoot(/** @type {Element} */ (document.getElementById("answer"))).render(<Answer />);

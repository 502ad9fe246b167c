// The fan-out of Bun: topics of its own WebSocket server.

import { start, subscribers } from './source.mjs';

let connected = 0;

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request, server) {
    server.upgrade(request, { data: new URL(request.url).pathname.slice(1) });
  },
  websocket: {
    perMessageDeflate: false,
    open(socket) {
      socket.subscribe(socket.data);
      connected += 1;
      if (connected === subscribers) start((session, frame) => server.publish(String(session), frame));
    },
    message() {},
  },
});
console.log(server.port);

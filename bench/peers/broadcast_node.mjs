// The fan-out of `ws`: every frame is created once and sent to each subscriber.

import { WebSocketServer } from 'ws';
import { sessions, start, subscribers } from './source.mjs';

const rooms = Array.from({ length: sessions }, () => new Set());
let connected = 0;

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false, backlog: 1024 });
server.on('listening', () => console.log(server.address().port));
server.on('connection', (socket, request) => {
  rooms[Number(request.url.slice(1))].add(socket);
  connected += 1;
  if (connected === subscribers) start(publish);
});

function publish(session, frame) {
  const bytes = Buffer.from(frame);
  for (const socket of rooms[session]) socket.send(bytes, { binary: false });
}

// Deltas of many sessions from timers; each frame contains its due time instead of the mark.

const MARK = '@STAMP';

export const [subscribers, sessions, perSecond, deltas] = process.argv.slice(2, 6).map(Number);
const frame = process.argv[6];

const now = () => performance.timeOrigin + performance.now();

function stamp(session, at) {
  const nanoseconds = BigInt(Math.round(at * 1000)) * 1000n;
  return `@${session.toString(16).padStart(4, '0')}${nanoseconds.toString(16).padStart(16, '0')}`;
}

/** @param {(session: number, frame: string) => void} publish */
export function start(publish) {
  const pause = 1000 / perSecond;
  for (let session = 0; session < sessions; session++) {
    const began = now() + (pause * session) / sessions;
    let sent = 0;
    const tick = () => {
      for (; sent < deltas && began + sent * pause <= now(); sent++) {
        publish(session, frame.replace(MARK, stamp(session, began + sent * pause)));
      }
      if (sent < deltas) setTimeout(tick, Math.max(1, began + sent * pause - now()));
    };
    tick();
  }
}

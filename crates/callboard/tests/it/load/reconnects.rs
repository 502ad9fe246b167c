//! Watchers that disconnect and reconnect while many sessions stream.

use futures_util::future::join_all;
use transcript::{Record, Seq, Transcript};

use crate::support::program::{Home, Server};
use crate::support::random_values::Random;
use crate::support::watcher::{Watcher, as_record, is_quiet, watch_until};

const SESSIONS: usize = 8;
const WATCHERS: usize = 6;
const TEXTS: [&str; 4] = [
    "write a report about tides",
    "list the files, read a.txt, read b.md, search for beta, time in Paris and Tokyo",
    "think about it, then tell me a story",
    "break",
];

#[tokio::test]
async fn reconnecting_watchers_see_the_whole_log() {
    let home = Home::natural();
    let server = home.start();
    let mut sessions = Vec::new();
    for n in 0..SESSIONS {
        let session = server.create_session().await;
        server.send(&session, TEXTS[n % TEXTS.len()]).await;
        server.send(&session, TEXTS[(n + 1) % TEXTS.len()]).await;
        sessions.push(session);
    }
    let watchers = sessions.iter().enumerate().flat_map(|(n, session)| {
        (0..WATCHERS).map(move |m| (session.clone(), m % 2 == 0, (n * WATCHERS + m) as u64))
    });
    let reconnects = join_all(
        watchers.map(|(session, deltas, seed)| watch_with_gaps(&server, session, deltas, seed)),
    )
    .await;
    let total: usize = reconnects.iter().sum();
    assert!(total > SESSIONS * WATCHERS * 3, "only {total} reconnects");
}

/// Watches to the end with many interruptions. Returns their number.
async fn watch_with_gaps(server: &Server, session: String, deltas: bool, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut transcript = Transcript::default();
    let mut received: Vec<Record> = Vec::new();
    for reconnects in 0.. {
        let mut watcher = Watcher::connect(server).await;
        watcher.subscribe(&session, transcript.head, deltas).await;
        watcher.until("subscribed").await;
        let n_frames = random.below(60);
        let mut caught_up = false;
        for _ in 0..n_frames {
            // No more frames will arrive on this connection; a reconnect shows that all is
            // complete.
            if is_over(&transcript) && caught_up {
                break;
            }
            let frame = watcher.next().await.expect("the connection should be open");
            if let Some(record) = as_record(&frame) {
                assert!(record.seq > transcript.head, "numbers rise");
                transcript.apply(&record);
                received.push(record);
            }
            if frame["type"] == "caught_up" {
                caught_up = true;
                transcript.head = Seq(frame["seq"].as_u64().unwrap());
                check_same(server, &session, &transcript).await;
                if is_over(&transcript) {
                    if deltas {
                        assert_eq!(received, server.log(&session).await, "each exactly once");
                    }
                    return reconnects;
                }
            }
        }
    }
    unreachable!("the loop has no end")
}

/// Returns whether both messages have been answered.
fn is_over(transcript: &Transcript) -> bool {
    is_quiet(transcript) && transcript.messages.len() == 4
}

/// Checks that the watcher's transcript equals the log up to the same record.
async fn check_same(server: &Server, session: &str, transcript: &Transcript) {
    let log = server.log(session).await;
    let prefix = log.iter().take_while(|record| record.seq <= transcript.head);
    assert_eq!(*transcript, Transcript::replay(prefix), "at {}", transcript.head);
}

#[tokio::test]
async fn a_slow_watcher_misses_nothing() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let mut slow = Watcher::connect_with_buffer(&server, Some(2048)).await;
    slow.subscribe(&session, Seq(0), true).await;
    slow.until("caught_up").await;

    // More than the system, the outbox and the hub hold together, while the client reads nothing.
    let text = format!("help {}", "x".repeat(64 << 10));
    for _ in 0..60 {
        server.send(&session, &text).await;
    }
    watch_until(&server, &session, is_quiet).await;
    let log = server.log(&session).await;
    let mut seen = log[..1].to_vec();
    while seen.len() < log.len() {
        let frame = slow.next().await.expect("it is not yet cut off");
        if let Some(record) = as_record(&frame) {
            assert_eq!(record.seq, log[seen.len()].seq, "without a gap");
            seen.push(record);
        }
    }
    assert_eq!(seen, log);
}

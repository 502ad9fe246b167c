//! Many connections at once: streaming sessions, watchers that read, and one that never does.

use futures_util::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use transcript::{Record, Seq, Transcript};

use crate::support::program::{Home, Server, resident_memory};
use crate::support::watcher::{Watcher, as_record, is_quiet, watch_until};

const SESSIONS: usize = 100;

#[tokio::test]
async fn a_watcher_that_never_reads_is_disconnected() {
    let home = Home::natural();
    let server = home.start();
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(server.create_session().await);
    }
    let before = resident_memory(server.pid());

    // This client subscribes to everything with the smallest possible buffer, and reads nothing.
    let mut stuck = Watcher::connect_with_buffer(&server, Some(2048)).await;
    for session in &sessions {
        stuck.subscribe(session, Seq(0), true).await;
    }
    let watchers = sessions.iter().flat_map(|session| [session; 2]).take(2 * SESSIONS - 1);
    let watchers: Vec<_> = watchers.map(|session| watch_two_answers(&server, session)).collect();
    let talk = async {
        for session in &sessions {
            server.send(session, "write a report about tides, tell me a story").await;
            server.send(session, "tell me a story").await;
        }
    };
    let (seen, ()) = tokio::join!(join_all(watchers), talk);
    for (session, transcript) in sessions.iter().flat_map(|it| [it; 2]).zip(seen) {
        assert_eq!(transcript, Transcript::replay(&server.log(session).await));
    }
    let grown = resident_memory(server.pid()).saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {} MB", grown >> 20);

    // The server closes a connection whose client has read nothing for too long.
    server.wait_for_log("accepted nothing for");
    while stuck.next().await.is_some() {}
    let caught_up = watch_until(&server, &sessions[0], is_quiet).await;
    assert_eq!(caught_up, Transcript::replay(&server.log(&sessions[0]).await));
}

async fn watch_two_answers(server: &Server, session: &str) -> Transcript {
    let mut watcher = Watcher::connect(server).await;
    watcher.subscribe(session, Seq(0), true).await;
    let mut transcript = Transcript::default();
    while !(is_quiet(&transcript) && transcript.messages.len() == 4) {
        let frame = watcher.next().await.expect("only the one that never reads is cut off");
        if let Some(record) = as_record(&frame) {
            assert_eq!(record.seq, transcript.head.next(), "without a gap");
            transcript.apply(&record);
        }
    }
    transcript
}

const BUSY_SESSIONS: usize = 50;
const WATCHERS_EACH: usize = 20;

#[tokio::test]
async fn a_thousand_watchers_get_every_record() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).unwrap();
    let home = Home::natural();
    let server = home.start();
    let sessions = (0..BUSY_SESSIONS).map(|_| server.create_session());
    let sessions = join_all(sessions).await;
    let before = resident_memory(server.pid());
    let mut crowd = Vec::new();
    for session in &sessions {
        for _ in 0..WATCHERS_EACH {
            let mut watcher = Watcher::connect(&server).await;
            watcher.subscribe(session, Seq(0), true).await;
            watcher.until("caught_up").await;
            crowd.push(watcher);
        }
    }

    let talk = join_all(sessions.iter().map(|it| server.send(it, "think about tides")));
    let (seen, _) = tokio::join!(join_all(crowd.iter_mut().map(frames_of_a_run)), talk);
    let grown = resident_memory(server.pid()).saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {} MB", grown >> 20);
    for (session, seen) in sessions.iter().zip(seen.chunks(WATCHERS_EACH)) {
        let log = server.log(session).await;
        let first: Vec<Record> =
            seen[0].iter().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(first, log[1..], "all but the record that the session began with");
        assert!(seen.iter().all(|it| *it == seen[0]), "everybody sees the same");
    }
}

async fn frames_of_a_run(watcher: &mut Watcher) -> Vec<Utf8Bytes> {
    let mut frames: Vec<Utf8Bytes> = Vec::new();
    while !frames.last().is_some_and(|it| it.contains(r#""type":"run_finish""#)) {
        frames.push(watcher.next_text().await.expect("nobody who reads is cut off"));
    }
    frames
}

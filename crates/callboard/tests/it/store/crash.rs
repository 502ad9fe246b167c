//! Kills the server repeatedly during runs: no record or message that a client knows of is lost.

use std::collections::{BTreeMap, BTreeSet};

use transcript::{Event, Record, Seq, SessionId, Summary};

use crate::support::log::check_log;
use crate::support::program::{Home, Server};
use crate::support::random_values::Random;
use crate::support::watcher::{Watcher, as_record, is_quiet, watch_until};

const SESSIONS: usize = 12;
const KILLS: usize = 24;
const TEXTS: [&str; 5] = [
    "list the files, then read a.txt and search for beta",
    "tell me a story",
    "think about crashes, then time in Paris and Tokyo",
    "write a report about tides",
    "break",
];

/// Records that clients have received, and messages that the server has accepted.
#[derive(Default)]
struct Known {
    shown: BTreeMap<(SessionId, Seq), Record>,
    accepted: BTreeSet<(String, String)>,
}

#[tokio::test]
async fn no_shown_record_or_accepted_message_is_lost() {
    let home = Home::natural();
    let mut known = Known::default();
    let mut sessions = Vec::new();
    let server = home.start();
    for _ in 0..SESSIONS {
        sessions.push(server.create_session().await);
    }
    server.stop();

    // A fixed seed: the numbers vary between rounds, but not between runs of this test.
    let mut random = Random::new(7);
    for round in 0..KILLS {
        let server = home.start();
        let n_records = 1 + random.below(400);
        known.watch_and_send(&server, &sessions, round, n_records).await;
        server.kill();
        let server = home.start();
        for session in &sessions {
            known.check(&server, session).await;
        }
        server.kill();
    }

    let server = home.start();
    for session in &sessions {
        server.send(session, "time in Lima").await;
        let end = watch_until(&server, session, is_quiet).await;
        let last = end.messages.last().unwrap().run().unwrap();
        assert!(last.content().contains("Lima"), "the next message works");
        let log = server.log(session).await;
        check_log(&log, |_| false);
        known.check_log(session, &log);
    }
    assert!(known.shown.len() > KILLS * 20, "only {} records were seen", known.shown.len());
}

impl Known {
    /// Sends a message to every session and reads until `n_records` records have arrived.
    async fn watch_and_send(
        &mut self,
        server: &Server,
        sessions: &[String],
        round: usize,
        n_records: usize,
    ) {
        let mut watcher = Watcher::connect(server).await;
        for session in sessions {
            let shown = self.shown.keys().filter(|(id, _)| id.as_str() == session);
            let last = shown.map(|(_, seq)| *seq).max().unwrap_or(Seq(0));
            watcher.subscribe(session, last, true).await;
        }
        for (n, session) in sessions.iter().enumerate() {
            let text = TEXTS[(n + round) % TEXTS.len()];
            let id = server.send(session, text).await;
            self.accepted.insert((session.clone(), id));
        }
        let mut seen = 0;
        while seen < n_records {
            let frame = watcher.next().await.expect("the connection should be open");
            if let Some(record) = as_record(&frame) {
                seen += 1;
                self.shown.insert((record.session_id.clone(), record.seq), record);
            }
        }
    }

    /// Checks after a restart that the runs of the killed server are closed.
    async fn check(&self, server: &Server, session: &str) {
        let head = server.log(session).await;
        let begun: BTreeSet<_> = runs(&head);
        // The restarted server starts queued messages, so at most one run may be open.
        let is_recovered = |summary: &Summary, finished: usize| {
            begun.len() <= finished + usize::from(summary.open_run.is_some())
        };
        watch_until(server, session, |transcript| {
            let answers = transcript.messages.iter().filter_map(|it| it.run());
            let finished = answers.filter(|answer| !answer.is_open()).count();
            is_recovered(&transcript.summary, finished)
        })
        .await;
        // Every run whose start a client has received began in a killed server.
        let shown = self.shown.values().filter(|it| it.session_id.as_str() == session);
        let begun_before = runs(shown);
        watch_until(server, session, |transcript| {
            let answer = |run: &String| transcript.message(run).and_then(|it| it.run());
            begun_before.iter().all(|run| answer(run).is_some_and(|it| !it.is_open()))
        })
        .await;
        let log = server.log(session).await;
        let open = transcript::Transcript::replay(&log).summary.open_run;
        check_log(&log, |run| open.as_ref() == Some(run));
        self.check_log(session, &log);
    }

    fn check_log(&self, session: &str, log: &[Record]) {
        for ((id, seq), record) in &self.shown {
            if id.as_str() == session {
                assert_eq!(Some(record), log.get(seq.0 as usize - 1), "shown, but not in the log");
            }
        }
        for (_, message) in self.accepted.iter().filter(|(id, _)| id == session) {
            let is_there = log.iter().any(|record| match &record.event {
                Event::UserMessage { message_id, .. } | Event::MessageQueued { message_id, .. } => {
                    message_id.as_str() == message
                }
                _ => false,
            });
            assert!(is_there, "accepted, but not in the log");
        }
    }
}

fn runs<'a>(log: impl IntoIterator<Item = &'a Record>) -> BTreeSet<String> {
    let starts = log.into_iter().filter(|it| matches!(it.event, Event::RunStart { .. }));
    starts.filter_map(|it| it.response_id.as_ref()).map(ToString::to_string).collect()
}

//! Messages that come while the agent works.

use transcript::{Content, Event};

use crate::log::{check_log, kinds};
use crate::program::Home;
use crate::watcher::{is_quiet, watch_until};

#[tokio::test]
async fn messages_wait_their_turn_and_start_in_order() {
    let home = Home::natural();
    let server = home.start();
    let session = server.create_session().await;
    let texts = ["time in Paris", "time in Tokyo", "time in Lima", "help"];
    let mut ids = Vec::new();
    for text in texts {
        ids.push(server.send(&session, text).await);
    }
    let transcript =
        watch_until(&server, &session, |it| is_quiet(it) && it.messages.len() == 8).await;
    let said: Vec<_> = transcript
        .messages
        .iter()
        .filter_map(|message| match &message.content {
            Content::Said(said) => Some((said.id.to_string(), said.text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(said, ids.into_iter().zip(texts).collect::<Vec<_>>());

    let log = server.log(&session).await;
    check_log(&log, |_| false);
    let kinds = kinds(&log);
    for (idx, record) in log.iter().enumerate() {
        if let Event::MessageDequeued { .. } = &record.event {
            assert_eq!(&kinds[idx + 1..idx + 3], ["user_message", "run_start"]);
        }
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "message_queued").count(), 3);
}

#[tokio::test]
async fn a_queue_survives_a_stop() {
    let home = Home::natural();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "tell me a story").await;
    server.send(&session, "time in Paris").await;
    server.stop();

    let server = home.start();
    let both = |it: &transcript::Transcript| is_quiet(it) && it.messages.len() == 4;
    let transcript = watch_until(&server, &session, both).await;
    let shown: Vec<_> = transcript.messages.iter().filter_map(|it| it.answer()).collect();
    assert!(shown[0].was_interrupted(), "the story ended with the server");
    assert_eq!(shown[1].calls().count(), 1, "the question that waited was answered");
    check_log(&server.log(&session).await, |_| false);
}

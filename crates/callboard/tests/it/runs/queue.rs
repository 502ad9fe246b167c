//! Messages that arrive while the agent works.

use reqwest::Method;
use serde_json::json;
use transcript::{Content, Event, Transcript};

use crate::support::log::{check_log, kinds};
use crate::support::program::Home;
use crate::support::watcher::{is_quiet, watch_until};

#[tokio::test]
async fn queued_messages_start_in_order() {
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
    let messages: Vec<_> = transcript
        .messages
        .iter()
        .filter_map(|message| match &message.content {
            Content::User(messages) => Some((messages.id.to_string(), messages.text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ids.into_iter().zip(texts).collect::<Vec<_>>());

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
async fn after_a_cancel_new_messages_run_and_held_ones_wait() {
    let home = Home::natural();
    let server = home.start();
    let session = server.create_session().await;
    let steer = json!({ "text": "time in Tokyo", "mode": "steer" });
    server.send(&session, "tell me a story").await;
    server.send(&session, "time in Paris").await;
    let messages = format!("/api/sessions/{session}/messages");
    let (_, steered) = server.post(&messages, steer).await;
    assert_eq!(steered["state"], "queued", "the demo agent cannot take it");
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    server.send(&session, "time in Lima").await;
    let answered =
        |n: usize| move |it: &Transcript| it.summary.open_run.is_none() && it.messages.len() == n;
    let transcript = watch_until(&server, &session, answered(4)).await;
    let held: Vec<_> =
        transcript.queue.messages.iter().map(|it| (it.text.as_str(), it.held)).collect();
    assert_eq!(held, [("time in Paris", true), ("time in Tokyo", true)]);

    server.kill();
    let server = home.start();
    let title = json!({ "title": "The queue was looked at" });
    let path = format!("/api/sessions/{session}");
    server.request(Method::PATCH, &path, Some(title)).await;
    let transcript = watch_until(&server, &session, answered(4)).await;
    assert!(transcript.queue.is_held(), "a restart releases nothing");
    server.post(&format!("{path}/queue/release"), json!({})).await;
    let transcript = watch_until(&server, &session, answered(8)).await;
    let messages = transcript.messages.iter().filter_map(|it| match &it.content {
        Content::User(messages) => Some(messages.text.as_str()),
        _ => None,
    });
    let order = ["tell me a story", "time in Lima", "time in Paris", "time in Tokyo"];
    assert_eq!(messages.collect::<Vec<_>>(), order);
    check_log(&server.log(&session).await, |_| false);
}

#[tokio::test]
async fn a_queue_survives_a_restart() {
    let home = Home::natural();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "tell me a story").await;
    server.send(&session, "time in Paris").await;
    server.stop();

    let server = home.start();
    let both = |it: &Transcript| is_quiet(it) && it.messages.len() == 4;
    let transcript = watch_until(&server, &session, both).await;
    let shown: Vec<_> = transcript.messages.iter().filter_map(|it| it.run()).collect();
    assert!(shown[0].was_interrupted(), "the story ended with the server");
    assert_eq!(shown[1].calls().count(), 1, "the question that waited was answered");
    check_log(&server.log(&session).await, |_| false);
}

//! Exchanges in stored logs, and a server that starts with them.

use std::sync::Arc;

use serde_json::{Value, json};
use store::{Options, Store};
use transcript::{Event, Millis, Record, ResponseId, Seq, SessionId, Transcript, event_from_body};

use crate::agents::exchanges::{demos, is_settled};
use crate::support::program::Home;
use crate::support::watcher::watch_until;

/// Stores a session as a server has left it. A line has the time, the run or `-`, and the event.
async fn left_behind(home: &Home, session: &str, log: &str) {
    let store = Store::open(&home.data(), Options::default()).unwrap();
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let record = |(seq, line): (u64, &str)| {
        let [at, run, body] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let run = (run != "-").then(|| ResponseId::new(run));
        let event = event_from_body(body);
        assert!(!matches!(event, Event::Other(_)), "{line}");
        Record::new(Seq(seq), Millis(at.parse().unwrap()), SessionId::new(session), run, event)
    };
    let records: Arc<[Record]> = (1..).zip(lines).map(record).collect();
    store.append(&SessionId::new(session), Seq(0), records).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn an_exchange_that_was_never_delivered_fails_at_restart() {
    let home = demos("instant", &["a", "b"], "");
    let asked = r#"
        10 - {"type":"session_created","agent":"a"}
        10 - {"type":"user_message","messageId":"m1","text":"ask b"}
        10 r1 {"type":"run_start","agent":"a","trigger":"user"}
        10 r1 {"type":"agent_message","exchangeId":"x1","direction":"sent","agent":"b","peerSessionId":"never","peerResponseId":"x1","text":"help","mode":"async"}
        11 r1 {"type":"run_finish","status":"completed","durationMs":1}
    "#;
    left_behind(&home, "asker", asked).await;
    let server = home.start();
    let is_called_back = |it: &Transcript| is_settled(it) && it.messages.len() == 4;
    watch_until(&server, "asker", is_called_back).await;
    let events = server.get("/api/sessions/asker/events").await;
    let events = events["events"].as_array().unwrap();
    let end = events.iter().find(|it| it["type"] == "agent_callback_result").unwrap();
    assert_eq!(end["error"]["code"], "agent_failed");
    let words = end["error"]["message"].as_str().unwrap();
    assert!(words.contains("the server stopped before a new session was created"), "{words}");
    let sessions = server.get("/api/sessions").await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
}

/// The exported session also shows the other session as it was at that time.
#[tokio::test]
async fn an_earlier_export_shows_the_peer_of_that_time() {
    let home = demos("instant", &["a", "b"], "");
    let asker = r#"
        10 - {"type":"session_created","agent":"a"}
        10 - {"type":"user_message","messageId":"m1","text":"ask b"}
        11 r1 {"type":"run_start","agent":"a","trigger":"user"}
        12 r1 {"type":"agent_message","exchangeId":"x1","direction":"sent","agent":"b","peerSessionId":"asked","peerResponseId":"x1","text":"help","mode":"sync"}
        20 r1 {"type":"agent_progress","exchangeId":"x1","state":"running"}
        40 r1 {"type":"agent_callback_result","exchangeId":"x1","direction":"sent","agent":"b","peerSessionId":"asked","peerResponseId":"x1","ok":true,"result":"late words"}
        41 r1 {"type":"run_finish","status":"completed","durationMs":30}
    "#;
    let asked = r#"
        12 - {"type":"session_created","agent":"b"}
        13 - {"type":"user_message","messageId":"m1","text":"help"}
        14 x1 {"type":"run_start","agent":"b","trigger":"agent","exchangeId":"x1"}
        15 x1 {"type":"step_start","index":0}
        16 x1 {"type":"text_start","partId":"x1.0"}
        17 x1 {"type":"text_done","partId":"x1.0","text":"early words"}
        31 x1 {"type":"text_start","partId":"x1.1"}
        32 x1 {"type":"text_done","partId":"x1.1","text":"late words"}
        33 x1 {"type":"step_finish","index":0,"finishReason":"stop"}
        34 x1 {"type":"run_finish","status":"completed","durationMs":20}
    "#;
    left_behind(&home, "asker", asker).await;
    left_behind(&home, "asked", asked).await;
    let server = home.start();
    let shown = async |query: &str| -> Value {
        let path = format!("/api/sessions/asker/export{query}");
        let (_, page) = server.get_bytes(&path).await;
        let page = String::from_utf8(page).unwrap();
        json!([page.contains("early words"), page.contains("late words")])
    };
    assert_eq!(shown("?at=4").await, json!([false, false]));
    assert_eq!(shown("?at=5").await, json!([true, false]));
    assert_eq!(shown("?at=7").await, json!([true, true]));
    assert_eq!(shown("").await, json!([true, true]));
}

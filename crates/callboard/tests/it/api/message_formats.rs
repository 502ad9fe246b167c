//! The messages of a session in foreign formats.

use serde_json::{Value, json};

use crate::support::program::Home;
use crate::support::watcher::{is_quiet, watch_until};

#[tokio::test]
async fn a_conversation_in_every_format() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "list the files, then read a.txt").await;
    watch_until(&server, &session, is_quiet).await;
    let messages = async |query: &str| -> Vec<Value> {
        let page = server.get(&format!("/api/sessions/{session}/messages?{query}")).await;
        page["messages"].as_array().unwrap().clone()
    };
    let roles = |messages: &[Value]| -> Vec<String> {
        messages.iter().map(|it| it["role"].as_str().unwrap().to_owned()).collect()
    };
    let ours = messages("").await;
    let (answer, calls) = (&ours[1]["id"], ours[1]["toolCalls"].as_array().unwrap());

    let contract = messages("format=contract").await;
    let steps = ["user", "assistant", "tool", "assistant", "tool", "assistant"];
    assert_eq!(roles(&contract), steps);
    assert_eq!(contract[2]["metadata"]["tool_call_id"], calls[0]["id"]);
    assert!(contract[2]["metadata"].get("tool_result").is_some());
    assert_eq!(contract[5]["content"], ours[1]["content"]);
    let all = messages("format=contract&status=all").await;
    assert!(all.len() > contract.len(), "the end of the run is a status message");

    let ui = messages("format=ui").await;
    assert_eq!(roles(&ui), ["user", "assistant"]);
    assert_eq!(ui[1]["id"], *answer);
    let parts = ui[1]["parts"].as_array().unwrap();
    let reads = parts.iter().find(|it| it["type"] == "tool-read_file").unwrap();
    assert_eq!(reads["state"], "output-available");
    assert_eq!(reads["output"]["text"], "alpha\nbeta\n");

    let ui_v4 = messages("format=ui-v4").await;
    assert_eq!(roles(&ui_v4), ["assistant", "user"], "the newest first");
    assert_eq!(ui_v4[0]["content"], ours[1]["content"]);
    let complete = json!({ "messageId": answer, "isComplete": true });
    assert!(ui_v4[0]["annotations"].as_array().unwrap().contains(&complete));
    assert_eq!(roles(&messages("format=ui-v4&order=asc").await), ["user", "assistant"]);

    let openai = messages("format=openai").await;
    assert_eq!(roles(&openai), steps);

    let fullstream = messages("format=fullstream").await;
    let events = fullstream[1]["events"].as_array().unwrap();
    assert_eq!(events.first().unwrap()["type"], "start");
    assert_eq!(events.last().unwrap()["type"], "finish");
}

/// A page of the AI SDK 4 format has as many user messages and final answers as requested, no
/// matter how many placeholders are between them.
#[tokio::test]
async fn pages_of_version_4_have_every_message_once() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    for text in ["help", "time in Lima", "fail", "help"] {
        server.send(&session, text).await;
        watch_until(&server, &session, is_quiet).await;
    }
    let path = format!("/api/sessions/{session}/messages?format=ui-v4");
    let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
    let whole = server.get(&path).await;
    let whole: Vec<String> = whole["messages"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(whole.len(), 8);
    for limit in 1..=5 {
        let (mut met, mut before) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("{path}&limit={limit}{before}")).await;
            met.extend(page["messages"].as_array().unwrap().iter().map(id));
            match page["next"].as_u64() {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
        assert_eq!(met, whole, "in pages of {limit}");
    }
}

/// The messages at a past record equal the messages of that time, in every format.
#[tokio::test]
async fn messages_at_a_record_do_not_change_in_any_format() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let formats = [
        "callboard",
        "contract&status=all",
        "ui",
        "ui-v4",
        "openai",
        "openai-stored",
        "fullstream",
        "agui",
    ];
    let read = async |query: &str| {
        server.get(&format!("/api/sessions/{session}/messages?limit=2&format={query}")).await
    };
    let mut moments = Vec::new();
    for text in ["time in Lima", "fail", "list the files"] {
        server.send(&session, text).await;
        watch_until(&server, &session, is_quiet).await;
        let head = server.get(&format!("/api/sessions/{session}")).await["head"].clone();
        for format in formats {
            moments.push((format!("{format}&at={head}"), read(format).await));
        }
    }
    let (mut n_pages, mut n_earlier) = (0, 0);
    for (query, then) in moments {
        let now = read(&query).await;
        assert_eq!(now, then, "{query}");
        n_pages += 1;
        if let Some(next) = now["next"].as_u64() {
            // Earlier messages are complete, so they have not changed.
            let earlier = format!("{query}&before={next}");
            let (format, _) = query.split_once("&at=").unwrap();
            assert_eq!(read(&earlier).await, read(&format!("{format}&before={next}")).await);
            n_earlier += 1;
        }
    }
    assert!(n_pages == 24 && n_earlier > 8, "{n_pages} pages, {n_earlier} with others before them");

    let events = server.get(&format!("/api/sessions/{session}/events")).await;
    let is_running = |it: &&Value| it["type"] == "tool_running";
    let runs = events["events"].as_array().unwrap().iter().find(is_running).unwrap();
    let then = read(&format!("callboard&at={}", runs["seq"])).await;
    assert_eq!(then["messages"][1]["toolCalls"][0]["state"], "running");
}

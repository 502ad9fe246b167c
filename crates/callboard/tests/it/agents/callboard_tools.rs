//! Callboard's own tools, which know their session and can write to it.

use serde_json::{Value, json};
use transcript::{CallState, Event, Level, PartKind, RunMessage};

use crate::agents::model_agent::{create_session, last_answer};
use crate::support::model::Model;
use crate::support::program::{Home, Server};

/// Returns the notes of an answer in their order.
pub(crate) fn notes(answer: &RunMessage) -> Vec<(Level, &str)> {
    let note = |kind| match kind {
        &PartKind::Notice { level, ref text } => Some((level, text.as_str())),
        _ => None,
    };
    answer.parts.iter().filter_map(|it| note(&it.kind)).collect()
}

fn result_of(answer: &RunMessage, tool: &str) -> Value {
    let call = answer.calls().find(|it| it.name == tool).unwrap();
    assert_eq!(call.state, CallState::Succeeded, "{call:?}");
    let result = call.outcome.as_ref().unwrap().result.as_ref().unwrap();
    serde_json::from_str(&result.whole().unwrap()).unwrap()
}

const AGENTS: &str = "[demo]\npace = \"instant\"\n\
    [[agents]]\nid = \"scribe\"\nkind = \"demo\"\ndescription = \"Writes things down.\"\n\
    [[agents]]\nid = \"lost\"\nkind = \"claude\"\ncommand = [\"./nowhere\"]\n";

#[tokio::test]
async fn agents_list_shows_all_agents_and_marks_the_caller() {
    let home = Home::new(AGENTS);
    let server = home.start();
    let session = create_session(&server).await;
    server.send(&session, "list the agents").await;
    let answer = last_answer(&server, &session).await;
    let agents = result_of(&answer, "agents_list")["agents"].clone();
    let seen: Vec<_> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["id"], it["kind"], it["state"], it["you"]]))
        .collect();
    let expected = [
        json!(["scribe", "demo", "ready", true]),
        json!(["lost", "claude", "unavailable", null]),
        json!(["demo", "demo", "ready", null]),
    ];
    assert_eq!(seen, expected);
    assert_eq!(agents[0]["description"], "Writes things down.");
    assert!(agents[1]["problem"].as_str().unwrap().contains("isn't installed"), "{agents}");
    assert!(answer.content().contains("Writes things down."), "{}", answer.content());
}

#[tokio::test]
async fn an_agent_that_works_in_another_session_is_busy() {
    let mut model = Model::start().await;
    let home = Home::new(&format!(
        "[demo]\npace = \"instant\"\n\
         [[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"small\"\n",
        model.base_url
    ));
    let server = home.start();
    let busy = create_session(&server).await;
    server.send(&busy, "think").await;
    let asked = model.asked().await;
    let state_of_model = async |server: &Server| {
        let (_, session) = server.post("/api/sessions", json!({ "agent": "demo" })).await;
        let session = session["id"].as_str().unwrap();
        server.send(session, "list the agents").await;
        let answer = last_answer(server, session).await;
        let agents = result_of(&answer, "agents_list")["agents"].clone();
        agents[0]["state"].clone()
    };
    assert_eq!(state_of_model(&server).await, "busy");
    asked.call("agents_list", &json!({})).await;
    let asked = model.asked().await;
    let own = asked.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    let own: Value = serde_json::from_str(&own).unwrap();
    assert_eq!(own["agents"][0]["state"], "ready", "busy is who answers somebody else: {own}");
    asked.answer("Done.").await;
    last_answer(&server, &busy).await;
    assert_eq!(state_of_model(&server).await, "ready");
}

/// The note is in the log before the result of the call.
#[tokio::test]
async fn a_note_is_shown_in_the_conversation() {
    let mut model = Model::start().await;
    let home = Home::new(&format!(
        "[[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"small\"\n",
        model.base_url
    ));
    let server = home.start();
    let session = create_session(&server).await;
    server.send(&session, "note it").await;
    let asked = model.asked().await;
    asked.call("callboard_note", &json!({ "text": "Half way.", "level": "error" })).await;
    model.asked().await.answer("Noted.").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(notes(&answer), [(Level::Error, "Half way.")]);
    assert_eq!(result_of(&answer, "callboard_note"), json!({ "noted": true }));
    let log = server.log(&session).await;
    let place = |is_it: fn(&Event) -> bool| log.iter().position(|it| is_it(&it.event)).unwrap();
    let note = place(|it| matches!(it, Event::Notice { .. }));
    assert!(place(|it| matches!(it, Event::ToolRunning { .. })) < note);
    assert!(note < place(|it| matches!(it, Event::ToolResult { .. })));
    assert!(log.iter().all(|it| !matches!(it.event, Event::ToolApprovalRequested { .. })));
}

#[tokio::test]
async fn the_demo_agent_takes_notes() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "note: tea, then cake. And more").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!(notes(&answer), [(Level::Info, "tea, then cake. And more")]);
}

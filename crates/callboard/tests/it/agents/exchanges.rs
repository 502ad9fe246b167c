//! Exchanges between agents: replies arrive, refusals say why, and a stop leaves nothing behind.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{
    CallState, Content, Event, Exchange, ExchangeMode, ExchangeState, Message, Record, RunMessage,
    RunStatus, Transcript, Trigger, UserMessage,
};

use crate::support::log::check_log;
use crate::support::model::Model;
use crate::support::program::{Home, Server};
use crate::support::watcher::{is_quiet, watch_until};

/// Makes messages that name no session go to the latest one, where they can wait for each other.
pub(crate) const LATEST: &str = "exchanges.session = \"latest-or-new\"";

/// Creates a home with demo agents of these names, at this pace.
pub(crate) fn demos(pace: &str, names: &[&str], more: &str) -> Home {
    let agents = names.iter().map(|it| format!("[[agents]]\nid = \"{it}\"\nkind = \"demo\"\n"));
    let agents: String = agents.collect();
    Home::new(&format!("demo.pace = \"{pace}\"\n{more}\n{agents}"))
}

pub(crate) async fn session_of(server: &Server, agent: &str) -> String {
    let (status, session) = server.post("/api/sessions", json!({ "agent": agent })).await;
    assert_eq!(status, StatusCode::CREATED, "{session}");
    session["id"].as_str().unwrap().to_owned()
}

/// Returns whether nothing runs, nothing is queued, and every exchange has ended.
pub(crate) fn is_settled(transcript: &Transcript) -> bool {
    is_quiet(transcript) && transcript.summary.open_exchanges.is_empty()
}

async fn settled(server: &Server, session: &str) -> Transcript {
    let transcript = watch_until(server, session, is_settled).await;
    check_log(&server.log(session).await, |_| false);
    transcript
}

fn answers(transcript: &Transcript) -> Vec<&RunMessage> {
    transcript.messages.iter().filter_map(Message::run).collect()
}

fn user_messages(transcript: &Transcript) -> Vec<&UserMessage> {
    let user_messages = transcript.messages.iter().filter_map(|it| match &it.content {
        Content::User(user_messages) => Some(user_messages),
        _ => None,
    });
    user_messages.collect()
}

fn only_exchange(transcript: &Transcript) -> &Exchange {
    let exchanges: Vec<_> = answers(transcript).iter().flat_map(|it| it.exchanges()).collect();
    assert_eq!(exchanges.len(), 1);
    exchanges[0]
}

fn code(exchange: &Exchange) -> Option<&str> {
    Some(exchange.outcome.as_ref()?.error.as_ref()?.code.as_str())
}

fn peer(exchange: &Exchange) -> String {
    exchange.peer_session_id.as_ref().unwrap().to_string()
}

#[tokio::test]
async fn the_reply_of_another_agent_is_the_result_of_the_call() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    let session = session_of(&server, "a").await;
    server.send(&session, "ask b: time in Paris").await;
    let asker = settled(&server, &session).await;

    let exchange = only_exchange(&asker);
    let answer = answers(&asker)[0];
    let call = answer.calls().next().unwrap();
    assert_eq!(call.state, CallState::Succeeded);
    assert_eq!((exchange.mode, exchange.call_id.as_ref()), (ExchangeMode::Sync, Some(&call.id)));
    assert!(answer.content().contains("In Paris it is"), "{}", answer.content());

    let asked = settled(&server, &peer(exchange)).await;
    let run = answers(&asked)[0];
    assert_eq!((run.trigger, run.exchange_id.as_ref()), (Trigger::Agent, Some(&exchange.id)));
    assert_eq!(exchange.peer_response_id.as_ref(), Some(&run.id));
    let result = exchange.outcome.as_ref().unwrap().result.as_ref().unwrap();
    assert_eq!(result.as_str(), Some(run.content().as_str()));
    let from = user_messages(&asked)[0].from.as_ref().unwrap();
    assert_eq!((from.agent.as_str(), from.depth), ("a", 1));
    assert_eq!((from.session_id.as_str(), &from.exchange_id), (session.as_str(), &exchange.id));
}

#[tokio::test]
async fn an_exchange_opens_a_session_unless_configured_otherwise() {
    for (config, reuses) in [("", false), (LATEST, true)] {
        let home = demos("instant", &["a", "b"], config);
        let server = home.start();
        let (session, of_person) = (session_of(&server, "a").await, session_of(&server, "b").await);
        for city in ["Paris", "Lima"] {
            server.send(&session, &format!("ask b: time in {city}")).await;
            settled(&server, &session).await;
        }
        let asker = settled(&server, &session).await;
        let exchanges = answers(&asker).into_iter().flat_map(RunMessage::exchanges);
        let asked: Vec<String> = exchanges.map(peer).collect();
        let [first, second] = asked.as_slice() else { panic!("two questions: {asked:?}") };
        assert_eq!((*first == of_person, first == second), (reuses, reuses), "{config:?}");
    }
}

#[tokio::test]
async fn an_asynchronous_exchange_ends_with_a_callback() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    let session = session_of(&server, "a").await;
    server.send(&session, "ask b in the background: time in Paris").await;
    let asker =
        watch_until(&server, &session, |it| is_settled(it) && user_messages(it).len() == 2).await;
    let exchange = only_exchange(&asker);
    assert_eq!(exchange.mode, ExchangeMode::Async);

    let [first, second] = answers(&asker)[..] else { panic!("two runs") };
    assert!(first.content().contains("I have asked `b`"), "{}", first.content());
    assert_eq!(
        (second.trigger, second.exchange_id.as_ref()),
        (Trigger::Callback, Some(&exchange.id))
    );
    assert!(second.content().contains("In Paris it is"), "{}", second.content());
    let from = user_messages(&asker)[1].from.as_ref().unwrap();
    assert_eq!((from.agent.as_str(), from.is_answer), ("b", true));

    let log = server.log(&session).await;
    let end = position(&log, |it| matches!(it, Event::AgentCallbackResult { .. }));
    let message = |it: &Event| {
        matches!(it, Event::UserMessage { from: Some(_), .. } | Event::MessageQueued { .. })
    };
    assert_eq!(position(&log, message), end + 1, "told at once, and once");
}

fn position(log: &[Record], is_it: impl Fn(&Event) -> bool) -> usize {
    log.iter().position(|it| is_it(&it.event)).unwrap()
}

#[tokio::test]
async fn exchanges_may_form_a_chain_but_no_cycle() {
    let home = demos("instant", &["a", "b", "c"], LATEST);
    let server = home.start();
    let session = session_of(&server, "a").await;
    server.send(&session, "ask b: ask c: ask a: help").await;
    let a = settled(&server, &session).await;
    let b = settled(&server, &peer(only_exchange(&a))).await;
    let c = settled(&server, &peer(only_exchange(&b))).await;
    let refused = only_exchange(&c);
    assert_eq!(code(refused), Some("agent_cycle"));
    assert_eq!(peer(refused), session);
    assert_eq!(user_messages(&c)[0].from.as_ref().unwrap().depth, 2);
    let answer = answers(&a)[0].content();
    assert!(answer.contains("I could not ask `a`"), "what is wrong is told all the way: {answer}");
}

#[tokio::test]
async fn an_exchange_with_a_busy_agent_is_queued() {
    let home = demos("natural", &["a", "b"], LATEST);
    let server = home.start();
    let (asker, busy) = (session_of(&server, "a").await, session_of(&server, "b").await);
    server.send(&busy, "tell me a story").await;
    server.send(&asker, "ask b: time in Paris").await;
    let is_queued = |it: &Transcript| {
        it.summary.open_exchanges.values().any(|it| it.state == Some(ExchangeState::Queued))
    };
    watch_until(&server, &asker, is_queued).await;
    server.post(&format!("/api/sessions/{busy}/cancel"), json!({})).await;
    // Cancelling holds the queue, so it has to be released.
    server.post(&format!("/api/sessions/{busy}/queue/release"), json!({})).await;
    let transcript = settled(&server, &asker).await;
    assert_eq!(code(only_exchange(&transcript)), None, "it was answered, and never turned async");
    assert_eq!(answers(&transcript).len(), 1);
}

#[tokio::test]
async fn stopping_the_asker_stops_the_agents_it_waits_for() {
    let home = demos("natural", &["a", "b", "c"], "");
    let server = home.start();
    let session = session_of(&server, "a").await;
    server.send(&session, "ask b: ask c: tell me a story").await;
    let works = |it: &Transcript| {
        it.summary.open_exchanges.values().any(|it| it.state == Some(ExchangeState::Running))
    };
    let a = watch_until(&server, &session, works).await;
    let b = watch_until(&server, &peer(only_exchange(&a)), works).await;
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;

    // The cancel request returns after everything has stopped.
    for other in [peer(only_exchange(&a)), peer(only_exchange(&b))] {
        let log = server.log(&other).await;
        check_log(&log, |_| false);
        let transcript = Transcript::replay(&log);
        assert_eq!(answers(&transcript)[0].finish.as_ref().unwrap().status, RunStatus::Cancelled);
    }
    let a = settled(&server, &session).await;
    assert_eq!(code(only_exchange(&a)), Some("agent_cancelled"));
    assert_eq!(answers(&a)[0].calls().next().unwrap().state, CallState::Interrupted);
}

#[tokio::test]
async fn stopping_the_asker_removes_its_queued_message() {
    let home = demos("natural", &["a", "b"], LATEST);
    let server = home.start();
    let (asker, busy) = (session_of(&server, "a").await, session_of(&server, "b").await);
    server.send(&busy, "tell me a story").await;
    server.send(&asker, "ask b: time in Paris").await;
    let queued = |it: &Transcript| it.queue.messages.len() == 1;
    watch_until(&server, &busy, queued).await;
    server.post(&format!("/api/sessions/{asker}/cancel"), json!({})).await;
    let transcript = Transcript::replay(&server.log(&busy).await);
    assert!(transcript.queue.messages.is_empty());
    assert!(transcript.summary.open_run.is_some(), "what it does for others goes on");
}

#[tokio::test]
async fn stopping_the_asker_reports_asynchronous_exchanges() {
    let home = demos("natural", &["a", "b"], "");
    let server = home.start();
    let session = session_of(&server, "a").await;
    // The call awaits an approval, so the run continues until it is stopped.
    server.send(&session, "ask b in the background: run touch made").await;
    let is_asked = |it: &Transcript| !it.summary.open_exchanges.is_empty();
    let a = watch_until(&server, &session, is_asked).await;
    server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
    let log = server.log(&session).await;
    let notice = |it: &Event| matches!(it, Event::Notice { text, .. } if text.contains("in the background: b"));
    position(&log, notice);

    let other = peer(only_exchange(&a));
    let works = |it: &Transcript| it.summary.open_run.is_some();
    watch_until(&server, &other, works).await;
    server.post(&format!("/api/sessions/{other}/cancel"), json!({})).await;
    let called_back = |it: &Transcript| is_settled(it) && user_messages(it).len() == 2;
    let a = watch_until(&server, &session, called_back).await;
    assert_eq!(code(only_exchange(&a)), Some("agent_cancelled"), "a failure is told too");
    assert!(user_messages(&a)[1].text.contains("agent_cancelled"));
}

#[tokio::test]
async fn a_failure_of_the_other_agent_is_reported() {
    let home = demos("instant", &["a", "b"], "");
    let server = home.start();
    let session = session_of(&server, "a").await;
    server.send(&session, "ask b: break").await;
    let transcript = settled(&server, &session).await;
    assert_eq!(code(only_exchange(&transcript)), Some("agent_failed"));
    let call = answers(&transcript)[0].calls().next().unwrap();
    let error = call.outcome.as_ref().unwrap().error.as_ref().unwrap();
    assert_eq!(error.code.as_str(), "agent_failed");
    assert!(error.message.contains("upstream_error"), "{}", error.message);
}

#[tokio::test]
async fn deleting_a_message_or_session_ends_the_exchange() {
    let home = demos("natural", &["a", "b"], LATEST);
    let server = home.start();
    let busy = session_of(&server, "b").await;
    server.send(&busy, "tell me a story").await;
    let (first, second) = (session_of(&server, "a").await, session_of(&server, "a").await);
    server.send(&first, "ask b: time in Paris").await;
    let queued = |n: usize| move |it: &Transcript| it.queue.messages.len() == n;
    let transcript = watch_until(&server, &busy, queued(1)).await;
    let message = &transcript.queue.messages[0].id;
    server.send(&second, "ask b: time in Lima").await;
    watch_until(&server, &busy, queued(2)).await;

    let mut watcher = crate::support::watcher::Watcher::connect(&server).await;
    let frame = json!({ "type": "drop_queued", "sessionId": busy, "messageId": message });
    watcher.send(frame).await;
    let first = settled(&server, &first).await;
    assert_eq!(code(only_exchange(&first)), Some("agent_cancelled"));

    server.request(Method::DELETE, &format!("/api/sessions/{busy}"), None).await;
    let second = settled(&server, &second).await;
    assert_eq!(code(only_exchange(&second)), Some("agent_cancelled"));
}

/// Time that a person takes does not count. Another exchange that times out shows that enough time
/// has passed.
#[tokio::test]
async fn the_timeout_of_an_exchange_excludes_approvals() {
    use ExchangeState::{AwaitingApproval, Running};
    let home = demos("natural", &["a", "b", "c", "d"], "exchanges.timeout_seconds = 2");
    let server = home.start();
    let patient = session_of(&server, "a").await;
    server.send(&patient, "ask b: run touch made").await;
    let is_held_up = |it: &Transcript| {
        let held = Some(AwaitingApproval);
        it.summary.open_exchanges.values().any(|it| it.state == held)
    };
    let a = watch_until(&server, &patient, is_held_up).await;
    let other = peer(only_exchange(&a));

    let impatient = session_of(&server, "c").await;
    server.send(&impatient, "ask d: tell me a story").await;
    let c = settled(&server, &impatient).await;
    assert_eq!(code(only_exchange(&c)), Some("agent_timeout"));
    let d = Transcript::replay(&server.log(&peer(only_exchange(&c))).await);
    assert_eq!(answers(&d)[0].finish.as_ref().unwrap().status, RunStatus::Cancelled);

    let b = Transcript::replay(&server.log(&other).await);
    let call = b.summary.open_approvals.first().unwrap();
    let path = format!("/api/sessions/{other}/calls/{call}/approval");
    server.post(&path, json!({ "decision": "accepted" })).await;
    let a = settled(&server, &patient).await;
    assert_eq!(code(only_exchange(&a)), None, "it had longer than its patience");
    let log = server.log(&patient).await;
    let states = log.iter().filter_map(|it| match it.event {
        Event::AgentProgress { state, .. } => Some(state),
        _ => None,
    });

    assert_eq!(states.collect::<Vec<_>>(), [Running, AwaitingApproval, Running]);
}

/// Starts a model that may call `agents_message`, and a demo agent `d`.
async fn with_model(more: &str) -> (Model, Home, Server) {
    let model = Model::start().await;
    let home = Home::new(&format!(
        "demo.pace = \"instant\"\n{more}\n\
         [[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"small\"\n\
         agents_allow = [\"d\", \"m\", \"gone\", \"nobody\"]\n\
         [[agents]]\nid = \"d\"\nkind = \"demo\"\n\
         [[agents]]\nid = \"secret\"\nkind = \"demo\"\n\
         [[agents]]\nid = \"gone\"\nkind = \"claude\"\ncommand = [\"/nowhere/claude\"]\n",
        model.base_url
    ));
    let server = home.start();
    (model, home, server)
}

/// Calls the tool and returns its result for the model.
async fn try_message(model: &mut Model, arguments: Value) -> Value {
    model.asked().await.call("agents_message", &arguments).await;
    let asked = model.asked().await;
    let result = asked.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    asked.answer("I see.").await;
    serde_json::from_str(&result).unwrap()
}

#[tokio::test]
async fn refusals_have_a_code_in_the_log_and_for_the_model() {
    let (mut model, _home, server) = with_model("exchanges.max_per_run = 1").await;
    let (session, other) = (session_of(&server, "m").await, session_of(&server, "secret").await);
    let cases = [
        (json!({ "agent": "nobody", "text": "hello" }), "agent_not_found"),
        (json!({ "agent": "secret", "text": "hello" }), "agent_forbidden"),
        (json!({ "agent": "gone", "text": "hello" }), "agent_not_installed"),
        (json!({ "agent": "m", "session": session, "text": "hello" }), "agent_self"),
        (json!({ "agent": "d", "session": "latest", "text": "hello" }), "invalid_arguments"),
        (json!({ "agent": "d", "session": other, "text": "hello" }), "invalid_arguments"),
        (json!({ "agent": "d", "session": "no such", "text": "hello" }), "invalid_arguments"),
    ];
    for (n, (arguments, expected)) in cases.into_iter().enumerate() {
        server.send(&session, "try").await;
        let result = try_message(&mut model, arguments.clone()).await;
        assert_eq!(result["error"]["code"], expected, "{arguments}: {result}");
        let transcript = settled(&server, &session).await;
        let exchange = answers(&transcript)[n].exchanges().next();
        // An invalid call is not recorded as an exchange.
        let expected = (arguments["session"] != "no such").then_some(expected);
        assert_eq!(exchange.and_then(code), expected);
    }

    server.send(&session, "two questions").await;
    let question = json!({ "agent": "d", "text": "time in Paris" });
    model.asked().await.call("agents_message", &question).await;
    let result = try_message(&mut model, question).await;
    assert_eq!(result["error"]["code"], "exchange_limit", "{result}");
    settled(&server, &session).await;
}

#[tokio::test]
async fn the_depth_of_exchanges_is_limited() {
    let home = demos("instant", &["a", "b", "c"], "exchanges.max_depth = 1");
    let server = home.start();
    let session = session_of(&server, "a").await;
    server.send(&session, "ask b: ask c: help").await;
    let a = settled(&server, &session).await;
    let b = settled(&server, &peer(only_exchange(&a))).await;
    assert_eq!(code(only_exchange(&b)), Some("agent_depth_limit"));

    // A callback keeps its depth as well.
    server.send(&session, "ask b in the background: help").await;
    let called_back = |it: &Transcript| is_settled(it) && user_messages(it).len() == 3;
    let a = watch_until(&server, &session, called_back).await;
    assert_eq!(user_messages(&a)[2].from.as_ref().unwrap().depth, 1);
}

#[tokio::test]
async fn queued_exchanges_are_limited() {
    let home = demos("natural", &["a", "b"], &format!("exchanges.max_queued = 1\n{LATEST}"));
    let server = home.start();
    let (asker, busy) = (session_of(&server, "a").await, session_of(&server, "b").await);
    server.send(&busy, "tell me a story").await;
    server.send(&asker, "ask b in the background: help").await;
    watch_until(&server, &busy, |it| it.queue.messages.len() == 1).await;
    let second = session_of(&server, "a").await;
    server.send(&second, "ask b: help").await;
    let second = settled(&server, &second).await;
    assert_eq!(code(only_exchange(&second)), Some("queue_full"));
}

#[tokio::test]
async fn a_model_is_told_the_sender() {
    let (mut model, _home, server) = with_model("").await;
    let session = session_of(&server, "d").await;
    server.send(&session, "ask m: what is new?").await;
    let asked = model.asked().await;
    let question = asked.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert_eq!(question, "From the agent 'd', which gets your answer:\n\nwhat is new?");
    asked
        .call(
            "agents_message",
            &json!({ "agent": "d", "session": "new", "mode": "async", "text": "help" }),
        )
        .await;
    let asked = model.asked().await;
    let result = asked.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    let result: Value = serde_json::from_str(&result).unwrap();
    asked.answer("Nothing yet.").await;

    let asked = model.asked().await;
    let callback = asked.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    let id = result["exchangeId"].as_str().unwrap();
    let heading = format!("From the agent 'd', about exchange {id}:\n\n");
    assert!(callback.starts_with(&heading), "{callback}");
    asked.answer("Now I know.").await;
    let transcript = settled(&server, &session).await;
    assert!(answers(&transcript)[0].content().contains("Nothing yet."));
}

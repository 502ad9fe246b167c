//! Agents message each other while people stop them, delete messages, and the server is killed:
//! nothing is lost, nothing runs twice, and every exchange ends.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use serde_json::json;
use transcript::{
    Event, ExchangeId, ExchangeMode, Message, Record, RunMessage, RunStatus, Seq, Transcript,
    Trigger,
};

use crate::agents::exchanges::{LATEST, demos, is_settled, session_of};
use crate::support::log::check_log;
use crate::support::program::Server;
use crate::support::random_values::Random;
use crate::support::watcher::{Watcher, as_record, watch_until};

const AGENTS: [&str; 4] = ["a", "b", "c", "d"];
const ROUNDS: usize = 12;
const SEED: u64 = 20_261_116;

/// Messages that were accepted from people: session and message.
type Accepted = BTreeSet<(String, String)>;

#[tokio::test]
#[expect(clippy::print_stderr, reason = "the seed is part of a failure")]
async fn every_exchange_ends() {
    let home = demos("natural", &AGENTS, LATEST);
    let mut random = Random::new(SEED);
    let mut accepted = Accepted::new();
    let server = home.start();
    let mut sessions = Vec::new();
    for agent in AGENTS {
        sessions.push(session_of(&server, agent).await);
    }
    server.kill();
    for round in 0..ROUNDS {
        let server = home.start();
        send_and_stop(&server, &sessions, &mut random, &mut accepted).await;
        // Stops the server in an orderly way, or kills it.
        if random.below(4) == 0 {
            drop(server.stop())
        } else {
            server.kill()
        }
        eprintln!("seed {SEED}, round {round}");
    }
    let server = home.start();
    // New messages still work after all of this.
    for (session, text) in
        sessions.iter().zip(["ask b: ask c: time in Rome", "ask c in the background: time in Lima"])
    {
        accepted.insert((session.clone(), server.send(session, text).await));
    }
    check(&let_all_end(&server).await, &accepted);
}

/// Sends messages and interferes in random sessions until enough records have arrived or all
/// sessions are idle.
async fn send_and_stop(
    server: &Server,
    sessions: &[String],
    random: &mut Random,
    accepted: &mut Accepted,
) {
    let mut watcher = Watcher::connect(server).await;
    for session in sessions {
        watcher.subscribe(session, Seq(0), true).await;
        watcher.until("caught_up").await;
    }
    for _ in 0..2 + random.below(3) {
        let session = &sessions[random.below(sessions.len())];
        let text = sentence(random);
        accepted.insert((session.clone(), server.send(session, &text).await));
    }
    let mut left = 1 + random.below(120);
    let act_at = random.below(left);
    let mut rest = pin!(all_rest(server, sessions));
    while left > 0 {
        let frame = tokio::select! {
            frame = watcher.next() => frame.expect("the connection should be open"),
            () = &mut rest => return,
        };
        let Some(record) = as_record(&frame) else { continue };
        left -= 1;
        if left == act_at {
            interfere(server, record.session_id.as_str(), random).await;
        }
    }
}

async fn all_rest(server: &Server, sessions: &[String]) {
    let is_at_rest = |it: &Transcript| {
        let summary = &it.summary;
        let has_work = summary.open_run.is_some() || summary.unanswered;
        let waits = it.queue.messages.iter().any(|it| !it.held);
        !has_work && !waits && summary.open_exchanges.is_empty()
    };
    for session in sessions {
        watch_until(server, session, is_at_rest).await;
    }
}

fn sentence(random: &mut Random) -> String {
    let mut any = || AGENTS[random.below(AGENTS.len())];
    let (first, second) = (any(), any());
    match random.below(6) {
        0 => "time in Oslo".to_owned(),
        1 | 2 => format!("ask {first}: time in Paris"),
        3 | 4 => format!("ask {first} in the background: time in Lima"),
        _ => format!("ask {first}: ask {second}: time in Rome"),
    }
}

/// Cancels a run, deletes a queued message, or does nothing.
async fn interfere(server: &Server, session: &str, random: &mut Random) {
    let queued = Transcript::replay(&server.log(session).await).queue.messages;
    match (random.below(3), queued.first()) {
        (0, Some(message)) => {
            let mut watcher = Watcher::connect(server).await;
            let frame =
                json!({ "type": "drop_queued", "sessionId": session, "messageId": message.id });
            watcher.send(frame).await;
        }
        (1, _) => {
            server.post(&format!("/api/sessions/{session}/cancel"), json!({})).await;
        }
        _ => (),
    }
}

/// Waits until all sessions are idle, including those that agents have made. Returns their logs.
async fn let_all_end(server: &Server) -> BTreeMap<String, Vec<Record>> {
    let mut logs = BTreeMap::new();
    loop {
        let listed = server.get("/api/sessions?limit=1000").await;
        let ids =
            listed["sessions"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        let before: Vec<usize> = logs.values().map(Vec::len).collect();
        for id in ids {
            // Messages that a cancel has held need a release.
            server.post(&format!("/api/sessions/{id}/queue/release"), json!({})).await;
            watch_until(server, &id, is_settled).await;
            let log = server.log(&id).await;
            logs.insert(id, log);
        }
        // An idle session may have been called back meanwhile.
        if before == logs.values().map(Vec::len).collect::<Vec<_>>() {
            return logs;
        }
    }
}

fn check(logs: &BTreeMap<String, Vec<Record>>, accepted: &Accepted) {
    for (session, message) in accepted {
        let n_messages = count(
            &logs[session],
            |it| matches!(it, Event::UserMessage { message_id, .. } if message_id.as_str() == message),
        );
        let dropped = count(
            &logs[session],
            |it| matches!(it, Event::MessageDropped { message_id, .. } if message_id.as_str() == message),
        );
        assert_eq!(n_messages + dropped, 1, "message {message} of {session}");
    }
    let mut kinds = BTreeSet::new();
    for (session, log) in logs {
        check_log(log, |_| false);
        check_order(log);
        for record in log {
            let Event::AgentMessage { exchange_id, mode, peer_session_id, .. } = &record.event
            else {
                continue;
            };
            let peer = peer_session_id.as_ref().and_then(|it| logs.get(it.as_str()));
            let kind = check_exchange(log, peer, exchange_id, *mode);
            kinds.insert(format!("{mode:?} {kind}"));
        }
        check_askers(logs, session);
    }
    let seen = |kind: &str| assert!(kinds.contains(kind), "{kind} was not among {kinds:?}");
    ["Sync answered", "Async answered"].into_iter().for_each(seen);
}

fn count(log: &[Record], is_it: impl Fn(&Event) -> bool) -> usize {
    log.iter().filter(|it| is_it(&it.event)).count()
}

/// Checks that messages start in the order of the queue. Held messages are skipped.
fn check_order(log: &[Record]) {
    let mut transcript = Transcript::default();
    for record in log {
        if let Event::MessageDequeued { message_id } = &record.event {
            let next = transcript.queue.next().map(|it| &it.id);
            assert_eq!(next, Some(message_id), "another order");
        }
        transcript.apply(record);
    }
}

/// Checks how an exchange ended, which both logs must agree on. Returns its kind of end.
fn check_exchange(
    log: &[Record],
    peer: Option<&Vec<Record>>,
    id: &ExchangeId,
    mode: ExchangeMode,
) -> String {
    let transcript = Transcript::replay(log);
    let answers = transcript.messages.iter().filter_map(Message::run);
    let exchange = answers.flat_map(RunMessage::exchanges).find(|it| it.id == *id).unwrap();
    let ends = count(
        log,
        |it| matches!(it, Event::AgentCallbackResult { exchange_id, .. } if exchange_id == id),
    );
    assert_eq!(ends, 1, "exchange {id}");
    let outcome = exchange.outcome.as_ref().unwrap();
    let code = outcome.error.as_ref().map(|it| it.code.as_str().to_owned());
    let was_sent = peer.is_some_and(|it| !questions(it, id).is_empty());
    // A refused exchange has no callback.
    let is_called_back = mode == ExchangeMode::Async && !is_refused(log, id);
    assert_eq!(callbacks(log, id), usize::from(is_called_back), "callbacks of {id}, {code:?}");
    let Some(peer) = peer.filter(|_| was_sent) else {
        assert!(!outcome.ok);
        return code.unwrap();
    };
    assert_eq!(questions(peer, id).len(), 1, "the message of {id} is there once");
    let peer = Transcript::replay(peer);
    let run = peer.message(id.as_str()).and_then(Message::run);
    let completed = run.filter(|it| it.finish.as_ref().unwrap().status == RunStatus::Completed);
    let result = outcome.result.as_ref().and_then(|it| it.as_str());
    if let Some(result) = result {
        assert_eq!(completed.map(RunMessage::content).as_deref(), Some(result));
    }
    if mode == ExchangeMode::Async {
        assert_eq!(completed.is_some(), outcome.ok, "an answer that came is told");
    }
    code.unwrap_or_else(|| "answered".to_owned())
}

/// Returns whether the exchange ended immediately after it began.
fn is_refused(log: &[Record], id: &ExchangeId) -> bool {
    let is_it = |it: &&[Record]| {
        matches!((&it[0].event, &it[1].event), (
            Event::AgentMessage { exchange_id: opened, .. },
            Event::AgentCallbackResult { exchange_id: ended, .. },
        ) if opened == id && ended == id)
    };
    log.windows(2).any(|it| is_it(&it))
}

fn questions<'a>(log: &'a [Record], id: &ExchangeId) -> BTreeSet<&'a str> {
    let messages = log.iter().filter_map(|it| match &it.event {
        Event::UserMessage { message_id, from: Some(from), .. }
        | Event::MessageQueued { message_id, from: Some(from), .. }
            if from.exchange_id == *id && !from.is_answer =>
        {
            Some(message_id.as_str())
        }
        _ => None,
    });
    messages.collect()
}

fn callbacks(log: &[Record], id: &ExchangeId) -> usize {
    let messages = log.iter().filter_map(|it| match &it.event {
        Event::UserMessage { message_id, from: Some(from), .. }
        | Event::MessageQueued { message_id, from: Some(from), .. }
            if from.exchange_id == *id && from.is_answer =>
        {
            Some(message_id)
        }
        _ => None,
    });
    messages.collect::<BTreeSet<_>>().len()
}

/// Checks that every exchange that an agent answered has exactly one asker.
fn check_askers(logs: &BTreeMap<String, Vec<Record>>, session: &str) {
    let transcript = Transcript::replay(&logs[session]);
    for answer in transcript.messages.iter().filter_map(Message::run) {
        let Some(id) = answer.exchange_id.as_ref().filter(|_| answer.trigger == Trigger::Agent)
        else {
            continue;
        };
        assert_eq!(answer.id.as_str(), id.as_str());
        let asked = logs.values().filter(|log| {
            count(
                log,
                |it| matches!(it, Event::AgentMessage { exchange_id, .. } if exchange_id == id),
            ) > 0
        });
        assert_eq!(asked.count(), 1, "run {id} answers nobody's question");
    }
}

//! A stream folded by a client is the message that is kept, and the strictest client of each version
//! takes every chunk of it.

mod client;
mod converted;
mod imports;
mod requests;
mod vectors;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::Value;
use testkit::logs::any_log;
use transcript::{CallState, Decision, Event, Record, ResponseId};

use self::client::{Client, Status};
use super::*;
use crate::tests::logs::{corpus, read, sound_log};
use crate::tests::{finished_runs, whole};

/// How many records clients may miss before they ask again.
const LATER: [usize; 5] = [0, 1, 2, 5, 20];
const PROFILES: [Profile; 3] = [Profile::V5, Profile::V6, Profile::V7];

fn kept(log: &[Record], run: &ResponseId, profile: Profile) -> Value {
    let transcript = whole(log);
    let file_url = |file: &Attachment| format!("/api/blobs/{}", file.blob);
    message(transcript.message(run.as_str()).unwrap(), profile, &file_url).unwrap()
}

/// A run as its client gets it: up to the cut in one go, then record by record. The client decides what
/// it was asked when the log says so, and asks again when so many more records are there.
struct Way {
    cut: usize,
    later: usize,
}

fn received(log: &[Record], run: &ResponseId, profile: Profile, way: &Way) -> Client {
    let mut stream = Stream::new(run.clone(), profile);
    let mut client = Client::new(profile);
    client.take(stream.replay(&log[..way.cut]));
    let mut n_sent = way.cut;
    while n_sent < log.len() && client.status != Status::Failed {
        let n_more = if stream.is_over() { 1 + way.later } else { 1 };
        let until = log.len().min(n_sent + n_more);
        let new = &log[n_sent..until];
        new.iter().for_each(|record| decide(&mut client, record));
        let chunks = match stream.is_over() {
            false => stream.replay(new),
            true => {
                stream = Stream::new(run.clone(), profile);
                stream.replay_unknown(&log[..until], &known(&client))
            }
        };
        n_sent = until;
        let has_news = !chunks.is_empty();
        client.take(chunks);
        assert!(!has_news || stream.is_over() == (client.status != Status::Streaming));
    }
    client
}

fn live(log: &[Record], run: &ResponseId, profile: Profile, later: usize) -> Client {
    received(log, run, profile, &Way { cut: 0, later })
}

fn replayed(log: &[Record], cut: usize, run: &ResponseId, profile: Profile) -> Client {
    received(log, run, profile, &Way { cut, later: cut % 3 })
}

fn decide(client: &mut Client, record: &Record) {
    if let Event::ToolApprovalResolved { call_id, decision, feedback, .. } = &record.event {
        client.decide(call_id.as_str(), *decision == Decision::Accepted, feedback.as_deref());
    }
}

/// Returns the parts that the client's next request shows it to have.
fn known(client: &Client) -> crate::incoming::Known {
    request(&serde_json::json!({ "messages": [client.message()] })).unwrap().known
}

/// A refusal that the client was not asked about is an error to it, and of an approval it knows no
/// more than its own decision.
fn but_for_approvals(mut message: Value, answer: &RunMessage) -> Value {
    for part in message["parts"].as_array_mut().unwrap() {
        let Some(id) = part["toolCallId"].as_str().map(str::to_owned) else { continue };
        let is_refused = |it: &Call| {
            it.state == CallState::Denied
                || call::resolution(it).is_some_and(|it| it.decision != Decision::Accepted)
        };
        let is_denied = answer.calls().any(|it| it.id.as_str() == id && is_refused(it));
        let fields = part.as_object_mut().unwrap();
        fields.shift_remove("approval");
        if is_denied {
            fields.shift_remove("state");
            fields.shift_remove("errorText");
        }
    }
    message
}

fn check_law(log: &[Record]) {
    for (run, answer) in finished_runs(log) {
        for profile in PROFILES {
            let kept = kept(log, &run, profile);
            let kept = but_for_approvals(kept, &answer);
            for later in LATER {
                let received = live(log, &run, profile, later).message();
                assert_eq!(but_for_approvals(received, &answer), kept, "{run} {profile:?} {later}");
            }
        }
    }
}

fn check_replays(log: &[Record], cuts: impl Iterator<Item = usize> + Clone) {
    for (run, answer) in finished_runs(log) {
        for profile in PROFILES {
            let kept = but_for_approvals(kept(log, &run, profile), &answer);
            for cut in cuts.clone() {
                let received = replayed(log, cut, &run, profile).message();
                assert_eq!(
                    but_for_approvals(received, &answer),
                    kept,
                    "{run} {profile:?} cut at {cut}"
                );
            }
        }
    }
}

#[test]
fn a_conversation_streamed_is_the_conversation_kept() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_law(&log);
        check_replays(&log, 0..=log.len());
    }
}

/// A log that is sent in one piece gives the newest client everything, including approvals.
#[test]
fn the_newest_client_gets_finished_runs_as_they_are_kept() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        for (run, _) in finished_runs(&log) {
            for profile in [Profile::V5, Profile::V7] {
                let received = replayed(&log, log.len(), &run, profile).message();
                assert_eq!(received, kept(&log, &run, profile), "{run}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_random_run_streamed_is_the_run_kept(log in sound_log(60)) {
        check_law(&log);
        check_replays(&log, (0..=log.len()).step_by(7));
    }

    /// Order and fields, whatever the log holds: the client panics at what it cannot take.
    #[test]
    fn the_strictest_client_takes_any_log(log in any_log(60)) {
        for run in ["r1", "r2"].map(ResponseId::new) {
            for profile in PROFILES {
                LATER.iter().for_each(|later| drop(live(&log, &run, profile, *later)));
                for cut in (0..=log.len()).step_by(9) {
                    replayed(&log, cut, &run, profile);
                }
            }
        }
    }
}

const ASKS: &str = r#"
    r1 {"type":"run_start","agent":"demo","model":"m","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"text_delta","partId":"p0","delta":"Let me "}
    r1 {"type":"text_done","partId":"p0","text":"Let me look."}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"rm","executor":"server"}
    r1 {"type":"tool_arguments_delta","callId":"c1","delta":"{\"p\":"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":\"/x\"}","validation":"pending"}
    r1 {"type":"step_finish","index":0,"finishReason":"tool_calls"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
    r1 {"type":"tool_approval_resolved","callId":"c1","decision":"rejected","feedback":"not today","by":"user"}
    r1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":false,"error":{"code":"tool_denied","message":"not today"}}
    r1 {"type":"step_start","index":1}
    r1 {"type":"text_done","partId":"p1","text":"All right."}
    r1 {"type":"step_finish","index":1,"finishReason":"stop"}
    r1 {"type":"run_finish","status":"completed","durationMs":5}
"#;

#[test]
fn an_approval_takes_two_responses() {
    let (log, run) = (read(ASKS), ResponseId::new("r1"));
    let mut stream = Stream::new(run.clone(), Profile::V6);
    let mut client = Client::new(Profile::V6);
    let mut received: Vec<Value> = log.iter().flat_map(|record| stream.apply(record)).collect();
    client.take(received.clone());
    client.decide("c1", false, Some("not today"));
    let mut stream = Stream::new(run, Profile::V6);
    received.extend(stream.replay_unknown(&log, &known(&client)));
    let lines: String = received.iter().map(|chunk| format!("{chunk}\n")).collect();
    expect![[r#"
        {"type":"start","messageId":"r1","messageMetadata":{"createdAt":"2023-11-14T22:13:20.100Z","agent":"demo","model":"m"}}
        {"type":"start-step"}
        {"type":"text-start","id":"p0"}
        {"type":"text-delta","id":"p0","delta":"Let me "}
        {"type":"text-delta","id":"p0","delta":"look."}
        {"type":"text-end","id":"p0"}
        {"type":"tool-input-start","toolCallId":"c1","toolName":"rm"}
        {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{\"p\":"}
        {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"\"/x\"}"}
        {"type":"tool-input-available","toolCallId":"c1","toolName":"rm","input":{"p":"/x"}}
        {"type":"tool-approval-request","approvalId":"approval_c1","toolCallId":"c1"}
        {"type":"finish-step"}
        {"type":"finish","finishReason":"tool-calls"}
        {"type":"start","messageId":"r1","messageMetadata":{"createdAt":"2023-11-14T22:13:20.100Z","agent":"demo","model":"m"}}
        {"type":"tool-output-denied","toolCallId":"c1"}
        {"type":"start-step"}
        {"type":"text-start","id":"p1"}
        {"type":"text-delta","id":"p1","delta":"All right."}
        {"type":"text-end","id":"p1"}
        {"type":"finish-step"}
        {"type":"finish","finishReason":"stop","messageMetadata":{"status":"completed","finishReason":"stop","durationMs":5}}
    "#]].assert_eq(&lines);
    let run = ResponseId::new("r1");
    assert_eq!(live(&log, &run, Profile::V6, 0).message(), kept(&log, &run, Profile::V6));
}

#[test]
fn what_is_kept_of_an_approval() {
    let log = read(ASKS);
    let run = ResponseId::new("r1");
    let parts = |cut: usize, profile| kept(&log[..cut], &run, profile)["parts"][2].to_string();
    expect![[r#"{"type":"tool-rm","toolCallId":"c1","state":"input-streaming"}"#]]
        .assert_eq(&parts(6, Profile::V6));
    expect![[r#"{"type":"tool-rm","toolCallId":"c1","state":"approval-requested","input":{"p":"/x"},"approval":{"id":"approval_c1"}}"#]].assert_eq(&parts(9, Profile::V6));
    expect![[r#"{"type":"tool-rm","toolCallId":"c1","state":"approval-responded","input":{"p":"/x"},"approval":{"id":"approval_c1","approved":false,"reason":"not today"}}"#]].assert_eq(&parts(10, Profile::V6));
    expect![[r#"{"type":"tool-rm","toolCallId":"c1","state":"output-denied","input":{"p":"/x"},"approval":{"id":"approval_c1","approved":false,"reason":"not today"}}"#]].assert_eq(&parts(15, Profile::V6));
    expect![[r#"{"type":"tool-rm","toolCallId":"c1","errorText":"not today","state":"output-error","input":{"p":"/x"}}"#]].assert_eq(&parts(15, Profile::V5));
}

#[test]
fn user_message_with_a_file() {
    let log = read(
        r#"- {"type":"user_message","messageId":"m1","text":"look","attachments":[{"blob":"b3","name":"a.png","mediaType":"image/png","size":9}]}"#,
    );
    expect![[r#"{"id":"m1","role":"user","metadata":{"createdAt":"2023-11-14T22:13:20.100Z"},"parts":[{"type":"file","mediaType":"image/png","filename":"a.png","url":"/api/blobs/b3"},{"type":"text","text":"look"}]}"#]].assert_eq(&kept(&log, &ResponseId::new("m1"), Profile::V6).to_string());
}

#[test]
fn how_a_run_ends() {
    let end = |finish: &str, profile| {
        let log = format!(
            r#"r1 {{"type":"run_start","agent":"demo","trigger":"user"}}
               r1 {{"type":"step_start","index":0}}
               r1 {{"type":"step_finish","index":0,"finishReason":"end_turn"}}
               r1 {{"type":"output_cancelled","reason":"timeout"}}
               r1 {{"type":"run_finish",{finish}}}"#
        );
        let mut stream = Stream::new(ResponseId::new("r1"), profile);
        let chunks: Vec<Value> = read(&log).iter().flat_map(|it| stream.apply(it)).collect();
        Value::from(chunks[3..].to_vec()).to_string() + "\n"
    };
    let ends = [
        end(r#""status":"completed""#, Profile::V5),
        end(r#""status":"completed""#, Profile::V6),
        end(r#""status":"failed","error":{"code":"upstream_error","message":"gone"}"#, Profile::V6),
        end(r#""status":"cancelled""#, Profile::V6),
        end(r#""status":"cancelled""#, Profile::V7),
    ];
    expect![[r#"
        [{"type":"finish","messageMetadata":{"status":"completed","finishReason":"other"}}]
        [{"type":"finish","finishReason":"other","messageMetadata":{"status":"completed","finishReason":"other"}}]
        [{"type":"message-metadata","messageMetadata":{"status":"failed","finishReason":"other","error":{"code":"upstream_error","message":"gone"}}},{"type":"error","errorText":"gone"}]
        [{"type":"message-metadata","messageMetadata":{"status":"cancelled","finishReason":"other"}},{"type":"abort"}]
        [{"type":"message-metadata","messageMetadata":{"status":"cancelled","finishReason":"other"}},{"type":"abort","reason":"timeout"}]
    "#]].assert_eq(&ends.concat());
}

/// The model calls a tool that needs a yes, and one of the client's.
const PAUSES: &str = r#"
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"rm","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{}","validation":"pending"}
    r1 {"type":"tool_call_start","callId":"c2","toolName":"pick","executor":"client"}
    r1 {"type":"tool_arguments_done","callId":"c2","arguments":"{}","validation":"not_required"}
    r1 {"type":"tool_running","callId":"c2"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
    r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","by":"user"}
    r1 {"type":"tool_running","callId":"c1"}
    r1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":true,"result":1}
    r1 {"type":"tool_result","callId":"c2","toolName":"pick","ok":true,"result":"red"}
    r1 {"type":"step_finish","index":0,"finishReason":"tool_calls"}
    r1 {"type":"run_finish","status":"completed"}
"#;

/// After which records the response is over, and its last chunk.
fn pauses(profile: Profile) -> Vec<String> {
    let (log, run) = (read(PAUSES), ResponseId::new("r1"));
    let mut stream = Stream::new(run.clone(), profile);
    let mut client = Client::new(profile);
    let mut pauses = Vec::new();
    for (idx, record) in log.iter().enumerate() {
        let received = match stream.is_over() {
            false => stream.apply(record),
            true => {
                stream = Stream::new(run.clone(), profile);
                stream.replay_unknown(&log[..=idx], &known(&client))
            }
        };
        if stream.is_over() {
            let last = received.last().map(Value::to_string).unwrap_or_default();
            pauses.push(format!("{} {last}", record.seq));
        }
        client.take(received);
    }
    pauses
}

#[test]
fn a_response_ends_where_it_is_the_clients_turn() {
    let shown = |profile| pauses(profile).join("\n");
    expect![[r#"
        8 {"type":"finish","finishReason":"tool-calls"}
        11 {"type":"finish","finishReason":"tool-calls"}
        14 {"type":"finish","finishReason":"tool-calls","messageMetadata":{"status":"completed","finishReason":"tool-calls"}}"#]].assert_eq(&shown(Profile::V6));
    // It cannot be asked, so the response goes on until only its own tool is left.
    expect![[r#"
        11 {"type":"finish"}
        14 {"type":"finish","messageMetadata":{"status":"completed","finishReason":"tool-calls"}}"#]].assert_eq(&shown(Profile::V5));
}

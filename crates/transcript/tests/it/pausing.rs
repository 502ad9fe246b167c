//! A run that only waits for a person or a client's tools stays open when the server stops.

use proptest::prelude::*;

use crate::examples::parse;
use testkit::logs::any_log;
use transcript::*;

fn apply(answer: &RunMessage, events: &[Event]) -> RunMessage {
    let mut answer = answer.clone();
    for event in events {
        let run = Some(answer.id.clone());
        answer.apply(&Record::new(Seq(1000), Millis(9), SessionId::new("s"), run, event.clone()));
    }
    answer
}

fn waiting(answer: &RunMessage) -> Vec<CallId> {
    let waits = |it: &&Call| it.waits_for_approval() || it.waits_for_client();
    answer.calls().filter(waits).map(|it| it.id.clone()).collect()
}

/// Returns whether the server or the agent runs the call, so that it stops with the server.
fn runs_here(call: &Call) -> bool {
    call.is_open() && call.running_since.is_some() && !call.waits_for_client()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_paused_run_only_waits(log in any_log(60)) {
        let transcript = Transcript::replay(&log);
        for answer in transcript.messages.iter().filter_map(Message::run) {
            let Some(events) = pause(answer, Millis(9)) else { continue };
            let ran: Vec<_> = answer
                .calls()
                .filter(|it| runs_here(it))
                .map(|it| it.id.clone())
                .collect();
            let ended = events.iter().filter_map(|it| match it {
                Event::ToolResult { call_id, ok: false, .. } => Some(call_id.clone()),
                Event::AgentCallbackResult { ok: false, .. } => None,
                other => panic!("unexpected event for an open run: {other:?}"),
            });
            prop_assert!(ended.eq(ran), "running calls are interrupted");
            let paused = apply(answer, &events);
            let is_awaited = |it: &Exchange| it.outcome.is_none() && it.mode == ExchangeMode::Sync;
            prop_assert!(!paused.exchanges().any(is_awaited), "awaited exchanges are closed");
            prop_assert!(paused.is_open() && paused.cancel_requested.is_none());
            let still: Vec<_> =
                waiting(answer).into_iter().filter(|it| paused.call(it).unwrap().is_open()).collect();
            prop_assert_eq!(waiting(&paused), still);
            prop_assert!(!paused.calls().any(runs_here));
            prop_assert!(paused.calls().all(|it| !it.is_open() || it.arguments_done));
            let closing = close(&paused, &Ending::Restarted, Millis(9));
            let closes_text = |it: &Event| matches!(it, Event::TextDone { .. } | Event::ThinkingDone { .. });
            prop_assert!(!closing.iter().any(closes_text), "no text was open");
        }
    }
}

/// Pauses a run with a call that awaits approval, followed by these lines.
fn pause_after(lines: &str) -> Option<Vec<Event>> {
    let log = parse(&format!(
        "
        step_start {{'index':0}}
        text_done {{'partId':'p','text':'May I?'}}
        tool_call_start {{'callId':'a','toolName':'shell','executor':'server'}}
        tool_arguments_done {{'callId':'a','arguments':'{{}}','validation':'pending'}}
        tool_approval_requested {{'callId':'a','options':{{'scopes':['once'],'canEdit':true}}}}
        {lines}"
    ));
    pause(&RunMessage::replay(&ResponseId::new("r"), &log), Millis(100))
}

#[test]
fn a_waiting_run_stays_unchanged() {
    assert_eq!(pause_after(""), Some(vec![]));
    assert_eq!(pause_after("step_finish {'index':0,'finishReason':'tool-calls'}"), Some(vec![]));
}

#[test]
fn a_call_that_the_client_runs_stays_open() {
    let client = "
        tool_call_start {'callId':'c','toolName':'pick','executor':'client'}
        tool_arguments_done {'callId':'c','arguments':'{}','validation':'not_required'}
        tool_running {'callId':'c'}";
    assert_eq!(pause_after(client), Some(vec![]));
    let resolved = "tool_approval_resolved {'callId':'a','decision':'rejected','by':'user'}
        tool_result {'callId':'a','toolName':'shell','ok':false}";
    assert_eq!(
        pause_after(&format!("{client}\n{resolved}")),
        Some(vec![]),
        "with no other open call"
    );
}

#[test]
fn a_running_call_is_interrupted() {
    let events = pause_after(
        "
        tool_call_start {'callId':'d','toolName':'time','executor':'server'}
        tool_running {'callId':'d'}
        tool_result {'callId':'d','toolName':'time','ok':true}
        tool_call_start {'callId':'b','toolName':'time','executor':'server'}
        tool_arguments_done {'callId':'b','arguments':'{}','validation':'not_required'}
        tool_running {'callId':'b'}
        tool_call_start {'callId':'c','toolName':'time','executor':'server'}
        tool_arguments_done {'callId':'c','arguments':'{}','validation':'not_required'}",
    );
    let events = events.unwrap();
    let [Event::ToolResult { call_id, error: Some(error), duration_ms, .. }] = &events[..] else {
        panic!("one result: {events:?}");
    };
    assert_eq!((call_id.as_str(), &error.code), ("b", &ErrorCode::ToolInterrupted));
    assert_eq!(*duration_ms, Some(100 - 11), "counted from its start");
}

#[test]
fn a_run_that_does_more_than_wait_is_not_paused() {
    for lines in [
        "tool_approval_resolved {'callId':'a','decision':'accepted','by':'user'}",
        "tool_approval_resolved {'callId':'a','decision':'rejected','by':'user'}",
        "text_start {'partId':'q'}",
        "thinking_start {'partId':'q'}",
        "tool_call_start {'callId':'b','toolName':'time','executor':'server'}",
        "cancel_requested {'by':'user'}",
        "run_finish {'status':'completed'}",
    ] {
        assert_eq!(pause_after(lines), None, "{lines}");
    }
}

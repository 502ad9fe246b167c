//! Properties of every log, however broken.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;
use testkit::logs::{any_log, started_log};
use transcript::stream::{closed_by, continued_by, merge};
use transcript::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_record_counts_once(log in any_log(60)) {
        let once = Transcript::replay(&log);
        let mut twice = Transcript::default();
        for record in &log {
            twice.apply(record);
            prop_assert_eq!(twice.apply(record), Change::None);
        }
        twice.extend(&log);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn every_prefix_is_consistent(log in any_log(60)) {
        let mut transcript = Transcript::default();
        for record in &log {
            let before = transcript.clone();
            let change = transcript.apply(record);
            check_consistent(&transcript);
            check_change_covers(&before, &transcript, &change);
        }
    }

    #[test]
    fn no_text_is_lost(log in any_log(60)) {
        let transcript = Transcript::replay(&log);
        prop_assert_eq!(texts_shown(&transcript), texts_in_log(&log));
    }

    #[test]
    fn a_message_depends_on_its_own_run_alone(log in any_log(60)) {
        let transcript = Transcript::replay(&log);
        for answer in transcript.messages.iter().filter_map(Message::run) {
            let own = log.iter().filter(|record| {
                record.response_id.as_ref() == Some(&answer.id) && !record.event.is_session_event()
            });
            prop_assert_eq!(&RunMessage::replay(&answer.id, own), answer);
        }
    }

    #[test]
    fn a_call_that_awaits_approval_does_not_run(log in any_log(60)) {
        for answer in Transcript::replay(&log).messages.iter().filter_map(Message::run) {
            for call in answer.calls().filter(|it| it.waits_for_approval()) {
                prop_assert_eq!(call.running_since, None);
                prop_assert_ne!(call.state, CallState::Running);
            }
        }
    }

    #[test]
    fn closing_ends_everything_once(log in any_log(60), now in 0..5000u64) {
        let endings = [
            Ending::completed(),
            Ending::Completed { spent: RunCost { usage: None, cost: Some(9.0) } },
            Ending::failed(ErrorInfo::new(ErrorCode::AgentExited, "gone")),
            Ending::cancelled(),
            Ending::TimedOut,
            Ending::Restarted,
            Ending::Imported,
        ];
        let transcript = Transcript::replay(&log);
        for answer in transcript.messages.iter().filter_map(Message::run) {
            for ending in &endings {
                let events = close(answer, ending, answer.started_at.plus(now));
                check_closed(answer, ending, events);
            }
        }
    }

    #[test]
    fn closing_records_cover_their_deltas(log in started_log(50)) {
        prop_assert_eq!(Transcript::replay(&without_covered_deltas(&log)), Transcript::replay(&log));
    }

    #[test]
    fn merged_deltas_replace_the_merged_ones(log in started_log(50)) {
        let mut merged: Vec<Record> = Vec::new();
        for record in &log {
            if let Some(last) = merged.last_mut()
                && last.response_id == record.response_id
                && merge(&mut last.event, &record.event)
            {
                last.seq = record.seq;
                last.at = record.at;
            } else {
                merged.push(record.clone());
            }
        }
        prop_assert_eq!(Transcript::replay(&merged), Transcript::replay(&log));
    }
}

/// Checks that the index agrees with a scan of all parts.
fn check_part_traits(answer: &RunMessage) {
    let ids = |calls: &mut dyn Iterator<Item = &Call>| -> Vec<CallId> {
        calls.map(|it| it.id.clone()).collect()
    };
    let n = |state| answer.calls().filter(|it| it.state == state).count();
    assert_eq!(answer.n_calls(), answer.calls().count());
    assert_eq!(answer.n_failed(), n(CallState::Failed));
    assert_eq!(answer.n_denied(), n(CallState::Denied));
    assert_eq!(answer.n_interrupted(), n(CallState::Interrupted));
    let waiting = &mut answer.calls().filter(|it| it.waits_for_approval());
    assert_eq!(ids(&mut answer.waiting_calls()), ids(waiting));
    let running = answer.calls().filter(|it| it.state == CallState::Running).last();
    assert_eq!(answer.current_call(), running);
    assert_eq!(answer.last_open_call(), answer.calls().filter(|it| it.is_open()).last());
    for call in answer.calls().filter(|it| !it.is_nameless()) {
        let before = answer.calls().take_while(|it| it.id != call.id);
        let same = before.filter(|it| it.name.trim() == call.name.trim()).count();
        assert_eq!(answer.n_before(call), same, "{}", call.name);
    }
    let open: Vec<&Exchange> = answer.exchanges().filter(|it| it.outcome.is_none()).collect();
    assert_eq!(answer.open_exchanges().collect::<Vec<_>>(), open);
    let at_top = (0..answer.parts.len()).filter(|&idx| answer.parent_of(idx).is_none());
    let at_top: Vec<&Part> = at_top.map(|idx| &answer.parts[idx]).collect();
    let texts: Vec<&Text> = at_top
        .iter()
        .filter_map(|part| match &part.kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(answer.last_top_level(), at_top.last().copied());
    let n_leaked = texts.iter().filter(|it| it.leaked).count();
    assert_eq!(answer.has_only_leaked(), n_leaked == at_top.len());
    assert_eq!(answer.has_final_text(), texts.iter().any(|it| it.role == TextRole::Final));
    let undecided = texts.iter().copied().filter(|it| it.role == TextRole::Undecided);
    assert!(answer.undecided_texts().eq(undecided));
}

fn check_consistent(transcript: &Transcript) {
    for message in &transcript.messages {
        assert!(message.first <= message.changed && message.changed <= transcript.head);
        let Some(answer) = message.run() else { continue };
        check_part_traits(answer);
        for (idx, part) in answer.parts.iter().enumerate() {
            assert!(part.changed <= message.changed);
            match &part.kind {
                PartKind::Text(text) => match &text.role {
                    TextRole::Commentary { call: Some(call) } => {
                        assert!(answer.call(call).unwrap().commentary.contains(&idx));
                    }
                    TextRole::Undecided => assert!(answer.is_open(), "decided with the run"),
                    _ => (),
                },
                PartKind::Call(call) => {
                    check_call(call);
                    for &text in &call.commentary {
                        let PartKind::Text(text) = &answer.parts[text].kind else { panic!() };
                        assert_eq!(text.role, TextRole::Commentary { call: Some(call.id.clone()) });
                    }
                }
                _ => (),
            }
        }
    }
}

fn check_call(call: &Call) {
    use CallState::*;
    match (&call.outcome, call.state) {
        (Some(outcome), Succeeded) => assert!(outcome.ok),
        (Some(outcome), Failed | Denied | Interrupted) => assert!(!outcome.ok),
        (Some(_), state) => panic!("ended, yet {state:?}"),
        (None, Succeeded | Failed) => panic!("succeeded or failed without a result"),
        (None, _) => (),
    }
}

/// Checks that everything outside the change is equal.
fn check_change_covers(before: &Transcript, after: &Transcript, change: &Change) {
    for (idx, message) in before.messages.iter().enumerate() {
        let now = &after.messages[idx];
        match change {
            Change::Updated { message: changed, parts } if *changed == idx => {
                let (Some(old), Some(new)) = (message.run(), now.run()) else { panic!() };
                for (part_idx, part) in old.parts.iter().enumerate() {
                    assert!(parts.contains(&part_idx) || *part == new.parts[part_idx]);
                }
                assert!((old.parts.len()..new.parts.len()).all(|it| parts.contains(&it)));
            }
            Change::Rewound { from } if idx >= *from => assert!(now.superseded),
            _ => assert_eq!(message, now),
        }
    }
}

type Texts = BTreeMap<String, Vec<(String, String)>>;

/// Returns each run's texts and thinking blocks in the order in which they started.
fn texts_in_log(log: &[Record]) -> Texts {
    let mut texts = Texts::new();
    for record in log {
        let Some(run) = &record.response_id else { continue };
        let (id, delta, done) = match &record.event {
            Event::TextStart { part_id, .. } => (format!("text {part_id}"), "", None),
            Event::TextDelta { part_id, delta, .. } => {
                (format!("text {part_id}"), delta.as_str(), None)
            }
            Event::TextDone { part_id, text, .. } => (format!("text {part_id}"), "", Some(text)),
            Event::ThinkingStart { part_id, .. } => (format!("thinking {part_id}"), "", None),
            Event::ThinkingDelta { part_id, delta, .. } => {
                (format!("thinking {part_id}"), delta.as_str(), None)
            }
            Event::ThinkingDone { part_id, text, .. } => {
                (format!("thinking {part_id}"), "", Some(text))
            }
            _ => continue,
        };
        let parts = texts.entry(run.to_string()).or_default();
        if !parts.iter().any(|it| it.0 == id) {
            parts.push((id.clone(), String::new()));
        }
        let part = parts.iter_mut().find(|it| it.0 == id).unwrap();
        match done {
            Some(text) => part.1.clone_from(text),
            None => part.1.push_str(delta),
        }
    }
    texts
}

fn texts_shown(transcript: &Transcript) -> Texts {
    let answers = transcript.messages.iter().filter_map(Message::run);
    let texts = answers.map(|answer| {
        let parts = answer.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Text(it) => Some((format!("text {}", it.id), it.text.clone())),
            PartKind::Thinking(it) => Some((format!("thinking {}", it.id), it.text.clone())),
            _ => None,
        });
        (answer.id.to_string(), parts.collect::<Vec<_>>())
    });
    texts.filter(|(_, parts)| !parts.is_empty()).collect()
}

/// Applies the closing events and checks their order, that nothing is open afterwards, and that nothing
/// ended twice.
fn check_closed(answer: &RunMessage, ending: &Ending, events: Vec<Event>) {
    let order = |event: &Event| match event {
        Event::TextDone { .. } | Event::ThinkingDone { .. } => 0,
        Event::ToolArgumentsDone { .. } => 1,
        Event::ToolApprovalResolved { .. } => 2,
        Event::AgentCallbackResult { .. } => 3,
        Event::ToolResult { .. } => 4,
        Event::StepFinish { .. } => 5,
        Event::OutputCancelled { .. } => 6,
        Event::RunFinish { .. } => 7,
        other => panic!("not a closing event: {other:?}"),
    };
    assert!(events.is_sorted_by_key(order));
    let finishes = events.iter().filter(|it| matches!(it, Event::RunFinish { .. })).count();
    assert_eq!(finishes, usize::from(answer.is_open()));

    let open_before: Vec<_> = answer.calls().filter(|it| it.is_open()).map(|it| &it.id).collect();
    let ended: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolResult { call_id, .. } => Some(call_id),
            _ => None,
        })
        .collect();
    if answer.is_open() {
        assert_eq!(ended, open_before, "in call order, each once");
        let waiting = answer.calls().filter(|it| it.is_open() && it.waits_for_approval());
        let withdrawn = events.iter().filter_map(|event| match event {
            Event::ToolApprovalResolved { call_id, decision: Decision::Withdrawn, .. } => {
                Some(call_id)
            }
            _ => None,
        });
        assert!(withdrawn.eq(waiting.map(|it| &it.id)), "open requests are withdrawn");
        let finished = events.iter().filter_map(|event| match event {
            Event::StepFinish { parent_call_id, .. } => Some(parent_call_id.as_ref()),
            _ => None,
        });
        assert!(finished.eq(open_steps(answer)), "inner first");
    }

    let was_open = answer.is_open();
    let steps = answer.steps.iter().filter_map(|it| it.finished.as_ref()?.cost);
    let of_steps = steps.reduce(|sum, it| sum + it);
    let mut answer = answer.clone();
    for event in events {
        let run = Some(answer.id.clone());
        answer.apply(&Record::new(Seq(1000), Millis(0), SessionId::new("s"), run, event));
    }
    if was_open {
        let finish = answer.finish.as_ref().unwrap();
        assert_eq!(finish.status, ending.status());
        let reported = match ending {
            Ending::Completed { spent } => spent.cost,
            _ => None,
        };
        assert_eq!(finish.cost, reported.or(of_steps), "as reported, or the sum of the steps");
        assert!(answer.calls().all(|call| !call.is_open()));
        let is_awaited = |it: &Exchange| it.outcome.is_none() && it.mode == ExchangeMode::Sync;
        assert!(!answer.exchanges().any(is_awaited), "awaited exchanges are closed");
        assert!(answer.parts.iter().all(|part| match &part.kind {
            PartKind::Text(it) => !it.open && it.role != TextRole::Undecided,
            PartKind::Thinking(it) => !it.open,
            _ => true,
        }));
        assert!(open_steps(&answer).is_empty());
    }
    assert_eq!(close(&answer, ending, Millis(0)), vec![]);
}

/// Returns the scopes whose newest step has not ended, by the call that started the sub-agent
/// (`None` for the agent itself); the newest step first.
fn open_steps(answer: &RunMessage) -> Vec<Option<&CallId>> {
    let mut scopes = HashSet::new();
    let newest = answer.steps.iter().rev().filter(|it| scopes.insert(it.parent.as_ref()));
    newest.filter(|it| it.finished.is_none()).map(|it| it.parent.as_ref()).collect()
}

/// Returns the log as a reader without deltas gets it: without those of closed texts and arguments.
fn without_covered_deltas(log: &[Record]) -> Vec<Record> {
    let mut closed_at = HashMap::new();
    for record in log {
        for key in closed_by(&record.event) {
            closed_at.entry((record.response_id.clone(), key)).or_insert(record.seq);
        }
    }
    let covered = |record: &Record| {
        continued_by(&record.event).is_some_and(|key| {
            !matches!(key, stream::StreamKey::Output(..))
                && closed_at
                    .get(&(record.response_id.clone(), key))
                    .is_some_and(|closed| record.seq < *closed)
        })
    };
    log.iter().filter(|record| !covered(record)).cloned().collect()
}

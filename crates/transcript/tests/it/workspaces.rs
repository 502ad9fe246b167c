//! The workspace of a session: the last one that a person chose, never a suggestion.

use proptest::prelude::*;
use testkit::logs::any_log;
use transcript::*;

fn replay(events: impl IntoIterator<Item = Event>) -> Summary {
    let mut summary = Summary::default();
    for (seq, event) in (1..).zip(events) {
        let id = SessionId::new("s");
        summary.apply(&Record::new(Seq(seq), Millis(1), id, None, event));
    }
    summary
}

fn event(json: serde_json::Value) -> Event {
    serde_json::from_value(json).unwrap()
}

fn created(workspace: &str, confirmed: bool) -> Event {
    event(serde_json::json!({
        "type": "session_created", "agent": "a", "workspace": workspace,
        "workspaceConfirmed": confirmed,
    }))
}

fn updated(workspace: &str, confirmed: bool) -> Event {
    event(serde_json::json!({
        "type": "session_updated", "workspace": workspace, "workspaceConfirmed": confirmed,
    }))
}

fn linked(cwd: &str) -> Event {
    event(serde_json::json!({ "type": "agent_linked", "cliSessionId": "x", "cwd": cwd }))
}

#[test]
fn a_confirmed_suggestion_becomes_the_workspace() {
    let suggested = replay([created("/a", false)]);
    assert_eq!((suggested.workspace(), suggested.suggested_workspace()), (None, Some("/a")));
    let confirmed = replay([created("/a", false), updated("/a", true)]);
    assert_eq!((confirmed.workspace(), confirmed.suggested_workspace()), (Some("/a"), None));
    let kept = replay([created("/a", true), updated("/b", false)]);
    assert_eq!(kept.workspace(), Some("/a"), "a suggestion replaces nothing");
}

/// Summaries of earlier versions have no mark.
#[test]
fn a_stored_workspace_without_a_mark_is_a_suggestion() {
    let stored: Summary = serde_json::from_str(r#"{"agent":"a","workspace":"/a"}"#).unwrap();
    assert_eq!((stored.workspace(), stored.suggested_workspace()), (None, Some("/a")));
}

#[test]
fn another_folder_unlinks_the_conversation() {
    let same = replay([created("/a", false), linked("/a"), updated("/a", true)]);
    assert!(same.linked.is_some());
    let other = replay([created("/a", false), linked("/b"), updated("/a", true)]);
    assert!(other.linked.is_none());
}

proptest! {
    #[test]
    fn without_a_mark_there_is_no_workspace(log in any_log(40)) {
        let is_marked = |it: &Event| matches!(
            it,
            Event::SessionCreated { workspace_confirmed: true, .. }
                | Event::SessionUpdated { workspace_confirmed: true, .. }
        );
        let events = log.into_iter().map(|it| it.event).filter(|it| !is_marked(it));
        let summary = replay(events);
        prop_assert_eq!(summary.workspace(), None);
    }
}

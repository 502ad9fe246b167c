//! Titles and update times of sessions.

use proptest::prelude::*;
use testkit::logs::any_log;
use transcript::*;

fn record(seq: u64, at: i64, event: Event) -> Record {
    Record::new(Seq(seq), Millis(at), SessionId::new("s"), None, event)
}

fn user_message(id: &str, text: &str) -> Event {
    serde_json::from_value(serde_json::json!({
        "type": "user_message", "messageId": id, "text": text,
    }))
    .unwrap()
}

fn rewound(before: &str) -> Event {
    Event::HistoryRewound { before_message_id: before.to_owned(), reason: RewindReason::Edit }
}

fn renamed(title: &str) -> Event {
    let title = Some(title.to_owned());
    Event::SessionUpdated {
        agent: None,
        workspace: None,
        workspace_confirmed: false,
        title,
        archived: None,
    }
}

fn title(events: impl IntoIterator<Item = Event>) -> String {
    let records = (1..).zip(events).map(|(seq, event)| record(seq, 1, event));
    let records: Vec<Record> = records.collect();
    Transcript::replay(&records).summary.title().to_owned()
}

proptest! {
    #[test]
    fn renaming_and_archiving_do_not_make_a_session_newer(
        log in any_log(40), title in "[a-z]{0,8}", archived in any::<Option<bool>>(),
    ) {
        let before = Transcript::replay(&log).summary.updated_at;
        let title = Some(title).filter(|it| !it.is_empty());
        let event = Event::SessionUpdated { agent: None, workspace: None, workspace_confirmed: false, title, archived };
        let mut log = log;
        log.push(record(1000, i64::MAX, event));
        prop_assert_eq!(Transcript::replay(&log).summary.updated_at, before);
    }

    #[test]
    fn an_automatic_title_begins_the_first_message(text in "[a-zé ]{0,400}") {
        let title = title([user_message("m1", &text)]);
        let line = text.trim();
        match title.strip_suffix('…') {
            Some(words) => {
                prop_assert!(line.starts_with(words) && line.chars().count() > 200);
                prop_assert!(words.chars().count() <= 200 && !words.ends_with(' '));
                let rest = &line[words.len()..];
                let is_one_word = !words.contains(' ');
                prop_assert!(rest.starts_with(' ') || is_one_word, "cut within a word: {title}");
            }
            None if line.is_empty() => prop_assert_eq!(title, "New session"),
            None => prop_assert_eq!(title, line),
        }
    }
}

#[test]
fn editing_the_first_message_changes_only_automatic_titles() {
    let edited = || [user_message("m1", "first"), rewound("m1"), user_message("m2", "other words")];
    assert_eq!(title(edited()), "other words");
    assert_eq!(
        title([
            user_message("m1", "first"),
            user_message("m2", "more"),
            rewound("m2"),
            user_message("m3", "x")
        ]),
        "first"
    );
    assert_eq!(
        title([user_message("m1", "first"), rewound("r1")]),
        "first",
        "only the response is retried"
    );
    assert_eq!(
        title(edited().into_iter().chain([rewound("m2"), user_message("m3", "third")])),
        "third"
    );
    let named = [
        user_message("m1", "first"),
        renamed("Mine"),
        rewound("m1"),
        user_message("m2", "other words"),
    ];
    assert_eq!(title(named), "Mine");
}

#[test]
fn a_blank_title_restores_the_automatic_one() {
    for blank in ["", "  "] {
        let events = [user_message("m1", "first"), renamed("Mine"), renamed(blank)];
        assert_eq!(title(events), "first");
    }
}

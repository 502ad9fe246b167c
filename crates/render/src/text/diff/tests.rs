//! Applying a diff to the old text gives the new text.

use proptest::prelude::*;

use super::{Diff, MAX_ROWS, numbered, patch, texts};
use crate::testing::dom::{Node, element};
use crate::text::budget::{Detail, SizeBudget};

fn html(diff: &Diff) -> String {
    diff.html(&mut SizeBudget::new(Detail::Whole)).into_string()
}

fn rows(diff: &Diff) -> Vec<Node> {
    let page = element("d", &html(diff));
    page.elements().into_iter().filter(|it| it.name() == "tr").cloned().collect()
}

/// Class, numbers and text of each row.
fn read(diff: &Diff) -> Vec<(String, Option<usize>, Option<usize>, String)> {
    let number = |it: &Node| it.attribute("data-line").map(|it| it.parse().unwrap());
    let read_row = |row: &Node| {
        let class = row.attribute("class").unwrap().to_owned();
        match row.children() {
            [old, new, _, text] => (class, number(old), number(new), text.text().replace('⏎', "")),
            _ => (class, None, None, row.text()),
        }
    };
    rows(diff).iter().map(read_row).collect()
}

fn in_pi_format((_, old, new, text): &(String, Option<usize>, Option<usize>, String)) -> String {
    match (old, new) {
        (None, None) => "    ...".to_owned(),
        (None, Some(number)) => format!("+{number:3} {text}"),
        (Some(number), None) => format!("-{number:3} {text}"),
        (Some(number), Some(_)) => format!(" {number:3} {text}"),
    }
}

/// Checks that every line of both texts is shown under its number, or is omitted and equal in both.
fn check(before: &str, after: &str) {
    let diff = texts(before, after, Some(1));
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let (mut n_added, mut n_removed) = (0, 0);
    let (mut old_left, mut new_left) = (old.clone(), new.clone());
    for (class, old_number, new_number, text) in read(&diff).iter().rev() {
        if let Some(n) = old_number {
            assert_eq!(old[n - 1].trim_end_matches('\r'), text, "{before:?} -> {after:?}");
        }
        if let Some(n) = new_number {
            assert_eq!(new[n - 1].trim_end_matches('\r'), text, "{before:?} -> {after:?}");
        }
        match class.as_str() {
            "diff-removed" => {
                n_removed += 1;
                old_left.remove(old_number.unwrap() - 1);
            }
            "diff-added" => {
                n_added += 1;
                new_left.remove(new_number.unwrap() - 1);
            }
            _ => (),
        }
    }
    assert_eq!(old_left, new_left, "{before:?} -> {after:?}");
    assert_eq!((diff.added, diff.removed), (n_added, n_removed));
    assert_eq!(before == after, n_added + n_removed == 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_turns_the_old_text_into_the_new(
        before in prop::collection::vec("[ab<]{0,2}( [cd&])?", 0..20),
        after in prop::collection::vec("[ab<]{0,2}( [cd&])?", 0..20),
        ends in any::<(bool, bool)>(),
    ) {
        let text = |lines: Vec<String>, is_ended: bool| lines.join("\n") + if is_ended { "\n" } else { "" };
        check(&text(before, ends.0), &text(after, ends.1));
    }

    #[test]
    fn numbered_lines_parse_to_their_diff(
        before in prop::collection::vec("[ab<]{0,2}( [cd&])?", 0..20),
        after in prop::collection::vec("[ab<]{0,2}( [cd&])?", 0..20),
    ) {
        let text = |lines: Vec<String>| lines.iter().map(|it| format!("{it}\n")).collect::<String>();
        let rows = read(&texts(&text(before), &text(after), Some(1)));
        let written: Vec<String> = rows.iter().map(in_pi_format).collect();
        let expected = rows.iter().any(|it| it.1.is_some() != it.2.is_some()).then_some(rows);
        prop_assert_eq!(numbered(&written.join("\n")).map(|it| read(&it)), expected);
    }

    #[test]
    fn no_patch_escapes_its_markup(text in "([-+ @*\\\\<>&a-c0-9,\n]|@@ -1,2 \\+1,2 @@\n|\\*\\*\\* Begin Patch\n){0,60}") {
        if let Some(diff) = patch(&text) {
            let page = element("d", &html(&diff));
            let known = ["div", "table", "tbody", "tr", "td", "p", "mark", "span"];
            for it in page.elements() {
                prop_assert!(known.contains(&it.name()), "{}", it.name());
            }
        }
    }
}

#[test]
fn changed_words_are_marked_and_text_is_escaped() {
    let diff = texts("let a = 1;\nsame\n", "let <b> = 1;\nsame\n", Some(10));
    assert_eq!((diff.added, diff.removed), (1, 1));
    let drawn = html(&diff);
    assert!(drawn.contains("let <mark>&lt;b&gt;</mark> = 1;"), "{drawn}");
    assert!(drawn.contains("data-line=\"10\""), "{drawn}");
    assert!(!html(&texts("a\n", "b\n", None)).contains("data-line"));
    assert!(html(&texts("a", "a", None)).contains("No change"));
}

#[test]
fn lines_far_from_a_change_are_left_out() {
    let before: String = (1..=40).map(|it| format!("line {it}\n")).collect();
    let after = before.replace("line 20\n", "line twenty\n");
    let classes: Vec<_> =
        read(&texts(&before, &after, Some(1))).into_iter().map(|it| it.0).collect();
    assert_eq!(classes.iter().filter(|it| *it == "diff-same").count(), 6);
    assert_eq!(classes.iter().filter(|it| *it == "diff-gap").count(), 1);
    check(&before, &after);
}

#[test]
fn large_texts_are_bounded() {
    let before: String = (0..15_000).map(|it| format!("a{it}\n")).collect();
    let after: String = (0..15_000).map(|it| format!("b{it}\n")).collect();
    let diff = texts(&format!("x\n{before}y\n"), &format!("x\n{after}y\n"), Some(1));
    assert_eq!((diff.added, diff.removed), (15_000, 15_000));
    assert_eq!(rows(&diff).len(), MAX_ROWS);
    assert!(html(&diff).contains("10001 more lines"));
}

#[test]
fn a_missing_newline_shows_only_if_it_changed() {
    let is_marked = |before, after| html(&texts(before, after, None)).contains('⏎');
    assert!(!is_marked("old", "new"));
    assert!(!is_marked("old\n", "new\n"));
    assert!(is_marked("same", "same\n"));
    assert!(is_marked("old\n", "new"));
}

#[test]
fn lines_without_numbers_have_no_number_column() {
    let is_unnumbered = |first| html(&texts("a\n", "b\n", first)).contains("unnumbered");
    assert!(is_unnumbered(None));
    assert!(!is_unnumbered(Some(1)));
}

#[test]
fn patches_are_parsed() {
    let unified = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@ fn main\n same\n--- removed\n+++ added\n last\n\\ No newline at end of file\n@@ -9 +9,0 @@\n-gone\n";
    let diff = patch(unified).unwrap();
    assert_eq!((diff.added, diff.removed), (1, 2));
    let shown = read(&diff);
    let row = |text: &str| shown.iter().find(|it| it.3 == text).unwrap().clone();
    assert_eq!(row("-- removed"), ("diff-removed".into(), Some(4), None, "-- removed".into()));
    assert_eq!(row("++ added"), ("diff-added".into(), None, Some(4), "++ added".into()));
    assert_eq!(row("gone").1, Some(9));
    assert_eq!(row("x").0, "diff-heading");
    let classes: Vec<&str> = shown.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(classes.iter().filter(|it| **it == "diff-gap").count(), 1, "between two hunks");

    let envelope = "*** Begin Patch\n*** Update File: src/a.rs\n@@ fn main\n same\n-old\n+new\n*** Add File: b\n+hello\n*** End Patch\n";
    let diff = patch(envelope).unwrap();
    assert_eq!((diff.added, diff.removed), (2, 1));
    assert!(html(&diff).contains(">Update File: src/a.rs<"));

    let made = patch("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n").unwrap();
    assert_eq!(read(&made).first().unwrap().3, "new.txt");
    let gone = patch("--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-hello\n").unwrap();
    assert_eq!(read(&gone).first().unwrap().3, "old.txt");

    for text in
        ["", "hello", "- a list\n+ of things\n", "*** Begin Patch\n*** End Patch", "@@ no\n"]
    {
        assert!(patch(text).is_none(), "{text:?}");
    }
}

/// Any budget shows a beginning of the complete diff, and marks it as incomplete.
#[test]
fn a_diff_is_cut_after_a_row() {
    let after: String = (0..2000).map(|it| format!("line {it}\n")).collect();
    let diff = texts("", &after, Some(1));
    let whole = read(&diff);
    for detail in [Detail::Fitting, Detail::Beginning] {
        let mut budget = SizeBudget::new(detail);
        let page = element("d", &diff.html(&mut budget).into_string());
        let shown: Vec<_> = page.elements().into_iter().filter(|it| it.name() == "tr").collect();
        assert!(!budget.is_complete());
        assert!(shown.len() > 100 && shown.len() < whole.len(), "{}", shown.len());
        let texts = shown.iter().map(|it| it.children()[3].text());
        assert!(texts.eq(whole.iter().take(shown.len()).map(|it| it.3.clone())));
    }
}

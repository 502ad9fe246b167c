//! Snapshots of all records of each file: a file next to it with a line for each record.

use backends::import::{Entry, Tail};
use expect_test::expect_file;
use serde_json::Value;

use super::files::File;

#[test]
fn every_file_matches_its_record_snapshot() {
    for file in File::all() {
        let imported = file.import(Tail::Close);
        let mut shown = format!(
            "conversation {} in {:?}, version {:?}\n",
            imported.conversation, imported.cwd, imported.version
        );
        for turn in &imported.turns {
            shown += &format!("turn {}\n", turn.id);
            shown.extend(turn.entries.iter().map(|it| line(it, turn.id.as_str())));
        }
        shown += if imported.rest.is_empty() { "" } else { "rest\n" };
        shown.extend(imported.rest.iter().map(|it| line(it, "")));
        expect_file![file.events_file()].assert_eq(&shown);
    }
}

fn line(entry: &Entry, turn: &str) -> String {
    let mut fields = serde_json::to_value(&entry.event).unwrap();
    let kind = fields.as_object_mut().unwrap().shift_remove("type").unwrap();
    // Ids of parts and calls start with the id of the turn.
    let fields = short(&fields).to_string().replace(&format!("{turn}."), "");
    let mark = if entry.response_id.is_some() { "  " } else { "- " };
    let time = entry.at.to_string();
    format!("{mark}{} {} {fields}\n", &time[11..23], kind.as_str().unwrap())
}

fn short(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(240) {
            Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()).into(),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(short).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, it)| (name.clone(), short(it))).collect()
        }
        other => other.clone(),
    }
}

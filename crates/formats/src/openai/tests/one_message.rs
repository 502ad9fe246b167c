//! A history in one message.

use expect_test::expect;
use serde_json::{Value, json};
use transcript::Transcript;

use super::{LOG, read, reader};
use crate::openai::{Files, Reader, conversation, history_in_one_message};

fn received(cut: usize) -> Vec<Value> {
    let transcript = Transcript::replay(&read(LOG)[..cut]);
    history_in_one_message(&conversation(
        &transcript,
        &Reader { files: Files::LeftOut, ..reader() },
    ))
}

#[test]
fn one_message_contains_the_whole_history() {
    let n_records = read(LOG).len();
    for cut in 1..=n_records {
        let messages = received(cut);
        assert_eq!(messages.len(), 1, "cut at {cut}");
        let text = messages[0].to_string();
        let all = conversation(&Transcript::replay(&read(LOG)[..cut]), &reader());
        for word in all.iter().filter_map(|it| it["content"].as_str()) {
            let quoted = Value::from(word).to_string();
            assert!(text.contains(&quoted[1..quoted.len() - 1]), "{word} in {text}");
        }
    }
    let texts = received(n_records)[0]["content"].as_array().unwrap().clone();
    let texts: Vec<&str> = texts.iter().map(|it| it["text"].as_str().unwrap()).collect();
    expect![[r#"
        This is how the conversation went so far:

        Instructions: Be brief.

        User: look around

        Assistant: Let me look.

        Both at once.

        Assistant called list with {"path":"."}

        Assistant called time with {}

        Result: {"n":3}

        Result: {"ok":false,"error":{"code":"tool_error","message":"no clock"}}

        Assistant: Three files.


        ---
        Now the user says:
        ---
        thanks"#]]
    .assert_eq(&texts.join("\n---\n"));
}

#[test]
fn without_history_messages_stay_unchanged() {
    let alone = json!([{ "role": "user", "content": "hello" }]);
    let alone = alone.as_array().unwrap();
    assert_eq!(history_in_one_message(alone), *alone);
}

#[test]
fn results_at_the_end_are_continued() {
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "pick", "arguments": "{}" } });
    let messages = [
        json!({ "role": "user", "content": "Which colour?" }),
        json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": "c", "content": "teal" }),
    ];
    let received = &history_in_one_message(&messages)[0]["content"];
    let texts: Vec<&str> =
        received.as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
    expect![[r#"
        Which colour?
        ---
        This was said and done about it:

        Assistant called pick with {}

        Result: teal

        Go on from there."#]]
    .assert_eq(&texts.join("\n---\n"));
}

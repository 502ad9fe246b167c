//! Our extension, which asks before a tool runs, and Pi without it.

use backends::{ProgramEffect, ProgramInput, RunInput, Verdict};
use expect_test::expect;
use serde_json::{Value, json};
use transcript::{ResponseId, Scope};

use super::examples::{check, working};
use super::stage::{ANNOUNCEMENT, Played, Stage};

/// Other extensions may show dialogs: a form, or a question with yes or no.
#[test]
fn dialogs_of_other_extensions_are_questions() {
    let dialog = |method: &str| {
        json!({ "type": "extension_ui_request", "id": method, "method": method, "title": "Which?",
            "message": "Choose well.", "options": ["red", "blue"], "placeholder": "a word",
            "prefill": "Dear" })
    };
    let answered = |words: &str| {
        let arguments = Some(json!({ "answers": { "value": words } }).to_string());
        Verdict::Allowed { arguments, scope: Scope::Once }
    };
    let yes = Verdict::Allowed { arguments: None, scope: Scope::Once };
    let no = Verdict::Denied { feedback: None };
    let mut stage = working();
    for (method, verdict) in [
        ("select", answered("red")),
        ("input", answered("x")),
        ("editor", no.clone()),
        ("confirm", yes),
        ("confirm2", no),
    ] {
        let mut dialog = dialog(method);
        dialog["method"] = json!(method.trim_end_matches('2'));
        stage.emit(dialog.clone());
        // A repeated dialog is asked once.
        stage.emit(dialog);
        stage.decide(verdict);
    }
    check(
        &stage,
        15,
        expect![[r#"
            tool_call_start {"callId":"r1.1","providerCallId":"dialog-select","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.1","arguments":"{\"message\":\"Which?\\n\\nChoose well.\"}","summary":"message: 'Which?\n\nChoose well.'","validation":"not_required"}
            ask r1.1 can_edit=false
            > decided r1.1 Allowed { arguments: Some("{\"answers\":{\"value\":\"red\"}}"), scope: Once }
            < {"type":"extension_ui_response","id":"select","value":"red"}
            tool_running {"callId":"r1.1"}
            tool_result {"callId":"r1.1","toolName":"elicitation","ok":true,"result":"red","durationMs":0}
            tool_call_start {"callId":"r1.2","providerCallId":"dialog-input","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.2","arguments":"{\"message\":\"Which?\\n\\nChoose well.\"}","summary":"message: 'Which?\n\nChoose well.'","validation":"not_required"}
            ask r1.2 can_edit=false
            > decided r1.2 Allowed { arguments: Some("{\"answers\":{\"value\":\"x\"}}"), scope: Once }
            < {"type":"extension_ui_response","id":"input","value":"x"}
            tool_running {"callId":"r1.2"}
            tool_result {"callId":"r1.2","toolName":"elicitation","ok":true,"result":"x","durationMs":0}
            tool_call_start {"callId":"r1.3","providerCallId":"dialog-editor","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.3","arguments":"{\"message\":\"Which?\\n\\nChoose well.\"}","summary":"message: 'Which?\n\nChoose well.'","validation":"not_required"}
            ask r1.3 can_edit=false
            > decided r1.3 Denied { feedback: None }
            < {"type":"extension_ui_response","id":"editor","cancelled":true}
            tool_result {"callId":"r1.3","toolName":"elicitation","ok":false,"error":{"code":"tool_denied","message":"It was not answered."}}
            tool_call_start {"callId":"r1.4","providerCallId":"dialog-confirm","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.4","arguments":"{\"message\":\"Which?\\n\\nChoose well.\"}","summary":"message: 'Which?\n\nChoose well.'","validation":"not_required"}
            ask r1.4 can_edit=false
            > decided r1.4 Allowed { arguments: None, scope: Once }
            < {"type":"extension_ui_response","id":"confirm","confirmed":true}
            tool_running {"callId":"r1.4"}
            tool_result {"callId":"r1.4","toolName":"elicitation","ok":true,"result":"","durationMs":0}
            tool_call_start {"callId":"r1.5","providerCallId":"dialog-confirm2","toolName":"elicitation","executor":"agent"}
            tool_arguments_done {"callId":"r1.5","arguments":"{\"message\":\"Which?\\n\\nChoose well.\"}","summary":"message: 'Which?\n\nChoose well.'","validation":"not_required"}
            ask r1.5 can_edit=false
            > decided r1.5 Denied { feedback: None }
            < {"type":"extension_ui_response","id":"confirm2","confirmed":false}
            tool_result {"callId":"r1.5","toolName":"elicitation","ok":false,"error":{"code":"tool_denied","message":"It was not answered."}}
        "#]],
    );
    let forms = stage.played.iter().filter_map(|it| match it {
        Played::Wanted(effect) => match effect.as_ref() {
            ProgramEffect::Ask { form, .. } => {
                Some(form.as_ref().map(|it| it["requestedSchema"].clone()))
            }
            _ => None,
        },
        Played::Given(_) => None,
    });
    let field = |more: (&str, Value)| {
        let mut field = json!({ "type": "string", "title": "Which?" });
        field[more.0] = more.1;
        let properties = json!({ "value": field });
        Some(json!({ "type": "object", "properties": properties, "required": ["value"] }))
    };
    let expected = [
        field(("enum", json!(["red", "blue"]))),
        field(("description", json!("a word"))),
        field(("default", json!("Dear"))),
        None,
        None,
    ];
    assert_eq!(forms.collect::<Vec<_>>(), expected);

    // An open dialog does not prevent an interrupt.
    let mut dialog = dialog("select");
    dialog["id"] = json!("another");
    stage.emit(dialog);
    assert_eq!(stage.asked.len(), 1);
    stage.give(RunInput::Interrupt);
    assert!(stage.asked.is_empty());
}

/// Without the extension, Pi would run every tool without asking.
#[test]
fn pi_without_our_extension_gets_no_prompt() {
    let mut stage = Stage::without_extension(true);
    stage.start("go");
    stage.steer("wait");
    stage.answer_states();
    assert!(stage.has_quit && stage.is_idle());
    check(
        &stage,
        3,
        expect![[r#"
            > start "go"
            < {"id":"state-1","type":"get_state"}
            > steer "wait"
            cannot_steer m1
            continuation {"shouldContinue":false,"stopReason":"error","resolvedBy":"ErrorPolicy"}
            quit
            end Failed agent_exited: Pi has not loaded Callboard's extension, so it would run every tool without asking. Callboard has not sent it the message and ends it. Check Pi's output at startup and the extension options in this agent's args, or set its permission_mode to auto to run without approvals.
        "#]],
    );
    let mut stage = Stage::without_extension(true);
    stage.start("go");
    stage.give(RunInput::Interrupt);
    assert!(stage.is_idle(), "there is nothing to wait for");

    let mut stage = Stage::without_extension(true);
    stage.give(ProgramInput::Spare(ResponseId::new("self0")));
    stage.emit(json!({ "type": "agent_start" }));
    assert!(stage.has_quit && stage.is_idle(), "nor may it do anything by itself");

    let mut stage = Stage::without_extension(true);
    stage.start("go");
    stage.line(ANNOUNCEMENT);
    assert!(stage.writes().last().is_some_and(|it| it.contains(r#""prompt""#)));
}

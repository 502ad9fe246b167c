//! One snapshot per phrase: the events of the run, deltas folded into a count.

use expect_test::{Expect, expect};
use serde_json::json;
use transcript::Event;

use super::stage::{Played, ask, called, canned, is_delta, play, play_with, result, succeeded};
use crate::{ModelEffect, Pace, ReadyCall, RunEffect};

#[test]
fn two_times_at_once() {
    check(
        "What time is it in Paris and Tokyo?",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              11 deltas
            done r.1
                Let me check the time in Paris and Tokyo at once.
            {"type":"tool_call_start","callId":"r.2","toolName":"time","executor":"server"}
              4 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"zone\":\"Europe/Paris\"}","summary":"zone: 'Europe/Paris'","validation":"not_required"}
            {"type":"tool_call_start","callId":"r.3","toolName":"time","executor":"server"}
              4 deltas
            {"type":"tool_arguments_done","callId":"r.3","arguments":"{\"zone\":\"Asia/Tokyo\"}","summary":"zone: 'Asia/Tokyo'","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "time", arguments: "{\"zone\":\"Europe/Paris\"}" }
            RunTool { call_id: CallId("r.3"), tool_name: "time", arguments: "{\"zone\":\"Asia/Tokyo\"}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":8,"outputTokens":13,"totalTokens":21}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.4"}
              20 deltas
            done r.4
                - In Paris it is **Sunday, 15 November 2026, 18:44**.
                - In Tokyo it is **Sunday, 15 November 2026, 18:44**.
            {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":31,"outputTokens":20,"totalTokens":51}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 39, output_tokens: 33, total_tokens: 72, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn a_tool_of_the_client() {
    let asked = ask(r#"use the client tool pick with {"of":"wall"}"#);
    let played = play_with(asked, Pace::Instant, |_, _| succeeded(json!({ "colour": "teal" })));
    expect![[r#"
        {"type":"step_start","index":0}
        {"type":"text_start","partId":"r.1"}
          4 deltas
        done r.1
            Let me use `pick`.
        {"type":"tool_call_start","callId":"r.2","toolName":"pick","executor":"server"}
          3 deltas
        {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"of\":\"wall\"}","summary":"of: 'wall'","validation":"not_required"}
        RunTool { call_id: CallId("r.2"), tool_name: "pick", arguments: "{\"of\":\"wall\"}" }
        {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":7,"outputTokens":5,"totalTokens":12}}
        {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
        {"type":"step_start","index":1}
        {"type":"text_start","partId":"r.3"}
          10 deltas
        done r.3
            The tool `pick` says:

            ```
            {
              "colour": "teal"
            }
            ```
        {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":13,"outputTokens":10,"totalTokens":23}}
        {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
        Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 20, output_tokens: 15, total_tokens: 35, cached_tokens: None, reasoning_tokens: None }), cost: None }
    "#]].assert_eq(&show(&played));
}

#[test]
fn the_time_here() {
    check(
        "what time is it",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              6 deltas
            done r.1
                Let me look at the clock.
            {"type":"tool_call_start","callId":"r.2","toolName":"time","executor":"server"}
              1 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{}","summary":"","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "time", arguments: "{}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":4,"outputTokens":7,"totalTokens":11}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              8 deltas
            done r.3
                It is **Sunday, 15 November 2026, 18:44** (UTC).
            {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":16,"outputTokens":8,"totalTokens":24}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 20, output_tokens: 15, total_tokens: 35, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn a_place_that_does_not_exist() {
    check(
        "time in Atlantis",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              9 deltas
            done r.1
                Let me check what time it is in Atlantis.
            {"type":"tool_call_start","callId":"r.2","toolName":"time","executor":"server"}
              4 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"zone\":\"Atlantis\"}","summary":"zone: 'Atlantis'","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "time", arguments: "{\"zone\":\"Atlantis\"}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":3,"outputTokens":10,"totalTokens":13}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              14 deltas
            done r.3
                I could not tell the time in Atlantis: There is no time zone 'Atlantis'.
            {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":14,"outputTokens":14,"totalTokens":28}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 17, output_tokens: 24, total_tokens: 41, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn files_one_after_the_other() {
    check(
        "List the files, then read notes.txt and read missing.txt.",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              7 deltas
            done r.1
                Let me look at the files first.
            {"type":"tool_call_start","callId":"r.2","toolName":"list_files","executor":"server"}
              2 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"path\":\".\"}","summary":"path: '.'","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "list_files", arguments: "{\"path\":\".\"}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":9,"outputTokens":8,"totalTokens":17}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              8 deltas
            done r.3
                Next, let me open `notes.txt` and read it.
            {"type":"tool_call_start","callId":"r.4","toolName":"read_file","executor":"server"}
              4 deltas
            {"type":"tool_arguments_done","callId":"r.4","arguments":"{\"path\":\"notes.txt\"}","summary":"path: 'notes.txt'","validation":"not_required"}
            RunTool { call_id: CallId("r.4"), tool_name: "read_file", arguments: "{\"path\":\"notes.txt\"}" }
            {"type":"step_finish","index":1,"finishReason":"tool-calls","usage":{"inputTokens":18,"outputTokens":9,"totalTokens":27}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":2}
            {"type":"text_start","partId":"r.5"}
              8 deltas
            done r.5
                Next, let me open `missing.txt` and read it.
            {"type":"tool_call_start","callId":"r.6","toolName":"read_file","executor":"server"}
              4 deltas
            {"type":"tool_arguments_done","callId":"r.6","arguments":"{\"path\":\"missing.txt\"}","summary":"path: 'missing.txt'","validation":"not_required"}
            RunTool { call_id: CallId("r.6"), tool_name: "read_file", arguments: "{\"path\":\"missing.txt\"}" }
            {"type":"step_finish","index":2,"finishReason":"tool-calls","usage":{"inputTokens":28,"outputTokens":9,"totalTokens":37}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":3}
            {"type":"text_start","partId":"r.7"}
              43 deltas
            done r.7
                The workspace folder has 4 entries:

                - `src/`
                - `latest` (link)
                - `notes.txt` (1 byte)
                - `big.bin` (1.2 MB)

                `notes.txt` has 3 lines. It says:

                ````txt
                one
                ```
                two
                ````

                I could not read `missing.txt`: There is no file 'missing.txt' in the workspace.
            {"type":"step_finish","index":3,"finishReason":"stop","usage":{"inputTokens":38,"outputTokens":43,"totalTokens":81}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 93, output_tokens: 69, total_tokens: 162, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn searching() {
    check(
        "search for TODO in src",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              6 deltas
            done r.1
                Let me search `src` for “TODO”.
            {"type":"tool_call_start","callId":"r.2","toolName":"search_files","executor":"server"}
              5 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"query\":\"TODO\",\"path\":\"src\"}","summary":"query: 'TODO', path: 'src'","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "search_files", arguments: "{\"query\":\"TODO\",\"path\":\"src\"}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              20 deltas
            done r.3
                I found 7 matches for “TODO” (2 files searched):

                - `src/main.rs:3`: `` // `TODO`: more ``
                - and 6 more
            {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":16,"outputTokens":20,"totalTokens":36}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 21, output_tokens: 27, total_tokens: 48, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn thinking() {
    check(
        "think about tea",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"thinking_start","partId":"r.1"}
              77 deltas
            done r.1
                The user wants me to think about tea. I should start with what I know for certain, which is little: I am a set of rules. Still, there are always two sides to look at. On the one hand tea may be simpler than it seems at first. On the other hand the simple view usually leaves out the part that matters. I could go round in circles here, so I will settle for one honest sentence.
            {"type":"text_start","partId":"r.2"}
              34 deltas
            done r.2
                I have thought about tea. My conclusion: look at the simple side first, and then ask what it leaves out. A real model would have more to say; you can read my thoughts above.
            {"type":"step_finish","index":0,"finishReason":"stop","usage":{"inputTokens":3,"outputTokens":111,"totalTokens":114}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 3, output_tokens: 111, total_tokens: 114, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn breaking() {
    check(
        "ls then break",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              7 deltas
            done r.1
                Let me look at the files first.
            {"type":"tool_call_start","callId":"r.2","toolName":"list_files","executor":"server"}
              2 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"path\":\".\"}","summary":"path: '.'","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "list_files", arguments: "{\"path\":\".\"}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":3,"outputTokens":8,"totalTokens":11}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              20 deltas
            Ending { status: Failed, error: Some(ErrorInfo { code: UpstreamError, message: "The model service broke off in the middle of its answer. This is the demo agent: it did so because you asked it to break." }), usage: Some(Usage { input_tokens: 3, output_tokens: 8, total_tokens: 11, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn greeting() {
    check(
        "Hello!",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              190 deltas
            done r.1
                Hello! I am the demo agent. I have no model behind me, only rules, but the tools I use are real. Try one of these:

                - `what time is it in Paris and Tokyo`: two calls at once
                - `list the files` or `list files in src`
                - `read README.md`
                - `search for TODO` or `find "some words" in docs`
                - `run ls -l`: all that follows *run* is a command, and you may be asked before it runs
                - `write "some words" to notes.txt`: asks you before it writes
                - `list the agents`: who else is there
                - `note: tea is ready`: puts a note into the conversation
                - `ask claude: what is in this folder?`, or `ask claude in the background: ...`: asks another agent
                - `think about breakfast`: thoughts first, then the answer
                - `tell me a story`: a long answer, good for trying *Stop*
                - `write a report about tea`: headings, a table, a list and code
                - `break`: fails the way a model service does
                - `help`: this list

                You can ask for several things at once, such as `list the files, then read README.md`.
            {"type":"step_finish","index":0,"finishReason":"stop","usage":{"inputTokens":1,"outputTokens":190,"totalTokens":191}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 1, output_tokens: 190, total_tokens: 191, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn a_broken_off_run_resumes() {
    let mut history = ask("time in Paris and Tokyo, then ls and read notes.txt");
    history.extend([
        json!({"role": "assistant", "content": "Let me check.", "tool_calls": [
            called("c1", "time", r#"{"zone": "Europe/Paris"}"#),
            called("c2", "time", r#"{"zone":"Asia/Tokyo"}"#),
        ]}),
        result("c1", &canned("time", &json!({})).result.to_string()),
        result(
            "c2",
            r#"{"ok":false,"error":{"code":"tool_error","message":"The clock stands still."}}"#,
        ),
        json!({"role": "assistant", "content": null, "tool_calls": [
            called("c3", "list_files", r#"{"path":"."}"#),
        ]}),
        result("c3", r#"{"ok":false,"error":{"code":"tool_interrupted","message":"Stopped."}}"#),
    ]);
    let played = play(history, Pace::Instant);
    expect![[r#"
        {"type":"step_start","index":0}
        {"type":"text_start","partId":"r.1"}
          14 deltas
        done r.1
            I'll do it again, from the beginning. Let me look at the files first.
        {"type":"tool_call_start","callId":"r.2","toolName":"list_files","executor":"server"}
          2 deltas
        {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"path\":\".\"}","summary":"path: '.'","validation":"not_required"}
        RunTool { call_id: CallId("r.2"), tool_name: "list_files", arguments: "{\"path\":\".\"}" }
        {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":23,"outputTokens":15,"totalTokens":38}}
        {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
        {"type":"step_start","index":1}
        {"type":"text_start","partId":"r.3"}
          8 deltas
        done r.3
            Next, let me open `notes.txt` and read it.
        {"type":"tool_call_start","callId":"r.4","toolName":"read_file","executor":"server"}
          4 deltas
        {"type":"tool_arguments_done","callId":"r.4","arguments":"{\"path\":\"notes.txt\"}","summary":"path: 'notes.txt'","validation":"not_required"}
        RunTool { call_id: CallId("r.4"), tool_name: "read_file", arguments: "{\"path\":\"notes.txt\"}" }
        {"type":"step_finish","index":1,"finishReason":"tool-calls","usage":{"inputTokens":39,"outputTokens":9,"totalTokens":48}}
        {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
        {"type":"step_start","index":2}
        {"type":"text_start","partId":"r.5"}
          53 deltas
        done r.5
            - In Paris it is **Sunday, 15 November 2026, 18:44**.
            - I could not tell the time in Tokyo: The clock stands still.

            The workspace folder has 4 entries:

            - `src/`
            - `latest` (link)
            - `notes.txt` (1 byte)
            - `big.bin` (1.2 MB)

            `notes.txt` has 3 lines. It says:

            ````txt
            one
            ```
            two
            ````
        {"type":"step_finish","index":2,"finishReason":"stop","usage":{"inputTokens":49,"outputTokens":53,"totalTokens":102}}
        {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
        Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 111, output_tokens: 77, total_tokens: 188, cached_tokens: None, reasoning_tokens: None }), cost: None }
    "#]].assert_eq(&show(&played));
}

#[test]
fn listing_agents() {
    check(
        "list the agents",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              6 deltas
            done r.1
                Let me see who is there.
            {"type":"tool_call_start","callId":"r.2","toolName":"agents_list","executor":"server"}
              1 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{}","summary":"","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "agents_list", arguments: "{}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":3,"outputTokens":7,"totalTokens":10}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              17 deltas
            done r.3
                There are 2 agents:

                - `demo`, which is me (ready): Built in.
                - `coder` (busy): Writes code.
            {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":13,"outputTokens":17,"totalTokens":30}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 16, output_tokens: 24, total_tokens: 40, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[test]
fn noting() {
    check(
        "note: tea is ready",
        expect![[r#"
            {"type":"step_start","index":0}
            {"type":"text_start","partId":"r.1"}
              4 deltas
            done r.1
                Let me note that.
            {"type":"tool_call_start","callId":"r.2","toolName":"callboard_note","executor":"server"}
              4 deltas
            {"type":"tool_arguments_done","callId":"r.2","arguments":"{\"text\":\"tea is ready\"}","summary":"text: 'tea is ready'","validation":"not_required"}
            RunTool { call_id: CallId("r.2"), tool_name: "callboard_note", arguments: "{\"text\":\"tea is ready\"}" }
            {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":4,"outputTokens":7,"totalTokens":11}}
            {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
            {"type":"step_start","index":1}
            {"type":"text_start","partId":"r.3"}
              6 deltas
            done r.3
                The note stands in the conversation.
            {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":12,"outputTokens":6,"totalTokens":18}}
            {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
            Ending { status: Completed, error: None, usage: Some(Usage { input_tokens: 16, output_tokens: 13, total_tokens: 29, cached_tokens: None, reasoning_tokens: None }), cost: None }
        "#]],
    );
}

#[track_caller]
fn check(message: &str, expect: Expect) {
    expect.assert_eq(&show(&play(ask(message), Pace::Instant)));
}

fn show(played: &Played) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut n_deltas = 0;
    for effect in &played.effects {
        match effect {
            ModelEffect::Run(RunEffect::Emit(event)) if is_delta(event) => n_deltas += 1,
            ModelEffect::Run(RunEffect::Emit(event)) => {
                if n_deltas > 0 {
                    lines.push(format!("  {n_deltas} deltas"));
                }
                n_deltas = 0;
                lines.push(show_event(event));
            }
            ModelEffect::RunTool(ReadyCall { call_id, tool_name, arguments }) => {
                lines.push(format!(
                    "RunTool {{ call_id: {call_id:?}, tool_name: {tool_name:?}, \
                     arguments: {arguments:?} }}"
                ));
            }
            other => lines.push(format!("{other:?}")),
        }
    }
    if n_deltas > 0 {
        lines.push(format!("  {n_deltas} deltas"));
    }
    lines.push(format!("{:?}", played.ending));
    lines.join("\n") + "\n"
}

/// Formats an event as JSON, and a text on lines of its own.
fn show_event(event: &Event) -> String {
    match event {
        Event::TextDone { part_id, text, .. } | Event::ThinkingDone { part_id, text, .. } => {
            let text = text.replace('\n', "\n    ").replace("\n    \n", "\n\n");
            format!("done {part_id}\n    {text}")
        }
        other => serde_json::to_string(other).unwrap(),
    }
}

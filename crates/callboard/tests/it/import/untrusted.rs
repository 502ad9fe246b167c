//! Imported files cannot start anything: no field of any format reaches a program's command line,
//! working folder or environment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{Event, Record, RunStatus, Seq, SessionId};

use crate::import::formats;
use crate::import::programs::{post, text_of};
use crate::support::program::{Home, Server};
use crate::support::stand_in::{CONVERSATION, answer_in, make_executable, playing, status};
use crate::support::watcher::{is_quiet, watch_until};

/// Part of every hostile value.
const MARKER: &str = "HOSTILE";

/// Creates a home with programs that record how they were started, in any working folder. The
/// stand-in for Claude Code answers; those for Codex and Pi exit without output.
fn recording() -> Home {
    let others = ["codex", "pi"]
        .map(|it| format!("[[agents]]\nid = \"{it}\"\nkind = \"{it}\"\ncommand = [\"./ends\"]\n"));
    let home = playing("", &others.concat());
    let ends = home.workspace().join("ends");
    let record = record_file(&home).display().to_string();
    let script = format!(
        "#!/bin/sh\n{{ printf '%s\\n' \"$@\"; echo \"cwd $(pwd)\"; env; }} >> '{record}'\nexit 1\n"
    );
    std::fs::write(&ends, script).unwrap();
    make_executable(&ends);
    let play = home.workspace().join("play");
    let script = std::fs::read_to_string(&play).unwrap();
    let record = record_file(&home).display().to_string();
    let scene = format!(
        "{{ printf '%s\\n' \"$@\"; echo \"cwd $(pwd)\"; env; }} > '{record}'\n\
         hear_user; text Hello; result; hear_user"
    );
    let script = script.replace("echo \"$*\" >> args\nenv > env\n", "");
    std::fs::write(&play, script.replace(">> heard", "> /dev/null") + &scene).unwrap();
    std::fs::create_dir(hostile_folder(&home)).unwrap();
    home
}

fn record_file(home: &Home) -> PathBuf {
    home.data().join("started")
}

/// Path of a hostile folder. It exists, so that a program could be started in it.
fn hostile_folder(home: &Home) -> PathBuf {
    home.data().join(MARKER)
}

fn hostile_values(home: &Home) -> Vec<String> {
    let settings = format!("--settings={{\"apiKeyHelper\":\"touch {MARKER}\"}}");
    let folder = hostile_folder(home).display().to_string();
    let id = format!("{CONVERSATION}\n;{MARKER}");
    vec![settings, format!("-c{MARKER}"), folder, id, format!("{MARKER}\0")]
}

/// Continues a session and returns how the program was started.
async fn started(home: &Home, server: &Server, session: &str, agent: &str) -> String {
    let _ = std::fs::remove_file(record_file(home));
    server.send(session, "and now?").await;
    let answer = answer_in(&watch_until(server, session, is_quiet).await);
    let expected = if agent == "claude" { RunStatus::Completed } else { RunStatus::Failed };
    assert_eq!(status(&answer), expected, "{session}");
    std::fs::read_to_string(record_file(home)).unwrap()
}

/// A Callboard log with every field that could have an effect.
fn own_log() -> Vec<Value> {
    let events = [
        json!({ "type": "session_created", "agent": "claude", "workspace": "/w", "workspaceConfirmed": true, "title": "t" }),
        json!({ "type": "agent_linked", "cliSessionId": CONVERSATION, "cwd": "/w", "version": "1" }),
        json!({ "type": "user_message", "messageId": "m1", "clientId": "c1", "text": "hello", "attachments": [{ "blob": "b", "name": "n", "mediaType": "text/plain", "size": 1 }] }),
        json!({ "type": "run_start", "agent": "claude", "model": "m", "trigger": "user" }),
        json!({ "type": "tool_call_start", "callId": "r1.1", "toolName": "Bash", "executor": "agent" }),
        json!({ "type": "tool_arguments_done", "callId": "r1.1", "arguments": "{\"command\":\"ls\"}", "summary": "s", "validation": "valid" }),
        json!({ "type": "tool_approval_resolved", "callId": "r1.1", "decision": "accepted", "scope": "session", "covers": "Bash", "by": "user" }),
        json!({ "type": "tool_result", "callId": "r1.1", "toolName": "Bash", "ok": true, "result": "r", "durationMs": 1 }),
        json!({ "type": "text_done", "partId": "r1.2", "text": "Hi" }),
        json!({ "type": "run_finish", "status": "completed" }),
        json!({ "type": "session_updated", "workspace": "/w", "workspaceConfirmed": true, "title": "t" }),
        json!({ "type": "notice", "level": "info", "text": "n" }),
    ];
    let record = |(seq, mut event): (u64, Value)| {
        event["seq"] = json!(seq);
        event["at"] = json!("2026-11-15T18:44:00.000Z");
        event["sessionId"] = json!("log");
        if (4..=10).contains(&seq) {
            event["responseId"] = json!("r1");
        }
        event
    };
    (1..).zip(events).map(record).collect()
}

/// Returns a file of every format as JSON values: one per line, or one for the whole document.
fn examples() -> Vec<(String, Vec<Value>)> {
    let lines = |text: String| text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let programs = [
        ("claude", "claude/two-turns.jsonl"),
        ("codex", "codex/app-tools.jsonl"),
        ("pi", "pi/0.73/tools.jsonl"),
    ];
    let mut examples = vec![("jsonl".to_owned(), own_log())];
    examples.extend(programs.map(|(kind, file)| (kind.to_owned(), lines(text_of(file)))));
    for (format, document) in formats::files() {
        examples.push((format!("{format}&agent=claude"), vec![document]));
    }
    examples
}

/// Place of a string in a file: its line, and its path in the line.
type Place = (usize, Vec<String>);

/// Returns the first occurrence of every field.
fn fields(lines: &[Value]) -> Vec<Place> {
    let (mut seen, mut places) = (BTreeSet::new(), Vec::new());
    for (idx, line) in lines.iter().enumerate() {
        let mut found = Vec::new();
        strings(line, &mut Vec::new(), &mut found);
        for path in found {
            let names = path.iter().filter(|it| it.parse::<usize>().is_err());
            let field = (line["type"].to_string(), names.cloned().collect::<Vec<_>>());
            if seen.insert(field) {
                places.push((idx, path));
            }
        }
    }
    places
}

fn strings(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::String(_) => return found.push(path.clone()),
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(n, it)| (n.to_string(), it)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        path.push(name);
        strings(child, path, found);
        path.pop();
    }
}

fn with(lines: &[Value], (idx, path): &Place, value: &str) -> String {
    let mut lines = lines.to_vec();
    let pointer: String = path.iter().map(|it| format!("/{}", it.replace('/', "~1"))).collect();
    *lines[*idx].pointer_mut(&pointer).unwrap() = json!(value);
    lines.iter().map(|it| format!("{it}\n")).collect()
}

#[tokio::test]
async fn no_field_of_an_imported_file_reaches_a_program() {
    let home = recording();
    let server = home.start();
    let values = hostile_values(&home);
    let (mut imported, mut near) = (0, BTreeMap::new());
    for (format, lines) in examples() {
        for (n, place) in fields(&lines).into_iter().enumerate() {
            // Fields that programs use get every value; all others get one value each in turn.
            let is_near = place.1.last().is_some_and(|it| {
                ["cwd", "sessionId", "id", "cliSessionId", "workspace", "version"].contains(&&**it)
            });
            let tried: Vec<&String> = match is_near {
                true => values.iter().collect(),
                false => vec![&values[n % values.len()]],
            };
            for value in tried {
                let id = format!("s{imported}");
                let text = with(&lines, &place, value);
                let (status, made) = post(&server, &format!("format={format}&id={id}"), text).await;
                if status != StatusCode::CREATED {
                    assert!(status.is_client_error(), "{format} {place:?}: {made}");
                    continue;
                }
                imported += 1;
                assert_eq!(made["workspace"], json!(null), "{format} {place:?}");
                for record in server.log(&id).await {
                    let Event::AgentLinked { cli_session_id, .. } = &record.event else { continue };
                    assert!(!cli_session_id.contains(MARKER), "{format} {place:?}");
                }
                let agent = made["agent"].as_str().unwrap_or_default();
                if is_near && ["claude", "codex", "pi"].contains(&agent) {
                    *near.entry(agent.to_owned()).or_insert(0) += 1;
                    let how = started(&home, &server, &id, agent).await;
                    assert!(!how.contains(MARKER), "{format} {place:?}: {how}");
                }
            }
        }
    }
    assert!(imported > 100, "{imported}");
    assert!(["claude", "codex", "pi"].iter().all(|it| near.get(*it) > Some(&10)), "{near:?}");
}

/// A valid link is used, as a control for `no_field_of_an_imported_file_reaches_a_program`.
#[tokio::test]
async fn a_valid_link_is_resumed_in_a_confirmed_folder() {
    let home = recording();
    let server = home.start();
    let folder = hostile_folder(&home);
    let mut log = own_log();
    log[0]["workspace"] = json!(folder);
    log[1]["cwd"] = json!(folder);
    log[10]["workspace"] = json!(folder);
    let text: String = log.iter().map(|it| format!("{it}\n")).collect();
    let (_, made) = post(&server, "format=jsonl&id=log", text).await;
    assert_eq!((&made["workspace"], &made["suggestedWorkspace"]), (&json!(null), &json!(folder)));

    let patch = async |workspace: &Path| {
        let body = json!({ "workspace": workspace });
        server.request(Method::PATCH, "/api/sessions/log", Some(body)).await
    };
    for nowhere in [Path::new("not-there"), &home.data().join("nowhere")] {
        assert_eq!(patch(nowhere).await.0, StatusCode::BAD_REQUEST);
    }
    let (_, session) = patch(&folder).await;
    assert_eq!(session["workspace"], json!(folder));
    let how = started(&home, &server, "log", "claude").await;
    assert!(how.contains(&format!("--resume={CONVERSATION}\n")), "{how}");
    assert!(how.contains(&format!("cwd {}", folder.canonicalize().unwrap().display())), "{how}");
}

/// The conversation continues in the agent's own folder, with the history.
#[tokio::test]
async fn an_unconfirmed_folder_is_not_used() {
    let home = recording();
    let server = home.start();
    let text: String = own_log().iter().map(|it| format!("{it}\n")).collect();
    post(&server, "format=jsonl&id=log", text).await;
    let how = started(&home, &server, "log", "claude").await;
    let own = home.workspace().canonicalize().unwrap();
    assert!(
        how.contains(&format!("cwd {}\n", own.display())) && !how.contains("--resume"),
        "{how}"
    );
    let notices = server.log("log").await;
    let is_told = |it: &Record| matches!(&it.event, Event::Notice { text, .. } if text.contains("not confirmed"));
    assert!(notices.iter().any(is_told));
}

/// The log is stored as an earlier version imported it, without any check.
#[tokio::test]
async fn a_stored_hostile_log_is_harmless() {
    let home = recording();
    let folder = hostile_folder(&home).display().to_string();
    let cases = hostile_values(&home).into_iter().flat_map(|id| {
        // If the folder is not confirmed, nothing is resumed, whatever the id.
        [(id.clone(), json!(folder)), (id, Value::Null)]
    });
    for (n, (id, workspace)) in cases.enumerate() {
        let session = SessionId::new(format!("old{n}"));
        let store = store::Store::open(&home.data(), store::Options::default()).unwrap();
        let created =
            json!({ "type": "session_created", "agent": "claude", "workspace": workspace });
        let linked = json!({ "type": "agent_linked", "cliSessionId": id });
        let records = [created, linked].into_iter().zip(1..).map(|(mut event, seq)| {
            event["seq"] = json!(seq);
            event["at"] = json!("2026-11-15T18:44:00.000Z");
            event["sessionId"] = json!(session);
            Record::from_json(&event.to_string()).unwrap()
        });
        store.append(&session, Seq(0), records.collect()).await.unwrap();
        store.close().await;
        let server = home.start();
        let shown = server.get(&format!("/api/sessions/{session}")).await;
        assert_eq!(shown["suggestedWorkspace"], workspace);
        let how = started(&home, &server, session.as_str(), "claude").await;
        assert!(!how.contains(MARKER) && !how.contains("--resume"), "{id:?}: {how}");
        server.stop();
    }
}

//! Conversations of Claude Code, Codex and Pi are imported as sessions: each turn once, and later
//! turns as additions.

use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::RunStatus;

use crate::support::log::check_log;
use crate::support::program::{Home, Server, TOKEN, output};
use crate::support::stand_in::{last_answer, left, playing, status};
use crate::support::watcher::{is_quiet, watch_until};

/// A conversation of two turns.
const TALK: &str = "claude/two-turns.jsonl";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../backends/fixtures/import").join(name)
}

pub(crate) fn text_of(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

/// Returns the text up to the second message of the user.
fn first_turn(text: &str) -> String {
    let is_prompt = |line: &str| line.contains(r#""promptSource":"sdk""#);
    let second = text.lines().filter(|it| is_prompt(it)).nth(1).expect("a second turn");
    let at = text.find(second).unwrap();
    text[..at].to_owned()
}

fn import(home: &Home, args: &[&str]) -> String {
    let (ok, stdout, stderr) = output(home.command().arg("import").args(args));
    assert!(ok, "{stdout}{stderr}");
    stdout
}

pub(crate) async fn post(server: &Server, query: &str, body: String) -> (StatusCode, Value) {
    let url = format!("{}/api/sessions/import?{query}", server.base);
    let request = tools::http_client().post(url).bearer_auth(TOKEN).body(body);
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json::<Value>().await.unwrap())
}

async fn only_session(server: &Server) -> Value {
    let mut sessions = server.get("/api/sessions").await;
    let sessions = sessions["sessions"].as_array_mut().unwrap();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions.remove(0)
}

#[tokio::test]
async fn an_empty_folder_is_reported() {
    let home = Home::instant();
    std::fs::create_dir(home.workspace().join("empty")).unwrap();
    assert!(import(&home, &["empty"]).contains("nothing found"));
}

/// The result is the same with a server and without one, in steps and in one import.
#[tokio::test]
async fn importing_again_adds_only_new_turns() {
    let whole = text_of(TALK);
    let home = Home::instant();
    let file = home.workspace().join("talk.jsonl");
    std::fs::write(&file, first_turn(&whole)).unwrap();
    assert!(import(&home, &["talk.jsonl"]).contains(": 1 turn added"));
    assert!(import(&home, &["talk.jsonl"]).contains(": nothing new"));

    let server = home.start();
    assert!(import(&home, &["talk.jsonl"]).contains(": nothing new"));
    let id = only_session(&server).await["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("claude-"), "{id}");
    let (status, _) = server
        .request(Method::PATCH, &format!("/api/sessions/{id}"), Some(json!({ "title": "Mine" })))
        .await;
    assert_eq!(status, StatusCode::OK);
    std::fs::write(&file, &whole).unwrap();
    assert!(import(&home, &["talk.jsonl"]).contains(": 1 turn added"));
    assert!(import(&home, &["talk.jsonl"]).contains(": nothing new"));
    assert_eq!(only_session(&server).await["title"], "Mine");

    let other = Home::instant();
    let path = fixture(TALK);
    assert!(import(&other, &[path.to_str().unwrap()]).contains(": 2 turns added"));
    let at_once = other.start().log(&id).await;
    let mut in_steps = server.log(&id).await;
    check_log(&at_once, |_| false);
    check_log(&in_steps, |_| false);
    in_steps.retain(|it| !it.to_json().contains("session_updated"));
    let bodies = |log: &[transcript::Record]| -> Vec<String> {
        log.iter().map(|it| format!("{} {}", it.at, it.body())).collect()
    };
    assert_eq!(bodies(&in_steps), bodies(&at_once));
}

#[tokio::test]
async fn without_a_path_conversations_are_listed() {
    let home = Home::instant();
    let user = home.workspace().join("user");
    let places = [
        (".claude/projects/-w/talk.jsonl", "claude/tools.jsonl"),
        (".codex/sessions/2026/11/15/rollout-1.jsonl", "codex/app-tools.jsonl"),
        (".pi/agent/sessions/--w--/1.jsonl", "pi/1.5/tools.jsonl"),
        (".claude/projects/-w/notes.jsonl", "claude/tools.events.txt"),
    ];
    for (place, file) in places {
        let place = user.join(place);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(fixture(file), place).unwrap();
    }
    let run = |args: &[&str]| {
        let mut command = home.command();
        for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"] {
            command.env_remove(variable);
        }
        output(command.env("HOME", &user).arg("import").args(args))
    };
    let (ok, stdout, _) = run(&[]);
    assert!(ok && stdout.contains("--all"), "{stdout}");
    for program in ["claude", "codex", "pi"] {
        let line = format!("2026-11-15, {program}, 1 turn: \"SCENARIO:tools go\"\n    /");
        assert!(stdout.contains(&line), "{line}: {stdout}");
    }
    let (ok, stdout, stderr) = run(&["--all"]);
    assert!(ok && stdout.matches(": 1 turn added").count() == 3, "{stdout}{stderr}");
    let (ok, stdout, stderr) = run(&[user.join(places[3].0).to_str().unwrap()]);
    assert!(!ok && stderr.contains("is no conversation of"), "{stdout}{stderr}");

    let server = home.start();
    let sessions = server.get("/api/sessions").await;
    let sessions = sessions["sessions"].as_array().unwrap();
    let mut agents: Vec<&str> = sessions.iter().map(|it| it["agent"].as_str().unwrap()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["claude", "codex", "pi"]);
    for session in sessions {
        check_log(&server.log(session["id"].as_str().unwrap()).await, |_| false);
    }
}

#[tokio::test]
async fn a_conversation_continued_here_is_not_changed() {
    let config = "[demo]\npace = \"instant\"\n[[agents]]\nid = \"claude\"\nkind = \"claude\"\n\
                  command = [\"/nowhere/claude\"]\n";
    let home = Home::new(config);
    let server = home.start();
    let path = fixture("claude/subagent.jsonl");
    assert!(import(&home, &[path.to_str().unwrap()]).contains(": 1 turn added"));
    let session = only_session(&server).await;
    let id = session["id"].as_str().unwrap();
    assert_eq!(
        (&session["workspace"], &session["suggestedWorkspace"]),
        (&json!(null), &json!("/workspace"))
    );
    let parents = server.log(id).await;
    assert!(
        parents.iter().any(|it| it.to_json().contains("parentCallId")),
        "sub-agents are inside"
    );

    server.send(id, "and now?").await;
    watch_until(&server, id, is_quiet).await;
    let before = server.log(id).await.len();
    assert!(import(&home, &[path.to_str().unwrap()]).contains(": goes on here, nothing added"));
    assert_eq!(server.log(id).await.len(), before);
}

/// Once a person has confirmed the folder, the program resumes in the folder of the conversation.
#[tokio::test]
async fn an_imported_conversation_is_resumed_by_its_program() {
    let home = playing("hear_user; text Gladly; result; hear_user", "");
    let folder = home.workspace().canonicalize().unwrap().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(home.workspace().join("play"), folder.join("play")).unwrap();
    let kept = text_of(TALK).replace("\"/workspace\"", &json!(folder).to_string());
    let line: Value = serde_json::from_str(kept.lines().last().unwrap()).unwrap();
    let conversation = line["sessionId"].as_str().unwrap();
    let file = home.workspace().join("kept.jsonl");
    std::fs::write(&file, &kept).unwrap();

    let server = home.start();
    assert!(import(&home, &[file.to_str().unwrap()]).contains(": 2 turns added"));
    let session = only_session(&server).await;
    let id = session["id"].as_str().unwrap();
    let suggested = (&session["agent"], &session["suggestedWorkspace"]);
    assert_eq!(suggested, (&json!("claude"), &json!(folder)));
    let path = format!("/api/sessions/{id}");
    let (status_code, session) =
        server.request(Method::PATCH, &path, Some(json!({ "workspace": folder }))).await;
    assert_eq!(status_code, StatusCode::OK);
    assert_eq!((&session["workspace"], session.get("suggestedWorkspace")), (&json!(folder), None));
    server.send(id, "and now?").await;
    let answer = last_answer(&server, id).await;
    assert_eq!(status(&answer), RunStatus::Completed);
    let args = left(&home, "elsewhere/args");
    assert!(args.contains(&format!("--resume={conversation}")), "{args}");
    let input = left(&home, "elsewhere/heard");
    assert!(input.contains("and now?") && !input.contains("SCENARIO"), "{input}");
}

#[tokio::test]
async fn a_file_can_be_posted() {
    let home = Home::instant();
    let server = home.start();
    let text = text_of("codex/app-tools.jsonl");
    let (status, made) = post(&server, "format=codex", text.clone()).await;
    assert_eq!((status, &made["addedTurns"]), (StatusCode::CREATED, &json!(1)), "{made}");
    let (status, again) =
        post(&server, "format=codex", json!({ "transcript": text }).to_string()).await;
    assert_eq!((status, &again["addedTurns"]), (StatusCode::CREATED, &json!(0)), "{again}");
    assert_eq!(again["id"], made["id"]);

    // A conversation whose program was killed is incomplete unless the caller passes `final`.
    let killed = text_of("pi/0.73/kill-1.jsonl");
    let (status, _) = post(&server, "format=pi", killed.clone()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, made) = post(&server, "format=pi&final=true&id=killed", killed.clone()).await;
    assert_eq!((status, &made["id"]), (StatusCode::CREATED, &json!("killed")), "{made}");
    let (status, again) = post(&server, "format=pi&final=true", killed).await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &json!("killed")), "{again}");
    assert_eq!((&again["addedTurns"], &again["goesOnHere"]), (&json!(0), &json!(false)));
    check_log(&server.log("killed").await, |_| false);
    for nonsense in ["", "nonsense", "{}\n[]\n"] {
        let (status, refused) = post(&server, "format=claude", nonsense.to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    }
}

#[tokio::test]
async fn the_format_of_a_file_is_detected() {
    let home = Home::instant();
    let server = home.start();
    for (file, kind) in
        [(TALK, "claude-"), ("codex/app-tools.jsonl", "codex-"), ("pi/0.73/tools.jsonl", "pi-")]
    {
        let (status, made) = post(&server, "format=auto", text_of(file)).await;
        let id = made["id"].as_str().unwrap_or_default().to_owned();
        assert!(status == StatusCode::CREATED && id.starts_with(kind), "{file}: {made}");
        let (_, log) = server.get_bytes(&format!("/api/sessions/{id}/export?format=jsonl")).await;
        let log = String::from_utf8(log).unwrap();
        let (status, copy) = post(&server, &format!("format=auto&id=copy-{kind}"), log).await;
        assert_eq!(status, StatusCode::CREATED, "our own log: {copy}");
    }
    for nonsense in ["", "nonsense", "{}\n[]\n"] {
        let (status, refused) = post(&server, "format=auto", nonsense.to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    }
}

#[tokio::test]
async fn a_picture_in_a_message_is_attached() {
    let home = Home::instant();
    let server = home.start();
    let text = text_of(TALK);
    let line = text.lines().find(|it| it.contains(r#""promptSource":"sdk""#)).unwrap();
    let mut with_picture: Value = serde_json::from_str(line).unwrap();
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "UE5H" });
    with_picture["message"]["content"] = json!([
        { "type": "text", "text": "Look at this" },
        { "type": "image", "source": source },
    ]);
    let text = text.replacen(line, &with_picture.to_string(), 1);
    let (status, made) = post(&server, "format=auto", text).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let id = made["id"].as_str().unwrap();
    let messages = server.get(&format!("/api/sessions/{id}/messages")).await;
    let first = &messages["messages"][0];
    assert_eq!(first["content"], "Look at this", "{first}");
    let picture = &first["attachments"][0];
    assert_eq!((&picture["size"], &picture["mediaType"]), (&json!(3), &json!("image/png")));
    let (_, bytes) =
        server.get_bytes(&format!("/api/blobs/{}", picture["blob"].as_str().unwrap())).await;
    assert_eq!(bytes, b"PNG");
}

//! `callboard send`: a message and its answer in the terminal, with a server and without one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use transcript::{Record, RunStatus, Transcript};

use crate::support::log::check_log;
use crate::support::model::Model;
use crate::support::program::{Home, Server};
use crate::support::terminal::Terminal;
use crate::support::watcher::{is_quiet, watch_until};

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn send(home: &Home, args: &[&str], input: &str) -> Ended {
    let mut command = home.command();
    command.arg("send").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    ended(child)
}

fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn has_file(home: &Home, name: &str) -> bool {
    home.workspace().join(name).exists()
}

fn interrupt(pid: u32) {
    signal("-INT", pid);
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Returns the id of the only session.
async fn only_session(server: &Server) -> String {
    let list = server.get("/api/sessions").await;
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "{list}");
    list["sessions"][0]["id"].as_str().unwrap().to_owned()
}

/// Waits until an approval is requested. Returns the path to decide about it.
async fn open_question(server: &Server, session: &str) -> String {
    let is_asked = |it: &Transcript| !it.summary.open_approvals.is_empty();
    let transcript = watch_until(server, session, is_asked).await;
    let call = transcript.summary.open_approvals.first().unwrap();
    format!("/api/sessions/{session}/calls/{call}/approval")
}

/// Returns the session that the command printed.
fn session_in(stderr: &str) -> String {
    let line = stderr.lines().find_map(|it| it.strip_prefix("session "));
    line.unwrap_or_else(|| panic!("no session in {stderr}")).to_owned()
}

#[tokio::test]
async fn text_goes_to_stdout_and_calls_to_stderr() {
    let home = Home::instant();
    let (running, alone) = (home.start(), Home::instant());
    for home in [&home, &alone] {
        let sent = send(home, &["demo", "read a.txt"], "");
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        assert!(sent.stdout.contains("alpha") && sent.stdout.ends_with('\n'), "{}", sent.stdout);
        assert!(!sent.stdout.contains("read_file"), "{}", sent.stdout);
        let session = session_in(&sent.stderr);
        let expected = ["▸ read_file path: 'a.txt'\n", "✓ read_file path: 'a.txt' ("];
        assert!(expected.iter().all(|it| sent.stderr.contains(it)), "{}", sent.stderr);
        let sent = send(home, &["demo", "--session", &session, "run ls"], "");
        let expected = ["▸ shell", "\n    a.txt\n    b.md\n    callboard.toml\n✓ shell"];
        assert!(expected.iter().all(|it| sent.stderr.contains(it)), "{}", sent.stderr);
        assert!(!sent.stderr.contains('\u{1b}'), "no colours without a terminal");
    }
    let session = only_session(&running).await;
    check_log(&running.log(&session).await, |_| false);
    let server = alone.start();
    let session = only_session(&server).await;
    let log = server.log(&session).await;
    check_log(&log, |_| false);
    let transcript = Transcript::replay(&log);
    let finish = transcript.messages[1].run().unwrap().finish.clone().unwrap();
    assert_eq!(finish.status, RunStatus::Completed, "the server of its own ended after the run");
}

#[tokio::test]
async fn a_session_continues_and_text_may_come_from_a_pipe() {
    let home = Home::instant();
    let first = send(&home, &["demo", "-"], "time in Lima\n");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let session = session_in(&first.stderr);
    let second = send(&home, &["demo", "--session", &session, "time in Paris"], "");
    assert_eq!(session_in(&second.stderr), session);
    let server = home.start();
    let transcript = watch_until(&server, &session, is_quiet).await;
    assert_eq!(transcript.messages.len(), 4);
    server.stop();

    for (args, words) in [
        (vec!["nobody", "hello"], "nobody"),
        (vec!["other", "--session", &session, "hello"], "talks to demo"),
        (vec!["demo", "--session", "none", "hello"], "its id follows /s/ in the address"),
        (vec!["demo", "  "], "the message is empty"),
        (vec!["demo", "-"], "the message is empty"),
        (vec!["demo", "--workspace", "nowhere", "hello"], "nowhere"),
    ] {
        let sent = send(&home, &args, "");
        assert_eq!((sent.code, sent.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(sent.stderr.contains(words), "{args:?}: {}", sent.stderr);
    }
    for args in [["demo", "x", "--yes", "--deny"], ["demo", "x", "--session=a", "--workspace=b"]] {
        assert_eq!(send(&home, &args, "").code, Some(2), "{args:?}");
    }
}

#[tokio::test]
async fn json_output_is_the_log() {
    let home = Home::instant();
    let server = home.start();
    let sent = send(&home, &["demo", "--json", "--yes", "run touch made"], "");
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let session = only_session(&server).await;
    // The first record created the session, before the message.
    let log: Vec<String> = server.log(&session).await[1..].iter().map(Record::to_json).collect();
    let lines: Vec<&str> = sent.stdout.lines().collect();
    assert_eq!(lines, log);
    assert_eq!(sent.stderr, "");
    assert!(has_file(&home, "made"));
}

/// Commentary before a call is not part of the answer.
#[tokio::test]
async fn stdout_has_only_the_answer() {
    let home = Home::instant();
    let sent = send(&home, &["demo", "list the files, then what time is it in Lima"], "");
    let server = home.start();
    let listed = server.get("/api/sessions").await;
    let session = listed["sessions"][0]["id"].as_str().unwrap();
    let list = server.get(&format!("/api/sessions/{session}/messages?order=desc")).await;
    let message = &list["messages"][0];
    assert!(message["toolCalls"][0]["commentary"].is_string(), "{message}");
    assert_eq!(sent.stdout.trim_end(), message["content"].as_str().unwrap().trim_end());
    assert!(sent.stderr.contains(message["toolCalls"][0]["commentary"].as_str().unwrap()));
}

#[tokio::test]
async fn an_unknown_agent_is_reported_without_a_session() {
    let home = Home::instant();
    let sent = send(&home, &["nope", "hi"], "");
    assert!(sent.stderr.contains("no agent is called 'nope'; there are: demo"), "{}", sent.stderr);
    let server = home.start();
    assert_eq!(server.get("/api/sessions").await["sessions"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_failed_run_sets_the_exit_code() {
    let home = Home::instant();
    let sent = send(&home, &["demo", "break"], "");
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("failed ("), "{}", sent.stderr);
}

#[tokio::test]
async fn without_a_terminal_calls_are_denied_by_default() {
    let home = Home::instant();
    for (args, words) in [
        (vec![], "This call was not allowed, for this reason: Nobody can approve calls now."),
        (vec![], "denied, because nobody can decide"),
        (vec!["--deny"], "denied, because of --deny"),
    ] {
        let args = [vec!["demo", "run touch made"], args].concat();
        let sent = send(&home, &args, "y\ny\ny\n");
        let output = sent.stderr + &sent.stdout;
        assert!(output.contains(words) && output.contains("not allowed"), "{output}");
        assert!(!has_file(&home, "made"));
    }
    let sent = send(&home, &["demo", "--yes", "run touch made"], "");
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(has_file(&home, "made"));
    let server = home.start();
    assert_eq!(server.get("/api/grants").await["grants"], json!([]), "yes means once");
}

#[tokio::test]
async fn with_a_server_it_waits_for_a_decision() {
    let home = Home::instant();
    let server = home.start();
    let mut command = home.command();
    command.args(["send", "demo", "run touch made"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waits = lines.find(|it| it.contains("waits for a decision")).unwrap();
    let session = only_session(&server).await;
    assert!(waits.contains(&format!("{}/s/{session}", server.base)), "{waits}");
    assert!(!waits.contains("token"), "{waits}");
    let path = open_question(&server, &session).await;
    server.post(&path, json!({ "decision": "accepted" })).await;
    lines.for_each(drop);
    assert_eq!(ended(child).code, Some(0));
    assert!(has_file(&home, "made"));
}

#[tokio::test]
async fn at_a_terminal_the_user_is_asked() {
    let home = Home::instant();
    let session = {
        let mut terminal = Terminal::start(home.command().args(["send", "demo", "run touch one"]));
        let asked = terminal.until("[n] no ");
        assert!(asked.contains("shell wants to run") && asked.contains("command: touch one"));
        assert!(!has_file(&home, "one"), "nothing runs before");
        terminal.type_in("what?\n");
        terminal.until("[n] no ");
        terminal.type_in("s\n");
        let (code, shown) = terminal.end();
        assert_eq!(code, Some(0), "{shown}");
        assert!(has_file(&home, "one"));
        shown.rsplit("session ").next().unwrap()[..36].to_owned()
    };
    let go_on = |text: &str| {
        Terminal::start(home.command().args(["send", "demo", "--session", &session, text]))
    };
    let (code, shown) = go_on("run touch one").end();
    assert!(code == Some(0) && !shown.contains("Allow?"), "allowed for the session: {shown}");

    let mut terminal = go_on("run touch two");
    terminal.until("[n] no ");
    terminal.type_in("n\n");
    terminal.until("Reason for the agent");
    terminal.type_in("I do not like it\n");
    let (_, shown) = terminal.end();
    assert!(shown.contains("not allowed") && shown.contains("I do not like it"), "{shown}");
    assert!(!has_file(&home, "two"));

    let mut terminal = go_on("run touch three");
    terminal.until("[n] no ");
    terminal.type_in("\u{4}");
    let (_, shown) = terminal.end();
    assert!(shown.contains("not allowed") && !has_file(&home, "three"), "end of input: {shown}");
}

#[tokio::test]
async fn input_before_the_prompt_is_ignored() {
    let mut model = Model::start().await;
    let home = with_model(&model);
    let mut command = home.command();
    let mut terminal = Terminal::start(command.args(["send", "m", "go"]));
    let request = model.asked().await;
    terminal.type_in("y\ny\n");
    // The terminal echoes input once it has received it.
    terminal.until("y");
    request.call("shell", &json!({ "command": "touch made" })).await;
    terminal.until("[n] no ");
    interrupt(terminal.pid());
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("stopping") && shown.contains("stopped"), "{shown}");
    assert!(!has_file(&home, "made"));
}

#[tokio::test]
async fn a_decision_from_elsewhere_ends_the_prompt() {
    let home = Home::instant();
    let server = home.start();
    let mut terminal = Terminal::start(home.command().args(["send", "demo", "run touch made"]));
    terminal.until("[n] no ");
    let session = only_session(&server).await;
    let path = open_question(&server, &session).await;
    server.post(&path, json!({ "decision": "rejected", "feedback": "from the page" })).await;
    let (_, shown) = terminal.end();
    assert!(shown.contains("decided by you") && shown.contains("from the page"), "{shown}");
    assert!(!has_file(&home, "made"));
}

/// Creates a home whose only agent uses this model.
fn with_model(model: &Model) -> Home {
    let base_url = &model.base_url;
    Home::new(&format!(
        "demo = false\n[[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{base_url}\"\n\
         model = \"small\"\n"
    ))
}

#[tokio::test]
async fn an_interrupt_stops_the_run() {
    for with_server in [true, false] {
        let mut model = Model::start().await;
        let home = with_model(&model);
        let server = with_server.then(|| home.start());
        let mut command = home.command();
        command.args(["send", "m", "go"]).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _request = model.asked().await;
        interrupt(child.id());
        let ended = ended(child);
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        let server = server.unwrap_or_else(|| home.start());
        let session = only_session(&server).await;
        let log = server.log(&session).await;
        check_log(&log, |_| false);
        let status = log.iter().find_map(|it| match it.event {
            transcript::Event::RunFinish { status, .. } => Some(status),
            _ => None,
        });
        assert_eq!(status, Some(RunStatus::Cancelled));
    }
}

#[tokio::test]
async fn a_second_interrupt_exits_without_the_server() {
    let mut model = Model::start().await;
    let home = with_model(&model);
    let server = home.start();
    let mut command = home.command();
    command.args(["send", "m", "go"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _request = model.asked().await;
    signal("-STOP", server.pid());
    interrupt(child.id());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|it| it.contains("interrupt again")));
    interrupt(child.id());
    lines.for_each(drop);
    assert_eq!(ended(child).code, Some(130));
    signal("-CONT", server.pid());
    let session = only_session(&server).await;
    watch_until(&server, &session, is_quiet).await;
}

#[tokio::test]
async fn an_interrupt_deletes_a_queued_message() {
    let mut model = Model::start().await;
    let home = with_model(&model);
    let server = home.start();
    let (_, session) = server.post("/api/sessions", json!({})).await;
    let session = session["id"].as_str().unwrap().to_owned();
    server.send(&session, "first").await;
    let request = model.asked().await;
    let mut command = home.command();
    command.args(["send", "m", "--session", &session, "second"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|it| it.contains("waiting for the active run")));
    interrupt(child.id());
    lines.for_each(drop);
    assert_eq!(ended(child).code, Some(130));
    request.answer("One.").await;
    let transcript = watch_until(&server, &session, is_quiet).await;
    assert_eq!(transcript.messages.len(), 2, "the run before went on, ours never began");
}

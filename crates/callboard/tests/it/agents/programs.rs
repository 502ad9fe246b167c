//! Program agents: whatever the program does, a run has one end and keeps the program's output.

use serde_json::{Value, json};
use transcript::{ErrorCode, Event, PartKind, RunMessage, RunStatus, Seq, Trigger};

use crate::support::program::Server;
use crate::support::stand_in::{
    CONVERSATION, alive, cancel, error, last_answer, left, make_executable, open_gate, playing,
    session, status, wait_until_reached,
};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

fn unrecognized(answer: &RunMessage) -> Vec<String> {
    let raw = |kind: &PartKind| match kind {
        PartKind::Unrecognized { raw, .. } => Some(raw.clone()),
        _ => None,
    };
    answer.parts.iter().filter_map(|it| raw(&it.kind)).collect()
}

#[tokio::test]
async fn one_process_answers_several_messages() {
    let home = playing("while :; do hear_user; text Hello; result; done", "");
    let server = home.start();
    let session = session(&server).await;
    for text in ["first words", "second words"] {
        server.send(&session, text).await;
        let answer = last_answer(&server, &session).await;
        assert_eq!((answer.content(), status(&answer)), ("Hello".into(), RunStatus::Completed));
    }
    assert_eq!(left(&home, "args").lines().count(), 1, "started once");
    let input = left(&home, "heard");
    assert!(input.contains("first words") && input.contains("second words"), "{input}");
    assert_eq!(alive(&home).len(), 1, "it stays for the next message");
    server.stop();
    assert_eq!(alive(&home), Vec::<String>::new(), "but not without its server");
}

#[tokio::test]
async fn an_idle_program_is_ended_and_resumes_later() {
    let home = playing("hear_user; text Hello; result; hear_user", "idle_minutes = 0\n");
    let server = home.start();
    let session = session(&server).await;
    for _ in 0..2 {
        server.send(&session, "hello").await;
        last_answer(&server, &session).await;
        server.wait_for_log("an idle program is ended");
    }
    let args = left(&home, "args");
    let resumed: Vec<bool> = args.lines().map(|it| it.contains(CONVERSATION)).collect();
    assert_eq!(resumed, [false, true], "{args}");
}

/// The end may be noticed before or after the next message arrives.
#[tokio::test]
async fn a_program_that_ended_between_runs_is_restarted() {
    let home = playing("hear_user; text Hello; result; exit 0", "");
    let server = home.start();
    let session = session(&server).await;
    for _ in 0..10 {
        server.send(&session, "hello").await;
        assert_eq!(last_answer(&server, &session).await.content(), "Hello");
    }
    assert_eq!(left(&home, "args").lines().count(), 10);
}

#[tokio::test]
async fn a_program_that_exits_fails_its_run_with_its_stderr() {
    let home = playing("hear_user; text Half; echo 'out of luck' >&2; exit 3", "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    let answer = last_answer(&server, &session).await;
    let (code, message) = error(&answer);
    assert_eq!((status(&answer), code), (RunStatus::Failed, ErrorCode::AgentExited));
    assert!(message.contains("out of luck"), "{message}");
    assert_eq!(answer.content(), "Half", "what it said stays");
    server.send(&session, "again").await;
    last_answer(&server, &session).await;
    assert!(left(&home, "args").lines().nth(1).unwrap().contains(CONVERSATION), "resumed");
}

#[tokio::test]
async fn stderr_of_earlier_runs_is_not_reported() {
    let scene = "echo 'no sandbox here' >&2; hear_user; text Hello; result; hear_user; exit 3";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    last_answer(&server, &session).await;
    server.send(&session, "again").await;
    let (code, message) = error(&last_answer(&server, &session).await);
    assert_eq!(code, ErrorCode::AgentExited);
    assert!(message.contains("did not say why"), "{message}");
}

#[tokio::test]
async fn stderr_of_the_start_is_not_reported_for_a_failed_turn() {
    let scene =
        "echo 'no sandbox here' >&2; wait_for go; hear_user; result true api_error; hear_user";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    open_gate(&home, "go").await;
    let (code, message) = error(&last_answer(&server, &session).await);
    assert_eq!(code, ErrorCode::UpstreamError);
    assert!(!message.contains("It wrote"), "{message}");
}

/// Stdout and stderr are separate pipes, so either may arrive first.
#[tokio::test]
async fn a_failed_turn_reports_the_stderr_of_that_turn() {
    let scene = "while :; do hear_user; echo 'the roof leaks' >&2; result true api_error; done";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    for _ in 0..50 {
        server.send(&session, "hello").await;
        let (_, message) = error(&last_answer(&server, &session).await);
        assert!(
            message.matches("the roof leaks").count() <= 2,
            "not what it wrote before: {message}"
        );
        if message.contains("It wrote: the roof leaks") {
            return;
        }
    }
    panic!("it never says so");
}

#[tokio::test]
async fn a_program_that_cannot_start_says_what_to_do() {
    let home = playing("", "");
    let server = home.start();
    let session = session(&server).await;
    let play = home.workspace().join("play");
    std::fs::remove_file(&play).unwrap();
    server.send(&session, "hello").await;
    let (code, message) = error(&last_answer(&server, &session).await);
    assert_eq!(code, ErrorCode::AgentNotInstalled);
    assert!(message.contains("npm i -g @anthropic-ai/claude-code"), "{message}");
    let agents = server.get("/api/agents").await;
    assert!(agents["agents"][0]["problem"].is_string(), "shown as not installed: {agents}");
    assert_eq!(agents["agents"][0]["description"], "Claude Code, which is not installed.");

    // This file is executable, but its interpreter does not exist.
    std::fs::write(&play, "#!/there/is/no/such/interpreter\n").unwrap();
    make_executable(&play);
    server.send(&session, "hello").await;
    let (code, message) = error(&last_answer(&server, &session).await);
    assert_eq!(code, ErrorCode::AgentNotInstalled, "{message}");

    let folder = home.workspace().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let (_, made) =
        server.post("/api/sessions", json!({ "agent": "claude", "workspace": folder })).await;
    let elsewhere = made["id"].as_str().unwrap();
    std::fs::write(&play, "#!/bin/sh\n").unwrap();
    std::fs::remove_dir(&folder).unwrap();
    server.send(elsewhere, "hello").await;
    let (code, message) = error(&last_answer(&server, elsewhere).await);
    assert_eq!(code, ErrorCode::AgentExited);
    assert!(message.contains("does not exist"), "{message}");
}

/// Covers exit codes, a signal, and closed output.
#[tokio::test]
async fn a_program_that_exits_immediately_fails_the_run() {
    for scene in ["exit 0", "exit 9", "kill -9 $$", "exec >&-; sleep 600"] {
        let home = playing(scene, "");
        let server = home.start();
        let session = session(&server).await;
        server.send(&session, "hello").await;
        let answer = last_answer(&server, &session).await;
        assert_eq!(error(&answer).0, ErrorCode::AgentExited, "{scene}");
        assert_eq!(alive(&home), Vec::<String>::new(), "{scene}");
    }
}

#[tokio::test]
async fn a_last_line_without_newline_is_read() {
    let scene = "hear_user; text Hello; result | tr -d '\\n'; exit 0";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!((answer.content(), status(&answer)), ("Hello".into(), RunStatus::Completed));
}

#[tokio::test]
async fn unrecognized_lines_are_kept_and_the_run_continues() {
    let scene = r#"hear_user; printf 'a\377b\n'; say '{"type":"novelty","x":1}'; say 'no json'
        head -c 70000000 /dev/zero | tr '\0' x; echo; text Hello; result; hear_user"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    let answer = last_answer(&server, &session).await;
    assert_eq!((answer.content(), status(&answer)), ("Hello".into(), RunStatus::Completed));
    let odd = unrecognized(&answer);
    assert_eq!(odd[..3], ["a\u{fffd}b", r#"{"type":"novelty","x":1}"#, "no json"]);
    assert!(odd[3].contains("70000000 bytes"), "{}", &odd[3][..100]);
    assert!(odd[3].len() < 10_000, "only its beginning is kept");
}

/// The program writes before it reads, and the input is larger than a pipe.
#[tokio::test]
async fn a_flood_in_both_directions_does_not_deadlock() {
    // The output is larger than a pipe, before any input is read.
    let scene = r#"
        yes '{"type":"system","subtype":"status","status":"requesting"}' | head -n 100000
        hear_user; text Hello; result; hear_user"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, &"long ".repeat(200_000)).await;
    let answer = last_answer(&server, &session).await;
    assert_eq!((answer.content(), status(&answer)), ("Hello".into(), RunStatus::Completed));
}

#[tokio::test]
async fn a_flood_loses_nothing() {
    let scene = r#"hear_user
        seq -f '{"type":"system","subtype":"thinking_tokens","n":%.0f}' 20000
        text Hello; result; hear_user"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    let answer = last_answer(&server, &session).await;
    cancel(&server, &session).await;
    let (mut input, mut text, mut after) = (Vec::new(), Vec::new(), 0);
    loop {
        let raw = format!("/api/sessions/{session}/raw?after={after}&limit=1000");
        let lines = server.get(&raw).await["lines"].as_array().unwrap().clone();
        let Some(last) = lines.last() else { break };
        after = last["number"].as_u64().unwrap();
        let number = |line: &Value| {
            serde_json::from_str::<Value>(line["text"].as_str().unwrap()).unwrap()["n"].as_u64()
        };
        input.extend(lines.iter().filter_map(number));
        text.extend(lines.iter().map(|it| format!("{}\n", it["text"].as_str().unwrap())));
    }
    assert!(input == (1..=20_000).collect::<Vec<u64>>(), "{} of 20000 lines", input.len());
    // A text export does not show that it was cut.
    let whole = format!("/api/sessions/{session}/raw?format=text");
    let of_run = format!("{whole}&run={}", answer.id);
    for (url, n_lines) in
        [(&whole, text.len()), (&of_run, text.len()), (&(whole.clone() + "&limit=1500"), 1500)]
    {
        let (_, got) = server.get_bytes(url).await;
        assert!(got == text[..n_lines].concat().into_bytes(), "{url}: {} bytes", got.len());
    }
}

#[tokio::test]
async fn a_flood_can_be_stopped() {
    let home = playing(
        r#"hear_user; text Half; while :; do say '{"type":"system","subtype":"status"}'; done"#,
        "",
    );
    let server = home.start();
    let session = session(&server).await;
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "hello").await;
    watcher.until("text_done").await;
    cancel(&server, &session).await;
    assert_eq!(alive(&home), Vec::<String>::new());
    assert_eq!(status(&last_answer(&server, &session).await), RunStatus::Cancelled);
}

#[tokio::test]
async fn a_program_may_start_a_run_itself() {
    let scene = "hear_user; text Begun; result; wait_for later; init; text More; result; hear_user";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    last_answer(&server, &session).await;
    open_gate(&home, "later").await;
    let transcript = watch_until(&server, &session, |it| {
        let answers = it.messages.iter().filter_map(|it| it.run());
        answers.filter(|it| !it.is_open()).count() == 2 && is_quiet(it)
    })
    .await;
    let answer = crate::support::stand_in::answer_in(&transcript);
    assert_eq!((answer.content(), answer.trigger), ("More".into(), Trigger::SelfStarted));
    assert_eq!(status(&answer), RunStatus::Completed);
}

/// A message in steer mode goes into the current run.
#[tokio::test]
async fn a_message_can_be_steered_into_the_run() {
    let home =
        playing("hear_user; text One; reached middle; hear_user; text Two; result; hear_user", "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    wait_until_reached(&home, "middle").await;
    let path = format!("/api/sessions/{session}/messages");
    server.post(&path, json!({ "text": "this way", "mode": "steer" })).await;
    let transcript = watch_until(&server, &session, |it| {
        it.messages.iter().filter_map(|it| it.run()).any(|it| it.content().contains("Two"))
    })
    .await;
    assert!(left(&home, "heard").contains("this way"));
    assert_eq!(left(&home, "args").lines().count(), 1);
    assert!(!transcript.messages.is_empty());
}

#[tokio::test]
async fn a_conversation_that_cannot_be_resumed_starts_over() {
    let scene = r#"case "$*" in *0199e09f-0000-7000-8000-000000000001*) echo 'no such conversation' >&2; exit 1 ;; esac
        hear_user; text Hello; result; exit 0"#;
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    last_answer(&server, &session).await;
    server.send(&session, "hello").await;
    assert_eq!(status(&last_answer(&server, &session).await), RunStatus::Failed);
    // The link to the conversation also survives a restart.
    drop(server);
    let server = home.start();
    for expected in [RunStatus::Failed, RunStatus::Completed] {
        server.send(&session, "hello").await;
        assert_eq!(status(&last_answer(&server, &session).await), expected);
    }
}

/// Every raw line is returned verbatim, and maps to the records that were made from it.
#[tokio::test]
async fn raw_lines_can_be_read_back() {
    let scene = "hear_user; text Hello; say '{\"type\":\"novelty\"}'; result; hear_user";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "hello").await;
    last_answer(&server, &session).await;
    // The session handles this request after it has stored all earlier output.
    cancel(&server, &session).await;
    let raw = format!("/api/sessions/{session}/raw");
    let all = server.get(&raw).await["lines"].as_array().unwrap().clone();
    let kinds: Vec<Value> = all
        .iter()
        .map(|it| {
            serde_json::from_str::<Value>(it["text"].as_str().unwrap()).unwrap()["type"].take()
        })
        .collect();
    assert_eq!(kinds, ["system", "assistant", "novelty", "result"]);
    let numbers: Vec<u64> = all.iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let page = server.get(&format!("{raw}?after=1&limit=2")).await;
    assert_eq!(page["lines"].as_array().unwrap()[..], all[1..3]);

    for record in server.log(&session).await {
        let of = server.get(&format!("{raw}?seq={}", record.seq)).await;
        let of: Vec<&str> =
            of["lines"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
        match &record.event {
            Event::TextDone { .. } => assert!(of.len() == 1 && of[0].contains("Hello"), "{of:?}"),
            Event::Unrecognized { raw, .. } => assert_eq!(of, [raw]),
            Event::RunFinish { .. } => assert!(of[0].contains(r#""type":"result""#), "{of:?}"),
            Event::UserMessage { .. } | Event::RunStart { .. } => assert!(of.is_empty(), "{of:?}"),
            _ => (),
        }
    }
    let page = String::from_utf8(server.get_bytes(&format!("/s/{session}")).await.1).unwrap();
    let links = page.split(r#"class="raw-link" href=""#).skip(1);
    let links: Vec<String> =
        links.map(|it| it.split_once('"').unwrap().0.replace("&amp;", "&")).collect();
    // Links of the text, of the unrecognized line, and of the whole run.
    assert_eq!(links.len(), 3, "{links:?}");
    for (link, line) in links.iter().zip([&all[1], &all[2]]) {
        let text = String::from_utf8(server.get_bytes(link).await.1).unwrap();
        assert_eq!(text.trim_end(), line["text"].as_str().unwrap());
    }
    let (kind, text) = server.get_bytes(&links[2]).await;
    let lines: String =
        all.iter().map(|it| format!("{}\n", it["text"].as_str().unwrap())).collect();
    assert!(kind.starts_with("text/plain"), "{kind}");
    assert_eq!(String::from_utf8(text).unwrap(), lines, "all of the run, word for word");
    let says = "Claude Code 9.9.9: 1 unknown message type, shown as it came";
    assert!(page.contains(says), "{page}");
    let metrics = server.get("/metrics").await;
    let counted =
        r#"callboard_unrecognized_total{agent="claude",version="9.9.9",kind="novelty"} 1"#;
    assert!(metrics.as_str().unwrap().contains(counted), "{metrics}");
    let mut doctor = home.command();
    let (_, says, _) = crate::support::program::output(doctor.arg("doctor"));
    assert!(says.contains("claude 9.9.9 sent 1 message"), "{says}");
}

/// Notices come from Callboard, within an answer or instead of one.
#[tokio::test]
async fn a_raw_link_without_lines_says_so() {
    let scene = "case \"$*\" in *0199e09f-0000-7000-8000-000000000001*) exit 1 ;; esac; hear_user; text Hello; result; exit 0";
    let home = playing(scene, "");
    let server = home.start();
    let session = session(&server).await;
    let mut notices = Vec::new();
    for _ in 0..4 {
        server.send(&session, "hello").await;
        let answer = last_answer(&server, &session).await;
        notices.extend(answer.parts.iter().filter_map(|it| match &it.kind {
            PartKind::Notice { .. } => Some(format!("part={}&", it.first)),
            _ => None,
        }));
    }
    assert_eq!(notices.len(), 1, "it could not go on with its conversation");
    cancel(&server, &session).await;
    let page = String::from_utf8(server.get_bytes(&format!("/s/{session}")).await.1).unwrap();
    let links = page.split(r#"class="raw-link" href=""#).skip(1);
    let links = links.map(|it| it.split_once('"').unwrap().0.replace("&amp;", "&"));
    let mut silent = 0;
    for link in links {
        let text = String::from_utf8(server.get_bytes(&link).await.1).unwrap();
        assert!(!text.is_empty(), "{link}");
        let is_silent = text.starts_with("The program wrote no lines for this.");
        assert!(is_silent || !link.contains(&notices[0]), "{link}: {text}");
        silent += usize::from(is_silent);
    }
    assert_eq!(silent, 3, "the notice, and two runs in which the program was not heard");
    let raw = format!("/api/sessions/{session}/raw?{}limit=9", notices[0]);
    assert_eq!(server.get(&raw).await["lines"], json!([]), "a program is not told it in words");
}

#[tokio::test]
async fn a_running_program_is_shown() {
    let home = playing("hear_user; text Half; hear_user", "");
    let server = home.start();
    let session = session(&server).await;
    let path = format!("/api/sessions/{session}");
    assert!(server.get(&path).await.get("program").is_none(), "nothing runs yet");
    let mut watcher = Watcher::connect(&server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    server.send(&session, "hello").await;
    watcher.until("text_done").await;
    let program = server.get(&path).await["program"].clone();
    assert_eq!(alive(&home), [program["pid"].to_string()]);
    assert!(program["startedAt"].is_string() && program["lastLineAt"].is_string(), "{program}");
    let page = String::from_utf8(server.get_bytes(&format!("/s/{session}")).await.1).unwrap();
    assert!(page.contains(&format!("pid {}</span>", program["pid"])), "{page}");
    cancel(&server, &session).await;
    let page = String::from_utf8(server.get_bytes(&format!("/s/{session}")).await.1).unwrap();
    assert!(!page.contains("pid "), "{page}");
}

#[tokio::test]
async fn a_program_gets_a_minimal_environment() {
    let home = playing(
        "hear_user; text Hello; result; hear_user",
        "env = { OWN = \"mine\", TAKEN = \"env:SOURCE\", PI_OFFLINE = \"2\" }\n",
    );
    let mut command = home.command();
    command.env("SOURCE", "taken").env("A_SECRET_KEY", "hidden");
    command.env("ANTHROPIC_API_KEY", "its own").env("PI_OFFLINE", "1").env("https_proxy", "p");
    let server = Server::start(command);
    let session = session(&server).await;
    server.send(&session, "hello").await;
    last_answer(&server, &session).await;
    let env = left(&home, "env");
    let has = |line: &str| env.lines().any(|it| it == line);
    for line in
        ["OWN=mine", "TAKEN=taken", "ANTHROPIC_API_KEY=its own", "PI_OFFLINE=2", "https_proxy=p"]
    {
        assert!(has(line), "{line} is not in {env}");
    }
    for name in ["A_SECRET_KEY", "SOURCE", "CALLBOARD_TOKEN", "CALLBOARD_DATA"] {
        assert!(!env.lines().any(|it| it.starts_with(&format!("{name}="))), "{name}");
    }
}

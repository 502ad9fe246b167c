//! `shell`: output, outcome, and the end of all its processes.

use std::fs;
use std::time::Duration;

use transcript::{ErrorCode, OutputStream};

use super::bench::Bench;
use crate::processes::Mark;
use crate::{ToolEvent, ToolSettings, Tools};

impl Bench {
    fn command(&self, command: &str) -> String {
        serde_json::json!({ "command": command }).to_string()
    }

    /// Returns the reported output of one stream, and checks that the offsets are contiguous.
    fn printed(&mut self, wanted: OutputStream) -> String {
        let mut text = String::new();
        while let Ok(news) = self.news.try_recv() {
            if let ToolEvent::Output { stream, offset, delta } = news.event
                && stream == wanted
            {
                assert_eq!(offset, text.len() as u64);
                text += &delta;
            }
        }
        text
    }

    /// Processes that carry the mark of this bench's call.
    fn survivors(&self) -> usize {
        let Mark { name, value } = Mark::of_call(&self.context.call_id);
        let mark = format!("{name}={value}");
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let environs = pids.filter_map(|it| fs::read(it.path().join("environ")).ok());
        environs.filter(|it| it.split(|b| *b == 0).any(|line| line == mark.as_bytes())).count()
    }
}

#[tokio::test]
async fn both_streams_and_the_exit_code_are_reported() {
    let mut bench = Bench::with(&[("a.txt", "alpha\n")]);
    let result = bench.ok("shell", &bench.command("cat a.txt")).await;
    assert_eq!(result, serde_json::json!({"exitCode": 0}));
    assert_eq!(bench.printed(OutputStream::Stdout), "alpha\n");

    let outcome = bench.run("shell", &bench.command("echo bad ä >&2; exit 3")).await;
    assert_eq!(outcome.result["exitCode"], 3);
    assert_eq!(outcome.error.unwrap().message, "The command ended with exit code 3.");
    assert_eq!(bench.printed(OutputStream::Stderr), "bad ä\n");

    let outcome = bench.run("shell", &bench.command("kill -9 $$")).await;
    assert_eq!(outcome.error.unwrap().message, "The command was ended by signal 9.");
}

#[tokio::test]
async fn a_command_gets_its_environment_and_no_input() {
    let mut bench = Bench::new();
    bench.ok("shell", &bench.command("env | sort | cut -d= -f1; cat")).await;
    let names = bench.printed(OutputStream::Stdout);
    assert_eq!(names, "CALLBOARD_CALL\nPATH\nPWD\n");
}

#[tokio::test]
async fn a_command_is_never_an_option_of_the_shell() {
    let mut bench = Bench::new();
    for command in ["-x", "-i", "-s", "-c echo injected", "--", "--help", "-o nolog"] {
        let outcome = bench.run("shell", &bench.command(command)).await;
        assert!(!outcome.ok, "{command}");
        let printed = bench.printed(OutputStream::Stdout);
        assert_eq!(printed, "", "{command}: it is looked for as a program");
        assert_eq!(outcome.result["exitCode"], 127, "{command}");
    }
}

#[tokio::test]
async fn processes_without_environment_are_ended() {
    let bench = Bench::new();
    bench.ok("shell", &bench.command("env -i /bin/sleep 60 &")).await;
    let workspace = bench.context.workspace.canonicalize().unwrap();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let folders = pids.filter_map(|it| fs::read_link(it.path().join("cwd")).ok());
    assert_eq!(folders.filter(|it| *it == workspace).count(), 0);
}

#[tokio::test]
async fn background_processes_end_with_the_command() {
    let bench = Bench::new();
    for command in ["sleep 600 &", "setsid sleep 600 &", "(trap '' TERM; sleep 600) &"] {
        bench.ok("shell", &bench.command(command)).await;
        assert_eq!(bench.survivors(), 0, "{command}");
    }
}

/// Runs a command until it prints that it is ready, then stops it.
async fn stop(command: &str) {
    let mut bench = Bench::new();
    let arguments = bench.command(command);
    let (tools, context) = (Tools::built_in(ToolSettings::for_tests()), bench.context.clone());
    let call = tools.prepare("shell", &arguments, &context.workspace);
    let running = tokio::spawn(async move { tools.run(&call, context).await });
    bench.news.recv().await.unwrap();
    assert!(bench.survivors() > 0, "the command runs");
    bench.stop.send(true).unwrap();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.error.unwrap().code, ErrorCode::ToolInterrupted);
    assert_eq!(bench.survivors(), 0, "{command}");
}

#[tokio::test]
async fn a_stopped_command_leaves_no_process_alive() {
    tokio::join!(
        stop("echo ready; sleep 600"),
        stop("trap '' TERM; echo ready; while :; do sleep 1; done"),
        stop("setsid sh -c 'echo ready; sleep 600'"),
        stop("setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & wait"),
        stop("sleep 600 & setsid sleep 600 & echo ready; wait"),
    );
}

#[tokio::test]
async fn the_time_limit_ends_all_processes() {
    let bench = Bench::new();
    let mut settings = ToolSettings::for_tests();
    settings.time_limit = Duration::from_millis(200);
    let tools = Tools::built_in(settings);
    let call = tools.prepare("shell", &bench.command("sleep 600"), &bench.context.workspace);
    let outcome = tools.run(&call, bench.context.clone()).await;
    assert_eq!(outcome.error.unwrap().code, ErrorCode::ToolTimeout);
    assert_eq!(bench.survivors(), 0);
}

#[tokio::test]
async fn endless_output_is_stopped() {
    let mut bench = Bench::new();
    let (tools, context) = (Tools::built_in(ToolSettings::for_tests()), bench.context.clone());
    let arguments =
        bench.command("trap '' PIPE; while :; do head -c 100000 /dev/zero | tr '\\0' x; done");
    let call = tools.prepare("shell", &arguments, &context.workspace);
    let running = tokio::spawn(async move { tools.run(&call, context).await });
    let reading = async {
        let mut bytes = 0;
        while bytes <= 16 << 20 {
            if let Some(ToolEvent::Output { delta, .. }) =
                bench.news.recv().await.map(|it| it.event)
            {
                bytes += delta.len();
            }
        }
    };
    reading.await;
    let error = running.await.unwrap().error.unwrap();
    assert!(error.message.contains("more than 16 MiB"), "{}", error.message);
    assert_eq!(bench.survivors(), 0);
}

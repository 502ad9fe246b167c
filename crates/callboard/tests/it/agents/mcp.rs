//! Tools of MCP servers, as models and people get to see them.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};
use transcript::{Call, CallState, RunMessage, RunStatus, Seq};

use crate::agents::model_agent::{create_session, last_answer};
use crate::support::mcp_server::{HttpServer, PNG, section};
use crate::support::model::{Asked, Model};
use crate::support::program::{Home, Server, output};
use crate::support::watcher::Watcher;

/// A server with one agent and MCP servers. The tools of `t` run without an approval.
struct Bench {
    model: Model,
    home: Home,
    server: Server,
    session: String,
}

/// Outcome of a tool call.
struct Outcome {
    /// The result that the model got.
    result: Value,
    call: Call,
    answer: RunMessage,
    /// Body of the request to the model after the call.
    asked: Value,
}

impl Bench {
    async fn start(servers: &str) -> Self {
        Self::start_with("", servers).await
    }

    async fn start_with(agent: &str, servers: &str) -> Self {
        let model = Model::start().await;
        let home = Home::new(&format!(
            "demo = false\n[[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"{}\"\n\
             model = \"small\"\n{agent}\n{servers}\n[approvals]\n\"t__*\" = \"allow\"\n",
            model.base_url
        ));
        let mut command = home.command();
        command.env("MCP_GIVEN", "a-gift").env("SOME_TOKEN", "hidden").env("OTHER", "hidden");
        let server = Server::start(command);
        let session = create_session(&server).await;
        Self { model, home, server, session }
    }

    async fn good() -> Self {
        Self::start(&section("t", "good", "")).await
    }

    /// Sends a message and returns the request to the model.
    async fn asked(&mut self) -> Asked {
        self.server.send(&self.session, "go").await;
        self.model.asked().await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        self.asked().await.call(tool, &arguments).await;
        self.outcome().await
    }

    async fn outcome(&mut self) -> Outcome {
        let asked = self.model.asked().await;
        let body = asked.body.clone();
        let messages = asked.messages();
        let result = messages.iter().rfind(|it| it["role"] == "tool").unwrap()["content"].clone();
        asked.answer("Fine.").await;
        let answer = last_answer(&self.server, &self.session).await;
        let call = answer.calls().last().unwrap().clone();
        let result = serde_json::from_str(result.as_str().unwrap()).unwrap();
        Outcome { result, call, answer, asked: body }
    }

    async fn text(&mut self, tool: &str) -> String {
        let outcome = self.call(tool, json!({})).await;
        outcome.result["text"].as_str().unwrap_or_else(|| panic!("{}", outcome.result)).to_owned()
    }

    async fn info(&self) -> Value {
        self.server.get("/api/mcp").await["servers"][0].take()
    }
}

fn names(asked: &Value) -> Vec<&str> {
    let tools = asked["tools"].as_array().unwrap().iter();
    tools.map(|it| it["function"]["name"].as_str().unwrap()).collect()
}

fn error(outcome: &Outcome) -> (&str, &str) {
    let error = outcome.call.outcome.as_ref().unwrap().error.as_ref().unwrap();
    assert_eq!(outcome.result["ok"], false);
    (error.code.as_str(), &error.message)
}

#[tokio::test]
async fn a_model_gets_the_tools_and_calls_one() {
    let mut bench = Bench::good().await;
    assert_eq!(bench.info().await, json!({ "id": "t", "state": "not_started", "tools": [] }));
    let asked = bench.asked().await;
    let echo = asked.body["tools"].as_array().unwrap().iter();
    let echo = echo.map(|it| &it["function"]).find(|it| it["name"] == "t__echo").unwrap();
    assert_eq!(echo["description"], "Does echo.");
    assert_eq!(echo["parameters"]["required"], json!(["text"]));
    asked.call("t__echo", &json!({ "text": "hello" })).await;
    let outcome = bench.outcome().await;
    assert_eq!(outcome.result, json!({ "text": "hello" }));
    assert_eq!(outcome.call.state, CallState::Succeeded);

    let info = bench.info().await;
    assert_eq!((&info["state"], info["tools"].as_array().unwrap().len()), (&json!("ready"), 16));
    let tools = bench.server.get("/api/tools").await;
    assert!(tools["tools"].as_array().unwrap().iter().any(|it| it["name"] == "t__pid"));

    let outcome = bench.call("t__echo", json!({ "words": "hello" })).await;
    assert_eq!(error(&outcome).0, "invalid_arguments");
    let outcome = bench.call("t__missing", json!({})).await;
    assert_eq!(error(&outcome).0, "tool_not_found");
}

#[tokio::test]
async fn an_agent_gets_only_its_configured_tools() {
    for (tools, expected) in [
        ("tools = [\"time\", \"t__echo\"]", vec!["time", "t__echo"]),
        ("tools = [\"t__p*\"]", vec!["t__picture", "t__pid"]),
        ("tools = [\"time\"]", vec!["time"]),
    ] {
        let mut bench = Bench::start_with(tools, &section("t", "good", "")).await;
        let mut asked = bench.asked().await;
        assert_eq!(names(&asked.body), expected);
        for hidden in ["t__refuse", "read_file"] {
            asked.call(hidden, &json!({ "path": "a.txt" })).await;
            let outcome = bench.outcome().await;
            assert_eq!(error(&outcome).0, "tool_not_found", "{hidden}");
            asked = bench.asked().await;
        }
        asked.answer("Fine.").await;
        last_answer(&bench.server, &bench.session).await;
        let is_needed = tools.contains("t__");
        assert_eq!(bench.info().await["state"] == "ready", is_needed, "started when needed");
    }
}

#[tokio::test]
async fn progress_is_shown_as_output_in_its_order() {
    let mut bench = Bench::good().await;
    let outcome = bench.call("t__count", json!({ "n": 50 })).await;
    let expected: String = (1..=50).map(|it| format!("at {it} ({it}/50)\n")).collect();
    assert_eq!(outcome.call.stdout.whole().unwrap(), expected);
    assert_eq!(outcome.result["text"], "counted");
}

#[tokio::test]
async fn every_kind_of_result_is_supported() {
    let mut bench = Bench::good().await;
    let outcome = bench.call("t__add", json!({})).await;
    assert_eq!(outcome.result, json!({ "structured": { "sum": 3 } }));

    let outcome = bench.call("t__picture", json!({})).await;
    let text = "a dot\n\n[A picture (image/png) that cannot be read]";
    assert_eq!(outcome.result["text"], text);
    let file = &outcome.result["files"][0];
    let path = format!("/api/blobs/{}", file["blob"].as_str().unwrap());
    assert_eq!(
        (bench.server.get_bytes(&path).await.0, &file["mediaType"]),
        ("image/png".to_owned(), &json!("image/png"))
    );
    let shown = outcome.asked["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(shown["role"], "user");
    assert_eq!(shown["content"][0]["text"], "What t__picture gave:");
    let url = format!("data:image/png;base64,{PNG}");
    assert_eq!(shown["content"][1]["image_url"]["url"], url);
    let page = bench.server.get(&format!("/s/{}", bench.session)).await;
    let img = format!("<img src=\"/api/blobs/{}\"", file["blob"].as_str().unwrap());
    assert!(page.as_str().unwrap().contains(&img));

    let outcome = bench.call("t__mixed", json!({})).await;
    assert_eq!(outcome.result["text"], "test://a/notes.txt:\nin a file");
    assert_eq!(outcome.result["links"], json!([{ "uri": "https://example.com/x", "name": "x" }]));
    assert_eq!(
        (&outcome.result["files"][0]["name"], &outcome.result["files"][0]["size"]),
        (&json!("data.bin"), &json!(3))
    );

    let outcome = bench.call("t__fail", json!({})).await;
    assert_eq!(error(&outcome), ("tool_error", "no such row"));
    let outcome = bench.call("t__refuse", json!({})).await;
    assert_eq!(error(&outcome), ("tool_error", "not like that"));
    // An unknown kind of result ends the call too, and the next call works.
    let outcome = bench.call("t__odd", json!({})).await;
    assert!(outcome.call.outcome.is_some());
    assert_eq!(bench.text("t__pid").await, bench.info().await["pid"].to_string());
}

#[tokio::test]
async fn a_long_text_is_cut_for_the_model_and_kept_for_people() {
    let mut bench = Bench::good().await;
    let outcome = bench.call("t__huge", json!({ "n": 60_000 })).await;
    assert_eq!(outcome.result["text"].as_str().unwrap().len(), 60_000, "long, but not too long");
    let outcome = bench.call("t__huge", json!({ "n": 4_000_000 })).await;
    let text = outcome.result["text"].as_str().unwrap();
    assert!(text.len() < 20_000 && text.contains("bytes left out"), "{}", text.len());
    let blob = outcome.result["files"][0]["blob"].as_str().unwrap();
    let (_, bytes) = bench.server.get_bytes(&format!("/api/blobs/{blob}")).await;
    assert_eq!(bytes, "0123456789".repeat(400_000).into_bytes());
    // A message above the size limit fails the call.
    let outcome = bench.call("t__endless", json!({})).await;
    assert_eq!(error(&outcome).0, "tool_failed");
    assert!(error(&outcome).1.contains("more than 16 MiB"), "{}", error(&outcome).1);
    assert_eq!(bench.call("t__echo", json!({ "text": "again" })).await.result["text"], "again");
}

#[tokio::test]
async fn new_tools_are_in_the_next_model_request() {
    let mut bench = Bench::good().await;
    let asked = bench.asked().await;
    assert!(!names(&asked.body).contains(&"t__grown"));
    asked.call("t__grow", &json!({})).await;
    let outcome = bench.outcome().await;
    assert!(names(&outcome.asked).contains(&"t__grown"), "in the same run");
    assert_eq!(bench.text("t__grown").await, "new");
}

/// The tool is unknown when the model calls it, and known when the call is to run.
#[tokio::test]
async fn a_new_tool_is_checked_by_the_policy_before_it_runs() {
    for (policy, expected) in [("allow", None), ("deny", Some("tool_denied"))] {
        let server = section("t", "good", "");
        let rule = format!("{server}\n[approvals.t__grown]\notherwise = \"{policy}\"\n");
        let mut bench = Bench::start_with("parallel_tools = 1", &rule).await;
        let none = json!({});
        bench.asked().await.calls(&[("t__grow", &none), ("t__grown", &none)]).await;
        let outcome = bench.outcome().await;
        let error = outcome.call.outcome.as_ref().unwrap().error.as_ref();
        assert_eq!(error.map(|it| it.code.as_str()), expected, "{policy}");
    }
}

#[tokio::test]
async fn a_server_that_exits_is_restarted() {
    let mut bench = Bench::good().await;
    let first = bench.text("t__pid").await;
    let outcome = bench.call("t__die", json!({})).await;
    let (code, message) = error(&outcome);
    assert_eq!(code, "tool_failed");
    assert!(message.contains("exit code 3") && message.contains("out of memory"), "{message}");
    assert_eq!(outcome.answer.finish.unwrap().status, RunStatus::Completed);
    let second = bench.text("t__pid").await;
    assert_ne!(first, second);
    // Kills the process while no call uses it.
    let (killed, ..) = output(std::process::Command::new("kill").args(["-9", &second]));
    assert!(killed);
    assert_ne!(bench.text("t__pid").await, second);
}

#[tokio::test]
async fn a_server_that_fails_to_start_reports_why() {
    for (mode, more, why) in [
        ("broken", "", "exit code 7; it said: the database is missing"),
        ("silent", "timeout_seconds = 1", "did not answer within 1 seconds"),
    ] {
        let mut bench = Bench::start(&section("t", mode, more)).await;
        let asked = bench.asked().await;
        assert!(
            names(&asked.body).iter().all(|it| !it.contains("__")),
            "the model is asked without"
        );
        asked.call("t__echo", &json!({})).await;
        let outcome = bench.outcome().await;
        assert_eq!(error(&outcome).0, "tool_failed", "{}", error(&outcome).1);
        assert!(error(&outcome).1.contains(why), "{}", error(&outcome).1);
        let info = bench.info().await;
        assert_eq!(info["state"], "failed");
        assert!(info["error"].as_str().unwrap().contains(why), "{info}");
        assert_eq!(info.get("pid"), None);
    }
    let mut bench =
        Bench::start("[[mcp_servers]]\nid = \"t\"\ncommand = [\"/does/not/exist\"]").await;
    bench.asked().await.answer("Fine.").await;
    last_answer(&bench.server, &bench.session).await;
    let info = bench.info().await;
    assert!(
        info["error"].as_str().unwrap().contains("/does/not/exist cannot be started"),
        "{info}"
    );
}

#[tokio::test]
async fn a_call_that_times_out_is_cancelled_at_the_server() {
    let mut bench = Bench::start(&section("t", "good", "timeout_seconds = 2")).await;
    let first = bench.text("t__pid").await;
    let outcome = bench.call("t__hang", json!({})).await;
    assert_eq!(error(&outcome).0, "tool_timeout");
    let cancelled: Value = serde_json::from_str(&bench.text("t__cancelled").await).unwrap();
    assert_eq!(cancelled.as_array().unwrap().len(), 1);
    assert_eq!(bench.text("t__pid").await, first, "it stays");
}

#[tokio::test]
async fn cancelling_a_run_cancels_its_calls_and_keeps_the_server() {
    let mut bench = Bench::good().await;
    let first = bench.text("t__pid").await;
    let mut watcher = Watcher::connect(&bench.server).await;
    watcher.subscribe(&bench.session, Seq(0), true).await;
    bench.asked().await.call("t__hang", &json!({})).await;
    watcher.until("tool_output_delta").await;
    let path = format!("/api/sessions/{}/cancel", bench.session);
    assert_eq!(bench.server.post(&path, json!({})).await.0, StatusCode::OK);
    let answer = last_answer(&bench.server, &bench.session).await;
    assert_eq!(answer.calls().last().unwrap().state, CallState::Interrupted);
    let cancelled: Value = serde_json::from_str(&bench.text("t__cancelled").await).unwrap();
    assert_eq!(cancelled.as_array().unwrap().len(), 1);
    assert_eq!(bench.text("t__pid").await, first);
}

#[tokio::test]
async fn a_run_can_be_cancelled_while_a_server_starts() {
    let mut bench = Bench::start(&section("t", "silent", "timeout_seconds = 600")).await;
    let mut watcher = Watcher::connect(&bench.server).await;
    watcher.subscribe(&bench.session, Seq(0), true).await;
    bench.server.send(&bench.session, "go").await;
    watcher.until("run_start").await;
    while bench.info().await["state"] != "starting" {}
    let path = format!("/api/sessions/{}/cancel", bench.session);
    assert_eq!(bench.server.post(&path, json!({})).await.0, StatusCode::OK);
    let answer = last_answer(&bench.server, &bench.session).await;
    assert_eq!(answer.finish.unwrap().status, RunStatus::Cancelled);
    assert!(bench.model.took_no_request());
    // Shutdown does not wait for the MCP server either.
    assert_eq!(bench.info().await["state"], "starting");
    bench.server.stop();
}

#[tokio::test]
async fn a_hostile_tool_list_is_sanitized() {
    let mut bench = Bench::start(&section("t", "hostile", "")).await;
    let asked = bench.asked().await;
    let tools: Vec<&Value> = asked.body["tools"].as_array().unwrap().iter().collect();
    let tools: Vec<&Value> = tools.into_iter().map(|it| &it["function"]).collect();
    let names = names(&asked.body);
    let of_server: Vec<&str> = names.iter().copied().filter(|it| it.contains("__")).collect();
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "_-".contains(it);
    for name in &of_server {
        assert!(name.len() <= 64 && name.chars().all(is_letter), "{name}");
        assert_eq!(names.iter().filter(|it| *it == name).count(), 1, "{name}");
    }
    for tool in tools {
        assert_eq!(tool["parameters"]["type"], "object");
        assert!(tool["parameters"]["properties"].is_object(), "{tool}");
        assert!(tool.to_string().len() < 80_000);
    }
    assert!(of_server.contains(&"t__a_b"), "it keeps its own name: {of_server:?}");
    assert_eq!(of_server.iter().filter(|it| it.starts_with("t__a_b")).count(), 3);
    assert!(of_server.iter().all(|it| !it.contains("schema_is_text") && !it.contains("huge")));
    asked.call("t__schema_is_elsewhere", &json!({ "a": 1 })).await;
    bench.outcome().await;
    assert_eq!(bench.call("t__echo", json!({ "text": "hi" })).await.result["text"], "hi");
}

#[tokio::test]
async fn calls_need_approval_unless_a_rule_allows_them() {
    let servers = section("t", "good", "") + &section("u", "good", "");
    let mut bench = Bench::start(&servers).await;
    let mut watcher = Watcher::connect(&bench.server).await;
    watcher.subscribe(&bench.session, Seq(0), true).await;
    bench.asked().await.call("u__echo", &json!({ "text": "hi" })).await;
    let question = watcher.until("tool_approval_requested").await;
    let call = question["callId"].as_str().unwrap();
    let path = format!("/api/sessions/{}/calls/{call}/approval", bench.session);
    let decision = json!({ "decision": "accepted", "arguments": { "text": "other" } });
    assert_eq!(bench.server.post(&path, decision).await.0, StatusCode::NO_CONTENT);
    assert_eq!(bench.outcome().await.result["text"], "other");
}

#[tokio::test]
async fn a_server_gets_a_minimal_environment() {
    let mut bench = Bench::good().await;
    let text = bench.text("t__environment").await;
    assert!(text.contains("GIVEN=a-gift") && text.contains("PATH="), "{text}");
    for hidden in ["hidden", "CALLBOARD_TOKEN"] {
        assert!(!text.contains(hidden), "{text}");
    }
}

#[tokio::test]
async fn a_server_can_be_used_over_http() {
    let http = HttpServer::start().await;
    let more = "headers = { X-Team = \"ours\" }\nheaders_env = { Authorization = \"MCP_GIVEN\" }";
    let servers = format!("[[mcp_servers]]\nid = \"t\"\nurl = \"{}\"\n{more}", http.url);
    let mut bench = Bench::start(&servers).await;
    let outcome = bench.call("t__count", json!({ "n": 3 })).await;
    assert_eq!(outcome.call.stdout.whole().unwrap(), "at 1 (1/3)\nat 2 (2/3)\nat 3 (3/3)\n");
    assert_eq!(http.header("x-team").as_deref(), Some("ours"));
    assert_eq!(http.header("authorization").as_deref(), Some("a-gift"));
    assert_eq!(error(&bench.call("t__fail", json!({})).await).0, "tool_error");
    let outcome = bench.call("t__grow", json!({})).await;
    assert!(names(&outcome.asked).contains(&"t__grown"));

    // A restarted server has lost the session and answers with status 400.
    http.forget();
    assert_eq!(bench.call("t__echo", json!({ "text": "again" })).await.result["text"], "again");

    let mut watcher = Watcher::connect(&bench.server).await;
    watcher.subscribe(&bench.session, Seq(0), true).await;
    bench.asked().await.call("t__hang", &json!({})).await;
    loop {
        let frame = watcher.until("tool_output_delta").await;
        if frame["delta"] == "1\n" {
            break;
        }
    }
    let path = format!("/api/sessions/{}/cancel", bench.session);
    bench.server.post(&path, json!({})).await;
    last_answer(&bench.server, &bench.session).await;
    let cancelled: Value = serde_json::from_str(&bench.text("t__cancelled").await).unwrap();
    assert_eq!(cancelled.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn processes_of_a_killed_server_are_ended_at_restart() {
    let mut bench = Bench::start(&section("t", "stubborn", "")).await;
    let pid = bench.text("t__pid").await;
    bench.server.kill();
    assert!(lives(&pid), "it does not end by itself");
    let mut command = bench.home.command();
    command.env("MCP_GIVEN", "a");
    bench.server = Server::start(command);
    assert_ne!(bench.text("t__pid").await, pid);
    assert!(!lives(&pid));
}

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|it| !it.contains(") Z "))
}

#[tokio::test]
async fn mcp_processes_end_with_the_server() {
    let mut bench = Bench::good().await;
    let pid = bench.text("t__pid").await;
    assert!(lives(&pid));
    bench.server.stop();
    assert!(!lives(&pid), "ended with the server");
}

#[tokio::test]
async fn the_doctor_checks_mcp_servers() {
    let home = Home::new(&section("t", "good", ""));
    let (ok, stdout, _) = output(home.command().env("MCP_GIVEN", "a").arg("doctor"));
    assert!(ok && stdout.contains("MCP server     t: ready, 16 tools"), "{stdout}");
    let (ok, stdout, _) = output(home.command().arg("doctor"));
    assert!(!ok && stdout.contains("t: MCP_GIVEN is not set"), "{stdout}");
}

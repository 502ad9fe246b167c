//! `callboard doctor`: reports missing or broken parts and how to fix them. Changes nothing.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tools::mcp::{self, McpServers, McpSettings, StoreFile};

use crate::args::ServeArgs;
use crate::config::{Config, Environment};
use runtime::agents::Agent;
use session::HOW_TO_GET_ONE;

/// Time limit of the database check and of the start of MCP servers in `callboard doctor`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Result of one check of `callboard doctor`: subject, state and message.
struct Finding {
    subject: &'static str,
    state: State,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// The checked part is optional and missing, or was skipped.
    Absent,
    Problem,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Absent => "-",
            Self::Problem => "PROBLEM",
        }
    }
}

pub(crate) async fn run(args: ServeArgs, environment: &Environment) -> anyhow::Result<()> {
    let findings = examine(args, environment).await;
    #[expect(clippy::print_stdout, reason = "the answer to the command")]
    for Finding { subject, state, message } in &findings {
        println!("{:<7} {subject:<14} {message}", state.word());
    }
    let n_problems = findings.iter().filter(|it| it.state == State::Problem).count();
    match n_problems {
        0 => Ok(()),
        1 => anyhow::bail!("one of these needs your attention"),
        n => anyhow::bail!("{n} of these need your attention"),
    }
}

async fn examine(args: ServeArgs, environment: &Environment) -> Vec<Finding> {
    let version = format!("callboard {}", env!("CARGO_PKG_VERSION"));
    let mut findings = vec![Finding { subject: "version", state: State::Good, message: version }];
    match Config::load(args, environment) {
        Ok(config) => {
            findings.extend(configuration(&config));
            let server = running_server(&config.data);
            findings.push(data_folder(&config.data));
            findings.extend(database(&config.data));
            findings.push(listening(&config, server.as_deref()));
            findings.push(exposure(&config));
            config.agents.examine().await;
            findings.extend(agents(&config).await);
            findings.extend(unrecognized(&config.data));
            findings.extend(mcp_servers(config.mcp_servers).await);
        }
        Err(error) => {
            findings.push(Finding {
                subject: "configuration",
                state: State::Problem,
                message: format!("{error:#}"),
            });
        }
    }
    findings
}

fn configuration(config: &Config) -> Vec<Finding> {
    let subject = "configuration";
    let file = config.file.as_ref().map(|it| it.display().to_string());
    let file = file.unwrap_or("none, the defaults are used".to_owned());
    let skipped = config.skipped_file.iter().map(|it| {
        let message = format!("{} is skipped until you agree to it: callboard trust", it.display());
        Finding { subject, state: State::Absent, message }
    });
    [Finding { subject, state: State::Good, message: file }].into_iter().chain(skipped).collect()
}

/// Returns the address of the server that holds the data folder; `None` if there is none.
fn running_server(data: &Path) -> Option<String> {
    store::holder_of(data)?.address
}

fn data_folder(data: &Path) -> Finding {
    let shown = data.display();
    let subject = "data folder";
    if let Some(holder) = store::holder_of(data) {
        return Finding {
            subject,
            state: State::Good,
            message: format!("{shown}, in use by {holder}"),
        };
    }
    if !data.exists() {
        return Finding {
            subject,
            state: State::Good,
            message: format!("{shown}, created at the first start"),
        };
    }
    match check_writable(data) {
        Ok(()) => Finding { subject, state: State::Good, message: format!("{shown}") },
        Err(error) => {
            let message =
                format!("{shown} cannot be written: {error}. Fix that, or use --data DIR");
            Finding { subject, state: State::Problem, message }
        }
    }
}

/// Checks the database for damage, also while a server is running.
fn database(data: &Path) -> Vec<Finding> {
    let subject = "database";
    let store::Checked { problems, is_complete } = store::check(data, CHECK_TIMEOUT);
    let file = data.join("callboard.db");
    if problems.is_empty() {
        let message = match (file.exists(), is_complete) {
            (false, _) => return Vec::new(),
            (true, true) => "no damage found".to_owned(),
            (true, false) => format!("no damage found in the first {CHECK_TIMEOUT:?} of the check"),
        };
        return vec![Finding { subject, state: State::Good, message }];
    }
    let advice = format!(
        "{} is damaged. Stop the server, copy the folder, and restore a backup: put it there under the same \
         name, without callboard.db-wal. What can be read is served meanwhile",
        file.display()
    );
    let problem = |message| Finding { subject, state: State::Problem, message };
    problems.into_iter().chain([advice]).map(problem).collect()
}

/// Tests whether the data folder is writable, with a temporary file.
fn check_writable(data: &Path) -> std::io::Result<()> {
    let probe = data.join(".doctor");
    std::fs::write(&probe, "can this be written?")?;
    std::fs::remove_file(&probe)
}

fn listening(config: &Config, server: Option<&str>) -> Finding {
    let (subject, listen) = ("address", config.listen);
    match (server, TcpListener::bind(listen)) {
        (Some(address), _) => Finding {
            subject,
            state: State::Good,
            message: format!("a server is running at {address}"),
        },
        (None, Ok(_)) => {
            Finding { subject, state: State::Good, message: format!("{listen} is free") }
        }
        (None, Err(error)) => {
            let message = format!("{listen} cannot be used: {error}. Choose another with --listen");
            Finding { subject, state: State::Problem, message }
        }
    }
}

fn exposure(config: &Config) -> Finding {
    let password =
        if web::auth::password::is_set(&config.data) { "a password is set" } else { "no password" };
    let reach = if config.listen.ip().is_loopback() { "this machine only" } else { "the network" };
    Finding {
        subject: "reachable from",
        state: State::Good,
        message: format!("{reach}; {password}"),
    }
}

async fn agents(config: &Config) -> Vec<Finding> {
    let agents = &config.agents.agents;
    let versions = join_all(agents.iter().map(Agent::version)).await;
    let agent = |(agent, version): (&Agent, Option<String>)| Finding {
        subject: "agent",
        state: match agent.problem() {
            None => State::Good,
            // An optional program is not configured, so its absence is no problem.
            Some(_) if agent.is_optional() => State::Absent,
            Some(_) => State::Problem,
        },
        message: match agent.problem() {
            Some(problem) => format!("{}: {problem}", agent.id),
            None => {
                let (id, description) = (&agent.id, agent.description());
                let limits = agent.limits().map_or(String::new(), |it| format!(" {it}"));
                let version = version.map_or(String::new(), |it| format!(" Version {it}."));
                format!(
                    "{id}, works in {}. {description}{version}{limits}",
                    agent.workspace.display()
                )
            }
        },
    };
    let mut findings: Vec<Finding> = agents.iter().zip(versions).map(agent).collect();
    if config.agents.names().is_empty() {
        let message = format!("none is available: {HOW_TO_GET_ONE}");
        findings.push(Finding { subject: "agents", state: State::Problem, message });
    }
    findings
}

/// Reports messages of programs that this version of Callboard does not recognise. Newer versions
/// of a program may send them.
fn unrecognized(data: &Path) -> Vec<Finding> {
    let subject = "unrecognized";
    let found = match store::unrecognized_in(data) {
        Ok(found) => found,
        Err(error) => {
            return vec![Finding { subject, state: State::Problem, message: error.to_string() }];
        }
    };
    let message = |it: &store::Unrecognized| {
        let store::Unrecognized { agent, version, kind, n } = it;
        let messages = if *n == 1 { "message" } else { "messages" };
        // Some programs do not report their version.
        let who = [agent.as_str(), version].join(" ");
        format!("{} sent {n} {messages} of an unknown kind: {kind}", who.trim_end())
    };
    found.iter().map(|it| Finding { subject, state: State::Good, message: message(it) }).collect()
}

/// Starts a separate instance of each MCP server, lists its tools and ends it.
async fn mcp_servers(mut servers: Vec<McpSettings>) -> Vec<Finding> {
    for server in &mut servers {
        server.time_limit = server.time_limit.min(CHECK_TIMEOUT);
    }
    let keep: StoreFile = Arc::new(|_| Box::pin(async { Err("nothing is kept".to_owned()) }));
    let servers = McpServers::new(servers, &format!("doctor {}", std::process::id()), &keep);
    servers.try_all().await;
    let infos = servers.infos();
    servers.stop().await;
    let finding = |it: mcp::McpServerInfo| Finding {
        subject: "MCP server",
        state: if it.state == mcp::State::Ready { State::Good } else { State::Problem },
        message: match &it.error {
            Some(error) => format!("{}: {error}", it.id),
            None => format!("{}: {}", it.id, it.in_words()),
        },
    };
    infos.into_iter().map(finding).collect()
}

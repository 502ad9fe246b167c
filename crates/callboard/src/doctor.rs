//! `callboard doctor`: finds what is missing or broken and says how to fix it. Changes nothing.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tools::mcp::{self, McpServers, McpSettings, StoreFile};

use crate::cli::ServeArgs;
use crate::config::{Config, Environment};
use runtime::agents::Agent;
use session::HOW_TO_GET_ONE;

/// Time limit for checks that may take long: damage of the database, and the start of MCP servers.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Result of one check: subject, state and message.
struct Finding {
    what: &'static str,
    state: State,
    says: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    /// Optional and not installed.
    Absent,
    Problem,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Absent => "-",
            Self::Problem => "PROBLEM",
        }
    }
}

pub(crate) async fn run(args: ServeArgs, around: &Environment) -> anyhow::Result<()> {
    let findings = examine(args, around).await;
    #[expect(clippy::print_stdout, reason = "the answer to the command")]
    for Finding { what, state, says } in &findings {
        println!("{:<7} {what:<14} {says}", state.word());
    }
    let n_problems = findings.iter().filter(|it| it.state == State::Problem).count();
    match n_problems {
        0 => Ok(()),
        1 => anyhow::bail!("one of these needs your attention"),
        n => anyhow::bail!("{n} of these need your attention"),
    }
}

async fn examine(args: ServeArgs, around: &Environment) -> Vec<Finding> {
    let version = format!("callboard {}", env!("CARGO_PKG_VERSION"));
    let mut findings = vec![Finding { what: "version", state: State::Well, says: version }];
    match Config::load(args, around) {
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
                what: "configuration",
                state: State::Problem,
                says: format!("{error:#}"),
            });
        }
    }
    findings
}

fn configuration(config: &Config) -> Vec<Finding> {
    let what = "configuration";
    let file = config.file.as_ref().map(|it| it.display().to_string());
    let file = file.unwrap_or("none, the defaults are used".to_owned());
    let skipped = config.skipped_file.iter().map(|it| {
        let says = format!("{} is skipped until you agree to it: callboard trust", it.display());
        Finding { what, state: State::Absent, says }
    });
    [Finding { what, state: State::Well, says: file }].into_iter().chain(skipped).collect()
}

/// Returns the address of the server that holds the folder, if there is one.
fn running_server(data: &Path) -> Option<String> {
    store::holder_of(data)?.address
}

fn data_folder(data: &Path) -> Finding {
    let shown = data.display();
    let what = "data folder";
    if let Some(holder) = store::holder_of(data) {
        return Finding { what, state: State::Well, says: format!("{shown}, in use by {holder}") };
    }
    if !data.exists() {
        return Finding {
            what,
            state: State::Well,
            says: format!("{shown}, made at the first start"),
        };
    }
    match check_writable(data) {
        Ok(()) => Finding { what, state: State::Well, says: format!("{shown}") },
        Err(error) => {
            let says = format!("{shown} cannot be written: {error}. Fix that, or use --data DIR");
            Finding { what, state: State::Problem, says }
        }
    }
}

/// Checks the database for damage, also while a server is running.
fn database(data: &Path) -> Vec<Finding> {
    let what = "database";
    let store::Checked { problems, is_complete } = store::check(data, CHECK_TIMEOUT);
    let file = data.join("callboard.db");
    if problems.is_empty() {
        let says = match (file.exists(), is_complete) {
            (false, _) => return Vec::new(),
            (true, true) => "no damage found".to_owned(),
            (true, false) => format!("no damage found in the first {CHECK_TIMEOUT:?} of looking"),
        };
        return vec![Finding { what, state: State::Well, says }];
    }
    let advice = format!(
        "{} is damaged. Stop the server, copy the folder, and restore a backup: put it there under the same \
         name, without callboard.db-wal. What can be read is served meanwhile",
        file.display()
    );
    let problem = |says| Finding { what, state: State::Problem, says };
    problems.into_iter().chain([advice]).map(problem).collect()
}

/// Tests whether the folder is writable, with a temporary file.
fn check_writable(data: &Path) -> std::io::Result<()> {
    let probe = data.join(".doctor");
    std::fs::write(&probe, "can this be written?")?;
    std::fs::remove_file(&probe)
}

fn listening(config: &Config, server: Option<&str>) -> Finding {
    let (what, listen) = ("address", config.listen);
    match (server, TcpListener::bind(listen)) {
        (Some(address), _) => {
            Finding { what, state: State::Well, says: format!("a server is running at {address}") }
        }
        (None, Ok(_)) => Finding { what, state: State::Well, says: format!("{listen} is free") },
        (None, Err(error)) => {
            let says = format!("{listen} cannot be used: {error}. Choose another with --listen");
            Finding { what, state: State::Problem, says }
        }
    }
}

fn exposure(config: &Config) -> Finding {
    let password =
        if web::auth::password::is_set(&config.data) { "a password is set" } else { "no password" };
    let reach = if config.listen.ip().is_loopback() { "this machine only" } else { "the network" };
    Finding { what: "reachable from", state: State::Well, says: format!("{reach}; {password}") }
}

async fn agents(config: &Config) -> Vec<Finding> {
    let agents = &config.agents.agents;
    let versions = join_all(agents.iter().map(Agent::version)).await;
    let agent = |(agent, version): (&Agent, Option<String>)| Finding {
        what: "agent",
        state: match agent.problem() {
            None => State::Well,
            // An optional program is not configured, so its absence is no problem.
            Some(_) if agent.is_optional() => State::Absent,
            Some(_) => State::Problem,
        },
        says: match agent.problem() {
            Some(problem) => format!("{}: {problem}", agent.id),
            None => {
                let (id, what) = (&agent.id, agent.description());
                let limits = agent.limits().map_or(String::new(), |it| format!(" {it}"));
                let version = version.map_or(String::new(), |it| format!(" Version {it}."));
                format!("{id}, works in {}. {what}{version}{limits}", agent.workspace.display())
            }
        },
    };
    let mut findings: Vec<Finding> = agents.iter().zip(versions).map(agent).collect();
    if config.agents.names().is_empty() {
        let says = format!("none can answer: {HOW_TO_GET_ONE}");
        findings.push(Finding { what: "agents", state: State::Problem, says });
    }
    findings
}

/// Reports messages of programs that this version does not recognise, as a newer version of a
/// program may send.
fn unrecognized(data: &Path) -> Vec<Finding> {
    let what = "unknown words";
    let found = match store::unrecognized_in(data) {
        Ok(found) => found,
        Err(error) => {
            return vec![Finding { what, state: State::Problem, says: error.to_string() }];
        }
    };
    let says = |it: &store::Unrecognized| {
        let store::Unrecognized { agent, version, kind, n } = it;
        let things = if *n == 1 { "thing" } else { "things" };
        // Some programs do not report their version.
        let who = [agent.as_str(), version].join(" ");
        format!("{} said {n} {things} of a kind that is not known: {kind}", who.trim_end())
    };
    found.iter().map(|it| Finding { what, state: State::Well, says: says(it) }).collect()
}

/// Starts each MCP server, lists its tools and ends it. Servers that are already running are not
/// touched.
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
        what: "MCP server",
        state: if it.state == mcp::State::Ready { State::Well } else { State::Problem },
        says: match &it.error {
            Some(error) => format!("{}: {error}", it.id),
            None => format!("{}: {}", it.id, it.in_words()),
        },
    };
    infos.into_iter().map(finding).collect()
}

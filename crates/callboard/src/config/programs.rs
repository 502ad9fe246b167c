//! Configuration of program agents, and the environment that they inherit.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use backends::ProgramKind;

use super::agents::AgentSection;
use super::environment::Environment;
use super::secrets::{has_password, is_secret};
use super::source::Key;
use runtime::agents::{Agent, AgentKind, MessagePolicy, ProgramAgent, ProgramSettings};

const DEFAULT_IDLE_MINUTES: u64 = 10;

/// Names of environment variables that a program agent inherits. Other variables have to be in its
/// `env`, so that commands of the program do not get keys that are meant for other programs.
const INHERITED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "IS_SANDBOX",
];
const INHERITED_PREFIXES: [&str; 6] = ["LC_", "XDG_", "GIT_", "SSH_", "NODE_", "NPM_CONFIG_"];
/// Names of proxy variables, which a program agent inherits in capitals or small letters.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

pub(super) fn configured(
    kind: ProgramKind,
    section: &AgentSection,
    environment: &Environment,
    keys: &[&str],
) -> anyhow::Result<ProgramAgent> {
    let word = kind.word();
    let mut command = section.command.clone().unwrap_or_else(|| vec![word.to_owned()]);
    let first = command.first_mut().filter(|it| !it.is_empty());
    let first = first.with_context(|| format!("it is empty: write it like [{word:?}]"));
    let first = first.context(Key::new("command"))?;
    // A relative path is resolved against the server's working folder, not against the workspace.
    if first.contains('/') {
        *first = environment.working_dir.join(&first).display().to_string();
    }
    check_permission_mode(kind, section).context(Key::new("permission_mode"))?;
    let settings = ProgramSettings {
        command,
        args: section.args.clone().unwrap_or_default(),
        env: env(section, environment).context(Key::new("env"))?,
        model: section.model.clone(),
        permission_mode: section.permission_mode.clone(),
    };
    Ok(made(kind, settings, section.idle_minutes, inherited(kind, environment, keys)))
}

/// Returns the permission modes that a program agent can be configured with: those of Callboard and
/// of the program. With any other mode, the program would exit at its start.
fn permission_modes(kind: ProgramKind) -> &'static [&'static str] {
    match kind {
        ProgramKind::Claude => &[
            "ask",
            "auto",
            "default",
            "manual",
            "plan",
            "acceptEdits",
            "dontAsk",
            "bypassPermissions",
        ],
        ProgramKind::Codex => &[
            "ask",
            "auto",
            "untrusted",
            "on-failure",
            "on-request",
            "never",
            "read-only",
            "workspace-write",
            "danger-full-access",
        ],
        ProgramKind::Pi => &["ask", "auto"],
    }
}

fn check_permission_mode(kind: ProgramKind, section: &AgentSection) -> anyhow::Result<()> {
    let (Some(mode), known) = (&section.permission_mode, permission_modes(kind)) else {
        return Ok(());
    };
    ensure!(known.contains(&mode.as_str()), "{mode:?} is none of: {}", known.join(", "));
    Ok(())
}

/// Returns a program agent with default settings, for a configuration without agents.
pub(super) fn unconfigured(kind: ProgramKind, environment: &Environment, keys: &[&str]) -> Agent {
    let id = kind.word().to_owned();
    let settings = ProgramSettings { command: vec![id.clone()], ..ProgramSettings::default() };
    let mut agent = made(kind, settings, None, inherited(kind, environment, keys));
    agent.is_optional = true;
    let kind = AgentKind::Program(Arc::new(agent));
    let (workspace, may_message) = (environment.working_dir.clone(), MessagePolicy::default());
    Agent { id, purpose: None, kind, workspace, may_message }
}

fn made(
    kind: ProgramKind,
    settings: ProgramSettings,
    idle_minutes: Option<u64>,
    mut inherited: Vec<(OsString, OsString)>,
) -> ProgramAgent {
    inherited.retain(|(name, _)| settings.env.iter().all(|(it, _)| name != it.as_str()));
    inherited.extend(settings.env.iter().map(|(name, value)| (name.into(), value.into())));
    let minutes = idle_minutes.unwrap_or(DEFAULT_IDLE_MINUTES);
    let idle_timeout = Duration::from_secs(minutes.saturating_mul(60).min(u64::from(u32::MAX)));
    ProgramAgent::new(kind, settings, inherited, idle_timeout)
}

/// Returns the environment variables from the key `env` of a program agent. A value `env:NAME`
/// refers to another variable, so that the configuration file needs no secrets.
fn env(section: &AgentSection, environment: &Environment) -> anyhow::Result<Vec<(String, String)>> {
    let mut env = Vec::new();
    for (name, value) in section.env.iter().flatten() {
        let value = match value.strip_prefix("env:") {
            Some(other) => (environment.variable)(other)
                .with_context(|| format!("{name} refers to {other}, which is not set"))?,
            None => value.clone(),
        };
        ensure!(
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'),
            "{name:?} is not a valid environment variable"
        );
        env.push((name.clone(), value));
    }
    Ok(env)
}

/// Returns the environment variables that a program agent inherits. `keys` are the variables that
/// the configuration names as keys of models and MCP servers.
///
/// A program gets the variables of its own family, including its keys, and other variables that
/// hold no secret.
fn inherited(
    kind: ProgramKind,
    environment: &Environment,
    keys: &[&str],
) -> Vec<(OsString, OsString)> {
    let Family { prefixes, keys: own_keys } = family(kind);
    let has_prefix = |name: &str, list: &[&str]| list.iter().any(|it| name.starts_with(it));
    let is_inherited = |name: &str, value: &OsStr| match () {
        () if own_keys.contains(&name) => true,
        () if keys.contains(&name) => false,
        () if PROXIES.iter().any(|it| name.eq_ignore_ascii_case(it)) => true,
        () if has_prefix(name, prefixes) => true,
        () if INHERITED.contains(&name) => true,
        () => has_prefix(name, &INHERITED_PREFIXES) && !is_secret(name) && !has_password(value),
    };
    let mut variables = environment.child_variables();
    variables.retain(|(name, it)| name.to_str().is_some_and(|name| is_inherited(name, it)));
    variables
}

/// Environment variables that belong to one program, such as those of its vendor.
struct Family {
    prefixes: &'static [&'static str],
    /// Names of variables with keys that the program gets, even if a model is configured with the
    /// same key.
    keys: &'static [&'static str],
}

fn family(kind: ProgramKind) -> Family {
    match kind {
        ProgramKind::Claude => Family {
            prefixes: &["ANTHROPIC_", "CLAUDE_", "DISABLE_"],
            keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        },
        ProgramKind::Codex => {
            Family { prefixes: &["OPENAI_", "CODEX_"], keys: &["OPENAI_API_KEY", "CODEX_API_KEY"] }
        }
        // Pi uses the services of several vendors.
        ProgramKind::Pi => Family {
            prefixes: &["PI_", "ANTHROPIC_", "OPENAI_"],
            keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
        },
    }
}

//! Agents that are programs: what the configuration makes of them, and what they find around them.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use backends::ProgramKind;

use super::Surroundings;
use super::agents::AgentSection;
use super::source::Key;
use crate::agents::{Agent, AgentKind, ProgramAgent, ProgramSettings, Reach};

const DEFAULT_IDLE_MINUTES: u64 = 10;

/// What a program inherits of our environment, by name and by how a name begins. Anything else has to
/// be in its `env`: a program that runs commands should not find keys that are not meant for it.
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
const INHERITED_PREFIXES: [&str; 12] = [
    "LC_",
    "XDG_",
    "GIT_",
    "SSH_",
    "NODE_",
    "NPM_CONFIG_",
    "ANTHROPIC_",
    "CLAUDE_",
    "DISABLE_",
    "OPENAI_",
    "CODEX_",
    "PI_",
];
/// In small or large letters.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

pub(super) fn configured(
    kind: ProgramKind,
    section: &AgentSection,
    around: &Surroundings,
) -> anyhow::Result<ProgramAgent> {
    let word = kind.word();
    let mut command = section.command.clone().unwrap_or_else(|| vec![word.to_owned()]);
    let first = command.first_mut().filter(|it| !it.is_empty());
    let first = first.with_context(|| format!("it is empty: write it like [{word:?}]"));
    let first = first.context(Key::new("command"))?;
    // A path is meant from where the server was started, whatever the workspace.
    if first.contains('/') {
        *first = around.working_dir.join(&first).display().to_string();
    }
    let settings = ProgramSettings {
        command,
        args: section.args.clone().unwrap_or_default(),
        env: env(section, around).context(Key::new("env"))?,
        model: section.model.clone(),
        permission_mode: section.permission_mode.clone(),
    };
    Ok(made(kind, settings, section.idle_minutes, around))
}

/// As if it were in the file with nothing but its name.
pub(super) fn unconfigured(kind: ProgramKind, around: &Surroundings) -> Agent {
    let id = kind.word().to_owned();
    let settings = ProgramSettings { command: vec![id.clone()], ..ProgramSettings::default() };
    let mut agent = made(kind, settings, None, around);
    agent.is_optional = true;
    let kind = AgentKind::Program(Arc::new(agent));
    let (workspace, may_ask) = (around.working_dir.clone(), Reach::default());
    Agent { id, purpose: None, kind, workspace, may_ask }
}

fn made(
    kind: ProgramKind,
    settings: ProgramSettings,
    idle_minutes: Option<u64>,
    around: &Surroundings,
) -> ProgramAgent {
    let mut inherited = inherited(around);
    inherited.retain(|(name, _)| settings.env.iter().all(|(it, _)| name != it.as_str()));
    inherited.extend(settings.env.iter().map(|(name, value)| (name.into(), value.into())));
    let minutes = idle_minutes.unwrap_or(DEFAULT_IDLE_MINUTES);
    let patience = Duration::from_secs(minutes.saturating_mul(60).min(u64::from(u32::MAX)));
    ProgramAgent::new(kind, settings, inherited, patience)
}

/// A value `env:NAME` stands for a variable, so that no secret has to be in the file.
fn env(section: &AgentSection, around: &Surroundings) -> anyhow::Result<Vec<(String, String)>> {
    let mut env = Vec::new();
    for (name, value) in section.env.iter().flatten() {
        let value = match value.strip_prefix("env:") {
            Some(other) => (around.variable)(other)
                .with_context(|| format!("{name} is to be what {other} is, which is not set"))?,
            None => value.clone(),
        };
        ensure!(
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'),
            "{name:?} is no variable that can be set"
        );
        env.push((name.clone(), value));
    }
    Ok(env)
}

fn inherited(around: &Surroundings) -> Vec<(OsString, OsString)> {
    let is_inherited = |name: &str| {
        INHERITED.contains(&name)
            || INHERITED_PREFIXES.iter().any(|it| name.starts_with(it))
            || PROXIES.iter().any(|it| name.eq_ignore_ascii_case(it))
    };
    let mut variables = (around.variables)();
    variables.retain(|(name, _)| name.to_str().is_some_and(is_inherited));
    variables
}

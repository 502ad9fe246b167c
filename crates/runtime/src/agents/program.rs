//! Program agents: their command line and environment, and whether the program is installed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backends::{Claude, Launch, Pi, Program, ProgramBackend, ProgramKind, claude, codex, pi};
use tools::processes::is_executable;

use super::help::HelpCache;

/// A program agent with its configuration: Claude Code, Codex or Pi.
#[derive(Debug)]
pub struct ProgramAgent {
    pub which: Which,
    /// Command that starts the program: its name or path, then arguments that precede all others.
    pub command: Vec<String>,
    /// Variables that the program inherits from the server's environment. Configured variables
    /// override them.
    pub inherited: Vec<(OsString, OsString)>,
    /// Idle time after which the program's process is ended.
    pub idle_limit: Duration,
    /// Whether the program is not configured, and is therefore listed only if it is installed.
    pub is_optional: bool,
    /// Cached help text or version of the program, which shows the protocol and features that it
    /// supports.
    help: HelpCache,
}

/// The program that an agent runs, with the program's settings.
#[derive(Debug)]
pub enum Which {
    Claude(Arc<claude::Settings>),
    Codex(Arc<codex::Settings>),
    Pi(Arc<pi::Settings>),
}

/// Configured settings that all program agents have in common.
#[derive(Debug, Clone, Default)]
pub struct ProgramSettings {
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub model: Option<String>,
    pub permission_mode: Option<String>,
}

fn install(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::Claude => "npm i -g @anthropic-ai/claude-code",
        ProgramKind::Codex => "npm i -g @openai/codex",
        ProgramKind::Pi => "npm i -g @earendil-works/pi-coding-agent",
    }
}

/// Names and contents of the files that Callboard ships for programs.
pub const SHIPPED: [(&str, &str); 1] = [(pi::EXTENSION_FILE, pi::EXTENSION)];

/// Returns whether a tool with this name may belong to a program. The tools of Claude Code begin
/// with a capital letter, and every version adds some.
pub fn is_tool_of_program(name: &str) -> bool {
    let others = ["bash", "read", "edit", "write", "grep", "find", "ls", "apply_patch"];
    name.starts_with(|it: char| it.is_ascii_uppercase()) || others.contains(&name)
}

impl Which {
    fn new(kind: ProgramKind, settings: ProgramSettings) -> Self {
        let ProgramSettings { command, args, env, model, permission_mode } = settings;
        match kind {
            ProgramKind::Claude => {
                let mut settings =
                    claude::Settings { command, args, env, model, ..claude::Settings::default() };
                settings.permission_mode = permission_mode.unwrap_or(settings.permission_mode);
                Self::Claude(Arc::new(settings))
            }
            ProgramKind::Codex => {
                let mut settings =
                    codex::Settings { command, args, env, model, ..codex::Settings::default() };
                settings.permission_mode = permission_mode.unwrap_or(settings.permission_mode);
                Self::Codex(Arc::new(settings))
            }
            ProgramKind::Pi => {
                let version = None;
                let settings = pi::Settings { command, args, env, model, permission_mode, version };
                Self::Pi(Arc::new(settings))
            }
        }
    }

    pub fn kind(&self) -> ProgramKind {
        match self {
            Self::Claude(_) => ProgramKind::Claude,
            Self::Codex(_) => ProgramKind::Codex,
            Self::Pi(_) => ProgramKind::Pi,
        }
    }

    pub fn model(&self) -> Option<&str> {
        match self {
            Self::Claude(settings) => settings.model.as_deref(),
            Self::Codex(settings) => settings.model.as_deref(),
            Self::Pi(settings) => settings.model.as_deref(),
        }
    }

    /// Returns the arguments with which the program prints its help text or version. `None` if it
    /// does not have to be asked.
    fn help_arguments(&self) -> Option<&'static [&'static str]> {
        match self {
            // Claude Code reports its version in every conversation.
            Self::Claude(_) => None,
            Self::Codex(_) => Some(&codex::HELP),
            Self::Pi(_) => Some(&pi::VERSION),
        }
    }

    /// Returns the command that starts the program, and the backend for its output. `help` is the
    /// help text or version that the program printed.
    fn start(&self, launch: &Launch, help: Option<&str>) -> (Program, Box<dyn ProgramBackend>) {
        match self {
            Self::Claude(settings) => (
                claude::program(settings, launch),
                Box::new(Claude::new(Arc::clone(settings), launch)),
            ),
            Self::Codex(settings) => {
                let settings =
                    codex::Settings { app_server: has_app_server(help), ..(**settings).clone() };
                let program = codex::program(&settings, launch);
                (program, codex::backend(Arc::new(settings), launch))
            }
            Self::Pi(settings) => {
                let version = help.and_then(pi::version_in);
                let settings = pi::Settings { version, ..(**settings).clone() };
                (pi::program(&settings, launch), Box::new(Pi::new(Arc::new(settings), launch)))
            }
        }
    }
}

/// Returns whether Codex supports the app-server protocol. That is assumed if `help`, its help
/// text, is missing.
fn has_app_server(help: Option<&str>) -> bool {
    help.is_none_or(codex::has_app_server)
}

/// Command and environment with which a program is to be started, and the backend for its output.
pub struct Ready {
    pub backend: Box<dyn ProgramBackend>,
    pub command: Vec<String>,
    pub environment: Vec<(OsString, OsString)>,
}

impl ProgramAgent {
    pub fn new(
        kind: ProgramKind,
        settings: ProgramSettings,
        inherited: Vec<(OsString, OsString)>,
        idle_limit: Duration,
    ) -> Self {
        let (command, which) = (settings.command.clone(), Which::new(kind, settings));
        let help = HelpCache::default();
        Self { which, command, inherited, idle_limit, is_optional: false, help }
    }

    /// Runs the installed program to cache its help text or version, unless that is cached already.
    pub async fn examine(&self) {
        let (Some(help_arguments), Some(file)) = (self.which.help_arguments(), self.found()) else {
            return;
        };
        let arguments = self.command.iter().skip(1).map(String::as_str);
        self.help
            .fill(&file, arguments.chain(help_arguments.iter().copied()), &self.inherited)
            .await;
    }

    /// Returns the version that the installed program reports. `None` if it is not installed or
    /// reports none.
    pub async fn version(&self) -> Option<String> {
        let file = self.found()?;
        let arguments = self.command.iter().skip(1).map(String::as_str);
        let help = HelpCache::default();
        help.fill(&file, arguments.chain(["--version"]), &self.inherited).await;
        pi::version_in(&help.get(&file)?)
    }

    /// Returns a text on the features that the installed program lacks. `None` if it lacks none, as
    /// far as is known.
    pub fn limits(&self) -> Option<&'static str> {
        let is_limited =
            matches!(self.which, Which::Codex(_)) && !has_app_server(self.help_text().as_deref());
        is_limited.then_some(
            "This Codex has no app-server, or an outdated one: answers are not streamed, and commands \
             that its sandbox allows run without approval. Update it with npm i -g @openai/codex.",
        )
    }

    /// Returns whether the program accepts messages during a run (steering).
    pub fn can_be_steered(&self) -> bool {
        match self.which {
            Which::Claude(_) | Which::Pi(_) => true,
            Which::Codex(_) => has_app_server(self.help_text().as_deref()),
        }
    }

    /// Records that the program does not support the preferred protocol, whatever its help text
    /// says.
    pub fn mark_outdated(&self) {
        if let Some(file) = self.found() {
            self.help.invalidate(&file);
        }
    }

    /// Returns the cached help text or version of the installed program. `None` if none is cached.
    fn help_text(&self) -> Option<String> {
        self.found().and_then(|it| self.help.get(&it))
    }

    pub fn start(&self, launch: &Launch) -> Ready {
        let (Program { mut command, env }, backend) =
            self.which.start(launch, self.help_text().as_deref());
        if let (Some(first), Some(found)) = (command.first_mut(), self.found()) {
            *first = found.display().to_string();
        }
        let mut environment = self.inherited.clone();
        environment.retain(|(name, _)| env.iter().all(|(it, _)| name != it.as_str()));
        environment.extend(env.into_iter().map(|(name, value)| (name.into(), value.into())));
        Ready { backend, command, environment }
    }

    /// Returns the reason why the program cannot work, and how to fix that. `None` if it is
    /// installed. It is determined at every call, because people install programs while the server
    /// runs.
    pub fn problem(&self) -> Option<String> {
        if self.found().is_some() {
            return None;
        }
        let kind = self.which.kind();
        let (name, word, install) = (kind.name(), kind.word(), install(kind));
        let command = self.command.first().map_or(word, String::as_str);
        Some(format!(
            "{name} isn't installed: '{command}' was not found. Run '{install}', or set this agent's \
             'command' in callboard.toml."
        ))
    }

    pub fn description(&self) -> String {
        let name = self.which.kind().name();
        match self.found() {
            Some(file) => format!("{name}, the program {}.", file.display()),
            None => format!("{name}, which is not installed."),
        }
    }

    /// Returns the path of the program's executable file. `None` if it is not installed.
    fn found(&self) -> Option<PathBuf> {
        let command = Path::new(self.command.first()?);
        // A name that contains a folder is not looked up in `PATH`.
        if command.components().count() > 1 {
            return is_executable(command).then(|| command.to_owned());
        }
        let folders = std::env::split_paths(self.search_path()?).filter(|it| it.is_absolute());
        folders.map(|it| it.join(command)).find(|it| is_executable(it))
    }

    /// Returns the `PATH` variable of the program's environment. `None` if it is not set.
    pub fn search_path(&self) -> Option<&OsStr> {
        let path = self.inherited.iter().find(|(name, _)| name == OsStr::new("PATH"));
        path.map(|(_, path)| path.as_os_str())
    }
}

//! The command line: subcommands and their arguments.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::config::{Config, Environment, trust};
use crate::{backup, doctor, export, import, password, send, serve};
use runtime::export::Format;
use runtime::import::ImportFormat;

/// A chat server for AI agents: talk to them, watch them, approve and stop what they do.
#[derive(Debug, Parser)]
#[command(name = "callboard", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the page and the API (the default).
    Serve(ServeArgs),
    /// Send a message and print the answer as it is written.
    Send(SendArgs),
    /// Print a session as a page, Markdown, messages or log.
    Export(ExportArgs),
    /// Import conversations from Claude Code, Codex and Pi, and other files.
    Import(ImportArgs),
    /// Write a backup of everything to a file; works while a server is running.
    Backup(BackupArgs),
    /// Check the installation: what was found, what is missing, and how to fix it.
    Doctor(ServeArgs),
    /// Trust the current content of a folder's callboard.toml, so that it is used there.
    Trust(TrustArgs),
    /// Set the password for opening the page from another machine.
    Password(ServeArgs),
    /// Run a program for a server, and end all its descendants when it ends.
    #[command(hide = true)]
    Keep(KeepArgs),
}

#[derive(Debug, Args)]
struct TrustArgs {
    /// Configuration file to trust, or the folder that contains it [default: ./callboard.toml]
    path: Option<PathBuf>,
    /// List the trusted configuration files.
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
    /// Stop trusting the configuration file.
    #[arg(long)]
    revoke: bool,
}

#[derive(Debug, Args)]
struct KeepArgs {
    #[arg(last = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Address or loopback port to listen on; port 0 picks a free port [default: 127.0.0.1:4520]
    #[arg(long, alias = "port", value_name = "ADDRESS", env = "CALLBOARD_LISTEN", value_parser = listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Data folder [default: the platform's data folder]
    #[arg(long, value_name = "DIR", env = "CALLBOARD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file [default: ./callboard.toml if you trust it, else your own]
    #[arg(long, value_name = "FILE", env = "CALLBOARD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Log level: error, warn, info or debug [default: info]
    #[arg(long, value_name = "LEVEL", env = "CALLBOARD_LOG")]
    pub(crate) log: Option<LevelFilter>,
    /// Access token. Meant for the environment only: every user of the machine can read command
    /// lines.
    #[arg(long, env = "CALLBOARD_TOKEN", hide = true, hide_env_values = true)]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Id of the agent that answers, as configured; `callboard doctor` lists the agents.
    pub(crate) agent: String,
    /// Text of the message; `-` reads it from standard input.
    pub(crate) text: String,
    /// Continue this session instead of creating a new one.
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    pub(crate) session: Option<String>,
    /// Folder that the agent works in [default: as configured]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print the records of the log, one per line, instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Allow every tool call that needs an approval, once.
    #[arg(long, conflicts_with = "deny")]
    pub(crate) yes: bool,
    /// Deny every tool call that needs an approval.
    #[arg(long)]
    pub(crate) deny: bool,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Id of the session, as in the address of its page.
    pub(crate) session: String,
    #[arg(long, default_value = Format::Jsonl.word(), value_parser = export_format())]
    pub(crate) format: Format,
    /// Print the session as it was at this record number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) at: Option<u64>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files or folders to import; without any, the conversations in the programs' own folders are
    /// listed.
    pub(crate) paths: Vec<PathBuf>,
    /// Import every conversation in the programs' own folders.
    #[arg(long, conflicts_with = "paths")]
    pub(crate) all: bool,
    /// Also import the last turn of a conversation if it has not ended, as interrupted.
    #[arg(long)]
    pub(crate) r#final: bool,
    /// Format of the files, if they are not conversations of Claude Code, Codex or Pi.
    #[arg(long, value_name = "FORMAT", value_parser = import_format(), requires = "paths")]
    pub(crate) format: Option<ImportFormat>,
    /// Id of the agent that continues the imported sessions [default: the first available agent]
    #[arg(long, value_name = "ID", requires = "format")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Path of the backup file; it must not exist yet.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

fn export_format() -> impl TypedValueParser<Value = Format> {
    let words = Format::ALL.map(|it| PossibleValue::new(it.word()).help(it.description()));
    PossibleValuesParser::new(words).try_map(|word| {
        Format::ALL.into_iter().find(|it| it.word() == word).ok_or("there is no such format")
    })
}

fn import_format() -> impl TypedValueParser<Value = ImportFormat> {
    let words =
        ImportFormat::all().into_iter().map(|(word, name)| PossibleValue::new(word).help(name));
    PossibleValuesParser::new(words).try_map(|word| ImportFormat::parse(&word))
}

/// Parses an address to listen on, such as `127.0.0.1:4520`, or only a port of the loopback
/// address.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = port.or_else(|_| text.replace("localhost:", "127.0.0.1:").parse());
    address.map_err(|_| "give an address and a port, such as 127.0.0.1:4520, or a port".to_owned())
}

pub fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let environment = Environment::read()?;
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match cli.command.unwrap_or(Command::Serve(cli.serve)) {
        Command::Serve(args) => {
            runtime()?.block_on(serve::run(Config::load(args, &environment)?))?
        }
        Command::Send(mut args) => {
            let serve = std::mem::take(&mut args.serve);
            let config = Config::for_command(serve, &environment)?;
            return runtime()?.block_on(send::run(args, config, &environment));
        }
        Command::Trust(TrustArgs { list: true, .. }) => trust::list(&environment)?,
        Command::Trust(TrustArgs { path, revoke: true, .. }) => {
            trust::revoke(path.as_deref(), &environment)?;
        }
        Command::Trust(TrustArgs { path, .. }) => trust::agree(path.as_deref(), &environment)?,
        Command::Password(args) => password::run(&Config::for_command(args, &environment)?)?,
        Command::Backup(BackupArgs { file, serve }) => {
            let file = environment.working_dir.join(file);
            runtime()?.block_on(backup::run(&file, Config::for_command(serve, &environment)?))?;
        }
        Command::Import(mut args) => {
            let serve = std::mem::take(&mut args.serve);
            let config = Config::for_command(serve, &environment)?;
            runtime()?.block_on(import::run(args, config, &environment))?;
        }
        Command::Keep(args) => return tools::processes::keep(&args.command),
        Command::Doctor(args) => runtime()?.block_on(doctor::run(args, &environment))?,
        Command::Export(mut args) => {
            let serve = std::mem::take(&mut args.serve);
            runtime()?.block_on(export::run(args, Config::for_command(serve, &environment)?))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

//! The command line: the subcommands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::args::ServeArgs;
use crate::backup::BackupArgs;
use crate::config::{Config, Environment, trust};
use crate::export::ExportArgs;
use crate::import::ImportArgs;
use crate::send::SendArgs;
use crate::{backup, doctor, export, import, password, send, serve};

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

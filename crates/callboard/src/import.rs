//! `callboard import`: writes to the data folder, or sends the files to the server that holds it.

mod files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use session::Addition;
use store::{AppendError, Store};
use transcript::{Event, Seq};

use self::files::{Found, default_folders, find, load, read_text};
use crate::args::ServeArgs;
use crate::config::{Config, Environment};
use crate::serve::{DataAccess, ServerFile};
use runtime::agents::AgentCatalog;
use runtime::import::{
    Conversation, ImportFormat, Kind, NewTurns, Overrides, Plan, Whole, from_document, from_log,
    plan,
};

/// Number of characters of the first message that identify a conversation in the list of
/// conversations.
const FIRST_WORDS: usize = 60;

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

pub(crate) async fn run(
    args: ImportArgs,
    config: Config,
    environment: &Environment,
) -> anyhow::Result<()> {
    let found = find_files(&args, environment)?;
    if args.paths.is_empty() && !args.all {
        return list(&found);
    }
    if found.is_empty() {
        print_line("nothing found: there are no conversations of Claude Code, Codex or Pi");
        return Ok(());
    }
    let access = DataAccess::open(&config, "callboard import")?;
    let agents = AgentCatalog::new(Arc::new(config.agents));
    let mut failures = 0;
    for file in &found {
        let path = file.path().display();
        let imported = match file {
            File::OfProgram(found) => import(&access, found, &args, &agents).await,
            File::Named(path, format) => import_named(&access, path, *format, &args, &agents).await,
        };
        match imported {
            Ok(outcome) => print_line(&format!("{outcome}: {path}")),
            Err(error) => {
                failures += 1;
                print_line(&format!("not imported: {path}: {error:#}"));
            }
        }
    }
    if let DataAccess::Folder(store) = access {
        store.close().await;
    }
    match failures {
        0 => Ok(()),
        _ => bail!("{failures} of {} conversations could not be imported", found.len()),
    }
}

fn import_format() -> impl TypedValueParser<Value = ImportFormat> {
    let words =
        ImportFormat::all().into_iter().map(|(word, name)| PossibleValue::new(word).help(name));
    PossibleValuesParser::new(words).try_map(|word| ImportFormat::parse(&word))
}

/// A file that `callboard import` reads.
enum File {
    OfProgram(Found),
    /// A file whose format was given with `--format`.
    Named(PathBuf, ImportFormat),
}

impl File {
    fn path(&self) -> &Path {
        match self {
            Self::OfProgram(found) => &found.path,
            Self::Named(path, _) => path,
        }
    }
}

/// Returns the files to import at the given paths. Without paths, returns the files in the
/// conversation folders of the programs.
fn find_files(args: &ImportArgs, environment: &Environment) -> anyhow::Result<Vec<File>> {
    let (mut found, mut named) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let path = environment.working_dir.join(path);
        match args.format {
            None | Some(ImportFormat::Auto) => found.extend(find(&path)?),
            Some(ImportFormat::Program(kind)) => found.push(Found { path, kind }),
            Some(format) => named.push(File::Named(path, format)),
        }
    }
    if args.paths.is_empty() {
        let folders: Vec<PathBuf> =
            default_folders(environment).into_iter().filter(|it| it.is_dir()).collect();
        for folder in &folders {
            found.extend(find(folder)?);
        }
    }
    Ok(found.into_iter().map(File::OfProgram).chain(named).collect())
}

/// Lists the conversations that can be imported, without importing them.
fn list(found: &[File]) -> anyhow::Result<()> {
    for it in found {
        let File::OfProgram(it) = it else { continue };
        print_line(&described(it)?);
    }
    match found.len() {
        0 => print_line("nothing found; name a file or a folder"),
        _ => print_line("import them all with `callboard import --all`, or name files"),
    }
    Ok(())
}

/// Describes a conversation that can be imported: date, program, number of turns and first words,
/// and its path on the next line.
fn described(found: &Found) -> anyhow::Result<String> {
    let conversation = load(found, false)?;
    let turns = conversation.read("").map(|it| it.turns).unwrap_or_default();
    let entries = || turns.iter().flat_map(|it| &it.entries);
    let day: String = entries().map(|it| it.at).max().map_or(String::new(), |at| {
        let time = at.to_string();
        format!("{}, ", time.split('T').next().unwrap_or_default())
    });
    let first = entries().find_map(|it| match &it.event {
        Event::UserMessage { text, .. } => text.lines().map(str::trim).find(|it| !it.is_empty()),
        _ => None,
    });
    let words: String = first.unwrap_or_default().chars().take(FIRST_WORDS).collect();
    let (kind, count, path) = (found.kind.word(), count(turns.len()), found.path.display());
    Ok(format!("{day}{kind}, {count}: {words:?}\n    {path}"))
}

/// Imports a conversation of a program and returns a description of the outcome.
async fn import(
    access: &DataAccess,
    found: &Found,
    args: &ImportArgs,
    agents: &AgentCatalog,
) -> anyhow::Result<String> {
    let conversation = load(found, args.r#final)?;
    if turns(&conversation) == 0 {
        return Ok("no turn has ended yet".to_owned());
    }
    match access {
        DataAccess::Folder(store) => into_folder(store, &conversation, agents).await,
        DataAccess::Server(server) => by_server(server, &conversation).await,
    }
}

async fn into_folder(
    store: &Store,
    conversation: &Conversation,
    agents: &AgentCatalog,
) -> anyhow::Result<String> {
    Ok(match plan(store, agents, conversation, None).await? {
        None => bail!("the file does not identify its conversation"),
        Some(Plan::Nothing { session }) => format!("{session}: nothing new"),
        Some(Plan::ContinuedHere { session }) => format!("{session}: goes on here, nothing added"),
        Some(Plan::Add(new)) => {
            let new = new.with_stored_pictures(store).await?;
            let NewTurns { session, turns, addition: Addition { head, records } } = new;
            match head {
                Seq(0) => store.import(&session, records).await?,
                head => store.append(&session, head, records).await?,
            }
            format!("{session}: {} added", count(turns))
        }
    })
}

async fn by_server(server: &ServerFile, conversation: &Conversation) -> anyhow::Result<String> {
    let Conversation { kind, text, side_files, is_final } = conversation;
    let query = [("format", kind.word()), ("final", if *is_final { "true" } else { "false" })];
    let side_files: Vec<Value> =
        side_files.iter().map(|it| json!({ "name": it.name, "text": it.text })).collect();
    let body = json!({ "transcript": text, "sideFiles": side_files });
    post(server, &query, body.to_string()).await
}

async fn import_named(
    access: &DataAccess,
    path: &Path,
    format: ImportFormat,
    args: &ImportArgs,
    agents: &AgentCatalog,
) -> anyhow::Result<String> {
    let (text, agent) = (read_text(path)?, args.agent.as_deref());
    let store = match access {
        DataAccess::Folder(store) => store,
        DataAccess::Server(server) => {
            let agent = agent.map(|it| ("agent", it));
            let query: Vec<_> = [("format", format.word())].into_iter().chain(agent).collect();
            return post(server, &query, text).await;
        }
    };
    let overrides = Overrides { agent: agent.map(str::to_owned), ..Overrides::default() };
    let whole = match format.kind(&text) {
        Some(Kind::Log) => from_log(agents, &text, overrides)?,
        Some(Kind::Document(format)) => {
            from_document(store, agents, format, &text, overrides).await?
        }
        Some(Kind::Program(_)) | None => bail!("the file is not in the format {}", format.word()),
    };
    let Whole { session, records, turns, is_named_by_content } = whole;
    match store.import(&session, records).await {
        Ok(_) => Ok(format!("{session}: {} added", count(turns))),
        Err(AppendError::Conflict { .. }) if is_named_by_content => {
            Ok(format!("{session}: nothing new"))
        }
        Err(AppendError::Conflict { .. }) => bail!("there is a session {session} already"),
        Err(error) => Err(error.into()),
    }
}

async fn post(server: &ServerFile, query: &[(&str, &str)], body: String) -> anyhow::Result<String> {
    let address = &server.address;
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let url = format!("{address}/api/sessions/import?{query}");
    let request = tools::http_client().post(url).bearer_auth(&server.token);
    let answer = request.body(body).send().await;
    let answer = answer.with_context(|| format!("asking the server at {address}"))?;
    let is_done = answer.status().is_success();
    let body: Value = answer.json().await.context("reading the server's answer")?;
    if !is_done {
        bail!("{}", body["error"]["message"].as_str().unwrap_or("the server refused"));
    }
    let session = body["id"].as_str().unwrap_or_default();
    let turns = usize::try_from(body["addedTurns"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    Ok(match turns {
        _ if body["goesOnHere"] == true => format!("{session}: goes on here, nothing added"),
        0 => format!("{session}: nothing new"),
        turns => format!("{session}: {} added", count(turns)),
    })
}

/// Returns the number of turns of a conversation that can be imported.
fn turns(conversation: &Conversation) -> usize {
    conversation.read("").map_or(0, |it| it.turns.len())
}

fn count(turns: usize) -> String {
    format!("{turns} {}", if turns == 1 { "turn" } else { "turns" })
}

#[expect(clippy::print_stdout, reason = "the answer to the command")]
fn print_line(line: &str) {
    println!("{line}");
}

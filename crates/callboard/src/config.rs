//! Configuration from a file, the environment and flags; later ones override earlier ones.
//!
//! Two steps: [`File`] is the content of the file, with its shape checked; [`Config`] is the
//! complete configuration that the program runs with. An unknown key or a wrong value stops the
//! start with a message that names the file, the line and the allowed values.

mod agents;
mod approvals;
mod describe;
mod environment;
mod exchanges;
mod mcp;
mod programs;
mod secrets;
mod shapes;
mod source;
mod tool_settings;
pub(crate) mod trust;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use backends::Pace;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use tracing::level_filters::LevelFilter;

use crate::args::ServeArgs;
use runtime::ExchangeLimits;
use runtime::agents::Agents;
use source::{Key, Source};
use tools::mcp::McpSettings;
use tools::policy::Policy;
use tools::{PrivateFiles, ToolSettings};
use trust::Candidate;

pub(crate) use environment::Environment;

const DEFAULT_LISTEN: &str = "127.0.0.1:4520";
const FILE_NAME: &str = "callboard.toml";
const DEFAULT_RAW_DAYS: u32 = 30;

#[derive(Debug)]
pub(crate) struct Config {
    /// Path of the configuration file that was read; `None` if there is none.
    pub(crate) file: Option<PathBuf>,
    /// Path of the configuration file in the working folder that was skipped because it is not
    /// trusted; `None` if none was.
    pub(crate) skipped_file: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) sync: store::Sync,
    /// Access token from the command line or the environment. If it is `None`, a token is generated
    /// and kept in the data folder.
    pub(crate) token: Option<String>,
    pub(crate) public_url: Option<String>,
    pub(crate) allowed_origins: Vec<String>,
    /// Number of days that raw lines of programs are kept; zero keeps none.
    pub(crate) raw_days: u32,
    pub(crate) agents: Agents,
    pub(crate) approvals: Policy,
    pub(crate) tools: ToolSettings,
    pub(crate) exchanges: ExchangeLimits,
    pub(crate) mcp_servers: Vec<McpSettings>,
    pub(crate) log: LevelFilter,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    server: ServerSection,
    #[serde(deserialize_with = "shapes::agents")]
    agents: Vec<agents::AgentSection>,
    demo: DemoSection,
    approvals: approvals::ApprovalsSection,
    tools: tool_settings::ToolsSection,
    exchanges: exchanges::ExchangesSection,
    #[serde(deserialize_with = "shapes::mcp_servers")]
    mcp_servers: Vec<mcp::McpSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerSection {
    #[serde(deserialize_with = "shapes::listen")]
    listen: Option<SocketAddr>,
    data: Option<PathBuf>,
    sync: Option<SyncWord>,
    /// Origin of a proxy through which browsers reach the server.
    public_url: Option<String>,
    /// Origins of other web pages that may use the API with the access token.
    allowed_origins: Vec<String>,
    /// Number of days that raw lines of programs are kept; zero keeps none. `None` for the default.
    raw_days: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SyncWord {
    Full,
    Normal,
}

/// Value of the key `demo` in the configuration file: a boolean or a table of settings.
#[derive(Debug)]
enum DemoSection {
    Wanted(bool),
    Settings(DemoSettings),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DemoSettings {
    pace: PaceWord,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PaceWord {
    #[default]
    Natural,
    Instant,
}

impl DemoSection {
    fn wanted_and_pace(&self) -> (bool, Pace) {
        let (is_wanted, pace) = match self {
            Self::Wanted(is_wanted) => (*is_wanted, PaceWord::default()),
            Self::Settings(settings) => (true, settings.pace),
        };
        let pace = match pace {
            PaceWord::Natural => Pace::Natural,
            PaceWord::Instant => Pace::Instant,
        };
        (is_wanted, pace)
    }
}

impl<'de> Deserialize<'de> for DemoSection {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = DemoSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("false, true or a table with `pace`")
            }

            fn visit_bool<E: Error>(self, is_wanted: bool) -> Result<DemoSection, E> {
                Ok(DemoSection::Wanted(is_wanted))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<DemoSection, A::Error> {
                let settings = DemoSettings::deserialize(MapAccessDeserializer::new(table));
                settings.map(DemoSection::Settings)
            }
        }

        given.deserialize_any(Shape)
    }
}

impl Default for DemoSection {
    fn default() -> Self {
        Self::Wanted(true)
    }
}

impl Config {
    /// Loads the configuration from the file, if there is one. Flags and environment variables
    /// override the file.
    pub(crate) fn load(args: ServeArgs, environment: &Environment) -> anyhow::Result<Self> {
        let Chosen { file, skipped } = choose_file(&args, environment)?;
        let source = file.as_ref().map(|it| Source::new(&it.path, it.text.clone()));
        let config = Self::resolve(args, &source.unwrap_or_default(), environment)?;
        let config = Self { file: file.map(|it| it.path), skipped_file: skipped, ..config };
        check_exposure(&config)?;
        Ok(config)
    }

    /// Loads the configuration for a command that does not listen on the configured address.
    pub(crate) fn for_command(args: ServeArgs, environment: &Environment) -> anyhow::Result<Self> {
        Self::load(ServeArgs { listen: Some(default_listen()), ..args }, environment)
    }

    fn resolve(
        args: ServeArgs,
        source: &Source,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let file = source.parse()?;
        let listen = args.listen.or(file.server.listen).unwrap_or_else(default_listen);
        let data = args.data.or_else(|| file.server.data.clone());
        let data = data.map_or_else(|| default_data_dir(environment), Ok)?;
        let data = environment.working_dir.join(data);
        let in_server = |error| source.at(&["server"], error);
        let public_url = file.server.public_url.as_deref().map(check_origin).transpose();
        let public_url = public_url.context(Key::new("public_url")).map_err(in_server)?;
        let allowed_origins = check_origins(&file.server.allowed_origins);
        let allowed_origins =
            allowed_origins.context(Key::new("allowed_origins")).map_err(in_server)?;
        let private = PrivateFiles::new(&data, environment.home.as_deref());
        Ok(Self {
            file: None,
            skipped_file: None,
            listen,
            agents: agents::agents(&file, source, environment, &data)?,
            data,
            sync: match file.server.sync {
                Some(SyncWord::Normal) => store::Sync::Normal,
                Some(SyncWord::Full) | None => store::Sync::Full,
            },
            token: args.token,
            public_url,
            allowed_origins,
            raw_days: file.server.raw_days.unwrap_or(DEFAULT_RAW_DAYS),
            approvals: approvals::approvals(&file.approvals, private, environment)
                .map_err(|error| source.at(&["approvals"], error))?,
            tools: tool_settings::tools(&file, environment)
                .map_err(|error| source.at(&["tools"], error))?,
            exchanges: exchanges::exchanges(&file.exchanges)
                .map_err(|error| source.at(&["exchanges"], error))?,
            mcp_servers: mcp::servers(&file, source, environment)?,
            log: args.log.unwrap_or(LevelFilter::INFO),
        })
    }
}

#[derive(Default)]
struct Chosen {
    file: Option<Candidate>,
    skipped: Option<PathBuf>,
}

/// Chooses the configuration file: the one named by a flag, a trusted one in the working folder, or
/// the user's own.
fn choose_file(args: &ServeArgs, environment: &Environment) -> anyhow::Result<Chosen> {
    if let Some(path) = &args.config {
        let file = Candidate::read(environment.working_dir.join(path))?;
        return Ok(Chosen { file: Some(file), skipped: None });
    }
    let own = environment.config_home().map(|it| it.join("callboard").join(FILE_NAME));
    let own = own.filter(|it| it.is_file());
    let here = Some(environment.working_dir.join(FILE_NAME)).filter(|it| it.is_file());
    let is_own = |it: &PathBuf| own.as_ref().is_some_and(|own| own == it);
    let mut chosen = Chosen::default();
    if let Some(here) = here.filter(|it| !is_own(it)) {
        match Candidate::found(here) {
            Ok(candidate) if candidate.is_trusted(own.as_deref(), environment)? => {
                return Ok(Chosen { file: Some(candidate), skipped: None });
            }
            Ok(Candidate { path, .. }) | Err(path) => chosen.skipped = Some(path),
        }
    }
    chosen.file = own.map(Candidate::read).transpose()?;
    Ok(chosen)
}

fn default_listen() -> SocketAddr {
    DEFAULT_LISTEN.parse().expect("the default is an address")
}

/// Returns an error if the server would listen on the network without protection, because access to
/// the page is access to the machine.
fn check_exposure(config: &Config) -> anyhow::Result<()> {
    let listen = config.listen;
    ensure!(
        listen.ip().is_loopback()
            || config.token.is_some()
            || web::auth::password::is_set(&config.data),
        "refusing to listen on {listen}: agents run commands, so access to the page is access \
         to this machine. Listen on 127.0.0.1, set a password with `callboard password`, or set \
         CALLBOARD_TOKEN to a secret of your own"
    );
    let token = config.token.as_deref().unwrap_or("long enough by itself");
    ensure!(
        listen.ip().is_loopback() || token.len() >= 16,
        "CALLBOARD_TOKEN is too short to listen on {listen}: use at least 16 characters"
    );
    Ok(())
}

fn check_origins(origins: &[String]) -> anyhow::Result<Vec<String>> {
    origins.iter().map(|origin| check_origin(origin)).collect()
}

/// Checks an origin from the configuration and returns it as browsers send it: scheme, host and
/// port.
fn check_origin(url: &str) -> anyhow::Result<String> {
    let trimmed = url.trim_end_matches('/');
    let name = trimmed.strip_prefix("https://").or_else(|| trimmed.strip_prefix("http://"));
    let is_origin = name.is_some_and(|it| !it.is_empty() && !it.contains(['/', '*', '?', '@']));
    ensure!(
        is_origin,
        "{url:?} is not an origin: write it like https://chat.example or http://host:1"
    );
    Ok(trimmed.to_ascii_lowercase())
}

/// Returns the default data folder of Callboard on this platform.
fn default_data_dir(environment: &Environment) -> anyhow::Result<PathBuf> {
    let no_home = "no home folder: say where to keep data with --data DIR";
    if cfg!(target_os = "macos") {
        let home = environment.home.as_ref().context(no_home)?;
        return Ok(home.join("Library/Application Support/callboard"));
    }
    let data_home = environment.xdg_data_home.clone();
    let data_home = data_home.or_else(|| Some(environment.home.as_ref()?.join(".local/share")));
    Ok(data_home.context(no_home)?.join("callboard"))
}

#[cfg(test)]
mod tests;

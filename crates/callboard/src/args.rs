//! Arguments that select a server's configuration, which all commands accept.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use tracing::level_filters::LevelFilter;

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

/// Parses an address to listen on, such as `127.0.0.1:4520`, or only a port of the loopback
/// address.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = port.or_else(|_| text.replace("localhost:", "127.0.0.1:").parse());
    address.map_err(|_| "give an address and a port, such as 127.0.0.1:4520, or a port".to_owned())
}

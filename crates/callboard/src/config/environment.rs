//! The environment of the server process: folders and variables.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;

const PATH: &str = "PATH";

/// Environment of the server process (folders and variables), read once at the start.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) working_dir: PathBuf,
    pub(crate) home: Option<PathBuf>,
    pub(crate) xdg_data_home: Option<PathBuf>,
    pub(crate) xdg_config_home: Option<PathBuf>,
    /// Function that looks up an environment variable that the configuration names.
    pub(crate) variable: fn(&str) -> Option<String>,
    /// Function that returns all environment variables of the server; child processes get them
    /// through [`Self::child_variables`].
    pub(crate) variables: fn() -> Vec<(OsString, OsString)>,
}

impl Environment {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub(crate) fn read() -> anyhow::Result<Self> {
        let folder = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        Ok(Self {
            working_dir: std::env::current_dir().context("finding the working folder")?,
            home: folder("HOME"),
            xdg_data_home: folder("XDG_DATA_HOME"),
            xdg_config_home: folder("XDG_CONFIG_HOME"),
            variable: |name| std::env::var(name).ok(),
            variables: || std::env::vars_os().collect(),
        })
    }

    /// Returns the folder of the user's own configuration files; `None` if neither
    /// `XDG_CONFIG_HOME` nor the home folder is known.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        let config_home = self.xdg_config_home.clone();
        config_home.or_else(|| Some(self.home.as_ref()?.join(".config")))
    }

    /// Returns the environment variables that child processes may inherit. Relative entries of
    /// `PATH` are removed: through them a command would run files of the workspace under the names
    /// of installed programs.
    pub(super) fn child_variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables = (self.variables)();
        for (_, path) in variables.iter_mut().filter(|(name, _)| name == PATH) {
            let absolute = std::env::split_paths(path).filter(|it| it.is_absolute());
            *path = std::env::join_paths(absolute).unwrap_or_default();
        }
        variables
    }

    /// Returns the value of `PATH` for the commands that agents run; `None` if it is not set.
    pub(super) fn search_path(&self) -> Option<OsString> {
        self.child_variables().into_iter().find(|(name, _)| name == PATH).map(|(_, path)| path)
    }
}

//! The tool calls that the demo agent knows how to make.

use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Time(Place),
    ListFiles {
        path: String,
    },
    ReadFile {
        path: String,
    },
    SearchFiles {
        query: String,
        path: Option<String>,
    },
    WriteFile {
        path: String,
        text: String,
    },
    Shell {
        command: String,
    },
    ListAgents,
    Note {
        text: String,
    },
    AskAgent {
        agent: String,
        text: String,
        in_background: bool,
    },
    /// Calls a tool that the client that sent the message offers.
    ClientTool {
        name: String,
        arguments: Value,
    },
}

/// A place by its usual name, and its time zone. If `zone` is `None`, the server chooses its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) zone: Option<String>,
}

impl Call {
    pub(super) fn tool_name(&self) -> &str {
        match self {
            Self::Time(_) => "time",
            Self::ListFiles { .. } => "list_files",
            Self::ReadFile { .. } => "read_file",
            Self::SearchFiles { .. } => "search_files",
            Self::WriteFile { .. } => "write_file",
            Self::Shell { .. } => "shell",
            Self::ListAgents => "agents_list",
            Self::Note { .. } => "callboard_note",
            Self::AskAgent { .. } => "agents_message",
            Self::ClientTool { name, .. } => name,
        }
    }

    pub(super) fn arguments(&self) -> Value {
        match self {
            Self::Time(place) => object([("zone", place.zone.as_ref())]),
            Self::ListFiles { path } | Self::ReadFile { path } => object([("path", Some(path))]),
            Self::SearchFiles { query, path } => {
                object([("query", Some(&literally(query))), ("path", path.as_ref())])
            }
            Self::WriteFile { path, text } => object([("path", Some(path)), ("text", Some(text))]),
            Self::Shell { command } => object([("command", Some(command))]),
            Self::ListAgents => object([]),
            Self::Note { text } => object([("text", Some(text))]),
            Self::AskAgent { agent, text, in_background } => {
                let mode = in_background.then(|| "async".to_owned());
                object([("agent", Some(agent)), ("text", Some(text)), ("mode", mode.as_ref())])
            }
            Self::ClientTool { arguments, .. } => arguments.clone(),
        }
    }
}

/// Returns a regular expression that matches only this text.
fn literally(text: &str) -> String {
    const SIGNS: &str = r"\.+*?()|[]{}^$";
    let escaped =
        text.chars().flat_map(|it| SIGNS.contains(it).then_some('\\').into_iter().chain([it]));
    escaped.collect()
}

fn object<const N: usize>(fields: [(&str, Option<&String>); N]) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Value::Object(
        given.map(|(name, it)| (name.to_owned(), it.as_str().into())).collect::<Map<_, _>>(),
    )
}

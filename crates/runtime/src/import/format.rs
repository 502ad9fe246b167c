//! The formats of files that can be imported.

use std::borrow::Cow;

use backends::ProgramKind;
use backends::import::detect;
use formats::import::{FORMATS, Format};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny};

/// Requested format of a file to import.
#[derive(Debug, Clone, Copy, Default)]
pub enum ImportFormat {
    /// The format is detected from the content of the file.
    Auto,
    /// Callboard's own log or messages, as Callboard exports them.
    #[default]
    Callboard,
    /// A conversation file of this program, as the program stores it.
    Program(ProgramKind),
    /// A conversation in this format of other software.
    Document(&'static Format),
}

/// Format of a file to import, as given or detected.
pub enum Kind {
    Log,
    Program(ProgramKind),
    Document(&'static Format),
}

const AUTO: &str = "auto";
const OURS: &str = "callboard";
/// Alias of Callboard's own import format: the file extension of exported logs.
const LOG: &str = "jsonl";
/// Number of lines at the beginning of an imported file that identify the program that wrote it.
const DETECTION_LINES: usize = 100;

impl ImportFormat {
    /// Returns the names of all import formats with their labels.
    pub fn all() -> Vec<(&'static str, &'static str)> {
        let programs = ProgramKind::ALL.map(|it| (it.word(), it.name()));
        let documents = FORMATS.iter().map(|it| (it.word, it.name));
        [(AUTO, "Detect automatically")].into_iter().chain(programs).chain(documents).collect()
    }

    /// Parses the name of an import format. Fails with the list of all names.
    pub fn parse(word: &str) -> Result<Self, String> {
        let program = ProgramKind::ALL.into_iter().find(|it| it.word() == word);
        let document = Format::find(word).map(Self::Document);
        match word {
            AUTO => Ok(Self::Auto),
            OURS | LOG => Ok(Self::Callboard),
            _ => program.map(Self::Program).or(document).ok_or_else(|| {
                let words: Vec<&str> = Self::all().into_iter().map(|(word, _)| word).collect();
                format!("{word:?} is none of: {}", words.join(", "))
            }),
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Callboard => OURS,
            Self::Program(kind) => kind.word(),
            Self::Document(format) => format.word,
        }
    }

    /// Determines the format of a text to import. Returns `None` if it is to be detected and is
    /// unknown.
    pub fn kind(self, text: &str) -> Option<Kind> {
        let ours = || if is_log(text) { Kind::Log } else { Kind::Document(&FORMATS[0]) };
        match self {
            Self::Callboard => Some(ours()),
            Self::Program(kind) => Some(Kind::Program(kind)),
            Self::Document(format) => Some(Kind::Document(format)),
            Self::Auto => {
                let head =
                    text.match_indices('\n').nth(DETECTION_LINES).map_or(text, |it| &text[..it.0]);
                let program = detect("", head).map(Kind::Program);
                let is_ours =
                    || !text.trim().is_empty() && (is_log(text) || is_object::<Exported>(text));
                program.or_else(|| is_ours().then(ours))
            }
        }
    }
}

/// Returns whether the first line of a text is a record with a number, even an invalid one, or the
/// text is empty.
fn is_log(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.is_none_or(is_object::<Numbered>)
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "a shape")]
struct Numbered {
    seq: IgnoredAny,
}

/// Returns whether a text is a JSON object that can be read as `T`. `serde` alone would accept a
/// list, too.
fn is_object<'t, T: Deserialize<'t>>(text: &'t str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<T>(text).is_ok()
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "a shape")]
struct Exported {
    session: IgnoredAny,
    messages: IgnoredAny,
}

impl<'de> Deserialize<'de> for ImportFormat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = Cow::<str>::deserialize(from)?;
        Self::parse(&word).map_err(Error::custom)
    }
}

impl JsonSchema for ImportFormat {
    fn schema_name() -> Cow<'static, str> {
        "ImportFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = Self::all().into_iter().map(|(word, _)| word).collect();
        json_schema!({ "type": "string", "enum": words, "default": OURS })
    }
}

//! A recording: the lines to and from Pi, in order and with their times.
//!
//! `seconds < line` is a line to Pi, `seconds > line` a line from Pi, and
//! `seconds exit code "stderr"` the exit.

use std::path::{Path, PathBuf};

use backends::Exit;
use transcript::Millis;

#[derive(Debug, Clone)]
pub(super) struct Recording {
    /// Path without the extension, for example `0.73/tools`.
    pub(super) name: String,
    pub(super) lines: Vec<(Millis, Recorded)>,
}

#[derive(Debug, Clone)]
pub(super) enum Recorded {
    Written(String),
    Output(String),
    Exited(Exit),
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let mut paths: Vec<PathBuf> = ["0.73", "1.5"]
            .iter()
            .flat_map(|it| std::fs::read_dir(folder().join(it)).unwrap())
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == "trace"))
            .collect();
        paths.sort();
        paths.iter().map(|it| Self::read(it)).collect()
    }

    fn read(path: &Path) -> Self {
        let name = path.strip_prefix(folder()).unwrap().with_extension("");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(recorded).collect();
        Self { name: name.to_str().unwrap().to_owned(), lines }
    }

    /// Returns the path of the snapshot of the events.
    pub(super) fn events_file(&self) -> PathBuf {
        folder().join(format!("{}.events.txt", self.name))
    }

    /// Returns the path of the snapshot of the page's outline.
    pub(super) fn page_file(&self) -> PathBuf {
        folder().join(format!("{}.page.txt", self.name))
    }

    /// Returns whether Callboard's extension never asked: it was absent or allowed every call.
    pub(super) fn is_without_questions(&self) -> bool {
        let is_question = |it: &(_, Recorded)| match &it.1 {
            Recorded::Output(line) => line.starts_with(r#"{"type":"extension_ui_request""#),
            _ => false,
        };
        !self.lines.iter().any(is_question)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pi")
}

fn recorded(line: &str) -> (Millis, Recorded) {
    let mut fields = line.splitn(3, ' ');
    let mut field = || fields.next().unwrap();
    let (seconds, mark, rest) = (field(), field(), field());
    let at = Millis((seconds.parse::<f64>().unwrap() * 1000.0).round() as i64);
    let recorded = match mark {
        "<" => Recorded::Written(rest.to_owned()),
        ">" => Recorded::Output(rest.to_owned()),
        _ => {
            let (code, stderr) = rest.split_once(' ').unwrap();
            let code = code.parse().ok().filter(|it| *it >= 0);
            Recorded::Exited(Exit { code, stderr: serde_json::from_str(stderr).unwrap() })
        }
    };
    (at, recorded)
}

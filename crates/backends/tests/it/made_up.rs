//! Made-up sessions: lines that other or future versions of the programs may write, and other
//! orders of lines. A case is a file in `fixtures/made_up/` with the lines of one run.

use std::path::{Path, PathBuf};

use transcript::Record;

use crate::pages::Session;

/// Returns the log of a run in which a program writes these lines.
type Hear = fn(&[String]) -> Vec<Record>;

pub(crate) fn sessions() -> Vec<Session> {
    let programs: [(&str, Hear); 3] = [
        ("claude", crate::claude::replayed),
        ("codex", crate::codex::replayed),
        ("pi", crate::pi::replayed),
    ];
    programs.into_iter().flat_map(|(program, hear)| sessions_of(program, hear)).collect()
}

fn sessions_of(program: &str, hear: Hear) -> Vec<Session> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/made_up").join(program);
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).collect();
    files.sort();
    assert!(files.len() > 15, "the search has lost its way");
    let session = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let output: Vec<String> = text.lines().map(str::to_owned).collect();
        Session {
            name: format!("made_up/{program}/{}", file.file_stem().unwrap().to_string_lossy()),
            outline: file.with_extension("page.txt"),
            records: hear(&output),
            output,
        }
    };
    files.iter().map(session).collect()
}

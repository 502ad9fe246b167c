//! Sessions that nobody recorded: what other versions of the programs say, in what other order, and what
//! they may say one day. A case is a file in `fixtures/made_up/`, a line for a line of the program, which
//! has been asked something.

use std::path::{Path, PathBuf};

use transcript::Record;

use crate::pages::Session;

/// From what a program says to what is in the log.
type Hear = fn(&[String]) -> Vec<Record>;

pub(crate) fn sessions() -> Vec<Session> {
    let programs: [(&str, Hear); 3] = [
        ("claude", crate::claude::heard),
        ("codex", crate::codex::heard),
        ("pi", crate::pi::heard),
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
        let said: Vec<String> = text.lines().map(str::to_owned).collect();
        Session {
            name: format!("made_up/{program}/{}", file.file_stem().unwrap().to_string_lossy()),
            outline: file.with_extension("page.txt"),
            records: hear(&said),
            said,
        }
    };
    files.iter().map(session).collect()
}

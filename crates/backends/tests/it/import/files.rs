//! The fixtures of the import.

use std::path::{Path, PathBuf};

use backends::ProgramKind;
use backends::import::{ConversationFile, Entry, Imported, SideFile, Tail, detect, read};
use transcript::{Record, Seq, SessionId};

pub(super) struct File {
    pub(super) kind: ProgramKind,
    /// Path without the extension, for example `claude/tools` or `pi/1.5/tools`.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) side_files: Vec<SideFile>,
}

impl File {
    pub(super) fn all() -> Vec<Self> {
        let folders = ["claude", "codex", "pi/0.73", "pi/1.5"];
        let files: Vec<Self> = folders.iter().flat_map(|it| Self::in_folder(it)).collect();
        assert!(files.len() > 180, "the search has lost its way: {}", files.len());
        files
    }

    fn in_folder(name: &str) -> Vec<Self> {
        let entries = std::fs::read_dir(folder().join(name)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
        paths.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
        paths.sort();
        paths.iter().map(|it| Self::read(it)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let file_name = path.file_name().unwrap().to_str().unwrap();
        let kind = detect(file_name, &text[..text.len().min(4000)]).expect("a known program's");
        let name = path.strip_prefix(folder()).unwrap().with_extension("");
        assert!(name.starts_with(kind.word()), "{kind:?} did not write {name:?}");
        let beside = path.with_extension("").join("subagents");
        let side_files = std::fs::read_dir(beside).into_iter().flatten().map(|it| {
            let path = it.unwrap().path();
            let name = path.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned();
            SideFile { name, text: std::fs::read_to_string(path).unwrap() }
        });
        Self {
            kind,
            name: name.to_str().unwrap().to_owned(),
            text,
            side_files: side_files.collect(),
        }
    }

    pub(super) fn import(&self, tail: Tail) -> Imported {
        self.import_text(&self.text, tail).expect("it says which conversation it is")
    }

    pub(super) fn import_text(&self, text: &str, tail: Tail) -> Option<Imported> {
        let (kind, side_files) = (self.kind, self.side_files.as_slice());
        read(&ConversationFile { kind, text, side_files, agent: "agent" }, tail)
    }

    pub(super) fn events_file(&self) -> PathBuf {
        folder().join(format!("{}.events.txt", self.name))
    }
}

pub(super) fn entries(imported: &Imported) -> Vec<&Entry> {
    let turns = imported.turns.iter().flat_map(|it| &it.entries);
    turns.chain(&imported.rest).collect()
}

/// Returns the log that each file gives.
pub(crate) fn logs() -> impl Iterator<Item = Vec<Record>> {
    File::all().into_iter().map(|file| {
        let imported = file.import(Tail::Close);
        let records =
            (1..).zip(entries(&imported)).map(|(seq, Entry { at, response_id, event })| {
                let session = SessionId::new("s");
                Record::new(Seq(seq), *at, session, response_id.clone(), event.clone())
            });
        records.collect()
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/import")
}

//! Every recording as messages of the AI SDK after each record, and as its streams, written to
//! files that `e2e/chat_recorded.test.mjs` gives to the real packages.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use formats::ui::{Profile, Stream};
use formats::{ui, ui_v4};
use serde_json::{Value, json};
use transcript::{Attachment, Message, Record, ResponseId, Transcript};

use super::all;

const PROFILES: [(u8, Profile); 3] = [(5, Profile::V5), (6, Profile::V6), (7, Profile::V7)];

/// Equal messages of a version are written once, even if several logs have them.
#[test]
#[expect(clippy::print_stdout, reason = "how much there is, and where, is the result")]
fn every_prefix_is_written_down() {
    let mut file = Lines::create("ui_messages.jsonl");
    let (mut n_prefixes, mut n_lists) = (0, 0);
    let mut written = HashSet::new();
    for records in logs() {
        let mut transcript = Transcript::whole();
        for record in &records {
            transcript.apply(record);
            n_prefixes += 1;
            for (profile, messages) in shown(&transcript) {
                if !messages.is_empty() && written.insert((profile, messages.clone())) {
                    n_lists += 1;
                    file.add(&format!("{{\"profile\":{profile},\"messages\":[{messages}]}}"));
                }
            }
        }
    }
    println!("{n_prefixes} prefixes, {n_lists} different lists of messages in {}", file.close());
    assert!(n_prefixes > 12_000, "{n_prefixes} prefixes");
}

/// Each stream is written together with the message that is kept of its run.
#[test]
#[expect(clippy::print_stdout, reason = "how much there is, and where, is the result")]
fn every_stream_is_written_down() {
    let mut file = Lines::create("ui_streams.jsonl");
    let mut n_streams = 0;
    for records in logs() {
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        for answered in transcript.messages.iter().filter(|it| it.run().is_some()) {
            for (number, profile) in PROFILES {
                let run = ResponseId::new(answered.id());
                let chunks = Stream::new(run, profile).replay(&records);
                let message = ui::message(answered, profile, &file_url);
                let line = json!({ "profile": number, "chunks": chunks, "message": message });
                file.add(&line.to_string());
                n_streams += 1;
            }
        }
    }
    println!("{n_streams} streams in {}", file.close());
    assert!(n_streams > 1000, "{n_streams} streams");
}

/// Returns the logs of recordings, of imported files, and logs that were written by hand.
fn logs() -> impl Iterator<Item = Vec<Record>> {
    all().map(|it| it.records).chain(crate::import::logs()).chain(by_hand())
}

fn by_hand() -> impl Iterator<Item = Vec<Record>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = ["render/fixtures", "transcript/fixtures"].map(|it| crates.join(it));
    let files = folders.into_iter().flat_map(|it| std::fs::read_dir(it).unwrap());
    let paths = files.map(|it| it.unwrap().path());
    let logs = paths.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    logs.map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    })
}

/// Returns the JSON of the messages for each version. Versions 6 and 7 have the same messages.
fn shown(transcript: &Transcript) -> [(u8, String); 3] {
    let list = |of: &dyn Fn(&Message) -> Option<Value>| {
        let messages = transcript.messages.iter().filter(|it| !it.superseded);
        let shown: Vec<String> = messages.filter_map(of).map(|it| it.to_string()).collect();
        shown.join(",")
    };
    [
        (4, list(&|it| ui_v4::message(it, &file_url))),
        (5, list(&|it| ui::message(it, Profile::V5, &file_url))),
        (6, list(&|it| ui::message(it, Profile::V6, &file_url))),
    ]
}

#[test]
fn versions_6_and_7_keep_the_same_messages() {
    for records in logs() {
        for message in &Transcript::replay(&records).messages {
            let [of_6, of_7] =
                [Profile::V6, Profile::V7].map(|it| ui::message(message, it, &file_url));
            assert_eq!(of_6, of_7);
        }
    }
}

fn file_url(file: &Attachment) -> String {
    format!("http://localhost/{}", file.blob)
}

/// A file in Cargo's temporary folder for tests.
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn create(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let file = BufWriter::new(File::create(&path).unwrap());
        Self { path, file }
    }

    fn add(&mut self, line: &str) {
        writeln!(self.file, "{line}").unwrap();
    }

    /// Finishes the file and returns its path.
    fn close(mut self) -> String {
        self.file.flush().unwrap();
        self.path.display().to_string()
    }
}

//! Writes the page of every log in `fixtures/` or another folder, to look at without a server and for tests
//! in a browser.
//!
//!     cargo run -p render --example gallery -- OUT [LOGS]
//!
//! `NAME.html` is the page of the whole log. `NAME.json` contains the page of an empty log, the patch of each
//! record (null if the page has to reload), and the expected page after some of them; and the same for a
//! page that does not reach the end of the session.

use std::error::Error;
use std::path::{Path, PathBuf};

use render::{
    Bodies, ListedAgent, ListedSession, Live, OpenSession, Page, SessionList, Settings, View, page,
};
use serde_json::{Map, Value, json};
use transcript::{Record, SessionId, SessionState, Transcript, stream};

/// Interval at which pages are stored after deltas.
const DELTAS: usize = 7;
/// Number of records above which pages are stored at the interval [`OF_LONG`].
const LONG: usize = 500;
/// Interval at which pages of a long log are stored.
const OF_LONG: usize = 100;
/// Number of messages from which a page without the last one is stored.
const PART_OF: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let out = arguments.next().ok_or("usage: gallery OUT [LOGS]")?;
    let fixtures =
        arguments.next().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"));
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(fixtures)? {
        let path = entry?.path();
        let name =
            path.file_stem().ok_or("a fixture has no file name")?.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)?;
        let records: Result<Vec<Record>, _> = text.lines().map(serde_json::from_str).collect();
        logs.push((SessionId::new(name), records?));
    }
    logs.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    let gallery = Gallery::new(&logs);

    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("home.html"), gallery.draw(None))?;
    std::fs::write(out.join("page.css"), render::stylesheet())?;
    for (id, records) in &logs {
        let whole = gallery.draw(Some((id, &Transcript::replay(records))));
        std::fs::write(out.join(format!("{id}.html")), whole)?;
        std::fs::write(out.join(format!("{id}.json")), gallery.replay(id, records).to_string())?;
    }
    Ok(())
}

struct Gallery {
    settings: Settings,
    sessions: SessionList,
    agents: [ListedAgent; 1],
}

impl Gallery {
    fn new(logs: &[(SessionId, Vec<Record>)]) -> Self {
        let sessions = logs.iter().map(|(id, records)| {
            let summary = Transcript::replay(records).summary;
            ListedSession {
                id: id.clone(),
                title: summary.title().to_owned(),
                agent: summary.agent.clone(),
                state: summary.state(),
                archived: summary.archived,
                pending_deletion: false,
                updated_at: summary.updated_at,
            }
        });
        let (waiting, sessions) = sessions.partition(|it| it.state == SessionState::Waiting);
        let sessions = SessionList { waiting, sessions, ..SessionList::default() };
        let demo = ListedAgent {
            id: "demo".into(),
            kind: "demo".into(),
            folder: "/work".into(),
            program: None,
            can_be_steered: true,
            problem: None,
            limits: None,
        };
        Self { settings: Settings::default(), sessions, agents: [demo] }
    }

    fn draw(&self, open: Option<(&SessionId, &Transcript)>) -> String {
        let Self { settings, sessions, agents } = self;
        let open = open.map(|(id, transcript)| whole(id, transcript));
        page(&Page { settings, sessions, agents, servers: &[], imports: &[], open })
    }

    /// Draws a page with the first messages only.
    fn draw_part(&self, id: &SessionId, end: &Transcript, messages: usize) -> String {
        let Self { settings, sessions, agents } = self;
        let mut shown = end.clone();
        shown.messages.truncate(messages);
        let later = shown.messages.last().map(|it| it.first.0);
        let open = Some(OpenSession { transcript: &shown, later, ..whole(id, end) });
        page(&Page { settings, sessions, agents, servers: &[], imports: &[], open })
    }

    fn replay(&self, id: &SessionId, records: &[Record]) -> Value {
        let mut live = Live::new(View::new(id.clone(), Bodies::Cut), Transcript::default());
        let first = self.draw(Some((id, live.transcript())));
        let (mut patches, mut pages) = (Vec::new(), Map::new());
        let (mut part_from, mut parts) = (None, Map::new());
        for (idx, record) in records.iter().enumerate() {
            let ops = live.apply([record]);
            let is_delta = stream::continued_by(&record.event).is_some();
            let every = match (records.len() > LONG, is_delta) {
                (true, _) => OF_LONG,
                (false, true) => DELTAS,
                (false, false) => 1,
            };
            let known = live.transcript().messages.len();
            let is_first = part_from.is_none() && known >= PART_OF;
            if is_first {
                part_from = Some(record.seq);
            }
            if idx % every == 0 || ops.is_none() || is_first {
                let seq = record.seq.to_string();
                pages.insert(seq.clone(), self.draw(Some((id, live.transcript()))).into());
                if part_from.is_some() {
                    let part = self.draw_part(id, live.transcript(), PART_OF - 1);
                    parts.insert(seq, part.into());
                }
            }
            patches.push(json!({ "seq": record.seq, "ops": ops }));
        }
        let part = part_from.map(|seq| json!({ "seq": seq, "pages": parts }));
        json!({ "first": first, "patches": patches, "pages": pages, "part": part })
    }
}

fn whole<'a>(id: &SessionId, transcript: &'a Transcript) -> OpenSession<'a> {
    OpenSession {
        view: View::new(id.clone(), Bodies::Cut),
        transcript,
        end: transcript,
        earlier: None,
        later: None,
        at: None,
        pulse: None,
        unknown: None,
    }
}

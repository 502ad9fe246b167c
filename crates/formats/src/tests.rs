//! What the tests of all formats share: logs, and the runs in them.

pub(crate) mod logs;

use transcript::{Answer, Message, Record, ResponseId, Transcript};

/// The runs of a log with the answers that its whole transcript has for them, those that have ended.
pub(crate) fn finished_runs(log: &[Record]) -> Vec<(ResponseId, Answer)> {
    let transcript = whole(log);
    let answers = transcript.messages.iter().filter_map(Message::answer);
    answers.filter(|it| !it.is_open()).map(|it| (it.id.clone(), it.clone())).collect()
}

pub(crate) fn whole(log: &[Record]) -> Transcript {
    let mut transcript = Transcript::whole();
    transcript.extend(log);
    transcript
}

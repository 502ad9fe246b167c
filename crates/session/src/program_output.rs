//! The output of a program: each line goes to the backend, and into the raw lines with the numbers
//! of the records that it produced.

use backends::ProgramInput;
use transcript::{Event, Level, RawLine};

use crate::lanes::Work;
use crate::raw_lines::RawLines;
use crate::unrecognized_lines::{Keep, MAX_RAW};
use crate::{Effect, Line, Session};

impl Session {
    pub(crate) fn take_line(&mut self, line: Line) {
        self.journal.take_touched();
        if let Some(program) = self.program_mut() {
            program.mark_heard();
        }
        let text = match line {
            Line::Whole(text) => {
                self.feed_program(ProgramInput::Line(text.clone()));
                text
            }
            overlong @ Line::Overlong { .. } => {
                let raw = overlong.into_raw();
                let source = self.journal.summary.agent.clone();
                let event = Event::Unrecognized { source, raw: raw.clone(), lines: 1 };
                self.agent_lane.work.push_back(Work::Log(event));
                raw
            }
        };
        self.agent_lane.work.push_back(Work::LineDone(text));
    }

    /// Keeps a line of the program as a raw line, with the sequence numbers of the records that it
    /// produced.
    pub(crate) fn finish_line(&mut self, text: String) {
        let made = self.journal.take_touched();
        if made.is_none() && !self.try_reserve_raw(text.len()) {
            return;
        }
        let head = self.journal.head;
        let from = made.unwrap_or(head.next());
        self.raw.add(RawLine { at: self.now, from, to: head, text });
    }

    /// Returns whether a line of the program that produced no record is kept as a raw line. The
    /// first line that is dropped is announced by a notice in the log.
    fn try_reserve_raw(&mut self, bytes: usize) -> bool {
        match self.unrecognized.keep(bytes) {
            Keep::Yes => true,
            Keep::No => false,
            Keep::NoMore => {
                let text = format!(
                    "The program has written more than {} MB that is not part of its answer. \
                     Further lines of this kind are counted, but not kept.",
                    MAX_RAW / (1024 * 1024)
                );
                self.log_agent_event(Event::Notice { level: Level::Info, text });
                self.journal.take_touched();
                false
            }
        }
    }

    /// Logs the unreadable lines that were counted and are in no record yet, and resets the counts.
    pub(crate) fn log_unrecognized(&mut self) {
        if let Some(event) = std::mem::take(&mut self.unrecognized).take_rest() {
            self.push_here(event);
        }
    }

    /// Keeps a line that a program wrote after its agent was stopped. It becomes a raw line, but is
    /// not interpreted.
    pub(crate) fn keep_late_line(&mut self, line: Line) {
        let head = self.journal.head;
        let text = line.into_raw();
        self.raw.add(RawLine { at: self.now, from: head.next(), to: head, text });
    }

    pub(crate) fn take_raw(&mut self) -> Option<Effect> {
        if self.raw.is_empty() || (self.has_run() && !self.raw.is_due(self.now)) {
            return None;
        }
        let RawLines { lines, unrecognized, .. } = std::mem::take(&mut self.raw);
        Some(Effect::StoreRaw { lines, unrecognized })
    }
}

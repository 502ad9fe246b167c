//! The log of the server: one line on standard error for each event, without spans.

use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Write};

use runtime::clock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Target of log events that are dropped, because they contain the messages of MCP servers at every
/// level.
const IGNORED_TARGET: &str = "rmcp";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Starts to log events of this level and more important ones on standard error.
pub(crate) fn start(level: LevelFilter) {
    // An error of the log itself cannot be reported.
    let write = |line: &str| drop(std::io::stderr().lock().write_all(line.as_bytes()));
    // Colours are for terminals only.
    let logger = Logger { level, colours: std::io::stderr().is_terminal(), write };
    // Fails only if logging is started already.
    let _ = tracing::subscriber::set_global_default(logger);
}

struct Logger<W> {
    level: LevelFilter,
    colours: bool,
    /// Function that writes a line of the log, which includes its line break.
    write: W,
}

impl<W: Fn(&str) + 'static> Subscriber for Logger<W> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= self.level
            && !metadata.target().starts_with(IGNORED_TARGET)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let time = clock::now().to_string();
        (self.write)(&line(&time, *event.metadata().level(), &fields, self.colours));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Message of a log event, and its other fields as `name=value`.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}

fn line(time: &str, level: Level, fields: &Fields, colours: bool) -> String {
    let colour = match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        _ => "\x1b[34m",
    };
    let (dim, colour, plain) = if colours { (DIM, colour, PLAIN) } else { ("", "", "") };
    let mut line = format!("{dim}{time}{plain} {colour}{level:>5}{plain} ");
    // Escape control characters: untrusted values must not forge lines or control the terminal.
    for it in fields.message.chars().chain(fields.others.chars()) {
        if it.is_control() { line.extend(it.escape_default()) } else { line.push(it) }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    //! Text of lines, and filtering of events.

    use std::sync::{Arc, Mutex};

    use transcript::Millis;

    use super::*;

    /// Returns the lines without their times.
    fn logged(log: impl FnOnce()) -> String {
        let lines = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&lines);
        let write = move |line: &str| {
            let (time, rest) = line.split_once(' ').unwrap();
            assert!(Millis::parse(time).is_some(), "{line}");
            *kept.lock().unwrap() += rest;
        };
        let logger = Logger { level: LevelFilter::INFO, colours: false, write };
        tracing::subscriber::with_default(logger, log);
        lines.lock().unwrap().clone()
    }

    #[test]
    fn lines_have_a_level_a_message_and_fields() {
        let lines = logged(|| {
            tracing::info!(port = 1, file = %"a b", name = "a b", "started");
            tracing::error!(error = %"two\nlines \x1b[2J", "failed: {}", 5);
        });
        let expected = " INFO started port=1 file=a b name=\"a b\"\n\
                        ERROR failed: 5 error=two\\nlines \\u{1b}[2J\n";
        assert_eq!(lines, expected);
        let fields = Fields { message: "full".to_owned(), others: " n=1".to_owned() };
        let coloured = line("now", Level::WARN, &fields, true);
        assert_eq!(coloured, "\x1b[2mnow\x1b[0m \x1b[33m WARN\x1b[0m full n=1\n");
    }

    #[test]
    fn other_levels_and_contents_are_not_logged() {
        let lines = logged(|| {
            tracing::debug!("too detailed");
            tracing::error!(target: "rmcp::transport", "a message with secrets");
            tracing::info_span!("span").in_scope(|| tracing::info!("kept"));
        });
        assert_eq!(lines, " INFO kept\n");
    }
}

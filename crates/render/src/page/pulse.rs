//! The status line of the agent's program while it works. It is not in the log, so it is a separate
//! element that records never draw.

use maud::html;
use transcript::Millis;

use crate::html::element::Element;
use crate::view::View;

/// Process of an agent's program, as the page shows it during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    /// Process id of the program.
    pub pid: u32,
    /// Time at which the program last wrote a line; `None` if it has written none.
    pub last_line_at: Option<Millis>,
}

/// Draws the status line of an agent's program; empty if no program works.
pub(crate) fn pulse(view: &View, pulse: Option<&Pulse>) -> Element {
    let element = Element::div(view.id("pulse")).class("pulse-line");
    let Some(Pulse { pid, last_line_at }) = pulse else { return element };
    element.html(html! {
        span { "pid " (pid) }
        @match last_line_at {
            Some(at) => span { "last line " span.clock data-since=(at.0) {} " ago" },
            None => span { "no line yet" },
        }
    })
}

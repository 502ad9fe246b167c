//! What can be seen of the agent's program while it works: why is it still running? It is in no log, so
//! it has a place of its own, which records never draw.

use maud::html;
use transcript::Millis;

use crate::html::element::Element;
use crate::view::View;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    pub pid: u32,
    /// When it last wrote a line. None if it has written none yet.
    pub heard_at: Option<Millis>,
}

/// Empty where no program is at work.
pub(crate) fn pulse(view: &View, pulse: Option<&Pulse>) -> Element {
    let element = Element::div(view.id("pulse")).class("pulse-line");
    let Some(Pulse { pid, heard_at }) = pulse else { return element };
    element.html(html! {
        span { "pid " (pid) }
        @match heard_at {
            Some(at) => span { "last line " span.clock data-since=(at.0) {} " ago" },
            None => span { "no line yet" },
        }
    })
}

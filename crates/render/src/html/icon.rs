//! Icons, drawn for this project: 16 px, strokes of 1.5 px, one symbol each.

use maud::{Markup, PreEscaped, html};

const SHAPES: [(&str, &str); 25] = [
    ("agent", "<circle cx='8' cy='5.5' r='2.75'/><path d='M2.75 13.5a5.25 5.25 0 0 1 10.5 0'/>"),
    ("alert", "<circle cx='8' cy='8' r='6'/><path d='M8 4.75v4M8 11.1v.15'/>"),
    ("archive", "<path d='M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 9h3'/>"),
    ("arrow-down", "<path d='M8 3v10M4 9l4 4 4-4'/>"),
    ("arrow-up", "<path d='M8 13V3M4 7l4-4 4 4'/>"),
    ("check", "<path d='M3 8.5l3.25 3.25L13 5'/>"),
    ("chevron", "<path d='M6 4l4 4-4 4'/>"),
    ("clip", "<path d='M12.5 7.5l-4.6 4.6a2.8 2.8 0 0 1-4-4l5-5a1.9 1.9 0 0 1 2.7 2.7l-4.9 4.9'/>"),
    (
        "copy",
        "<rect x='5.5' y='5.5' width='7.5' height='7.5' rx='1.5'/><path d='M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5'/>",
    ),
    ("cross", "<path d='M4 4l8 8M12 4l-8 8'/>"),
    ("dots", "<path d='M3.5 8h.01M8 8h.01M12.5 8h.01' stroke-width='2.5'/>"),
    ("file", "<path d='M4 1.75h5L12.5 5v9.25H4zM9 1.75V5h3.5'/>"),
    (
        "gear",
        "<circle cx='8' cy='8' r='2.25'/><path d='M8 1.75v2M8 12.25v2M1.75 8h2M12.25 8h2M3.6 3.6L5 5M11 11l1.4 1.4M12.4 3.6L11 5M5 11l-1.4 1.4'/>",
    ),
    (
        "globe",
        "<circle cx='8' cy='8' r='6'/><path d='M2 8h12M8 2c-4 4-4 8 0 12M8 2c4 4 4 8 0 12'/>",
    ),
    ("list", "<path d='M2.5 4l1 1L5 3.25M2.5 11l1 1L5 10.25M7.5 4.25h6M7.5 11.25h6'/>"),
    ("menu", "<path d='M2.5 4.5h11M2.5 8h11M2.5 11.5h11'/>"),
    ("pencil", "<path d='M2.75 13.25l.6-2.9 7.6-7.6 2.3 2.3-7.6 7.6zM9.5 4.2l2.3 2.3'/>"),
    ("plus", "<path d='M8 3v10M3 8h10'/>"),
    ("retry", "<path d='M13 3v3.5H9.5M12.6 6.3A5.25 5.25 0 1 0 13.25 8.6'/>"),
    ("search", "<circle cx='7' cy='7' r='4.25'/><path d='M10.2 10.2L13.5 13.5'/>"),
    ("stop", "<rect x='4' y='4' width='8' height='8' rx='1' fill='currentColor'/>"),
    (
        "terminal",
        "<rect x='1.75' y='2.75' width='12.5' height='10.5' rx='1.5'/><path d='M4.5 6l2 2-2 2M8.25 10.25h3'/>",
    ),
    ("warning", "<path d='M8 2.25L14.25 13H1.75zM8 6.5v3M8 11.2v.1'/>"),
    (
        "wrap",
        "<path d='M2.5 3.5h11M2.5 8h8.75a2.25 2.25 0 0 1 0 4.5H8M9.75 10.75L8 12.5l1.75 1.75M2.5 12.5H5'/>",
    ),
    (
        "wrench",
        "<path d='M13.4 4.6a3.4 3.4 0 0 1-4.5 4.2l-4.4 4.4a1.2 1.2 0 0 1-1.7-1.7l4.4-4.4a3.4 3.4 0 0 1 4.2-4.5L9.3 4.7l.4 1.6 1.6.4z'/>",
    ),
];

/// Draws the definitions of all icons as SVG symbols, which every page contains once.
pub(crate) fn symbols() -> Markup {
    html! {
        svg #icons hidden aria-hidden="true" {
            @for (name, shape) in SHAPES {
                symbol id={ "icon-" (name) } viewBox="0 0 16 16" { (PreEscaped(shape)) }
            }
        }
    }
}

/// Draws the icon with this name, hidden from screen readers, because a label is next to it.
pub(crate) fn icon(name: &str) -> Markup {
    debug_assert!(SHAPES.iter().any(|(known, _)| *known == name), "no icon {name}");
    html! { svg.icon aria-hidden="true" { use href={ "#icon-" (name) } {} } }
}

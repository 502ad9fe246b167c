//! What a call was asked to do, in the view of its tool.

use maud::{Markup, html};
use serde_json::Value;
use transcript::{Call, WriteTarget, weight};

use super::{File, Kind, PATHS, arguments, command_text, first_text, result, written};
use crate::code;
use crate::diff::{self, Diff};
use crate::room::{Extent, Room};
use crate::words::{count, size};

/// With `file` for the content of one that it writes; none for a tool that nobody knows, and while the
/// arguments still come.
pub(crate) fn asked(
    call: &Call,
    room: &mut Room,
    file: impl Fn(&File, Extent) -> Markup,
) -> Option<Markup> {
    let arguments = arguments(call)?;
    let text = |names: &[&str]| first_text(arguments, names);
    Some(match Kind::of(&call.name) {
        Kind::Shell => command(arguments, room)?,
        Kind::Read => path_line(text(PATHS)?, lines(arguments)),
        Kind::List => path_line(text(PATHS).unwrap_or("."), None),
        Kind::Edit => changes(call, arguments, room).or_else(|| edit(arguments, room))?,
        Kind::Write => match changes(call, arguments, room) {
            Some(changes) => changes,
            None => {
                let File { path, content } = written(arguments)?;
                let shown = File { content: room.text(&content).to_owned(), path };
                html! { (path_line(&shown.path, None)) (file(&shown, room.extent)) }
            }
        },
        Kind::Search => {
            let pattern = room.text(text(&["pattern", "query", "glob", "regex"])?);
            html! {
                p.subject { code { (pattern) } @if let Some(path) = text(PATHS) { " in " code { (path) } } }
            }
        }
        Kind::Fetch => address(text(&["url", "query"])?, room),
        Kind::Plan => plan(arguments, room)?,
        Kind::Agent => {
            let to = text(&["agent", "agentId", "to", "subagent_type", "description"])
                .unwrap_or("agent");
            let words = room.text(text(&["prompt", "content", "message", "text"])?);
            html! { p.subject { "To " b { (to) } } blockquote { (words) } }
        }
        Kind::Agents => agents(call, room),
        Kind::Other => return None,
    })
}

/// What a person is asked to allow: with what it would write over, where that is known.
pub(crate) fn proposed(call: &Call, room: &mut Room) -> Option<Markup> {
    let options = call.approval.as_ref().and_then(|it| it.options.as_ref());
    match options.and_then(|it| it.target.as_ref()) {
        Some(target) => overwriting(call, target, room),
        None => asked(call, room, in_body),
    }
}

/// Its colours cost more than the rest of a page, so that what is only a beginning has none.
pub(crate) fn in_body(file: &File, extent: Extent) -> Markup {
    html! {
        div.body.file tabindex="0" {
            @if extent == Extent::Beginning { pre { code { (file.content) } } }
            @else { (code::file(&file.path, &file.content)) }
        }
    }
}

fn overwriting(call: &Call, target: &WriteTarget, room: &mut Room) -> Option<Markup> {
    let File { path, content } = written(arguments(call)?)?;
    if let (Some(_), Some(text)) = (target.size, &target.text) {
        let is_all = room.has_all_of(content.len());
        let diff = diff::texts(text, &content, Some(1));
        return Some(html! {
            (changed(Some(&target.path), is_all.then_some((diff.added, diff.removed))))
            p.overwrites { "Writes over the file that is there:" }
            (diff.html(room))
        });
    }
    let n_lines = match room.has_all_of(content.len()) {
        true => count(content.lines().count() as u64, "line"),
        false => "a long text".to_owned(),
    };
    let shown = File { content: room.text(&content).to_owned(), path };
    Some(html! {
        (path_line(&target.path, None))
        @match target.size {
            None => p.meta { "A new file, " (n_lines) },
            Some(bytes) => p.overwrites { "Writes over the file that is there (" (size(bytes)) ") with " (n_lines) ":" },
        }
        (in_body(&shown, room.extent))
    })
}

fn command(arguments: &Value, room: &mut Room) -> Option<Markup> {
    let command = command_text(arguments)?;
    let folder = first_text(arguments, &["workdir", "cwd", "workspace"]);
    Some(html! {
        div.command { span.prompt aria-hidden="true" { "$ " } code { (room.text(&command)) } }
        @if let Some(folder) = folder { p.meta { "in " code { (folder) } } }
    })
}

fn path_line(path: &str, lines: Option<String>) -> Markup {
    html! { p.subject { code { (path) } @if let Some(lines) = lines { " " (lines) } } }
}

fn lines(arguments: &Value) -> Option<String> {
    let number = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_u64());
    let from = number(&["from_line", "offset"]);
    let to = number(&["to_line"])
        .or_else(|| Some(from.unwrap_or(1).saturating_add(number(&["limit"])?).saturating_sub(1)));
    match (from, to) {
        (None, None) => None,
        (from, Some(to)) => Some(format!("lines {} to {to}", from.unwrap_or(1))),
        (Some(from), None) => Some(format!("from line {from}")),
    }
}

fn address(text: &str, room: &mut Room) -> Markup {
    let shown = room.text(text);
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    html! {
        p.subject {
            @if is_address && shown == text {
                a href=(text) rel="noopener noreferrer nofollow" target="_blank" { (text) }
            } @else { code { (shown) } }
        }
    }
}

/// What a call has changed, as it says itself: with the lines around it and their numbers, which the
/// arguments do not have.
fn changes(call: &Call, arguments: &Value, room: &mut Room) -> Option<Markup> {
    let told = told_changes(result(call)?)?;
    let diff = patched(told)?;
    let counts = room.has_all_of(weight(told)).then_some((diff.added, diff.removed));
    Some(html! { (changed(first_text(arguments, PATHS), counts)) (diff.html(room)) })
}

/// Claude Code gives hunks, Pi numbered lines.
pub(super) fn told_changes(result: &Value) -> Option<&Value> {
    let lines = || result.get("details")?.get("diff").filter(|it| it.is_string());
    result.get("structuredPatch").or_else(lines)
}

fn patched(told: &Value) -> Option<Diff> {
    if let Some(lines) = told.as_str() {
        return diff::numbered(lines);
    }
    let mut patch = String::new();
    for hunk in told.as_array()? {
        let number = |name: &str| hunk.get(name).and_then(Value::as_u64);
        let (old, n_old) = (number("oldStart")?, number("oldLines")?);
        let (new, n_new) = (number("newStart")?, number("newLines")?);
        patch += &format!("@@ -{old},{n_old} +{new},{n_new} @@\n");
        for line in hunk.get("lines")?.as_array()? {
            patch += line.as_str()?;
            patch.push('\n');
        }
    }
    diff::patch(&patch)
}

/// One edit, several, a patch, or a list of changed files.
fn edit(arguments: &Value, room: &mut Room) -> Option<Markup> {
    let mut is_all = true;
    let mut is_known = |text: &str| is_all &= room.has_all_of(text.len());
    if let Some(patch) = first_text(arguments, &["patch", "input", "diff", "unified_diff"]) {
        is_known(patch);
        let diff = diff::patch(patch)?;
        let counts = is_all.then_some((diff.added, diff.removed));
        return Some(html! { (changed(None, counts)) (diff.html(room)) });
    }
    let one = |edit: &Value| {
        let old = first_text(edit, &["old_string", "oldText", "old", "old_text"])?;
        let new = first_text(edit, &["new_string", "newText", "new", "new_text"])?;
        is_known(old);
        is_known(new);
        Some(diff::texts(old, new, None))
    };
    let edits: Vec<Diff> = match arguments.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().filter_map(one).collect(),
        None => [arguments].into_iter().filter_map(one).collect(),
    };
    if edits.is_empty() {
        return None;
    }
    let (added, removed) = (edits.iter().map(|it| it.added), edits.iter().map(|it| it.removed));
    let counts = is_all.then(|| (added.sum(), removed.sum()));
    Some(html! {
        (changed(first_text(arguments, PATHS), counts))
        @for edit in &edits { (edit.html(room)) }
    })
}

/// The counts are those of the whole change, where that is known.
fn changed(path: Option<&str>, counts: Option<(usize, usize)>) -> Markup {
    html! {
        p.subject {
            @if let Some(path) = path { code { (path) } " " }
            @if let Some((added, removed)) = counts {
                span.added { "+" (added) } " " span.removed { "−" (removed) }
            }
        }
    }
}

/// Empty while the answer has not come.
fn agents(call: &Call, room: &mut Room) -> Markup {
    let agents = result(call).and_then(|it| it.get("agents")?.as_array());
    let field = |agent, name| first_text(agent, &[name]).unwrap_or_default().to_owned();
    html! {
        ul.agents {
            @for agent in room.items(agents.map_or(&[], |it| it)) {
                li {
                    b { (field(agent, "id")) } " "
                    span.state { (field(agent, "state")) } " " (field(agent, "description"))
                }
            }
        }
    }
}

fn plan(arguments: &Value, room: &mut Room) -> Option<Markup> {
    let items = ["todos", "plan", "items"].iter().find_map(|it| arguments.get(it)?.as_array())?;
    Some(html! {
        ul.plan {
            @for item in room.items(items) {
                @let words = first_text(item, &["content", "step", "text"]).unwrap_or_default();
                @let (class, state) = match first_text(item, &["status"]) {
                    Some("completed") => ("done", "done"),
                    Some("in_progress") => ("now", "now"),
                    _ if item.get("completed").and_then(Value::as_bool) == Some(true) => ("done", "done"),
                    _ => ("later", "to do"),
                };
                li class=(class) { span.state { (state) } " " (words) }
            }
        }
    })
}

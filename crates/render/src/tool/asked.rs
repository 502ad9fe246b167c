//! What a call was asked to do, in the view of its tool.

use std::path::{Component, Path, PathBuf};

use maud::{Markup, html};
use serde_json::Value;
use transcript::{Call, WriteTarget, weight};

use super::headline::tells;
use super::rest::Rest;
use super::{
    ADDRESSES, File, Kind, PATTERNS, arguments, command_text, first_text, folders, paths, result,
    written,
};
use crate::code;
use crate::diff::{self, Diff};
use crate::room::{Extent, Room};
use crate::visible::{is_invisible, marked};
use crate::words::{count, size};

/// With `file` for the content of one that it writes; none for a tool that nobody knows, and while the
/// arguments still come.
pub(crate) fn asked(
    call: &Call,
    room: &mut Room,
    file: impl Fn(&File, Extent) -> Markup,
) -> Option<Markup> {
    let content = |path: &str, content: &str, room: &mut Room| {
        let content = room.text(content).to_owned();
        file(&File { path: path.to_owned(), content }, room.extent)
    };
    drawn(call, &mut Rest::of(arguments(call)?), room, content)
}

/// The content of an approval card, with everything that will reach the tool: in its view, with what it would
/// write over where that is known, and below it the arguments that the view does not show. None where the
/// arguments cannot be read.
pub(crate) fn proposed(call: &Call, room: &mut Room) -> Option<Markup> {
    let arguments = arguments(call)?;
    let mut rest = Rest::of(arguments);
    let options = call.approval.as_ref().and_then(|it| it.options.as_ref());
    let target = options.and_then(|it| it.target.as_ref());
    let view = match target.filter(|_| Kind::of(&call.name) == Kind::Write) {
        Some(target) => overwriting(call, target, &mut rest, room),
        None => drawn(call, &mut rest, room, judged_content),
    };
    if view.is_none() {
        rest = Rest::of(arguments);
    }
    let others = others(&rest.into_fields(), view.is_some(), room);
    let link = target.and_then(|it| link(call, arguments, it));
    Some(html! { (link.unwrap_or_default()) @if let Some(view) = view { (view) } (others) })
}

/// Says that the path of a call is a link to another file, which the headline names.
fn link(call: &Call, arguments: &Value, target: &WriteTarget) -> Option<Markup> {
    let given = first_text(arguments, paths(&call.name))?;
    let plain: PathBuf =
        Path::new(given).components().filter(|it| *it != Component::CurDir).collect();
    (!Path::new(&target.path).ends_with(&plain)).then(|| {
        html! { p.subject { code { (marked(given)) } " leads to " code { (marked(&target.path)) } } }
    })
}

/// The arguments that no view shows, each by its name.
fn others(fields: &[(String, &Value)], has_view: bool, room: &mut Room) -> Markup {
    let draw = |room: &mut Room, (name, value): &(String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        html! { div.field { code { (marked(name)) } " = " span.value { (room.shown(&text)) } } }
    };
    let list = room.ends_of(fields, "argument", draw, |words| words);
    html! {
        @if !fields.is_empty() {
            div.fields { @if has_view { p.meta { "Also:" } } (list) }
        } @else if !has_view { p.meta { "No arguments" } }
    }
}

fn drawn(
    call: &Call,
    rest: &mut Rest<'_>,
    room: &mut Room,
    content: impl Fn(&str, &str, &mut Room) -> Markup,
) -> Option<Markup> {
    let tool = call.name.as_str();
    Some(match Kind::of(tool) {
        Kind::Shell => command(call, rest, room)?,
        Kind::Read => {
            let path = rest.text(paths(tool))?;
            subject(call, Some(path), lines(rest).map(|it| html! { (it) }), room)
        }
        Kind::List => subject(call, Some(rest.text(paths(tool)).unwrap_or(".")), None, room),
        Kind::Edit => changes(call, rest, room).or_else(|| edit(call, rest, room))?,
        Kind::Write => match changes(call, rest, room) {
            Some(changes) => changes,
            None => {
                let (path, text) = written(tool, rest)?;
                html! { (subject(call, Some(path), None, room)) (content(path, text, room)) }
            }
        },
        Kind::Search => {
            let pattern = room.shown(rest.text(PATTERNS)?);
            let path = rest.text(paths(tool));
            html! {
                p.subject { code { (pattern) } @if let Some(path) = path { " in " code { (marked(path)) } } }
            }
        }
        Kind::Fetch => address(call, rest.text(ADDRESSES)?, room),
        Kind::Plan => plan(rest, room)?,
        Kind::Agent => {
            let to = rest.text(&["agent", "agentId", "to", "subagent_type", "description"]);
            let words = room.shown(rest.text(&["prompt", "content", "message", "text"])?);
            html! { p.subject { "To " b { (marked(to.unwrap_or("agent"))) } } blockquote { (words) } }
        }
        Kind::Agents => agents(call, room),
        Kind::Other => return None,
    })
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

/// In colour only where nothing has to be hidden or written out.
fn judged_content(path: &str, content: &str, room: &mut Room) -> Markup {
    let is_plain = !content.contains(|it: char| is_invisible(it) && !matches!(it, '\n' | '\t'));
    let fits = room.extent == Extent::Whole || room.fits(content);
    html! {
        div.body.file {
            @if is_plain && fits { (code::file(path, content)) }
            @else { pre { code { (room.shown(content)) } } }
        }
    }
}

fn overwriting(
    call: &Call,
    target: &WriteTarget,
    rest: &mut Rest<'_>,
    room: &mut Room,
) -> Option<Markup> {
    let (path, content) = written(&call.name, rest)?;
    let is_all = room.note_excerpt(content.len());
    let place = (!tells(call, &target.path))
        .then(|| html! { p.subject { code { (marked(&target.path)) } } });
    if let (Some(_), Some(text), true) = (target.size, &target.text, is_all) {
        let diff = diff::texts(text, content, Some(1));
        return Some(html! {
            (place.unwrap_or_default())
            p.subject { "Overwrites the existing file " (counts(&diff)) }
            (diff.html(room))
        });
    }
    let n_lines = match is_all {
        true => count(content.lines().count() as u64, "line"),
        false => "a long text".to_owned(),
    };
    Some(html! {
        (place.unwrap_or_default())
        p.subject {
            @match target.size {
                None => { "A new file, " (n_lines) },
                Some(bytes) => { "Overwrites the existing file (" (size(bytes)) ") with " (n_lines) },
            }
        }
        (judged_content(path, content, room))
    })
}

fn command(call: &Call, rest: &mut Rest<'_>, room: &mut Room) -> Option<Markup> {
    let command = command_text(&call.name, rest)?;
    let folder = rest.text(folders(&call.name));
    let folder = folder.filter(|it| !(room.is_decision() && tells(call, it)));
    Some(html! {
        div.command { span.prompt aria-hidden="true" { "$ " } code { (room.shown(&command)) } }
        @if let Some(folder) = folder { p.meta { "in " code { (marked(folder)) } } }
    })
}

/// The subject of a call, unless the headline says it, and details.
fn subject(call: &Call, path: Option<&str>, more: Option<Markup>, room: &Room) -> Markup {
    let path = path.filter(|it| !(room.is_decision() && tells(call, it)));
    html! {
        @if path.is_some() || more.is_some() {
            p.subject {
                @if let Some(path) = path { code { (marked(path)) } }
                @if let Some(more) = more { @if path.is_some() { " " } (more) }
            }
        }
    }
}

fn lines(rest: &mut Rest<'_>) -> Option<String> {
    let from = rest.number(&["from_line", "offset"]);
    let to = rest.number(&["to_line"]).or_else(|| {
        Some(from.unwrap_or(1).saturating_add(rest.number(&["limit"])?).saturating_sub(1))
    });
    match (from, to) {
        (None, None) => None,
        (from, Some(to)) => Some(format!("lines {} to {to}", from.unwrap_or(1))),
        (Some(from), None) => Some(format!("from line {from}")),
    }
}

fn address(call: &Call, text: &str, room: &mut Room) -> Markup {
    if room.is_decision() && tells(call, text) {
        return html! {};
    }
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    let can_be_followed = is_address && !room.is_decision();
    let shown = room.shown(text);
    html! {
        p.subject {
            @if can_be_followed && room.was_enough() {
                a href=(text) rel="noopener noreferrer nofollow" target="_blank" { (shown) }
            } @else { code { (shown) } }
        }
    }
}

/// What a call has changed, as it says itself: with the lines around it and their numbers, which the
/// arguments do not have.
fn changes(call: &Call, rest: &mut Rest<'_>, room: &mut Room) -> Option<Markup> {
    let told = told_changes(result(call)?)?;
    let diff = patched(told)?;
    let is_all = room.note_excerpt(weight(told));
    let counts = is_all.then(|| counts(&diff));
    let path = rest.text(paths(&call.name));
    Some(html! { (subject(call, path, counts, room)) (diff.html(room)) })
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
fn edit(call: &Call, rest: &mut Rest<'_>, room: &mut Room) -> Option<Markup> {
    if let Some(patch) = rest.text(&["patch", "input", "diff", "unified_diff"]) {
        let is_all = room.note_excerpt(patch.len());
        let diff = match room.is_decision() {
            true => diff::verbatim(patch).filter(|_| is_all),
            false => diff::patch(patch),
        };
        return Some(match diff {
            Some(diff) => {
                let counts = is_all.then(|| counts(&diff));
                html! { (subject(call, None, counts, room)) (diff.html(room)) }
            }
            None if room.is_decision() => html! { div.body { (room.shown(patch)) } },
            None => return None,
        });
    }
    let path = rest.text(paths(&call.name));
    let mut edits = Vec::new();
    match rest.list(&["edits"]) {
        Some(list) => {
            for (idx, item) in list.iter().enumerate() {
                let (place, mut fields) = (format!("edits[{idx}]"), Rest::of(item));
                match replacement(&mut fields) {
                    Some(edit) => {
                        edits.push(edit);
                        rest.put_back(&place, fields);
                    }
                    None => rest.put_back_value(place, item),
                }
            }
        }
        None => edits.extend(replacement(rest)),
    }
    if edits.is_empty() {
        return None;
    }
    let is_all = edits.iter().fold(true, |is_all, (old, new)| {
        room.note_excerpt(old.len()) & room.note_excerpt(new.len()) & is_all
    });
    let diffs: Vec<Diff> = edits.iter().map(|(old, new)| diff::texts(old, new, None)).collect();
    let counts = is_all.then(|| {
        let (added, removed) = (diffs.iter().map(|it| it.added), diffs.iter().map(|it| it.removed));
        added_and_removed(added.sum(), removed.sum())
    });
    // The difference of two texts that are not all there would be another one.
    let shows_texts = room.is_decision() && !is_all;
    Some(html! {
        (subject(call, path, counts, room))
        @if shows_texts {
            @for (old, new) in &edits {
                p.meta { "Replaces" } div.body { (room.shown(old)) }
                p.meta { "with" } div.body { (room.shown(new)) }
            }
        } @else { @for diff in &diffs { (diff.html(room)) } }
    })
}

fn replacement<'a>(rest: &mut Rest<'a>) -> Option<(&'a str, &'a str)> {
    let old = rest.text(&["old_string", "oldText", "old", "old_text"])?;
    Some((old, rest.text(&["new_string", "newText", "new", "new_text"])?))
}

/// Added and removed lines of the whole change.
fn counts(diff: &Diff) -> Markup {
    added_and_removed(diff.added, diff.removed)
}

fn added_and_removed(added: usize, removed: usize) -> Markup {
    html! { span.added { "+" (added) } " " span.removed { "−" (removed) } }
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

fn plan(rest: &mut Rest<'_>, room: &mut Room) -> Option<Markup> {
    let items = rest.list(&["todos", "plan", "items"])?;
    let mut entries = Vec::new();
    for (idx, item) in room.items(items).iter().enumerate() {
        let mut fields = Rest::of(item);
        let words = fields.text(&["content", "step", "text"]);
        let status = fields.text(&["status"]);
        let is_done = fields.take(&["completed"], Value::is_boolean) == Some(&Value::Bool(true));
        entries.push((words.unwrap_or_default(), status, is_done));
        match item.is_object() {
            true => rest.put_back(&format!("item {}", idx + 1), fields),
            false => rest.put_back_value(format!("item {}", idx + 1), item),
        }
    }
    let draw = |room: &mut Room, (words, status, is_done): &(&str, Option<&str>, bool)| {
        let (class, state) = match status {
            Some("completed") => ("done", "done"),
            Some("in_progress") => ("now", "now"),
            _ if *is_done => ("done", "done"),
            Some(other) if *other != "pending" && room.is_decision() => ("later", *other),
            _ => ("later", "to do"),
        };
        html! { li class=(class) { span.state { (marked(state)) } " " (room.shown(words)) } }
    };
    let list = room.ends_of(&entries, "item", draw, |words| html! { li { (words) } });
    Some(html! { ul.plan { (list) } })
}

//! Views of a call's arguments, by tool.

use std::path::{Component, Path, PathBuf};

use maud::{Markup, html};
use serde_json::Value;
use transcript::{Call, WriteTarget, weight};

use super::headline::headline_names;
use super::remaining_arguments::RemainingArguments;
use super::{
    ADDRESSES, File, Kind, PATTERNS, arguments, command_text, first_text, folders, paths, result,
    written,
};
use crate::text::budget::{Detail, SizeBudget};
use crate::text::code;
use crate::text::diff::{self, Diff};
use crate::text::invisible::{is_invisible, marked};
use crate::text::quantity::{count, size};

/// Draws the arguments of a tool call in the view of its tool, with `file` for the content of a
/// written file. `None` for an unknown tool or incomplete arguments.
pub(crate) fn arguments_view(
    call: &Call,
    budget: &mut SizeBudget,
    file: impl Fn(&File, Detail) -> Markup,
) -> Option<Markup> {
    let content = |path: &str, content: &str, budget: &mut SizeBudget| {
        let content = budget.text(content).to_owned();
        file(&File { path: path.to_owned(), content }, budget.detail)
    };
    drawn(call, &mut RemainingArguments::of(arguments(call)?), budget, content)
}

/// Draws the content of an approval card, with everything that the tool will receive: the tool's
/// view, the content that it would overwrite if known, and the arguments that the view does not
/// show. `None` if the arguments cannot be parsed.
pub(crate) fn approval_view(call: &Call, budget: &mut SizeBudget) -> Option<Markup> {
    let arguments = arguments(call)?;
    let mut rest = RemainingArguments::of(arguments);
    let options = call.approval.as_ref().and_then(|it| it.options.as_ref());
    let target = options.and_then(|it| it.target.as_ref());
    let view = match target.filter(|_| Kind::of(&call.name) == Kind::Write) {
        Some(target) => overwriting(call, target, &mut rest, budget),
        None => drawn(call, &mut rest, budget, approval_content),
    };
    if view.is_none() {
        rest = RemainingArguments::of(arguments);
    }
    let others = others(&rest.into_fields(), view.is_some(), budget);
    let link = target.and_then(|it| link(call, arguments, it));
    Some(html! { (link.unwrap_or_default()) @if let Some(view) = view { (view) } (others) })
}

/// Draws a note that the path of a tool call is a symbolic link to another file, which the headline
/// names; `None` if it is not.
fn link(call: &Call, arguments: &Value, target: &WriteTarget) -> Option<Markup> {
    let given = first_text(arguments, paths(&call.name))?;
    let plain: PathBuf =
        Path::new(given).components().filter(|it| *it != Component::CurDir).collect();
    (!Path::new(&target.path).ends_with(&plain)).then(|| {
        html! { p.subject { code { (marked(given)) } " leads to " code { (marked(&target.path)) } } }
    })
}

/// Draws the arguments of a tool call that its view does not show, by name.
fn others(fields: &[(String, &Value)], has_view: bool, budget: &mut SizeBudget) -> Markup {
    let draw = |budget: &mut SizeBudget, (name, value): &(String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        html! { div.field { code { (marked(name)) } " = " span.value { (budget.shown(&text)) } } }
    };
    let list = budget.ends_of(fields, "argument", draw, |words| words);
    html! {
        @if !fields.is_empty() {
            div.fields { @if has_view { p.meta { "Also:" } } (list) }
        } @else if !has_view { p.meta { "No arguments" } }
    }
}

fn drawn(
    call: &Call,
    rest: &mut RemainingArguments<'_>,
    budget: &mut SizeBudget,
    content: impl Fn(&str, &str, &mut SizeBudget) -> Markup,
) -> Option<Markup> {
    let tool = call.name.as_str();
    Some(match Kind::of(tool) {
        Kind::Shell => command(call, rest, budget)?,
        Kind::Read => {
            let path = rest.text(paths(tool))?;
            subject(call, Some(path), lines(rest).map(|it| html! { (it) }), budget)
        }
        Kind::List => subject(call, Some(rest.text(paths(tool)).unwrap_or(".")), None, budget),
        Kind::Edit => changes(call, rest, budget).or_else(|| edit(call, rest, budget))?,
        Kind::Write => match changes(call, rest, budget) {
            Some(changes) => changes,
            None => {
                let (path, text) = written(tool, rest)?;
                html! { (subject(call, Some(path), None, budget)) (content(path, text, budget)) }
            }
        },
        Kind::Search => {
            let pattern = budget.shown(rest.text(PATTERNS)?);
            let path = rest.text(paths(tool));
            html! {
                p.subject { code { (pattern) } @if let Some(path) = path { " in " code { (marked(path)) } } }
            }
        }
        Kind::Fetch => address(call, rest.text(ADDRESSES)?, budget),
        Kind::Plan => plan(rest, budget)?,
        Kind::Agent => {
            let to = rest.text(&["agent", "agentId", "to", "subagent_type", "description"]);
            let words = budget.shown(rest.text(&["prompt", "content", "message", "text"])?);
            html! { p.subject { "To " b { (marked(to.unwrap_or("agent"))) } } blockquote { (words) } }
        }
        Kind::Agents => agents(call, budget),
        Kind::Other => return None,
    })
}

/// Draws the content of a file. A mere beginning is not highlighted, because highlighting costs
/// more than the rest of a page.
pub(crate) fn in_body(file: &File, detail: Detail) -> Markup {
    html! {
        div.body.file tabindex="0" {
            @if detail == Detail::Beginning { pre { code { (file.content) } } }
            @else { (code::file(&file.path, &file.content)) }
        }
    }
}

/// Draws the content of a file on an approval card, highlighted only if nothing is hidden or
/// invisible.
fn approval_content(path: &str, content: &str, budget: &mut SizeBudget) -> Markup {
    let is_plain = !content.contains(|it: char| is_invisible(it) && !matches!(it, '\n' | '\t'));
    let fits = budget.detail == Detail::Whole || budget.fits(content);
    html! {
        div.body.file {
            @if is_plain && fits { (code::file(path, content)) }
            @else { pre { code { (budget.shown(content)) } } }
        }
    }
}

fn overwriting(
    call: &Call,
    target: &WriteTarget,
    rest: &mut RemainingArguments<'_>,
    budget: &mut SizeBudget,
) -> Option<Markup> {
    let (path, content) = written(&call.name, rest)?;
    let is_all = budget.note_excerpt(content.len());
    let place = (!headline_names(call, &target.path))
        .then(|| html! { p.subject { code { (marked(&target.path)) } } });
    if let (Some(_), Some(text), true) = (target.size, &target.text, is_all) {
        let diff = diff::texts(text, content, Some(1));
        return Some(html! {
            (place.unwrap_or_default())
            p.subject { "Overwrites the existing file " (counts(&diff)) }
            (diff.html(budget))
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
        (approval_content(path, content, budget))
    })
}

fn command(
    call: &Call,
    rest: &mut RemainingArguments<'_>,
    budget: &mut SizeBudget,
) -> Option<Markup> {
    let command = command_text(&call.name, rest)?;
    let folder = rest.text(folders(&call.name));
    let folder = folder.filter(|it| !(budget.is_for_approval() && headline_names(call, it)));
    Some(html! {
        div.command { span.prompt aria-hidden="true" { "$ " } code { (budget.shown(&command)) } }
        @if let Some(folder) = folder { p.meta { "in " code { (marked(folder)) } } }
    })
}

/// Draws the path of a tool call with details. An approval card omits a path that its headline
/// names.
fn subject(call: &Call, path: Option<&str>, more: Option<Markup>, budget: &SizeBudget) -> Markup {
    let path = path.filter(|it| !(budget.is_for_approval() && headline_names(call, it)));
    html! {
        @if path.is_some() || more.is_some() {
            p.subject {
                @if let Some(path) = path { code { (marked(path)) } }
                @if let Some(more) = more { @if path.is_some() { " " } (more) }
            }
        }
    }
}

fn lines(rest: &mut RemainingArguments<'_>) -> Option<String> {
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

fn address(call: &Call, text: &str, budget: &mut SizeBudget) -> Markup {
    if budget.is_for_approval() && headline_names(call, text) {
        return html! {};
    }
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    let can_be_followed = is_address && !budget.is_for_approval();
    let shown = budget.shown(text);
    html! {
        p.subject {
            @if can_be_followed && budget.is_complete() {
                a href=(text) rel="noopener noreferrer nofollow" target="_blank" { (shown) }
            } @else { code { (shown) } }
        }
    }
}

/// Draws the change that the result of an edit or write reports, with context lines and line
/// numbers, which the arguments lack. `None` if the result reports none.
fn changes(
    call: &Call,
    rest: &mut RemainingArguments<'_>,
    budget: &mut SizeBudget,
) -> Option<Markup> {
    let reported = reported_changes(result(call)?)?;
    let diff = patched(reported)?;
    let is_all = budget.note_excerpt(weight(reported));
    let counts = is_all.then(|| counts(&diff));
    let path = rest.text(paths(&call.name));
    Some(html! { (subject(call, path, counts, budget)) (diff.html(budget)) })
}

/// Returns the change that the result of a tool call reports: Claude Code reports hunks, Pi
/// numbered lines.
pub(super) fn reported_changes(result: &Value) -> Option<&Value> {
    let lines = || result.get("details")?.get("diff").filter(|it| it.is_string());
    result.get("structuredPatch").or_else(lines)
}

fn patched(reported: &Value) -> Option<Diff> {
    if let Some(lines) = reported.as_str() {
        return diff::numbered(lines);
    }
    let mut patch = String::new();
    for hunk in reported.as_array()? {
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

/// Draws the arguments of an edit tool: one replacement, several, or a patch. `None` if there are
/// none.
fn edit(call: &Call, rest: &mut RemainingArguments<'_>, budget: &mut SizeBudget) -> Option<Markup> {
    if let Some(patch) = rest.text(&["patch", "input", "diff", "unified_diff"]) {
        let is_all = budget.note_excerpt(patch.len());
        let diff = match budget.is_for_approval() {
            true => diff::verbatim(patch).filter(|_| is_all),
            false => diff::patch(patch),
        };
        return Some(match diff {
            Some(diff) => {
                let counts = is_all.then(|| counts(&diff));
                html! { (subject(call, None, counts, budget)) (diff.html(budget)) }
            }
            None if budget.is_for_approval() => html! { div.body { (budget.shown(patch)) } },
            None => return None,
        });
    }
    let path = rest.text(paths(&call.name));
    let mut edits = Vec::new();
    match rest.list(&["edits"]) {
        Some(list) => {
            for (idx, item) in list.iter().enumerate() {
                let (place, mut fields) = (format!("edits[{idx}]"), RemainingArguments::of(item));
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
        budget.note_excerpt(old.len()) & budget.note_excerpt(new.len()) & is_all
    });
    let diffs: Vec<Diff> = edits.iter().map(|(old, new)| diff::texts(old, new, None)).collect();
    let counts = is_all.then(|| {
        let (added, removed) = (diffs.iter().map(|it| it.added), diffs.iter().map(|it| it.removed));
        added_and_removed(added.sum(), removed.sum())
    });
    // A diff of incomplete texts would be wrong.
    let shows_texts = budget.is_for_approval() && !is_all;
    Some(html! {
        (subject(call, path, counts, budget))
        @if shows_texts {
            @for (old, new) in &edits {
                p.meta { "Replaces" } div.body { (budget.shown(old)) }
                p.meta { "with" } div.body { (budget.shown(new)) }
            }
        } @else { @for diff in &diffs { (diff.html(budget)) } }
    })
}

fn replacement<'a>(rest: &mut RemainingArguments<'a>) -> Option<(&'a str, &'a str)> {
    let old = rest.text(&["old_string", "oldText", "old", "old_text"])?;
    Some((old, rest.text(&["new_string", "newText", "new", "new_text"])?))
}

/// Draws the numbers of added and removed lines of a complete diff.
fn counts(diff: &Diff) -> Markup {
    added_and_removed(diff.added, diff.removed)
}

fn added_and_removed(added: usize, removed: usize) -> Markup {
    html! { span.added { "+" (added) } " " span.removed { "−" (removed) } }
}

/// Draws the list of agents that a tool call returned; empty until the result arrives.
fn agents(call: &Call, budget: &mut SizeBudget) -> Markup {
    let agents = result(call).and_then(|it| it.get("agents")?.as_array());
    let field = |agent, name| first_text(agent, &[name]).unwrap_or_default().to_owned();
    html! {
        ul.agents {
            @for agent in budget.items(agents.map_or(&[], |it| it)) {
                li {
                    b { (field(agent, "id")) } " "
                    span.state { (field(agent, "state")) } " " (field(agent, "description"))
                }
            }
        }
    }
}

fn plan(rest: &mut RemainingArguments<'_>, budget: &mut SizeBudget) -> Option<Markup> {
    let items = rest.list(&["todos", "plan", "items"])?;
    let mut entries = Vec::new();
    for (idx, item) in budget.items(items).iter().enumerate() {
        let mut fields = RemainingArguments::of(item);
        let words = fields.text(&["content", "step", "text"]);
        let status = fields.text(&["status"]);
        let is_done = fields.take(&["completed"], Value::is_boolean) == Some(&Value::Bool(true));
        entries.push((words.unwrap_or_default(), status, is_done));
        match item.is_object() {
            true => rest.put_back(&format!("item {}", idx + 1), fields),
            false => rest.put_back_value(format!("item {}", idx + 1), item),
        }
    }
    let draw = |budget: &mut SizeBudget, (words, status, is_done): &(&str, Option<&str>, bool)| {
        let (class, state) = match status {
            Some("completed") => ("done", "done"),
            Some("in_progress") => ("now", "now"),
            _ if *is_done => ("done", "done"),
            Some(other) if *other != "pending" && budget.is_for_approval() => ("later", *other),
            _ => ("later", "to do"),
        };
        html! { li class=(class) { span.state { (marked(state)) } " " (budget.shown(words)) } }
    };
    let list = budget.ends_of(&entries, "item", draw, |words| html! { li { (words) } });
    Some(html! { ul.plan { (list) } })
}

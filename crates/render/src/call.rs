//! A tool call as one block: what it is, what it was asked, what it said, how it ended.
//!
//! Its inner elements are always the same ones, so that a patch never replaces what a reader has
//! opened, nor what a sub-agent did underneath.

use maud::{Markup, PreEscaped, html};
use transcript::{Call, CallState, Decision, Executor, Outcome, Scope, Seq};

use crate::icon::icon;
use crate::message::attachments;
use crate::tool::{self, Kind};
use crate::tree::Element;
use crate::view::{BodyKind, RawOf, View, inline};
use crate::words::duration;
use crate::{form, json, whole};

/// The block without what happened underneath it; see [`nested_id`]. `changed` is the number of the last
/// record about it.
pub(crate) fn block(view: &View, id: &str, call: &Call, changed: Seq) -> Element {
    let summary = Element::new("summary", format!("{id}-s")).html(head(call));
    let details = Element::new("details", format!("{id}-d")).child(summary).child(
        Element::div(format!("{id}-i"))
            .class("inside")
            .children(inside(view, id, call))
            .child_if(raw_link(view, &format!("{id}-l"), call, changed)),
    );
    Element::div(id)
        .class(classes(call))
        .attr("data-call-id", call.id.as_str())
        .attr("data-state", call.state.as_str())
        .child(details)
        .child(approval(&format!("{id}-y"), call))
        .child(Element::div(nested_id(id)).class("nested"))
}

/// Where the parts of a sub-agent go that was started by this call.
pub(crate) fn nested_id(block: &str) -> String {
    format!("{block}-n")
}

fn classes(call: &Call) -> String {
    let mut classes = format!("tool-block {}", state_class(call.state));
    if call.outcome.as_ref().is_some_and(|it| it.truncated.is_some()) {
        classes.push_str(" truncated");
    }
    classes
}

fn state_class(state: CallState) -> &'static str {
    match state {
        CallState::StreamingInput
        | CallState::AwaitingApproval
        | CallState::Queued
        | CallState::Running => "pending",
        CallState::Succeeded => "success",
        CallState::Failed | CallState::Denied => "error",
        CallState::Interrupted => "interrupted",
    }
}

/// The state in an icon and in words.
fn state(call: &Call) -> (Markup, &'static str) {
    let spinner = || html! { span.spinner aria-hidden="true" {} };
    match call.state {
        CallState::StreamingInput => (spinner(), "preparing"),
        CallState::AwaitingApproval => (icon("alert"), "waiting for you"),
        CallState::Queued => (spinner(), "queued"),
        CallState::Running => (spinner(), "running"),
        CallState::Succeeded => (icon("check"), "done"),
        CallState::Failed => (icon("alert"), "failed"),
        CallState::Denied => (icon("cross"), "denied"),
        CallState::Interrupted => (icon("warning"), "⚠ Interrupted"),
    }
}

fn head(call: &Call) -> Markup {
    let (mark, word) = state(call);
    let about = tool::subject(call).unwrap_or_else(|| call.summary.clone());
    let retry = call.retries.last().filter(|_| call.is_open());
    html! {
        span.mark { (mark) }
        span.kind { (icon(Kind::of(&call.name).icon())) }
        span.name { (call.label()) }
        @if let Some(origin) = tool::origin(&call.name) { " " span.origin { (origin) } }
        @if !about.is_empty() { " " code.about { (about) } }
        span.spread {}
        @if let Some(retry) = retry {
            span.retrying { "Retrying (" (retry.attempt) "/" (retry.max_attempts) ")" }
        }
        @if let Some(Outcome { truncated: Some(cut), .. }) = &call.outcome {
            span.cut-mark { "⚠ cut for the model: " (crate::words::size(cut.shown_bytes)) " of " (crate::words::size(cut.total_bytes)) }
        }
        span.state { (word) }
        @if let Some(outcome) = &call.outcome { span.took { "(" (duration(outcome.duration_ms)) ")" } }
        @else if let Some(since) = call.running_since { span.clock data-since=(since.0) {} }
        span.chevron { (icon("chevron")) }
    }
}

fn inside(view: &View, id: &str, call: &Call) -> Vec<Element> {
    let file = |it: &tool::File| view.file(&format!("{id}-f"), call, it);
    let own = tool::view(&format!("{id}-v"), call, file);
    let is_known = own.is_some();
    let mut parts: Vec<Element> = own.into_iter().collect();
    let output = [
        ("o", BodyKind::Stdout, &call.stdout, "Output"),
        ("e", BodyKind::Stderr, &call.stderr, "Errors"),
    ];
    for (suffix, kind, body, title) in output {
        if !body.is_empty() {
            let body = view.body(&format!("{id}-{suffix}b"), call, kind, body);
            let section = Element::div(format!("{id}-{suffix}")).class("section");
            parts.push(section.child(title_of(&format!("{id}-{suffix}t"), title)).child(body));
        }
    }
    parts.extend(error(&format!("{id}-x"), call));
    parts.extend(files(view, &format!("{id}-f"), call));
    let asked =
        section(&format!("{id}-g"), "Arguments", arguments(view, &format!("{id}-gb"), call));
    let got = result(view, &format!("{id}-rb"), call)
        .map(|body| section(&format!("{id}-r"), "Result", body));
    if is_known {
        parts.extend(shown_result(view, id, call));
        let raw = Element::new("details", format!("{id}-w"))
            .class("raw")
            .child(Element::new("summary", format!("{id}-ws")).text("Arguments and result"));
        parts.push(raw.child(asked).child_if(got));
    } else {
        parts.push(asked);
        parts.extend(got);
    }
    parts
}

/// To what the agent's own program wrote of the call's end.
fn raw_link(view: &View, id: &str, call: &Call, changed: Seq) -> Option<Element> {
    let is_of_program = call.executor == Executor::Agent && call.outcome.is_some();
    let url = view.raw_url(RawOf::Record(changed)).filter(|_| is_of_program)?;
    let link = Element::new("a", id).class("raw-link").attr("href", url);
    Some(link.attr("target", "_blank").attr("rel", "noopener").text("What the program wrote"))
}

fn section(id: &str, title: &str, body: Element) -> Element {
    Element::div(id).class("section").child(title_of(&format!("{id}t"), title)).child(body)
}

/// The title, and the button that copies what stands under it.
fn title_of(id: &str, title: &str) -> Element {
    Element::div(id).class("title").html(html! {
        span { (title) }
        button.quiet type="button" data-action="copy" aria-label={ "Copy " (title.to_lowercase()) } {
            (icon("copy"))
        }
    })
}

/// Missing ones are `{}`, those that do not parse are shown as they are.
fn arguments(view: &View, id: &str, call: &Call) -> Element {
    if call.arguments.is_empty() && call.arguments_done {
        return Element::div(id).class("body").attr("tabindex", "0").text("{}");
    }
    match inline(&call.arguments).filter(|_| call.arguments_done) {
        Some(text) => {
            Element::div(id).class("body").attr("tabindex", "0").html(json::pretty(&text))
        }
        None => view.body(id, call, BodyKind::Arguments, &call.arguments),
    }
}

fn result(view: &View, id: &str, call: &Call) -> Option<Element> {
    let body = call.outcome.as_ref()?.result.as_ref()?;
    Some(match inline(body) {
        Some(text) => {
            Element::div(id).class("body").attr("tabindex", "0").html(json::pretty(&text))
        }
        None => view.body(id, call, BodyKind::Result, body),
    })
}

/// The words or the file in the result of a tool that is known, where they did not come as output.
fn shown_result(view: &View, id: &str, call: &Call) -> Option<Element> {
    if !call.stdout.is_empty() || tool::tells_changes(call) {
        return None;
    }
    let element = Element::div(format!("{id}-c")).class("section");
    let kind = Kind::of(&call.name);
    if kind == Kind::Search
        && let Some(matches) = tool::matches(call)
    {
        return Some(element.html(found(&matches)));
    }
    let file = tool::file(call).filter(|_| kind == Kind::Read);
    Some(element.html(match file {
        Some(file) => view.file(&format!("{id}-f"), call, &file),
        None => {
            let text = tool::result_text(call)?;
            html! { div.body tabindex="0" { (text) } }
        }
    }))
}

/// The line of a match between those around it, where the tool gave them.
fn lines_of(hit: &serde_json::Value) -> Vec<Markup> {
    let number = hit.get("line").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let around = |name: &str| -> Vec<&str> {
        let lines = hit.get(name).and_then(serde_json::Value::as_array);
        lines.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
    };
    let (before, after) = (around("before"), around("after"));
    let first = number.saturating_sub(before.len() as u64);
    let text = hit.get("text").and_then(serde_json::Value::as_str).unwrap_or_default();
    let lines = before.iter().chain([&text]).chain(&after);
    let line = |(number, text): (u64, &&str)| html! { div { span.line { (number) } (text) } };
    (first..).zip(lines).map(line).collect()
}

fn has_context(hit: &serde_json::Value) -> bool {
    hit.get("before").or_else(|| hit.get("after")).is_some()
}

/// Matches of a search, grouped by file.
fn found(matches: &[serde_json::Value]) -> Markup {
    let path =
        |it: &serde_json::Value| it.get("path").and_then(|it| it.as_str()).unwrap_or("").to_owned();
    html! {
        p.meta { (crate::words::count(matches.len() as u64, "match").replace("matchs", "matches")) }
        @for group in matches.chunk_by(|a, b| path(a) == path(b)) {
            p.subject { code { (path(&group[0])) } }
            div.body.matches tabindex="0" {
                @for (idx, hit) in group.iter().enumerate() {
                    @if idx > 0 && has_context(hit) { div.meta { "⋯" } }
                    @for line in lines_of(hit) { (line) }
                }
            }
        }
    }
}

fn error(id: &str, call: &Call) -> Option<Element> {
    let error = call.outcome.as_ref()?.error.as_ref()?;
    Some(Element::div(id).class("failure").html(html! {
        (icon("alert")) " " (error.message) " " code { (error.code.as_str()) }
    }))
}

/// Pictures and other files that the tool gave.
fn files(view: &View, id: &str, call: &Call) -> Option<Element> {
    let files = &call.outcome.as_ref()?.files;
    (!files.is_empty()).then(|| Element::div(id).class("section").html(attachments(view, files)))
}

/// The question and, later, who answered it and how. Empty where nobody was asked.
fn approval(id: &str, call: &Call) -> Element {
    let element = Element::div(id);
    let Some(approval) = &call.approval else { return element.class("no-approval") };
    match &approval.resolved {
        None if call.is_open() => element
            .class("approval")
            .attr("data-call-id", call.id.as_str())
            .html(question(&format!("{id}v"), call, None)),
        None => element.class("no-approval"),
        Some(resolution) => {
            let scope = match resolution.scope {
                Some(Scope::Session) => " for this session",
                Some(Scope::Always) => ", always",
                Some(Scope::Once) | None => "",
            };
            let word = match resolution.decision {
                Decision::Accepted => "Allowed",
                Decision::Rejected => "Denied",
                Decision::TimedOut => "Nobody answered in time",
                Decision::Withdrawn => "Withdrawn: the run ended before anybody answered",
            };
            let by = matches!(resolution.decision, Decision::Accepted | Decision::Rejected)
                .then_some(&*resolution.by);
            let has_form = approval.options.as_ref().is_some_and(|it| it.form.is_some());
            let edited = resolution.arguments.as_deref();
            if let Some(answers) = edited.filter(|_| has_form).and_then(form::answers) {
                let by = &resolution.by;
                return element.class("decision").html(html! { "Answered by " (by) ":" (answers) });
            }
            element.class("decision").html(html! {
                (word) (scope) @if let Some(by) = by { " by " (by) }
                @if let Some(words) = &resolution.feedback { ": “" (words) "”" }
                @if let Some(edited) = edited {
                    " " details { summary { "with changed arguments" } div.body tabindex="0" { (edited) } }
                }
            })
        }
    }
}

/// What will run, all of it; why the agent says it wants it; and the ways to answer.
pub(crate) fn question(view_id: &str, call: &Call, why: Option<String>) -> Markup {
    let options = call.approval.as_ref().and_then(|it| it.options.as_ref());
    let allows = |scope| options.is_none_or(|it| it.scopes.contains(&scope));
    let what = tool::view(view_id, call, |file| html! { div.body.file { (whole::file(file)) } });
    let can_edit = options.is_some_and(|it| it.can_edit);
    if let Some(form) = options.and_then(|it| it.form.as_ref()).and_then(form::form) {
        return html! { @if let Some(why) = why { blockquote.why { (why) } } (form) };
    }
    html! {
        p.question { (icon("alert")) " Waiting for you: " b { (call.label()) } }
        @if let Some(why) = why { blockquote.why { (why) } }
        @match what {
            Some(view) => (PreEscaped(view.to_html())),
            None => div.body tabindex="0" { (inline(&call.arguments).unwrap_or_else(|| call.summary.clone())) },
        }
        @if can_edit {
            details.edit {
                summary { "Change the arguments" }
                textarea.edited aria-label="Arguments" rows="6" spellcheck="false" {
                    (inline(&call.arguments).unwrap_or_default())
                }
            }
        }
        input.note type="text" placeholder="Why not? Deny again to send." aria-label="Why not" hidden;
        div.buttons {
            button.primary type="button" data-action="allow" data-scope="once" { "Allow once" kbd { "1" } }
            @if allows(Scope::Session) {
                button type="button" data-action="allow" data-scope="session" { "Allow for this session" kbd { "2" } }
            }
            @if allows(Scope::Always) {
                button type="button" data-action="allow" data-scope="always" { "Always allow…" kbd { "3" } }
            }
            button.danger type="button" data-action="deny" { "Deny" kbd { "N" } }
        }
    }
}

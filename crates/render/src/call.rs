//! A tool call as one block: what it is, what it was asked, what it said, how it ended.
//!
//! Its inner elements are always the same ones, so that a patch never replaces what a reader has
//! opened, nor what a sub-agent did underneath.

use maud::{Markup, PreEscaped, html};
use transcript::{Body, Call, CallState, Decision, Executor, Outcome, Retry, Scope, Seq};

use crate::icon::icon;
use crate::message::attachments;
use crate::tool::{self, Kind};
use crate::tree::Element;
use crate::view::{BodyKind, View, inline, one_line};
use crate::words::{count, duration};
use crate::{form, json};

/// As many lines as the stylesheet has room for in a box of output.
const BOX_LINES: u64 = 20;

/// The block without what happened underneath it; see [`nested_id`]. `first` is the number of the first
/// record about it.
pub(crate) fn block(view: &View, id: &str, call: &Call, first: Seq) -> Element {
    let summary = Element::new("summary", format!("{id}-s")).html(head(call));
    let details = Element::new("details", format!("{id}-d")).child(summary).child(
        Element::div(format!("{id}-i"))
            .class("inside")
            .children(inside(view, id, call))
            .child_if(view.raw_link(id, first).filter(|_| call.executor == Executor::Agent)),
    );
    Element::div(id)
        .class(classes(call))
        .attr("data-call-id", call.id.as_str())
        .attr("data-state", call.state.as_str())
        .child(details)
        .child(approval(view, &format!("{id}-y"), call))
        .child(Element::div(nested_id(id)).class("nested"))
}

/// Where the parts of a sub-agent go that was started by this call.
pub(crate) fn nested_id(block: &str) -> String {
    format!("{block}-n")
}

/// Of what stands in a block and may be fetched as a whole.
pub(crate) fn body_id(block: &str, kind: BodyKind) -> String {
    format!("{block}-{}", kind.word())
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
    let about = tool::subject(call).unwrap_or_else(|| summary(call));
    let retry = call.retries.last().filter(|_| call.is_open());
    let took = html! {
        @if let Some(outcome) = &call.outcome { span.took { "(" (duration(outcome.duration_ms)) ")" } }
        @else if let Some(since) = call.running_since { span.clock data-since=(since.0) {} }
    };
    html! {
        span.mark { (mark) }
        span.kind { (icon(Kind::of(&call.name).icon())) }
        // What is read together stands together, wherever a look sets it.
        span.called { span.name { (call.label()) } " " (took) }
        @if let Some(origin) = tool::origin(&call.name) { " " span.origin { (origin) } }
        @if !about.is_empty() { " " code.about { (about) } }
        span.spread {}
        @if let Some(retry) = retry {
            span.retrying { "Retrying (" (retry.attempt) "/" (retry.max_attempts) ")" }
        }
        @if let Some(Outcome { truncated: Some(cut), .. }) = &call.outcome {
            span.cut-mark { "⚠ Truncated for the model: " (crate::words::size(cut.shown_bytes)) " of " (crate::words::size(cut.total_bytes)) }
        }
        span.state { (word) }
        span.chevron { (icon("chevron")) }
    }
}

/// The agent's own is about what it had proposed.
fn summary(call: &Call) -> String {
    let edited = call.edited.as_ref().map(|it| one_line(it.head(), 200).into_owned());
    edited.unwrap_or_else(|| call.summary.clone())
}

fn inside(view: &View, id: &str, call: &Call) -> Vec<Element> {
    let own = view.drawing(&body_id(id, BodyKind::Asked), "view", call, BodyKind::Asked, |room| {
        tool::asked(call, room, |file, extent| view.file(call, file, extent))
    });
    let is_known = own.is_some();
    let mut parts: Vec<Element> = own.into_iter().collect();
    let output =
        [(BodyKind::Stdout, &call.stdout, "Output"), (BodyKind::Stderr, &call.stderr, "Errors")];
    for (kind, body, title) in output {
        if !body.is_empty() {
            let id = &body_id(id, kind);
            let section = section(&format!("{id}-s"), title, view.body(id, call, kind, body));
            parts.push(section.child_if(all_lines(&format!("{id}-a"), body)));
        }
    }
    parts.extend(attempts(&format!("{id}-t"), call));
    parts.extend(error(&format!("{id}-x"), call));
    parts.extend(files(view, &format!("{id}-f"), call));
    let asked =
        section(&format!("{id}-g"), "Arguments", arguments(view, &format!("{id}-gb"), call));
    let got = result(view, &format!("{id}-rb"), call)
        .map(|body| section(&format!("{id}-r"), "Result", body));
    let mut class = "raw only";
    if is_known {
        class = "raw";
        let told = body_id(id, BodyKind::Told);
        parts.extend(view.drawing(&told, "section", call, BodyKind::Told, |room| {
            tool::told(&told, call, room, |file, extent| view.file(call, file, extent))
        }));
    }
    let summary = Element::new("summary", format!("{id}-ws"));
    let summary = summary.text("Show details: arguments and result");
    let raw = Element::new("details", format!("{id}-w")).class(class).child(summary);
    parts.push(raw.child(asked).child_if(got));
    parts
}

/// More lines than fit in the box that they are shown in: they are all there, and shown when this is opened.
fn all_lines(id: &str, body: &Body) -> Option<Element> {
    inline(body).filter(|_| body.lines() > BOX_LINES)?;
    let more = Element::new("span", format!("{id}m")).class("more");
    let more = more.text(&format!("Show all {}", count(body.lines(), "line")));
    let less = Element::new("span", format!("{id}l")).class("less").text("Show less");
    let summary = Element::new("summary", format!("{id}s")).child(more).child(less);
    Some(Element::new("details", id).class("all-lines").child(summary))
}

fn section(id: &str, title: &str, body: Element) -> Element {
    Element::div(id).class("section").child(title_of(&format!("{id}t"), title)).child(body)
}

/// The title, and the button that copies what stands under it.
fn title_of(id: &str, title: &str) -> Element {
    Element::div(id).class("title").html(html! {
        span { (title) }
        button.quiet type="button" data-action="copy" data-of=".body" aria-label={ "Copy " (title.to_lowercase()) } {
            (icon("copy"))
        }
    })
}

/// Missing ones are `{}`, those that do not parse are shown as they are.
fn arguments(view: &View, id: &str, call: &Call) -> Element {
    if call.input().is_empty() && call.arguments_done {
        return Element::div(id).class("body").attr("tabindex", "0").text("{}");
    }
    match inline(call.input()).filter(|_| call.arguments_done) {
        Some(text) => {
            Element::div(id).class("body").attr("tabindex", "0").html(json::pretty(&text))
        }
        None => view.body(id, call, BodyKind::Arguments, call.input()),
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

/// Why it was tried again.
fn attempts(id: &str, call: &Call) -> Option<Element> {
    let list = html! {
        ol.attempts { @for Retry { attempt, max_attempts, error, .. } in &call.retries {
            li { "Before attempt " (attempt) " of " (max_attempts) ": " (error.message) " " code { (error.code.as_str()) } }
        } }
    };
    (!call.retries.is_empty()).then(|| Element::div(id).class("section").html(list))
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
fn approval(view: &View, id: &str, call: &Call) -> Element {
    let element = Element::div(id);
    let Some(approval) = &call.approval else { return element.class("no-approval") };
    match &approval.resolved {
        None if call.is_open() => element
            .class("approval")
            .attr("data-call-id", call.id.as_str())
            .html(question(view, &format!("{id}v"), call, None)),
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
            let answers = resolution.arguments.as_deref().filter(|_| has_form);
            if let Some(answers) = answers.and_then(form::answers) {
                let by = &resolution.by;
                return element.class("decision").html(html! { "Answered by " (by) ":" (answers) });
            }
            let words = Element::new("span", format!("{id}-w")).html(html! {
                (word) (scope) @if let Some(by) = by { " by " (by) }
                @if let Some(words) = &resolution.feedback { ": “" (words) "”" }
                @if let Some(reason) = approval.options.as_ref().and_then(|it| it.reason.as_ref()) {
                    " (asked because: " (ticked(reason)) ")"
                }
                @if call.edited.is_some() { " " }
            });
            element.class("decision").child(words).child_if(proposed(
                view,
                &format!("{id}-p"),
                call,
            ))
        }
    }
}

/// What the agent wanted, where something else ran.
fn proposed(view: &View, id: &str, call: &Call) -> Option<Element> {
    call.edited.as_ref()?;
    let summary = Element::new("summary", format!("{id}s"));
    let body = view.body(&format!("{id}b"), call, BodyKind::Proposed, &call.arguments);
    let details = Element::new("details", id);
    Some(details.child(summary.text("with changed arguments: see what was proposed")).child(body))
}

/// What will run, first of all; why the agent says it wants it; and the ways to answer.
pub(crate) fn question(view: &View, id: &str, call: &Call, why: Option<String>) -> Markup {
    let options = call.approval.as_ref().and_then(|it| it.options.as_ref());
    let allows = |scope| options.is_none_or(|it| it.scopes.contains(&scope));
    let can_edit = options.is_some_and(|it| it.can_edit);
    let reason = options.and_then(|it| it.reason.as_deref());
    if let Some(form) = options.and_then(|it| it.form.as_ref()).and_then(form::form) {
        return html! { @if let Some(why) = why { blockquote.why { (why) } } (form) };
    }
    let what = view
        .drawing(id, "view", call, BodyKind::Question, |room| tool::proposed(call, room))
        .unwrap_or_else(|| view.body(id, call, BodyKind::Proposed, &call.arguments));
    html! {
        p.question { (icon("alert")) " Waiting for you: " b { (call.label()) } }
        (PreEscaped(what.to_html()))
        @for why in reason.into_iter().chain(why.as_deref()) { blockquote.why tabindex="0" { (ticked(why)) } }
        (edit(view, id, call, can_edit))
        @if let Some(covers) = options.and_then(|it| it.covers.as_deref()) {
            p.covers.meta { "For this session and always: " (covered(covers)) "." }
        }
        input.note id={ (id) "-note" } type="text" placeholder="Why not? Deny again to send." aria-label="Why not" hidden;
        div.buttons {
            button.primary type="button" data-action="allow" data-scope="once" aria-keyshortcuts="1" { "Allow once" kbd { "1" } }
            @if allows(Scope::Session) {
                button type="button" data-action="allow" data-scope="session" aria-keyshortcuts="2" { "Allow for this session" kbd { "2" } }
            }
            @if allows(Scope::Always) {
                button type="button" data-action="allow" data-scope="always" aria-keyshortcuts="3" { "Always allow" kbd { "3" } }
            }
            button.danger type="button" data-action="deny" aria-keyshortcuts="N" { "Deny" kbd { "N" } }
            @if !can_edit {
                button.danger.correct type="button" data-action="correct" { "Deny with this correction" }
            }
        }
    }
}

/// Long arguments are fetched when somebody wants to change them. A program that runs no others than its own
/// is told what they should have been.
fn edit(view: &View, id: &str, call: &Call, can_edit: bool) -> Markup {
    let is_there = view.is_alone() || inline(&call.arguments).is_some();
    let source = format!("{}&format=html", view.body_url(call, BodyKind::Edit));
    html! {
        details.edit.correction[!can_edit] id={ (id) "-edit" } data-src=[(!is_there).then_some(source)] {
            summary { @if can_edit { "Change the arguments" } @else { "Correct the arguments" } }
            @if is_there { (edited(call)) }
        }
    }
}

/// Where they are changed.
pub(crate) fn edited(call: &Call) -> Markup {
    let arguments = call.arguments.whole().unwrap_or_default();
    html! {
        textarea.edited aria-label="Arguments" rows="6" spellcheck="false" { (json::indented(&arguments)) }
    }
}

/// Words with what stands between backticks as code.
fn ticked(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    html! {
        @if pieces.len().is_multiple_of(2) { (text) }
        @else {
            @for (idx, piece) in pieces.iter().enumerate() {
                @if !idx.is_multiple_of(2) { code { (piece) } } @else { (piece) }
            }
        }
    }
}

/// What a decision for more than once holds for, in words; as the policy names it, a tool, or a tool and
/// what it is aimed at.
pub(crate) fn covered(covers: &str) -> Markup {
    match covers.split_once(": ") {
        Some(("shell", command)) => html! { "exactly the command " code { (command) } },
        Some((tool @ ("write_file" | "edit_file"), folder)) => {
            html! { b { (tool) } " for files in " code { (folder) } " (not in folders below it)" }
        }
        Some((tool, aim)) => html! { b { (tool) } " for " code { (aim) } },
        None => html! { "every call of " b { (covers) } ", whatever its arguments" },
    }
}

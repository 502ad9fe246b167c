//! A tool call as one block: name, arguments, output, result and approval.
//!
//! Its inner elements never change, so that a patch keeps what a reader opened, and the parts of a sub-agent.

use std::borrow::Cow;

use maud::{Markup, html};
use transcript::{
    Body, Call, CallOutcome, CallState, Decision, Executor, Resolution, Retry, Scope, Seq,
};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::message::approval_card::with_code;
use crate::message::attachments;
use crate::message::tool::{self, Kind};
use crate::message::whole_body::BodyKind;
use crate::message::{covers, form, long_text};
use crate::text::invisible::marked;
use crate::text::json;
use crate::text::quantity::{count, duration};
use crate::view::{View, inline, one_line};

/// Maximum number of characters of the one-line summary of a tool call's arguments or outcome; an
/// imported file may contain any text there.
pub(crate) const LINE_MAX: usize = 200;

/// Number of lines that the stylesheet shows of the box with a tool call's output.
const BOX_LINES: u64 = 20;

/// Draws the block of a tool call without nested parts; see [`nested_id`]. `first` is the first
/// record of the call.
pub(crate) fn block(view: &View, id: &str, call: &Call, first: Seq) -> Element {
    let summary = Element::new("summary", format!("{id}-s")).html(head(call));
    let details = Element::new("details", details_id(id)).child(summary).child(
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

/// Returns the id of the element that opens and closes the block of a tool call.
pub(crate) fn details_id(block: &str) -> String {
    format!("{block}-d")
}

/// Returns the id of the element for the parts of the sub-agent that a tool call started.
pub(crate) fn nested_id(block: &str) -> String {
    format!("{block}-n")
}

/// Returns the id of the element with one body of a tool call, which can be fetched alone.
pub(crate) fn body_id(block: &str, kind: BodyKind) -> String {
    format!("{block}-{}", kind.as_str())
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

/// Returns the reason for the failure of a tool call, in one line; `None` if the call has not
/// failed.
pub(crate) fn failure_line(call: &Call) -> Option<Cow<'_, str>> {
    let outcome = call.outcome.as_ref().filter(|_| call.state == CallState::Failed)?;
    let error = outcome.error.as_ref().map(|it| one_line(&it.message, LINE_MAX));
    let error = error.filter(|it| !it.is_empty());
    Some(error.unwrap_or_else(|| one_line(&outcome.summary, LINE_MAX)))
}

pub(crate) fn retrying(call: &Call) -> Option<String> {
    let Retry { attempt, max_attempts, .. } = call.retries.last().filter(|_| call.is_open())?;
    Some(format!("⟳ Retrying ({attempt}/{max_attempts})"))
}

/// Returns the state of a tool call as an icon and a word.
pub(crate) fn state(call: &Call) -> (Markup, &'static str) {
    let spinner = || html! { span.spinner aria-hidden="true" {} };
    match call.state {
        CallState::StreamingInput => (spinner(), "preparing"),
        CallState::AwaitingApproval => (icon("alert"), "waiting"),
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
    let ended = call.outcome.as_ref();
    let took = html! {
        @if let Some(ms) = ended.filter(|_| has_run(call)).and_then(|it| it.duration_ms) {
            span.took { "(" (duration(ms)) ")" }
        }
        @else if ended.is_some() {}
        @else if let Some(since) = call.running_since { span.clock data-since=(since.0) {} }
    };
    html! {
        span.mark { (mark) }
        span.kind { (icon(Kind::of(&call.name).icon())) }
        // Name and time stay together in every display.
        span.called { span.name { (call.label()) } " " (took) }
        @if let Some(origin) = tool::origin(&call.name) { " " span.origin { (origin) } }
        @if !about.is_empty() { " " code.about { (marked(&about)) } }
        span.spread {}
        @if let Some(retry) = retrying(call) { span.retrying { (retry) } }
        @if let Some(CallOutcome { truncated: Some(cut), .. }) = &call.outcome {
            span.cut-mark { "⚠ Truncated for the model: " (crate::text::quantity::size(cut.shown_bytes)) " of " (crate::text::quantity::size(cut.total_bytes)) }
        }
        span.state { (word) }
        span.chevron { (icon("chevron")) }
        @if let Some(why) = failure_line(call) { span.why { (why) } }
    }
}

/// Draws the `Args:` and `Result:` lines of a tool call, for the tool display `panels`.
fn brief(id: &str, call: &Call) -> Element {
    let arguments = Some(summary(call)).filter(|it| !it.is_empty());
    let none = if call.arguments_done { "none" } else { "" };
    let what = if call.outcome.as_ref().is_some_and(|it| it.ok) { "Result: " } else { "Error: " };
    Element::div(id).class("brief").html(html! {
        p { b { "Args: " } @if let Some(it) = arguments { code { (it) } } @else { (none) } }
        @if let Some(outcome) = &call.outcome { p { b { (what) } (one_line(&outcome.summary, LINE_MAX)) } }
    })
}

/// Returns whether the tool call was executed: false if it was denied, or interrupted before it
/// started.
pub(crate) fn has_run(call: &Call) -> bool {
    let took = call.outcome.as_ref().and_then(|it| it.duration_ms);
    match call.state {
        CallState::Denied => false,
        CallState::Interrupted => took.is_some_and(|it| it > 0),
        _ => true,
    }
}

/// Returns a one-line summary of the arguments with which the tool call ran. For edited arguments,
/// it is their beginning, because the agent's own summary describes the proposed ones.
fn summary(call: &Call) -> String {
    match &call.edited {
        Some(edited) => one_line(edited.head(), LINE_MAX).into_owned(),
        None => joined_lines(&call.summary),
    }
}

/// Returns the beginning of a text as one line, with spaces for line breaks.
fn joined_lines(text: &str) -> String {
    let end = text.char_indices().nth(LINE_MAX).map(|(at, _)| at);
    let shown = text[..end.unwrap_or(text.len())].replace('\n', " ");
    if end.is_some() { shown + "…" } else { shown }
}

fn inside(view: &View, id: &str, call: &Call) -> Vec<Element> {
    let own = view.drawing(
        &body_id(id, BodyKind::ArgumentsView),
        "view",
        call,
        BodyKind::ArgumentsView,
        |budget| tool::arguments_view(call, budget, |file, extent| view.file(call, file, extent)),
    );
    let is_known = own.is_some();
    let mut parts: Vec<Element> = vec![brief(&format!("{id}-b"), call)];
    parts.extend(own);
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
    let arguments_json =
        section(&format!("{id}-g"), "Arguments", arguments(view, &format!("{id}-gb"), call));
    let got = result(view, &format!("{id}-rb"), call)
        .map(|body| section(&format!("{id}-r"), "Result", body));
    let mut class = "raw only";
    if is_known {
        class = "raw";
        let view_id = body_id(id, BodyKind::ResultView);
        parts.extend(view.drawing(&view_id, "section", call, BodyKind::ResultView, |budget| {
            tool::result_view(&view_id, call, budget, |file, extent| view.file(call, file, extent))
        }));
    }
    let summary = Element::new("summary", format!("{id}-ws"));
    let summary = summary.text("Show details: arguments and result");
    let raw = Element::new("details", format!("{id}-w")).class(class).child(summary);
    parts.push(raw.child(arguments_json).child_if(got));
    parts
}

/// Draws the toggle for tool output with more lines than its box shows; `None` if none is needed.
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

/// Draws the title of a section in a tool call's block, with a button that copies the section's
/// content.
fn title_of(id: &str, title: &str) -> Element {
    Element::div(id).class("title").html(html! {
        span { (title) }
        button.quiet type="button" data-action="copy" data-of=".body" aria-label={ "Copy " (title.to_lowercase()) } {
            (icon("copy"))
        }
    })
}

/// Draws the arguments of a tool call as JSON. Missing arguments are `{}`; arguments that cannot be
/// parsed are shown as they are.
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

/// Draws the errors before each retry of a tool call; `None` if there were no retries.
fn attempts(id: &str, call: &Call) -> Option<Element> {
    let list = html! {
        ol.attempts { @for Retry { attempt, max_attempts, error, .. } in &call.retries {
            li { "Before attempt " (attempt) " of " (max_attempts) ": " (one_line(&error.message, LINE_MAX)) " " code { (error.code.as_str()) } }
        } }
    };
    (!call.retries.is_empty()).then(|| Element::div(id).class("section").html(list))
}

fn error(id: &str, call: &Call) -> Option<Element> {
    // The decision below says that it was denied and why, unless an import has the reason only in the result.
    let resolution = call.approval.as_ref().and_then(|it| it.resolved.as_ref());
    let is_in_decision = call.state == CallState::Denied
        && resolution.is_some_and(|it| it.feedback.is_some() || it.by != "import");
    let error = call.outcome.as_ref()?.error.as_ref().filter(|_| !is_in_decision)?;
    let is_stopped = call.state == CallState::Interrupted;
    let (class, sign) = if is_stopped { ("failure stop", "warning") } else { ("failure", "alert") };
    Some(Element::div(id).class(class).html(html! {
        (icon(sign)) " " (long_text::excerpt(&error.message)) " " code { (error.code.as_str()) }
    }))
}

/// Draws the images and other files that a tool returned; `None` if there are none.
fn files(view: &View, id: &str, call: &Call) -> Option<Element> {
    let files = &call.outcome.as_ref()?.files;
    (!files.is_empty()).then(|| Element::div(id).class("section").html(attachments(view, files)))
}

/// Draws the approval of a tool call: pending, the decision and who made it, or the grant that
/// allowed the call. Empty if no approval was requested.
fn approval(view: &View, id: &str, call: &Call) -> Element {
    let element = Element::div(id);
    // A new grant also decides pending approvals.
    if let Some(granted) = &call.granted {
        return element.class("decision").text(&covers::rule(granted));
    }
    let Some(approval) = &call.approval else { return element.class("no-approval") };
    let has_form = approval.options.as_ref().is_some_and(|it| it.form.is_some());
    match &approval.resolved {
        None if call.is_open() => element.class("approval").html(html! {
            (icon("alert")) " "
            @if has_form { "Waiting for your answer" } @else { "Waiting for your decision" }
            button.link type="button" data-action="go-to-card" data-call-id=(call.id.as_str()) { "Show" }
        }),
        None => element.class("no-approval"),
        Some(resolution) => {
            let answers = resolution.arguments.as_deref().filter(|_| has_form);
            if let Some(answers) = answers.and_then(form::answers) {
                let words = by(resolution, "You answered", "Answered");
                return element.class("decision answered").html(html! { (words) (answers) });
            }
            let reason = approval.options.as_ref().and_then(|it| it.reason.as_deref());
            let words = Element::new("span", format!("{id}-w")).html(html! {
                (decided(resolution))
                @if let Some(words) = &resolution.feedback { ": “" (words) "”" }
                @if let Some(reason) = reason { " (reason: " (with_code(reason)) ")" }
                @if call.edited.is_some() { " " }
            });
            let proposed = proposed(view, &format!("{id}-p"), call);
            element.class("decision").child(words).child_if(proposed)
        }
    }
}

fn decided(resolution: &Resolution) -> String {
    let scope = match resolution.scope {
        Some(Scope::Session) => " for this session",
        Some(Scope::Always) => " always",
        Some(Scope::Once) | None => "",
    };
    match resolution.decision {
        Decision::Accepted => by(resolution, "You allowed this", "Allowed") + scope,
        Decision::Rejected => by(resolution, "You denied this", "Denied"),
        Decision::TimedOut => "Nobody answered in time".to_owned(),
        Decision::Withdrawn => "Cancelled: the run stopped before you answered".to_owned(),
    }
}

/// Names the person or rule that decided about a tool call: `yours` for the person at the page
/// (`user` in the log), else `others` and the name.
fn by(resolution: &Resolution, yours: &str, others: &str) -> String {
    match resolution.by.as_str() {
        "user" => yours.to_owned(),
        by => format!("{others} by {by}"),
    }
}

/// Draws the arguments that the agent proposed for a tool call; `None` unless a person edited them.
fn proposed(view: &View, id: &str, call: &Call) -> Option<Element> {
    call.edited.as_ref()?;
    let summary = Element::new("summary", format!("{id}s"));
    let body = view.body(&format!("{id}b"), call, BodyKind::Proposed, &call.arguments);
    let details = Element::new("details", id);
    Some(details.child(summary.text("with other arguments: see what was proposed")).child(body))
}

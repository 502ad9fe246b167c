//! Export of a session as one standalone file, in HTML or Markdown.

use std::fmt::Write;

use maud::{PreEscaped, html};
use transcript::{
    Attachment, Call, Content, Exchange, Message, MessageRole, PartKind, QueuedMessage, RunMessage,
    SentForm, SessionId, SteerState, TextRole, Transcript,
};

use crate::html::icon::symbols;
use crate::message::call::has_run;
use crate::message::exchange::Peers;
use crate::message::form;
use crate::page::chrome::Chrome;
use crate::page::conversation::{Reach, messages};
use crate::page::document;
use crate::page::settings::Settings;
use crate::text::quantity::{count, duration};
use crate::view::{Bodies, Files, View};

/// Input of [`export_html`] besides the transcript: display settings and embedded content.
pub struct Export<'a> {
    /// Id of the exported session.
    pub session: &'a SessionId,
    /// Display settings of the exported file.
    pub settings: &'a Settings,
    /// Stylesheet (CSS) that the exported file embeds.
    pub stylesheet: &'a str,
    /// Attachments that the exported file embeds, by blob id.
    pub files: Files,
    /// Messages of other sessions that the exported file embeds, by exchange id.
    pub peers: Peers,
}

/// Draws a session as one HTML file with all messages, bodies and attachments, and its own
/// stylesheet. The file loads nothing from outside.
pub fn export_html(transcript: &Transcript, export: Export<'_>) -> String {
    let Export { session, settings, stylesheet, files, peers } = export;
    let view = View::new(session.clone(), Bodies::Whole).with_files(files).with_peers(peers);
    let chrome = Chrome::new(&view, transcript);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    let links = html! {
        meta http-equiv="Content-Security-Policy" content=(policy);
        style { (PreEscaped(stylesheet)) }
    };
    let body = html! {
        body.export {
            (symbols())
            main {
                header.top { (PreEscaped(chrome.heading.to_html())) }
                section #conversation aria-label="Conversation" {
                    (PreEscaped(chrome.sequence.to_html()))
                    (PreEscaped(messages(&view, &transcript.messages, Reach::End).to_html()))
                    (PreEscaped(chrome.queue.to_html()))
                }
            }
        }
    };
    document(transcript.summary.title(), Some(settings), &links, &body)
}

/// Writes a session as Markdown, without thinking blocks and superseded messages.
pub fn export_markdown(transcript: &Transcript) -> String {
    let mut out = format!("# {}\n", transcript.summary.title());
    for message in transcript.messages.iter().filter(|it| !it.superseded) {
        write_message(message, &mut out);
    }
    for QueuedMessage { text, attachments, from, sent, .. } in &transcript.queue.messages {
        let who = from.as_ref().map_or("You", |it| it.agent.as_str());
        let _ = write!(out, "\n## {who} (waits for its turn)\n\n{text}\n");
        write_attached(attachments, sent.as_ref(), &mut out);
    }
    out
}

fn write_message(message: &Message, out: &mut String) {
    match &message.content {
        Content::User(said) => {
            let who = match (&said.from, said.role) {
                (Some(from), _) => from.agent.as_str(),
                (None, MessageRole::System) => "System",
                (None, _) => "You",
            };
            let _ = write!(out, "\n## {who}\n\n{}\n", said.text);
            write_attached(&said.attachments, said.sent.as_ref(), out);
        }
        Content::Run(answer) => {
            let who = if answer.agent.is_empty() { "Agent" } else { &answer.agent };
            let _ = write!(out, "\n## {who}\n");
            for part in &answer.parts {
                write_part(&part.kind, out);
            }
            write_end(answer, out);
        }
        Content::Aside(kind) => write_part(kind, out),
    }
}

fn write_attached(files: &[Attachment], sent: Option<&SentForm>, out: &mut String) {
    for file in files {
        let _ = writeln!(out, "\nAttached: {}", file.name);
    }
    for link in sent.into_iter().flat_map(SentForm::links) {
        let _ = writeln!(out, "\nLinked: {}", link.url);
    }
}

fn write_part(kind: &PartKind, out: &mut String) {
    let _ = match kind {
        PartKind::Text(text) if text.leaked || text.role == TextRole::Discarded => Ok(()),
        PartKind::Text(text) if matches!(text.role, TextRole::Commentary { .. }) => {
            write!(out, "\n{}\n", quoted(&text.text))
        }
        PartKind::Text(text) => write!(out, "\n{}\n", text.text.trim_end()),
        PartKind::Thinking(_) => Ok(()),
        PartKind::Call(call) => write_call(call, out),
        // The message appears again when it is answered.
        PartKind::Steered(steered) if steered.state == SteerState::Returned => Ok(()),
        PartKind::Steered(steered) => write!(out, "\n**You:** {}\n", steered.text),
        PartKind::Exchange(it) => write_exchange(it, out),
        PartKind::Notice { text, .. } => write!(out, "\n*{text}*\n"),
        PartKind::Unrecognized { source, raw, lines: 1 } => {
            write!(out, "\nNot understood, from {source}:\n\n{}\n", fenced(raw))
        }
        PartKind::Unrecognized { source, raw, lines } => {
            let n = count(*lines, "line");
            write!(out, "\n{n} not understood, from {source}. The first:\n\n{}\n", fenced(raw))
        }
    };
}

fn write_call(call: &Call, out: &mut String) -> std::fmt::Result {
    let state = call.state.as_str().replace('_', " ");
    let took = call.outcome.as_ref().filter(|_| has_run(call)).and_then(|it| it.duration_ms);
    let took = took.map(|it| format!(", {}", duration(it)));
    write!(out, "\n**{}** ({state}{})\n", call.label(), took.unwrap_or_default())?;
    let result = call.outcome.as_ref().and_then(|it| it.result.as_ref());
    let input = if answers(call).is_some() { &call.arguments } else { call.input() };
    let bodies = [Some(input), Some(&call.stdout), Some(&call.stderr), result];
    for body in bodies.into_iter().flatten().filter(|it| !it.is_empty()) {
        write!(out, "\n{}\n", fenced(&body.whole().unwrap_or_else(|| body.head().to_owned())))?;
    }
    if let Some(answers) = answers(call) {
        write!(out, "\nAnswered:\n\n{answers}")?;
    } else if call.edited.is_some() {
        let proposed = call.arguments.whole();
        let proposed = proposed.unwrap_or_else(|| call.arguments.head().to_owned());
        write!(out, "\nChanged before it was allowed; proposed was:\n\n{}\n", fenced(&proposed))?;
    }
    match call.outcome.as_ref().and_then(|it| it.error.as_ref()) {
        Some(error) => write!(out, "\n{} (`{}`)\n", error.message, error.code.as_str()),
        None => Ok(()),
    }
}

/// Returns a person's answers to the form of a tool call, as Markdown. `None` if the call has no
/// form or no answers.
fn answers(call: &Call) -> Option<String> {
    let approval = call.approval.as_ref()?;
    approval.options.as_ref()?.form.as_ref()?;
    form::answers_text(approval.resolved.as_ref()?.arguments.as_deref()?)
}

fn write_exchange(exchange: &Exchange, out: &mut String) -> std::fmt::Result {
    let Exchange { agent, text, outcome, .. } = exchange;
    write!(out, "\n**To {agent}:**\n\n{}\n", quoted(text))?;
    let Some(outcome) = outcome else { return Ok(()) };
    if let Some(words) = outcome.result.as_ref().and_then(|it| it.as_str()) {
        write!(out, "\n**From {agent}:**\n\n{}\n", quoted(words))?;
    }
    match &outcome.error {
        Some(error) => write!(out, "\n{} (`{}`)\n", error.message, error.code.as_str()),
        None => Ok(()),
    }
}

fn write_end(answer: &RunMessage, out: &mut String) {
    if answer.was_interrupted() {
        out.push_str("\n*Interrupted*\n");
    }
    if let Some(error) = answer.finish.as_ref().and_then(|it| it.error.as_ref()) {
        let _ = write!(out, "\n**Failed:** {} (`{}`)\n", error.message, error.code.as_str());
    }
}

fn quoted(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("> {line}\n")).collect::<String>()
}

/// Wraps text in a Markdown code fence that is longer than any run of backticks inside.
fn fenced(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

//! The whole page: session list, conversation, composer. Complete without script; the script only
//! sends, and asks for the page again when something has changed.

use maud::{DOCTYPE, Markup, html};
use transcript::{SessionId, SessionState, Transcript};

use crate::message::{message, queued};

pub struct Page<'a> {
    pub sessions: Vec<ListedSession>,
    /// The session that is open, if one is.
    pub open: Option<(&'a SessionId, &'a Transcript)>,
    pub default_agent: Option<&'a str>,
}

pub struct ListedSession {
    pub id: SessionId,
    pub title: String,
    pub agent: String,
    pub state: SessionState,
}

pub fn page(page: &Page<'_>) -> String {
    let title = page.open.map_or("Callboard", |(_, transcript)| transcript.summary.title());
    let links = html! {
        link rel="icon" href="/assets/icon.svg";
        link rel="stylesheet" href="/assets/page.css";
        script type="module" src="/assets/page.js" {}
    };
    let body = html! {
        body data-session-id=[page.open.map(|(id, _)| id.as_str())]
            data-head=[page.open.map(|(_, transcript)| transcript.head.0)] {
            (sidebar(page))
            main { (conversation(page)) (composer(page)) }
        }
    };
    document(title, &links, &body)
}

/// What a person sees who opens an address that shows nothing.
pub fn error_page(title: &str, message: &str) -> String {
    let body = html! {
        body { main { h1 { (title) } p { (message) } p { a href="/" { "All sessions" } } } }
    };
    document(title, &html! {}, &body)
}

/// The form for the password.
pub fn sign_in_page(message: &str) -> String {
    let body = html! {
        body {
            main {
                h1 { "Sign in to Callboard" }
                p role="alert" { (message) }
                form method="post" action="/sign-in" {
                    label for="password" { "Password" }
                    input #password type="password" name="password" required autofocus
                        autocomplete="current-password";
                    button type="submit" { "Sign in" }
                }
            }
        }
    };
    document("Sign in", &html! {}, &body)
}

fn document(title: &str, links: &Markup, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Callboard" }
                (links)
            }
            (body)
        }
    };
    markup.into_string()
}

fn sidebar(page: &Page<'_>) -> Markup {
    html! {
        nav aria-label="Sessions" {
            a.brand href="/" { "Callboard" }
            ol #sessions {
                @for session in &page.sessions {
                    @let is_open = page.open.is_some_and(|(id, _)| *id == session.id);
                    li {
                        a href={ "/s/" (session.id.as_str()) } aria-current=[is_open.then_some("page")] {
                            span.title { (session.title) }
                            span.meta { (session.agent) " · " (state_word(session.state)) }
                        }
                    }
                }
            }
        }
    }
}

fn conversation(page: &Page<'_>) -> Markup {
    let Some((_, transcript)) = page.open else { return empty(page) };
    html! {
        header #heading {
            h1 { (transcript.summary.title()) }
            p.meta { (transcript.summary.agent) " · " (state_word(transcript.summary.state())) }
        }
        section #conversation aria-label="Conversation" {
            @if transcript.messages.is_empty() {
                p.hint { "Nothing said yet. Try: what time is it in Tokyo?" }
            }
            @for item in transcript.messages.iter().filter(|it| !it.superseded) { (message(item)) }
            @for item in &transcript.queue.messages { (queued(item)) }
        }
    }
}

fn empty(page: &Page<'_>) -> Markup {
    html! {
        section #conversation aria-label="Conversation" {
            div.welcome {
                h1 { "What shall we do?" }
                @if page.default_agent.is_some() {
                    p { "Say something below to begin. The demo agent needs no key and no network; try:" }
                    ul {
                        li { "help" }
                        li { "what time is it in Paris and Tokyo?" }
                        li { "list the files, then read README.md" }
                        li { "write a report about lighthouses" }
                    }
                } @else {
                    p { "No agent is configured. Add one to callboard.toml, then start again." }
                }
            }
        }
    }
}

fn composer(page: &Page<'_>) -> Markup {
    let running = page.open.is_some_and(|(_, transcript)| transcript.summary.open_run.is_some());
    html! {
        form #composer data-agent=[page.default_agent] {
            label.hidden for="text" { "Message" }
            textarea #text name="text" rows="2" placeholder="Message the agent" autofocus
                disabled[page.default_agent.is_none()] {}
            div.row {
                p.meta { "Enter to send, Shift+Enter for a new line, Esc to stop" }
                button #stop type="button" hidden[!running] { "Stop" }
                button type="submit" { "Send" }
            }
            p #status role="status" { noscript { "Sending needs JavaScript; reading does not." } }
        }
    }
}

fn state_word(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "idle",
        SessionState::Running => "running",
        SessionState::Waiting => "waiting for you",
        SessionState::Failed => "failed",
    }
}

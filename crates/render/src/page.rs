//! The whole page: session list, conversation, composer. Complete without script; while it is open
//! the same functions make its patches, see `live.rs`.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use transcript::Transcript;

use crate::conversation::{Reach, messages};
use crate::icon::{icon, symbols};
use crate::pulse::{Pulse, pulse};
use crate::settings::{self, ListedServer, Settings};
use crate::sidebar::{SessionList, sidebar};
use crate::surroundings::Surroundings;
use crate::transfer;
use crate::view::View;
use crate::words::count;

pub struct Page<'a> {
    pub settings: &'a Settings,
    pub sessions: &'a SessionList,
    pub agents: &'a [ListedAgent],
    pub servers: &'a [ListedServer],
    /// What files can be imported: words for the server, and names for people.
    pub imports: &'a [(&'static str, &'static str)],
    /// The session that is open, if one is.
    pub open: Option<OpenSession<'a>>,
}

pub struct OpenSession<'a> {
    pub view: View,
    /// The messages that are shown.
    pub transcript: &'a Transcript,
    /// The session's end, of the same moment: what stands around the messages is about that.
    pub end: &'a Transcript,
    /// Messages that begin before this are not shown, if there are any.
    pub earlier: Option<u64>,
    /// Messages that begin after this are not shown, if there are any.
    pub later: Option<u64>,
    /// The log is shown as it was at this number: nothing can be said there.
    pub at: Option<u64>,
    /// Its program, while it is at work.
    pub pulse: Option<Pulse>,
    /// What its program has said and nobody could read.
    pub unknown: Option<Unknown>,
}

pub struct Unknown {
    /// With its version.
    pub program: String,
    pub kinds: Vec<String>,
}

pub struct ListedAgent {
    pub id: String,
    pub kind: String,
    /// Its name, where it is a program, which has a memory of its own.
    pub program: Option<&'static str>,
    /// Messages can be handed to it while it works.
    pub can_be_steered: bool,
    /// Where it works if a session names no folder.
    pub folder: String,
    /// Why it cannot be used now, and what to do.
    pub problem: Option<String>,
    /// What it cannot do as it is installed.
    pub limits: Option<&'static str>,
}

impl ListedAgent {
    fn is_ready_demo(&self) -> bool {
        self.kind == "demo" && self.problem.is_none()
    }
}

pub fn page(page: &Page<'_>) -> String {
    let title = page.open.as_ref().map_or("", |it| it.transcript.summary.title());
    let links = html! {
        link rel="icon" href="/assets/icon.svg";
        link rel="stylesheet" href="/assets/page.css";
        script type="module" src="/assets/page.js" {}
    };
    let open = page.open.as_ref();
    let body = html! {
        body data-session-id=[open.map(|it| it.view.session.as_str())] data-past=[open.and_then(|it| it.at)] data-can-steer=[can_steer(page).then_some("")]
            data-head=[open.filter(|it| it.at.is_none()).map(|it| it.transcript.head.0)] {
            (symbols())
            a.skip href="#conversation" { "Skip to the conversation" }
            (sidebar(page.sessions, open.map(|it| &it.view.session)))
            main {
                @match open {
                    Some(open) => (session(page, open)),
                    None => (welcome(page)),
                }
            }
            p #status role="status" aria-live="polite" {}
            p #undo role="status" aria-live="polite" {}
            div #announcer.sr aria-live="polite" {}
            (session_menu())
            (renaming())
            (settings::dialog(page.settings, page.servers))
            (transfer::dialog(page.imports))
            (shortcuts())
        }
    };
    document(title, Some(page.settings), &links, &body)
}

fn session(page: &Page<'_>, open: &OpenSession<'_>) -> Markup {
    let view = &open.view;
    let around = Surroundings::new(view, open.end);
    html! {
        header.top {
            button.quiet.drawer type="button" data-action="drawer" aria-label="Sessions" { (icon("menu")) }
            (PreEscaped(around.heading.to_html()))
            button.quiet type="button" data-action="session-menu" aria-haspopup="menu" aria-label="More" { (icon("dots")) }
        }
        section #conversation aria-label="Conversation" tabindex="-1" {
            @if let Some(at) = open.at {
                p.notice.info { "This is the session as it was at record " (at) ". " a href={ "/s/" (view.session) } { "Show it as it is now" } }
            }
            (PreEscaped(around.sequence.to_html()))
            (window(open))
            p.hint.empty { "No messages yet." }
            (PreEscaped(around.queue.to_html()))
            div #pending.queue {}
            (PreEscaped(around.suggestion.to_html()))
        }
        div.foot {
            button #latest type="button" data-action="latest" aria-keyshortcuts="Alt+G" aria-label="Jump to latest" title="Jump to latest" hidden {
                (icon("arrow-down"))
            }
            div.doing {
                (PreEscaped(around.now.to_html()))
                (PreEscaped(pulse(view, open.pulse.as_ref()).to_html()))
            }
            (PreEscaped(around.dock.to_html()))
            span #more-below hidden {}
            (composer(page))
        }
    }
}

/// The messages that are shown, alone: for a page that has others already.
pub fn messages_page(open: &OpenSession<'_>) -> String {
    let body = html! { body data-head=(open.transcript.head.0) { (window(open)) } };
    document(open.transcript.summary.title(), None, &html! {}, &body)
}

/// A page holds some of the messages, and a printer takes what is there.
const TO_PRINT_ALL: &str =
    "To print the whole session, choose “Export as HTML” in its menu and print that file.";

/// Messages, and the ways to those before and after them. The script moves both, so they are always there.
fn window(open: &OpenSession<'_>) -> Markup {
    let reach = if open.later.is_some() { Reach::Part } else { Reach::End };
    let list = messages(&open.view, &open.transcript.messages, reach);
    let past = open.at.map(|at| format!("at={at}&")).unwrap_or_default();
    let url = |side: &str, number: u64| format!("/s/{}?{past}{side}={number}", open.view.session);
    html! {
        p #earlier hidden[open.earlier.is_none()] {
            a href=[open.earlier.map(|it| url("before", it))] { "Earlier messages" }
            span.print-only { "Earlier messages are not printed. " (TO_PRINT_ALL) }
        }
        (PreEscaped(list.to_html()))
        p #later hidden[open.later.is_none()] {
            a href=[open.later.map(|it| url("after", it))] { "Later messages" }
            span.print-only { "Later messages are not printed. " (TO_PRINT_ALL) }
        }
    }
}

fn welcome(page: &Page<'_>) -> Markup {
    let examples = [
        "help",
        "what time is it in Paris and Tokyo?",
        "list the files, then read README.md",
        "write a report about lighthouses",
    ];
    let demo = page.agents.iter().find(|it| it.is_ready_demo());
    html! {
        header.top.bare {
            button.quiet.drawer type="button" data-action="drawer" aria-label="Sessions" { (icon("menu")) }
        }
        section #conversation aria-label="Conversation" tabindex="-1" {
            div.welcome {
                h1 { "What would you like to do?" }
                @if page.agents.is_empty() {
                    p { "No agent is configured. Add one to callboard.toml, then start the server again; " code { "callboard doctor" } " says what was found." }
                } @else if page.agents.iter().all(|it| it.problem.is_some()) {
                    p { "No agent is ready yet. See below what each of them needs. The demo agent needs nothing; it is there unless callboard.toml says " code { "demo = false" } "." }
                }
                @if let Some(demo) = demo {
                    // The stylesheet shows one of the two: the examples are for the demo agent alone.
                    div.scripted {
                        p.other-chosen { "No key yet? " button.link type="button" data-action="choose" data-agent=(demo.id) { "Try the built-in demo agent" } }
                        p.demo-chosen { "The demo agent is built in and needs no key and no network. Try:" }
                        ul.examples.demo-chosen {
                            @for text in examples { li { button type="button" data-action="example" { (text) } } }
                        }
                    }
                }
                (missing(page.agents))
            }
            div #pending.queue {}
        }
        div.foot { (composer(page)) }
    }
}

/// Agents that cannot be used: one line, and how to change that behind it.
fn missing(agents: &[ListedAgent]) -> Markup {
    let missing: Vec<(&str, &str)> =
        agents.iter().filter_map(|it| Some((&*it.id, it.problem.as_deref()?))).collect();
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let limited = agents.iter().filter_map(|it| Some((&it.id, it.limits?)));
    html! {
        @for (name, limits) in limited { p.notice.info { b { (name) } ": " (limits) } }
        @if !missing.is_empty() {
            details.missing.meta {
                summary { "Not ready: " (names.join(", ")) " · " span.link { "How to set up" } }
                ul { @for (name, problem) in missing { li { b { (name) } ": " (problem) } } }
            }
        }
    }
}

fn can_steer(page: &Page<'_>) -> bool {
    let agent = page.open.as_ref().map(|it| it.transcript.summary.agent.as_str());
    page.agents.iter().any(|it| Some(it.id.as_str()) == agent && it.can_be_steered)
}

/// Shown when script is there; reading needs none.
fn composer(page: &Page<'_>) -> Markup {
    let open = page.open.as_ref();
    let agent = open.map(|it| it.transcript.summary.agent.as_str());
    let workspace = open.and_then(|it| it.transcript.summary.workspace());
    let listed = page.agents.iter().find(|it| Some(&*it.id) == agent);
    let chosen = listed.or_else(|| page.agents.iter().find(|it| it.problem.is_none()));
    let (limits, program) = (listed.and_then(|it| it.limits), listed.and_then(|it| it.program));
    html! {
        form #composer hidden[open.is_some_and(|it| it.at.is_some())] {
            div #editing hidden {
                "Editing: everything after this message will be replaced."
                @if let Some(program) = program { " " (program) " still remembers what it replaces." }
                button.quiet type="button" data-action="stop-editing" { "Cancel" }
            }
            label.sr for="text" { "Message" }
            textarea #text rows="1" dir="auto" placeholder={ "Message " (chosen.map_or("", |it| &it.id)) "…" } enterkeyhint="enter"
                autocomplete="off" {}
            div #files hidden {}
            p #note role="status" {}
            div.bar {
                @if agent.is_none() {
                    label.sr for="agent" { "Agent" }
                    select #agent {
                        @for it in page.agents {
                            option value=(it.id) data-folder=(it.folder) data-demo[it.is_ready_demo()] disabled[it.problem.is_some()] { (it.id) }
                        }
                    }
                    label.sr for="folder" { "Working folder" }
                    input #folder type="text" placeholder={ "Folder: " (chosen.map_or("", |it| &it.folder)) } title="Working folder" aria-describedby="note" autocomplete="off" spellcheck="false";
                } @else { span.meta.agent { (agent.unwrap_or_default()) } }
                button.quiet type="button" data-action="attach" aria-label="Attach files" { (icon("clip")) }
                input #attach type="file" multiple hidden;
                @if let Some(folder) = workspace { span.meta.folder title=(folder) { (folder) } }
                span.meta.hint.at-rest { "Enter to send, Shift+Enter for a new line" }
                span.meta.hint.at-work { "Enter to queue" span.steer { ", Ctrl+Enter to steer" } span.stops { ", Esc to stop" } }
                @if can_steer(page) {
                    button #steer.steer type="button" data-action="steer" aria-keyshortcuts="Control+Enter"
                        title="Hand it to the agent while it works (Ctrl+Enter)" { "Steer" }
                }
                button #stop type="button" data-action="cancel" aria-label="Stop" { (icon("stop")) }
                button #send.primary type="submit" aria-keyshortcuts="Enter Control+Enter" aria-label="Send" { (icon("arrow-up")) }
            }
        }
        @if let Some(limits) = limits { p.remark { (limits) } }
        @if let Some(Unknown { program, kinds }) = open.and_then(|it| it.unknown.as_ref()) {
            p.remark title=(kinds.join(", ")) {
                (program) ": " (count(kinds.len() as u64, "unknown message type"))
                ", shown as " @if kinds.len() == 1 { "it" } @else { "they" } " came"
            }
        }
        noscript { p.hint { "Reading works without JavaScript; to answer, please turn it on." } }
    }
}

/// One for all sessions; the script says which one it is about.
fn session_menu() -> Markup {
    html! {
        div #menu.menu role="menu" aria-label="Session" popover {
            button type="button" role="menuitem" data-action="rename" autofocus { "Rename" }
            button #archive type="button" role="menuitem" data-action="archive" { "Archive" }
            a role="menuitem" data-path="export?format=html" { "Export as HTML" }
            a role="menuitem" data-path="export?format=md" { "Export as Markdown" }
            a role="menuitem" data-path="export?format=json" { "Export as JSON" }
            a role="menuitem" data-path="export?format=jsonl" { "Export the log (JSON Lines)" }
            a #raw role="menuitem" data-path="raw?format=text" { "Raw output" }
            button.danger type="button" role="menuitem" data-action="delete" { "Delete" }
        }
    }
}

/// Of the session that the menu is about, or of the one that is open.
fn renaming() -> Markup {
    html! {
        dialog #renaming aria-labelledby="renaming-title" {
            form #retitle method="dialog" {
                h2 #renaming-title { "Rename this session" }
                input #title aria-label="Title" dir="auto" required pattern=".*\\S.*" autocomplete="off";
                div.buttons {
                    button type="button" commandfor="renaming" command="close" { "Cancel" }
                    button.primary type="submit" { "Rename" }
                }
            }
        }
    }
}

fn shortcuts() -> Markup {
    let keys = [
        ("Enter", "send the message; while the agent works, queue it"),
        ("Ctrl+Enter", "steer: hand the message to the agent while it works"),
        ("Shift+Enter", "new line"),
        ("Esc", "close what is open; if nothing is, stop the agent and hold what is queued"),
        ("Esc Esc", "stop the agent while it waits for your decision"),
        ("Alt+\u{2191}, Alt+\u{2193}", "move the queued message in focus"),
        ("any letter", "write a message"),
        ("Ctrl+K", "search in all sessions"),
        ("Alt+N", "new session"),
        ("Alt+G", "jump to the latest message"),
        ("Alt+O", "open or close the tool calls of the last answer"),
        ("Alt+A", "go to the question of the agent"),
        ("1, 2, 3", "in the question: allow once, for this session, always (asks again)"),
        ("N", "in the question: deny"),
        ("?", "this list"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            form method="dialog" {
                h2 #keys-title { "Keyboard shortcuts" }
                dl { @for (key, what) in keys { dt { kbd { (key) } } dd { (what) } } }
                div.buttons { button.primary type="submit" { "Done" } }
            }
        }
    }
}

/// What a person sees who opens an address that shows nothing.
pub fn error_page(title: &str, message: &str) -> String {
    let body = html! {
        body.plain { main { h1 { (title) } p { (message) } p { a href="/" { "All sessions" } } } }
    };
    document(title, None, &stylesheet(), &body)
}

/// What somebody sees who is not let in yet, and the ways in.
pub struct SignIn<'a> {
    pub message: &'a str,
    /// The message says what went wrong.
    pub is_error: bool,
    /// There is a password.
    pub takes_password: bool,
}

/// Signing out takes a click: an address alone changes nothing.
pub fn sign_out_page() -> String {
    let body = html! {
        body.plain {
            main {
                h1 { "Sign out of Callboard?" }
                form method="post" action="/sign-out" {
                    button.primary type="submit" { "Sign out" }
                }
                p { a href="/" { "Stay signed in" } }
            }
        }
    };
    document("Sign out", None, &stylesheet(), &body)
}

pub fn sign_in_page(SignIn { message, is_error, takes_password }: &SignIn<'_>) -> String {
    let body = html! {
        body.plain {
            main {
                h1 { "Sign in to Callboard" }
                @if *is_error { p.banner role="alert" { (message) } } @else { p { (message) } }
                @if *takes_password {
                    form method="post" action="/sign-in" {
                        label for="password" { "Password" }
                        input #password type="password" name="password" required autofocus
                            autocomplete="current-password";
                        button.primary type="submit" { "Sign in" }
                    }
                }
                form method="get" action="/" {
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus[!*takes_password] autocomplete="off";
                    button.primary[!*takes_password] type="submit" { @if *takes_password { "Sign in with the token" } @else { "Sign in" } }
                    p.hint { "The part after " code { "token=" } " in the address printed at start." }
                }
            }
        }
    };
    document("Sign in", None, &stylesheet(), &body)
}

fn stylesheet() -> Markup {
    html! { link rel="stylesheet" href="/assets/page.css"; }
}

pub(crate) fn document(
    title: &str,
    settings: Option<&Settings>,
    links: &Markup,
    body: &Markup,
) -> String {
    let default = Settings::default();
    let settings = settings.unwrap_or(&default);
    let word = |on: bool| if on { "true" } else { "false" };
    let markup = html! {
        (DOCTYPE)
        html lang="en" data-theme=(settings.theme.word())
            data-tool-display=(settings.tool_display.word())
            data-reveal=(settings.reveal.word())
            data-show-tool-calls=(word(settings.show_tool_calls))
            data-show-thinking=(word(settings.show_thinking))
            data-show-timing=(word(settings.show_timing))
            data-hide-tool-calls-in-archived=(word(settings.hide_tool_calls_in_archived))
            data-remote-images=(word(settings.remote_images)) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover, interactive-widget=resizes-content";
                meta name="color-scheme" content="light dark";
                title { @if !title.is_empty() { (title) " · " } "Callboard" }
                (links)
            }
            (body)
        }
    };
    markup.into_string()
}

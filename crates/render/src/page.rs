//! The complete page: session list, conversation, composer. It can be read without script; while it is open,
//! the same functions make its patches (see `live.rs`).

pub(crate) mod chrome;
pub(crate) mod conversation;
pub(crate) mod grants;
pub(crate) mod import_dialog;
pub(crate) mod pulse;
pub(crate) mod queue;
pub(crate) mod search_results;
pub(crate) mod sequence;
pub(crate) mod settings;
pub(crate) mod sidebar;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use transcript::Transcript;

use self::chrome::Chrome;
use self::conversation::{Reach, messages};
use self::pulse::{Pulse, pulse};
use self::settings::{ListedServer, Settings};
use self::sidebar::{SessionList, sidebar};
use crate::assets::{ICON, MAIN, STYLESHEET, asset_url, imported_modules};
use crate::html::icon::{icon, symbols};
use crate::text::quantity::count;
use crate::view::View;

/// Data from which [`page`] draws the complete web page.
pub struct Page<'a> {
    /// Display settings of the page.
    pub settings: &'a Settings,
    /// Session list in the sidebar of the page.
    pub sessions: &'a SessionList,
    /// Configured agents, from which a person chooses one for a new session.
    pub agents: &'a [ListedAgent],
    /// Configured MCP servers and their states, for the settings dialog.
    pub servers: &'a [ListedServer],
    /// Formats in the import dialog: identifier and label of each.
    pub imports: &'a [(&'static str, &'static str)],
    /// Session that the page shows; `None` for the start page.
    pub open: Option<OpenSession<'a>>,
}

/// Session that a page shows, and the state of its agent.
pub struct OpenSession<'a> {
    /// Ids, URLs and limits with which the session is drawn.
    pub view: View,
    /// Transcript with the messages that the page shows.
    pub transcript: &'a Transcript,
    /// Transcript of the end of the session at the same record; heading, queue and approvals are
    /// drawn from it.
    pub end: &'a Transcript,
    /// Number of the first record shown, for the link to earlier messages; `None` if there are
    /// none.
    pub earlier: Option<u64>,
    /// Number of the last record shown, for the link to later messages; `None` if there are none.
    pub later: Option<u64>,
    /// Number of the record up to which a past state of the session is shown, read-only; `None` for
    /// the current state.
    pub at: Option<u64>,
    /// Process of the agent's program; `None` while no program works.
    pub pulse: Option<Pulse>,
    /// Messages of the agent's program that Callboard does not know; `None` if there are none.
    pub unknown: Option<UnknownMessages>,
}

/// Kinds of messages of an agent's program that Callboard does not know.
pub struct UnknownMessages {
    /// Name and version of the agent's program.
    pub program: String,
    /// Kinds of the unknown messages, each with its count.
    pub kinds: Vec<String>,
}

/// Agent as the page lists it.
pub struct ListedAgent {
    /// Id of the agent.
    pub id: String,
    /// Kind of the agent, as in the configuration.
    pub kind: String,
    /// Name of the agent's program; `None` if the agent is not a program. Programs keep their own
    /// memory of a conversation.
    pub program: Option<&'static str>,
    /// Whether the agent accepts messages while it works.
    pub can_be_steered: bool,
    /// Working folder of the agent in sessions that name none.
    pub folder: String,
    /// Reason why the agent cannot be used, and how to fix it; `None` if it can be used.
    pub problem: Option<String>,
    /// Features that the installed version of the agent's program lacks; `None` if none are known.
    pub limits: Option<&'static str>,
}

impl ListedAgent {
    fn is_ready_demo(&self) -> bool {
        self.kind == "demo" && self.problem.is_none()
    }
}

/// Draws the complete web page: session list, conversation and composer.
pub fn page(page: &Page<'_>) -> String {
    let title = page.open.as_ref().map_or("", |it| it.transcript.summary.title());
    let links = html! {
        link rel="icon" href=(asset_url(ICON));
        (stylesheet())
        script type="module" src=(asset_url(MAIN)) {}
        @for module in imported_modules() {
            link rel="modulepreload" href=(asset_url(module));
        }
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
            (import_dialog::dialog(page.imports))
            (shortcuts())
        }
    };
    document(title, Some(page.settings), &links, &body)
}

fn session(page: &Page<'_>, open: &OpenSession<'_>) -> Markup {
    let view = &open.view;
    let chrome = Chrome::new(view, open.end);
    html! {
        header.top {
            button.quiet.drawer type="button" data-action="drawer" aria-label="Sessions" { (icon("menu")) }
            (PreEscaped(chrome.heading.to_html()))
            button.quiet type="button" data-action="session-menu" aria-haspopup="menu" aria-label="More" { (icon("dots")) }
        }
        section #conversation aria-label="Conversation" tabindex="-1" {
            @if let Some(at) = open.at {
                p.notice.info { "This is the session as it was at record " (at) ". " a href={ "/s/" (view.session) } { "Show it as it is now" } }
            }
            (PreEscaped(chrome.sequence.to_html()))
            (window(open))
            p.hint.empty { "No messages yet." }
            (PreEscaped(chrome.queue.to_html()))
            div #pending.queue {}
            (PreEscaped(chrome.suggestion.to_html()))
        }
        div.foot {
            button #latest type="button" data-action="latest" aria-keyshortcuts="Alt+G" aria-label="Jump to latest" title="Jump to latest" hidden {
                (icon("arrow-down"))
            }
            div.doing {
                (PreEscaped(chrome.now.to_html()))
                (PreEscaped(pulse(view, open.pulse.as_ref()).to_html()))
            }
            (PreEscaped(chrome.dock.to_html()))
            span #more-below hidden {}
            (composer(page))
        }
    }
}

/// Draws only the messages of a session, for a page that already shows the rest.
pub fn messages_page(open: &OpenSession<'_>) -> String {
    let body = html! { body data-head=(open.transcript.head.0) { (window(open)) } };
    document(open.transcript.summary.title(), None, &html! {}, &body)
}

/// Note on printing, which covers only the messages that are loaded.
const TO_PRINT_ALL: &str =
    "To print the whole session, choose “Export as HTML” in its menu and print that file.";

/// Draws the messages of a session and the links to earlier and later ones. The script moves the
/// links, so they are always present.
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
                    // The stylesheet shows one of the two: the examples are only for the demo agent.
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

/// Draws the agents that cannot be used in one line, which opens to show how to fix each, and the
/// limits of other agents.
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

/// Draws the composer, in which a person writes messages. It is shown only if scripts are enabled.
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
        @if let Some(UnknownMessages { program, kinds }) = open.and_then(|it| it.unknown.as_ref()) {
            p.remark title=(kinds.join(", ")) {
                (program) ": " (count(kinds.len() as u64, "unknown message type"))
                ", shown as " @if kinds.len() == 1 { "it" } @else { "they" } " came"
            }
        }
        noscript { p.hint { "Reading works without JavaScript; to answer, please turn it on." } }
    }
}

/// Draws the menu of a session. All sessions share it; the script sets the session to which it
/// applies.
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

/// Draws the dialog that renames the session of the menu or the open session.
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

/// Draws an error page with a title, a message and a link to the session list.
pub fn error_page(title: &str, message: &str) -> String {
    let body = html! {
        body.plain { main { h1 { (title) } p { (message) } p { a href="/" { "All sessions" } } } }
    };
    document(title, None, &stylesheet(), &body)
}

/// Content of the sign-in page, as input of [`sign_in_page`].
pub struct SignIn<'a> {
    /// Text above the sign-in form: an explanation or an error.
    pub message: &'a str,
    /// Whether `message` is an error.
    pub is_error: bool,
    /// Whether a password is set, so that the page has a field for it.
    pub takes_password: bool,
}

/// Draws the sign-out page. Signing out takes a click, so that following a link changes nothing.
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

/// Draws the sign-in page.
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
    html! { link rel="stylesheet" href=(asset_url(STYLESHEET)); }
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
        html lang="en" data-theme=(settings.theme.as_str())
            data-tool-display=(settings.tool_display.as_str())
            data-reveal=(settings.reveal.as_str())
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

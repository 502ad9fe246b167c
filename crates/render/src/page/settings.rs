//! Display settings: attributes of the root element, which the stylesheet reads. They do not change how
//! messages are drawn.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::page::grants;

/// Display settings of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Whether tool calls and commentary are shown. Approvals and failed calls are always shown.
    pub show_tool_calls: bool,
    /// Style in which the tool calls of an answer are displayed.
    pub tool_display: ToolDisplay,
    /// Time at which text that may only precede a tool call is shown.
    pub reveal: Reveal,
    /// Whether thinking blocks are shown.
    pub show_thinking: bool,
    /// Whether the time, tokens and cost of answers are shown without hovering over them.
    pub show_timing: bool,
    /// Whether tool calls are hidden in archived sessions.
    pub hide_tool_calls_in_archived: bool,
    /// Whether a click loads an image from another server into the page; that server then learns
    /// who looks and when.
    pub remote_images: bool,
    /// Colour theme of the page.
    pub theme: Theme,
}

/// Style in which the tool calls of an answer are displayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolDisplay {
    /// The tool calls of an answer are collapsed into one line that opens in place.
    #[default]
    Widget,
    /// Tool calls are small buttons after the text.
    Badges,
    /// Each tool call is one panel with its arguments and result.
    Panels,
    /// Texts and tool calls are shown in chronological order.
    Timeline,
}

/// Time at which to show text that may be the answer or may only precede a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Reveal {
    /// The text is shown immediately.
    Live,
    /// The text is shown once the step has ended.
    Deferred,
    /// The text is shown once it is long, or about a second after it began.
    #[default]
    Smart,
}

/// Colour theme of the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// The page uses the theme of the operating system.
    #[default]
    System,
    /// The page uses light colours.
    Light,
    /// The page uses dark colours.
    Dark,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            show_tool_calls: true,
            tool_display: ToolDisplay::default(),
            reveal: Reveal::default(),
            show_thinking: true,
            show_timing: false,
            hide_tool_calls_in_archived: false,
            remote_images: false,
            theme: Theme::default(),
        }
    }
}

impl ToolDisplay {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Widget => "widget",
            Self::Badges => "badges",
            Self::Panels => "panels",
            Self::Timeline => "timeline",
        }
    }
}

impl Reveal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Deferred => "deferred",
            Self::Smart => "smart",
        }
    }
}

impl Theme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// MCP server in the list of the settings dialog.
pub struct ListedServer {
    /// Id of the MCP server.
    pub id: String,
    /// State of the MCP server, in words.
    pub state: String,
    /// Last error of the MCP server; `None` if there is none.
    pub problem: Option<String>,
}

/// Draws the settings dialog; each control has the name of its setting.
pub(crate) fn dialog(settings: &Settings, servers: &[ListedServer]) -> Markup {
    let displays = [
        ("widget", "Collapsed"),
        ("badges", "Badges"),
        ("panels", "Cards"),
        ("timeline", "Timeline"),
    ];
    let reveals =
        [("smart", "Automatically"), ("live", "Immediately"), ("deferred", "Only when final")];
    let themes = [("system", "System"), ("light", "Light"), ("dark", "Dark")];
    html! {
        dialog #settings aria-labelledby="settings-title" {
            form method="dialog" {
                h2 #settings-title { "Settings" }
                (choice("toolDisplay", "Tool calls", &displays, settings.tool_display.as_str()))
                (choice("reveal", "Show text before a tool call", &reveals, settings.reveal.as_str()))
                (choice("theme", "Theme", &themes, settings.theme.as_str()))
                (switch("showToolCalls", "Show tool calls", settings.show_tool_calls))
                (switch("showThinking", "Show thinking", settings.show_thinking))
                (switch("showTiming", "Show time, tokens and cost", settings.show_timing))
                (switch("hideToolCallsInArchived", "Hide tool calls in archived sessions", settings.hide_tool_calls_in_archived))
                (switch("remoteImages", "Load external images on click", settings.remote_images))
                (grants::section(None))
                (self::servers(servers))
                div.buttons {
                    a.quiet href="/sign-out" data-action="sign-out" { "Sign out" }
                    button.quiet type="button" data-action="sign-out-everywhere" { "Sign out everywhere" }
                    button.primary type="submit" { "Done" }
                }
            }
        }
    }
}

fn servers(servers: &[ListedServer]) -> Markup {
    html! {
        @if !servers.is_empty() {
            section.servers aria-label="MCP servers" {
                h3 { "MCP servers" }
                ul {
                    @for ListedServer { id, state, problem } in servers {
                        li {
                            b { (id) } " " span.meta { (state) }
                            @if let Some(problem) = problem { p.failed { (problem) } }
                        }
                    }
                }
            }
        }
    }
}

fn choice(name: &str, title: &str, options: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        label { span { (title) }
            select name=(name) {
                @for (value, words) in options {
                    option value=(value) selected[*value == chosen] { (words) }
                }
            }
        }
    }
}

fn switch(name: &str, title: &str, on: bool) -> Markup {
    html! { label.switch { input type="checkbox" name=(name) checked[on]; span { (title) } } }
}

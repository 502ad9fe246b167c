//! The final answer of the demo agent: the tools' results as sentences.
//!
//! Results may have any shape. A result of an unexpected shape is shown as it is.

use serde_json::Value;

use super::call::{Call, Place};
use super::plan::{Plan, Task};
use super::script;
use super::understand::{MAX_WISHES, Wish};
use crate::ToolOutcome;

const MAX_NAMES: usize = 20;
const MAX_LINES: usize = 12;
const MAX_MATCHES: usize = 5;
const MAX_LINE_CHARS: usize = 160;

pub(super) fn answer(plan: &Plan) -> String {
    if plan.wishes.iter().all(|it| matches!(it, Wish::NotUnderstood { .. })) {
        let opening = if plan.wishes.is_empty() { "" } else { "I did not understand that. " };
        return format!("{opening}{}", script::HELP);
    }
    let mut sections = Vec::new();
    let mut tasks = plan.tasks.iter().peekable();
    let mut wishes = plan.wishes.iter().peekable();
    while let Some(wish) = wishes.next() {
        let mut results: Vec<&Task> = Vec::new();
        if let Wish::Call(_) = wish {
            results.extend(tasks.next());
            // Adjacent questions for the time become one list.
            while is_time(wish) && wishes.next_if(|it| is_time(it)).is_some() {
                results.extend(tasks.next());
            }
        }
        sections.push(section(wish, &results));
    }
    sections.join("\n\n")
}

fn is_time(wish: &Wish) -> bool {
    matches!(wish, Wish::Call(Call::Time(_)))
}

fn section(wish: &Wish, results: &[&Task]) -> String {
    match wish {
        Wish::Call(_) => match results {
            [task] => finding(task),
            several => {
                several.iter().map(|it| format!("- {}", finding(it))).collect::<Vec<_>>().join("\n")
            }
        },
        Wish::Think { about } => script::conclusion(about),
        Wish::Story { about } => script::story(about.as_deref()),
        Wish::Report { about } => script::report(about.as_deref()),
        Wish::Break => script::HELD.to_owned(),
        Wish::Help => script::HELP.to_owned(),
        Wish::Greeting => format!("{}{}", script::HELLO, script::HELP),
        Wish::AgentAnswered { agent, text } => told(agent, text),
        Wish::NotUnderstood { said } => {
            format!("I did not understand “{said}”. Say `help` to see what I can do.")
        }
        Wish::TooMany => format!(
            "That was more than I do in one go: I stopped after the first {MAX_WISHES} things."
        ),
    }
}

fn finding(task: &Task) -> String {
    let Some(outcome) = &task.outcome else { return failure(&task.call, "there is no result.") };
    // A command that failed has printed the reason.
    let printed = match &task.call {
        Call::Shell { command } => printed(command, &outcome.result),
        _ => None,
    };
    if let Some(printed) = printed {
        return printed;
    }
    if !outcome.ok {
        return failure(&task.call, &error_message(outcome));
    }
    let result = &outcome.result;
    let found = match &task.call {
        Call::Time(place) => time(place, result),
        Call::ListFiles { path } => entries(path, result),
        Call::ReadFile { path } => file(path, result),
        Call::SearchFiles { query, .. } => matches(query, result),
        Call::WriteFile { path, text } => Some(format!(
            "I wrote {} to {}.",
            count(text.len() as u64, "byte", "bytes"),
            code(path)
        )),
        Call::ListAgents => agents(result),
        Call::Note { .. } => Some("The note stands in the conversation.".to_owned()),
        Call::AskAgent { agent, in_background: true, .. } => {
            Some(format!("I have asked {}, and will say what it answers.", code(agent)))
        }
        Call::AskAgent { agent, .. } => result["answer"].as_str().map(|it| told(agent, it)),
        Call::Shell { .. } | Call::ClientTool { .. } => None,
    };
    found.unwrap_or_else(|| unexpected(&task.call, result))
}

fn failure(call: &Call, message: &str) -> String {
    let tried = match call {
        Call::Time(place) if place.zone.is_none() => "tell the time".to_owned(),
        Call::Time(place) => format!("tell the time in {}", place.name),
        Call::ListFiles { path } => format!("list {}", code(path)),
        Call::ReadFile { path } => format!("read {}", code(path)),
        Call::SearchFiles { query, .. } => format!("search for “{query}”"),
        Call::WriteFile { path, .. } => format!("write {}", code(path)),
        Call::Shell { command } => format!("run {}", code(command)),
        Call::ListAgents => "list the agents".to_owned(),
        Call::Note { .. } => "note that".to_owned(),
        Call::AskAgent { agent, .. } => format!("ask {}", code(agent)),
        Call::ClientTool { name, .. } => format!("use {}", code(name)),
    };
    format!("I could not {tried}: {message}")
}

fn error_message(outcome: &ToolOutcome) -> String {
    match (&outcome.error, &outcome.result) {
        (Some(error), _) => error.message.clone(),
        (None, Value::Null) => "the tool failed without saying why.".to_owned(),
        (None, Value::String(text)) => text.clone(),
        (None, other) => other.to_string(),
    }
}

fn time(place: &Place, result: &Value) -> Option<String> {
    let time = result["text"].as_str().or_else(|| result["time"].as_str())?;
    Some(match (&place.zone, result["zone"].as_str()) {
        (Some(_), _) => format!("In {} it is **{time}**.", place.name),
        (None, Some(zone)) => format!("It is **{time}** ({zone})."),
        (None, None) => format!("It is **{time}**."),
    })
}

fn entries(path: &str, result: &Value) -> Option<String> {
    let entries = result["entries"].as_array()?;
    let total = result["total"].as_u64().unwrap_or(entries.len() as u64);
    let place = if path == "." { "The workspace folder".to_owned() } else { code(path) };
    if total == 0 {
        return Some(format!("{place} is empty."));
    }
    let mut lines = vec![format!("{place} has {}:\n", count(total, "entry", "entries"))];
    lines.extend(entries.iter().take(MAX_NAMES).map(entry));
    lines.extend(and_more(total, entries.len().min(MAX_NAMES)));
    Some(lines.join("\n"))
}

fn entry(entry: &Value) -> String {
    let name = entry["name"].as_str().unwrap_or("?");
    match (entry["kind"].as_str(), entry["size"].as_u64()) {
        (Some("folder"), _) => format!("- {}", code(&format!("{name}/"))),
        (Some("link"), _) => format!("- {} (link)", code(name)),
        (_, Some(size)) => format!("- {} ({})", code(name), bytes(size)),
        (_, None) => format!("- {}", code(name)),
    }
}

fn file(path: &str, result: &Value) -> Option<String> {
    let text = result["text"].as_str()?;
    let total = result["lines"].as_u64().unwrap_or(text.lines().count() as u64);
    if text.trim().is_empty() {
        return Some(format!("{} is empty.", code(path)));
    }
    let shown: Vec<String> = text.lines().take(MAX_LINES).map(cut_line).collect();
    let how_far = if total > shown.len() as u64 { "It begins with" } else { "It says" };
    let opening = format!("{} has {}. {how_far}:", code(path), count(total, "line", "lines"));
    Some(format!("{opening}\n\n{}", fence(language(path), &shown.join("\n"))))
}

fn matches(query: &str, result: &Value) -> Option<String> {
    let matches = result["matches"].as_array()?;
    let total = result["total"].as_u64().unwrap_or(matches.len() as u64);
    let searched = match result["files"].as_u64() {
        Some(files) => format!(" ({} searched)", count(files, "file", "files")),
        None => String::new(),
    };
    if total == 0 {
        return Some(format!("I found nothing for “{query}”{searched}."));
    }
    let found = count(total, "match", "matches");
    let mut lines = vec![format!("I found {found} for “{query}”{searched}:\n")];
    lines.extend(matches.iter().take(MAX_MATCHES).map(one_match));
    lines.extend(and_more(total, matches.len().min(MAX_MATCHES)));
    Some(lines.join("\n"))
}

fn told(agent: &str, text: &str) -> String {
    let quoted: Vec<String> = text.lines().map(|it| format!("> {it}")).collect();
    format!("{} says:\n\n{}", code(agent), quoted.join("\n"))
}

fn agents(result: &Value) -> Option<String> {
    let agents = result["agents"].as_array()?;
    let mut lines = vec![format!("There {}:\n", are(agents.len() as u64, "agent", "agents"))];
    lines.extend(agents.iter().map(agent));
    Some(lines.join("\n"))
}

fn agent(agent: &Value) -> String {
    let field = |name: &str| agent[name].as_str().unwrap_or("?");
    let me = if agent["you"] == true { ", which is me" } else { "" };
    let name = code(field("id"));
    format!("- {name}{me} ({}): {}", field("state"), cut_line(field("description")))
}

fn printed(command: &str, result: &Value) -> Option<String> {
    let exit_code = result["exitCode"].as_i64()?;
    let output = [&result["stdout"], &result["stderr"]].map(|it| it.as_str().unwrap_or_default());
    let output = output.concat();
    let how = match exit_code {
        0 => format!("{} went well", code(command)),
        code_number => format!("{} ended with exit code {code_number}", code(command)),
    };
    if output.trim().is_empty() {
        return Some(format!("{how} and printed nothing."));
    }
    let shown: Vec<String> = output.lines().take(MAX_LINES).map(cut_line).collect();
    Some(format!("{how}. It printed:\n\n{}", fence("", &shown.join("\n"))))
}

fn one_match(found: &Value) -> String {
    let path = found["path"].as_str().unwrap_or("?");
    let place = match found["line"].as_u64() {
        Some(line) => format!("{path}:{line}"),
        None => path.to_owned(),
    };
    let text = found["text"].as_str().unwrap_or_default().trim();
    if text.is_empty() {
        return format!("- {}", code(&place));
    }
    format!("- {}: {}", code(&place), code(&cut_line(text)))
}

fn and_more(total: u64, shown: usize) -> Option<String> {
    let rest = total.saturating_sub(shown as u64);
    (rest > 0).then(|| format!("- and {rest} more"))
}

fn unexpected(call: &Call, result: &Value) -> String {
    let text = result.as_str().map_or_else(|| format!("{result:#}"), str::to_owned);
    let shown: Vec<String> = text.lines().take(MAX_LINES).map(cut_line).collect();
    format!("The tool `{}` says:\n\n{}", call.tool_name(), fence("", &shown.join("\n")))
}

fn language(path: &str) -> &str {
    let extension = path.rsplit_once('.').map_or("", |(_, it)| it);
    if extension.chars().all(|c| c.is_ascii_alphanumeric()) { extension } else { "" }
}

/// Returns a Markdown code block whose fence is longer than any in the text, so that the text
/// cannot close it.
fn fence(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let (ticks, space) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{ticks}{space}{text}{space}{ticks}")
}

fn cut_line(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn are(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", if n == 1 { "is" } else { "are" }, count(n, one, many))
}

fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn bytes(size: u64) -> String {
    const KB: u64 = 1000;
    const MB: u64 = KB * KB;
    let tenths = |unit: u64| format!("{}.{}", size / unit, size % unit * 10 / unit);
    match size {
        0..KB => count(size, "byte", "bytes"),
        KB..MB => format!("{} kB", tenths(KB)),
        MB.. => format!("{} MB", tenths(MB)),
    }
}

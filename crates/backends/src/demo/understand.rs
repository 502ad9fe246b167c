//! Turns a message into wishes of the demo agent, by rules alone: the same message always gives the same
//! wishes.

use serde_json::json;
use transcript::AgentAttribution;

use super::call::Call;
use super::places;
use super::sentence::{Clause, Joint, Word, clauses};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish {
    Call(Call),
    Think {
        about: String,
    },
    Story {
        about: Option<String>,
    },
    Report {
        about: Option<String>,
    },
    Break,
    Help,
    Greeting,
    NotUnderstood {
        said: String,
    },
    /// The message is another agent's answer to an earlier question.
    AgentAnswered {
        agent: String,
        text: String,
    },
    /// The message asks for more than [`MAX_WISHES`] things.
    TooMany,
}

/// Maximum number of wishes that are taken from a message, so that a run ends even if a long text
/// was pasted.
pub(super) const MAX_WISHES: usize = 20;

/// Returns the wishes in a message to the demo agent. Empty for a message without words.
pub(super) fn understand(message: &str) -> Vec<Wish> {
    let message = match AgentAttribution::parse(message) {
        Some(AgentAttribution { agent, text, is_answer: true }) => {
            let (agent, text) = (agent.to_owned(), text.to_owned());
            return vec![Wish::AgentAnswered { agent, text }];
        }
        Some(question) => question.text,
        None => message,
    };
    let whole = run_command(message)
        .or_else(|| write_file(message))
        .or_else(|| note(message))
        .or_else(|| ask_agent(message))
        .or_else(|| client_tool(message));
    if let Some(call) = whole {
        return vec![Wish::Call(call)];
    }
    let mut wishes: Vec<Wish> = Vec::new();
    for clause in clauses(message) {
        let words = without_politeness(&clause.words);
        if words.is_empty() || lengthens_topic(&clause, words, wishes.last_mut()) {
            continue;
        }
        if wishes.len() == MAX_WISHES {
            wishes.push(Wish::TooMany);
            break;
        }
        let mut wish = by_rule(words).or_else(|| one_more(&clause, words, wishes.last()));
        if let Some(wish) = &mut wish {
            name_topic(wish, wishes.last_mut());
        }
        wishes.push(wish.unwrap_or_else(|| Wish::NotUnderstood { said: text(&clause.words) }));
    }
    if wishes.iter().any(|it| *it != Wish::Greeting) {
        wishes.retain(|it| *it != Wish::Greeting);
    }
    wishes
}

/// Parses "run COMMAND" to a shell command. A command may contain any character, so the message is
/// not split into clauses.
fn run_command(message: &str) -> Option<Call> {
    let rest = after_word(message, "run")?;
    (!rest.is_empty()).then(|| Call::Shell { command: unquoted(rest).to_owned() })
}

/// Parses "note: TEXT" to a call of the note tool. Every character of the text belongs to the note.
fn note(message: &str) -> Option<Call> {
    let (first, text) = message.trim().split_once(':')?;
    let text = text.trim().to_owned();
    (first.eq_ignore_ascii_case("note") && !text.is_empty()).then_some(Call::Note { text })
}

/// Parses "ask AGENT: TEXT" and "ask AGENT in the background: TEXT" to a message to another agent.
/// The text is not interpreted.
fn ask_agent(message: &str) -> Option<Call> {
    let (whom, text) = after_word(message, "ask")?.split_once(':')?;
    let (agent, in_background) = match whom.trim().strip_suffix("in the background") {
        Some(agent) => (agent.trim(), true),
        None => (whom.trim(), false),
    };
    let is_name = !agent.is_empty() && !agent.contains(char::is_whitespace);
    let (agent, text) = (agent.to_owned(), text.trim().to_owned());
    (is_name && !text.is_empty()).then_some(Call::AskAgent { agent, text, in_background })
}

/// Parses "use the client tool NAME" and "use the client tool NAME with {...}" to a call of a
/// client's tool.
fn client_tool(message: &str) -> Option<Call> {
    let rest = after_word(message, "use")?.strip_prefix("the client tool ")?.trim();
    let (name, arguments) = match rest.split_once(" with ") {
        Some((name, arguments)) => (name.trim(), serde_json::from_str(arguments).ok()?),
        None => (rest, json!({})),
    };
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    is_name.then(|| Call::ClientTool { name: name.to_owned(), arguments })
}

/// Parses "write TEXT to FILE" to a call that writes a file. FILE must look like a file: "write a
/// story about going to Paris" does not match.
fn write_file(message: &str) -> Option<Call> {
    let (text, path) = after_word(message, "write")?.rsplit_once(" to ")?;
    let path = unquoted(path.trim().trim_end_matches(['.', '!']));
    let is_file = path.contains(['.', '/']) && !path.contains(char::is_whitespace);
    let text = unquoted(text.trim()).to_owned();
    (is_file && !text.is_empty()).then(|| Call::WriteFile { path: path.to_owned(), text })
}

fn after_word<'a>(message: &'a str, word: &str) -> Option<&'a str> {
    let message = message.trim();
    let message = message.strip_prefix("please ").unwrap_or(message);
    let (first, rest) = message.split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case(word).then(|| rest.trim())
}

fn unquoted(text: &str) -> &str {
    let quotes = [('`', '`'), ('"', '"'), ('“', '”')];
    let inner =
        quotes.iter().find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close));
    inner.filter(|it| !it.contains(['`', '"'])).unwrap_or(text)
}

const BEFORE: &[&str] = &[
    "please", "kindly", "can", "could", "would", "you", "do", "know", "i", "i'd", "want", "need",
    "like", "to", "ok", "okay", "so", "now", "also", "first", "next", "finally", "just", "hey",
    "hi", "hello",
];
const BEHIND: &[&str] = &["please", "thanks", "thank", "you", "now", "right", "too", "again"];
const GREETINGS: &[&str] = &[
    "hello",
    "hi",
    "hey",
    "hallo",
    "howdy",
    "greetings",
    "good",
    "morning",
    "afternoon",
    "evening",
    "day",
    "there",
];

fn without_politeness(words: &[Word]) -> &[Word] {
    if words.iter().all(|it| it.is(GREETINGS)) || is_help(words) {
        return words;
    }
    let mut words = skip(words, BEFORE);
    while let Some((last, before)) = words.split_last()
        && last.is(BEHIND)
    {
        words = before;
    }
    words
}

/// Replaces a pronoun by the topic of the previous wish: "Think about lighthouses, then write a
/// report about them".
fn name_topic(wish: &mut Wish, last: Option<&mut Wish>) {
    const STAND_INS: &[&str] = &["it", "that", "this", "these", "them", "those"];
    if let (Some(topic), Some(named)) = (topic(Some(wish)), topic(last))
        && STAND_INS.contains(&topic.to_lowercase().as_str())
    {
        topic.clone_from(named);
    }
}

fn topic(wish: Option<&mut Wish>) -> Option<&mut String> {
    match wish {
        Some(Wish::Think { about }) => Some(about),
        Some(Wish::Story { about } | Wish::Report { about }) => about.as_mut(),
        _ => None,
    }
}

/// Extends the topic of the previous wish by a clause: "Write a report about cats and dogs" has one
/// topic. Returns whether the clause belongs to that topic.
fn lengthens_topic(clause: &Clause, words: &[Word], last: Option<&mut Wish>) -> bool {
    let Some(topic) = topic(last) else { return false };
    let lengthens = clause.joint == Joint::And && by_rule(words).is_none();
    if lengthens {
        topic.push_str(" and ");
        topic.push_str(&text(words));
    }
    lengthens
}

/// Returns the previous wish for another object: "What time is it in Paris and Tokyo" asks for two
/// times. `None` if the clause names no such object.
fn one_more(clause: &Clause, words: &[Word], last: Option<&Wish>) -> Option<Wish> {
    let Some(Wish::Call(call)) = last else { return None };
    if clause.joint == Joint::Stop {
        return None;
    }
    let single = || (words.len() == 1).then(|| text(words));
    let call = match call {
        Call::Time(_) => {
            let name = text(skip(words, &["in"]));
            let is_place = words.len() <= 2 || places::is_known(&name);
            is_place.then(|| Call::Time(places::find(&name)))
        }
        Call::ListFiles { .. } => single().map(|path| Call::ListFiles { path }),
        Call::ReadFile { .. } => single().map(|path| Call::ReadFile { path }),
        // These calls take the rest of the message.
        Call::WriteFile { .. } | Call::Shell { .. } | Call::Note { .. } => None,
        Call::ListAgents | Call::AskAgent { .. } | Call::ClientTool { .. } => None,
        Call::SearchFiles { .. } => {
            let is_query = words.len() == 1 || split_at_last(words, WITHIN).is_some();
            is_query.then(|| search_call(&[], words)).flatten()
        }
    };
    call.map(Wish::Call)
}

/// Returns the wish of a clause by the first rule that matches. Rules with topics come first: "a
/// story about time" is a story.
fn by_rule(words: &[Word]) -> Option<Wish> {
    fixed(words)
        .or_else(|| think(words))
        .or_else(|| story_or_report(words))
        .or_else(|| search(words).or_else(|| time(words)).map(Wish::Call))
        .or_else(|| agents(words).or_else(|| list(words)).or_else(|| read(words)).map(Wish::Call))
}

fn fixed(words: &[Word]) -> Option<Wish> {
    match words {
        [only] if only.is(&["break"]) => Some(Wish::Break),
        words if is_help(words) => Some(Wish::Help),
        words if words.iter().all(|it| it.is(GREETINGS)) => Some(Wish::Greeting),
        _ => None,
    }
}

fn is_help(words: &[Word]) -> bool {
    let said = text(words).to_lowercase();
    matches!(said.as_str(), "help" | "help me" | "what can you do" | "what can i say")
}

fn think(words: &[Word]) -> Option<Wish> {
    let rest = starts(words, &["think"])?;
    let about = text(skip(rest, &["hard", "carefully", "deeply", "about", "of", "on", "over"]));
    Some(Wish::Think { about: if about.is_empty() { "this".to_owned() } else { about } })
}

fn story_or_report(words: &[Word]) -> Option<Wish> {
    const VERBS: &[&str] =
        &["tell", "write", "give", "make", "create", "draft", "prepare", "a", "story", "report"];
    starts(words, VERBS)?;
    let (head, topic) = split_at_first(words, &["about", "on", "of"]).unwrap_or((words, &[]));
    let about = (!topic.is_empty()).then(|| text(topic));
    if has(head, &["story"]) {
        Some(Wish::Story { about })
    } else if has(head, &["report"]) {
        Some(Wish::Report { about })
    } else {
        None
    }
}

const WITHIN: &[&str] = &["in", "under", "inside", "within"];

fn search(words: &[Word]) -> Option<Call> {
    if let [verb, query, path] = words
        && verb.is(&["grep"])
        && !query.is(&["for"])
    {
        return Some(Call::SearchFiles {
            query: query.text.clone(),
            path: Some(path.text.clone()),
        });
    }
    let rest = starts(words, &["search", "find", "grep", "look"])?;
    match split_at_first(rest, &["for"]) {
        Some((place, query)) => search_call(place, query),
        None if has(words, &["look"]) => None,
        None => search_call(&[], rest),
    }
}

/// Returns a call that searches files. The message may name the folder before the query ("search
/// src for x") or after it ("search for x in src").
fn search_call(place: &[Word], query: &[Word]) -> Option<Call> {
    const BEFORE_QUERY: &[&str] =
        &["the", "word", "words", "text", "phrase", "all", "every", "files", "with", "containing"];
    const BEFORE_PATH: &[&str] =
        &["in", "the", "my", "all", "files", "folder", "file", "directory", "workspace", "here"];
    let (query, place) = split_at_last(query, WITHIN)
        .filter(|(before, after)| !before.is_empty() && !after.is_empty())
        .unwrap_or((query, place));
    let named = skip(query, BEFORE_QUERY);
    let query = text(if named.is_empty() { query } else { named });
    let path = text(skip(place, BEFORE_PATH));
    (!query.is_empty())
        .then(|| Call::SearchFiles { query, path: (!path.is_empty()).then_some(path) })
}

fn time(words: &[Word]) -> Option<Call> {
    const VERBS: &[&str] = &[
        "what", "what's", "whats", "time", "the", "current", "local", "tell", "show", "give",
        "check",
    ];
    starts(words, VERBS)?;
    if !has(words, &["time"]) {
        return None;
    }
    let place = split_at_last(words, &["in", "for"]).map(|(_, after)| skip(after, &["the"]));
    Some(Call::Time(match place {
        None | Some([]) => places::here(),
        Some([only]) if only.is(&["here", "utc", "gmt"]) => places::here(),
        Some(name) => places::find(&text(name)),
    }))
}

const NOUNS: &[&str] = &["files", "folders", "folder", "directory", "contents"];

/// Parses a clause that asks for the list of agents. "List the files of agents" is about files.
fn agents(words: &[Word]) -> Option<Call> {
    starts(words, &["list", "show", "which", "what", "who"])?;
    (has(words, &["agents"]) && !has(words, NOUNS)).then_some(Call::ListAgents)
}

fn list(words: &[Word]) -> Option<Call> {
    let place = if let Some(rest) = starts(words, &["ls", "dir"]) {
        rest
    } else if starts(words, &["list", "show", "see", "open", "what", "which", "what's"]).is_some()
        && has(words, NOUNS)
    {
        let (_, behind_noun) = split_at_last(words, NOUNS)?;
        split_at_last(words, &["in", "of", "under", "inside"]).map_or(behind_noun, |(_, it)| it)
    } else {
        starts(words, &["list"])?
    };
    Some(Call::ListFiles { path: folder(place) })
}

fn folder(words: &[Word]) -> String {
    const BEFORE_PATH: &[&str] = &[
        "in",
        "of",
        "all",
        "everything",
        "the",
        "this",
        "my",
        "current",
        "folder",
        "directory",
        "workspace",
        "files",
        "are",
        "is",
        "there",
        "here",
        "do",
        "we",
        "you",
        "have",
        "-l",
        "-a",
        "-la",
        "-al",
    ];
    let path = text(skip(words, BEFORE_PATH));
    if path.is_empty() { ".".to_owned() } else { path }
}

fn read(words: &[Word]) -> Option<Call> {
    const BEFORE_PATH: &[&str] =
        &["me", "the", "a", "my", "file", "document", "contents", "content", "of"];
    let rest = starts(words, &["read", "show", "cat", "open", "print", "view", "display"])?;
    let path = match skip(rest, BEFORE_PATH) {
        [only] => only,
        // "Show me what you can do" names no file.
        several => several.iter().find(|it| it.quoted || it.text.contains(['.', '/']))?,
    };
    Some(Call::ReadFile { path: path.text.clone() })
}

fn starts<'a>(words: &'a [Word], known: &[&str]) -> Option<&'a [Word]> {
    words.split_first().filter(|(first, _)| first.is(known)).map(|(_, rest)| rest)
}

fn skip<'a>(words: &'a [Word], noise: &[&str]) -> &'a [Word] {
    let start = words.iter().position(|it| !it.is(noise)).unwrap_or(words.len());
    &words[start..]
}

fn has(words: &[Word], known: &[&str]) -> bool {
    words.iter().any(|it| it.is(known))
}

fn split_at_first<'a>(words: &'a [Word], known: &[&str]) -> Option<(&'a [Word], &'a [Word])> {
    words.iter().position(|it| it.is(known)).map(|idx| (&words[..idx], &words[idx + 1..]))
}

fn split_at_last<'a>(words: &'a [Word], known: &[&str]) -> Option<(&'a [Word], &'a [Word])> {
    words.iter().rposition(|it| it.is(known)).map(|idx| (&words[..idx], &words[idx + 1..]))
}

fn text(words: &[Word]) -> String {
    words.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

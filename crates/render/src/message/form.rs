//! Questions of an agent as a form: choices and free text. The answers are sent back under the texts of their
//! questions, as `{"answers": {...}}`.

mod schema;

use maud::{Markup, html};
use serde_json::Value;

use crate::text::invisible::marked;

struct Question<'a> {
    words: &'a str,
    header: Option<&'a str>,
    options: &'a [Value],
    /// Whether several choices of the question can be selected.
    takes_many: bool,
}

/// Draws an agent's questions as a form; `None` if they have no known shape. Claude Code sends a
/// list, Codex a field `questions`, and an MCP server a schema.
pub(crate) fn form(asked: &Value) -> Option<Markup> {
    if asked.get("requestedSchema").or_else(|| asked.get("url")).is_some() {
        return Some(draw(&message(asked), &schema::fields(&asked["requestedSchema"])));
    }
    let list = asked.as_array().or_else(|| asked.get("questions")?.as_array())?;
    let questions: Option<Vec<Question<'_>>> = list.iter().map(Question::of).collect();
    let questions = questions.filter(|it| !it.is_empty())?;
    let questions: Vec<Markup> =
        questions.iter().enumerate().map(|(number, it)| it.draw(number)).collect();
    Some(draw(&html! {}, &questions))
}

fn draw(message: &Markup, questions: &[Markup]) -> Markup {
    html! { (message) @for question in questions { (question) } }
}

/// Draws the buttons of a form. They are outside the form element; Enter in a field triggers the
/// first button.
pub(crate) fn buttons(form: &str) -> Markup {
    html! {
        div.buttons {
            button.primary type="submit" form=(form) data-action="answer" { "Answer" }
            button.danger type="button" data-action="deny" aria-keyshortcuts="N" { "Skip" kbd { "N" } }
        }
    }
}

/// Draws the message with which an MCP server asks for input, and the URL that it refers to.
fn message(asked: &Value) -> Markup {
    let text = |name: &str| asked.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let is_web = |it: &&str| it.starts_with("https://") || it.starts_with("http://");
    html! {
        @if let Some(message) = text("message") { blockquote.why { (marked(message)) } }
        @if let Some(url) = text("url") {
            p {
                @if is_web(&url) { a href=(url) target="_blank" rel="noopener noreferrer" { (marked(url)) } }
                @else { code { (marked(url)) } }
            }
        }
    }
}

impl<'a> Question<'a> {
    fn of(asked: &'a Value) -> Option<Self> {
        Some(Self {
            words: asked.get("question")?.as_str()?,
            header: asked.get("header").and_then(Value::as_str).filter(|it| !it.is_empty()),
            options: asked.get("options").and_then(Value::as_array).map_or(&[], Vec::as_slice),
            takes_many: asked.get("multiSelect") == Some(&Value::Bool(true)),
        })
    }

    fn draw(&self, number: usize) -> Markup {
        let Self { words, header, options, takes_many } = self;
        let kind = if *takes_many { "checkbox" } else { "radio" };
        html! {
            fieldset data-question=(words) data-many=[takes_many.then_some("true")] {
                legend {
                    @if let Some(header) = header { span.meta { (header) } " " }
                    (words)
                }
                @for option in *options {
                    @let text = |name| option.get(name).and_then(Value::as_str).unwrap_or_default();
                    label {
                        input type=(kind) name=(number) value=(text("label"));
                        span { b { (text("label")) } " " span.meta { (text("description")) } }
                    }
                }
                input type="text" placeholder=(if options.is_empty() { "Your answer" } else { "Other" })
                    aria-label={ "Other answer to: " (words) };
            }
        }
    }
}

/// Draws a person's answers to a form; `None` if the arguments contain none.
pub(crate) fn answers(arguments: &str) -> Option<Markup> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let answers = arguments.get("answers")?.as_object()?;
    Some(html! {
        ul { @for (question, answer) in answers { li { (question) " " b { (words(answer)) } } } }
    })
}

/// Writes a person's answers to a form as Markdown; `None` if the arguments contain none.
pub(crate) fn answers_text(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let answers = arguments.get("answers")?.as_object()?;
    let line =
        |(question, answer): (&String, &Value)| format!("- {question} **{}**\n", words(answer));
    Some(answers.iter().map(line).collect())
}

fn words(answer: &Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

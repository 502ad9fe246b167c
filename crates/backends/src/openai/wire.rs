//! The JSON of a chat completion, streamed or whole, with the fields that are used.
//!
//! Strings are borrowed from the input. A field whose type differs between providers is parsed leniently or
//! kept raw, so that one unusual field does not make the rest of a chunk unreadable. Rare fields are kept raw
//! too: a chunk is moved a few times, and should be small.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use transcript::Usage;

#[derive(Debug, serde::Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) choices: FirstChoice<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) object: Text<'a>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    index: Index,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole message of the model, sent instead of `delta` if the answer is not streamed.
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    #[serde(borrow, default, rename = "finishReason")]
    pub(super) finish_reason_in_camel_case: Text<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    /// Blocks of reasoning data, kept unchanged because the model service requires them back with
    /// the tool calls that follow.
    #[serde(default)]
    pub(super) reasoning_details: Option<Vec<serde_json::Value>>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<&'a RawValue>,
}

#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Index,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'a>>,
    /// Data that the model service requires back with the tool call, unchanged.
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl Chunk<'_> {
    /// Returns the visible text of a chunk, if the chunk has nothing else.
    pub(super) fn text_alone(&self) -> Option<&str> {
        let choice = self.choices.0.as_ref()?;
        let delta = choice.delta.as_ref()?;
        let others = [
            &choice.finish_reason,
            &choice.finish_reason_in_camel_case,
            &delta.reasoning_content,
            &delta.reasoning,
            &delta.thinking,
            &delta.refusal,
        ];
        let is_alone = others.iter().all(|it| it.0.is_empty())
            && delta.content.thinking.is_empty()
            && delta.reasoning_details.is_none()
            && delta.tool_calls.is_none()
            && delta.function_call.is_none()
            && choice.usage.is_none()
            && choice.error.is_none()
            && self.usage.is_none()
            && self.x_groq.is_none()
            && self.error.is_none()
            && self.object.0 != "error";
        (is_alone && !delta.content.text.is_empty()).then_some(&*delta.content.text)
    }
}

impl Delta<'_> {
    /// Returns the thinking in the delta. A service may repeat it in several fields: the first with
    /// text is used.
    pub(super) fn reasoning_text(&self) -> Cow<'_, str> {
        let fields = [&self.reasoning_content, &self.reasoning, &self.thinking];
        if let Some(field) = fields.into_iter().find(|it| !it.0.is_empty()) {
            return Cow::Borrowed(&field.0);
        }
        let details = self.reasoning_details.iter().flatten();
        Cow::Owned(
            details.filter_map(|it| it["text"].as_str().or(it["summary"].as_str())).collect(),
        )
    }
}

impl Function<'_> {
    /// Returns the arguments of the tool call as JSON text. Services usually send them as a string
    /// of JSON, some as the object itself.
    pub(super) fn arguments_text(&self) -> Cow<'_, str> {
        let Some(raw) = self.arguments.map(RawValue::get) else { return Cow::Borrowed("") };
        if !raw.starts_with('"') {
            return Cow::Borrowed(raw);
        }
        serde_json::from_str::<Text<'_>>(raw).map_or(Cow::Borrowed(""), |it| it.0)
    }
}

/// Index of a choice or a tool call: a whole number, or a string with one. `None` for any other
/// JSON value.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Index(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient).map(|any| match any {
            Any::Number(number) => Self(Some(number)),
            Any::Text(text) => Self(text.parse().ok()),
            Any::List(_) | Any::Other => Self(None),
        })
    }
}

/// The first choice of a chunk. Only one is requested, and others are ignored.
#[derive(Debug, Default)]
pub(super) struct FirstChoice<'a>(pub(super) Option<Choice<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for FirstChoice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Choices)
    }
}

#[derive(Debug)]
struct Choices;

impl<'de> Visitor<'de> for Choices {
    type Value = FirstChoice<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(FirstChoice(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut choices: A) -> Result<Self::Value, A::Error> {
        let mut first = None;
        while let Some(choice) = choices.next_element::<Choice<'de>>()? {
            if first.is_none() && choice.index.0.unwrap_or(0) == 0 {
                first = Some(choice);
            }
        }
        Ok(FirstChoice(first))
    }
}

/// A JSON string; empty for any other JSON value.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient).map(|any| match any {
            Any::Text(text) => Self(text),
            Any::Number(_) | Any::List(_) | Any::Other => Self::default(),
        })
    }
}

/// Content of a model's message: a string, or a list of blocks.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) thinking: Box<str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lenient).map(|any| match any {
            Any::Text(text) => Self { text, ..Self::default() },
            Any::List(pieces) => Self::from_pieces(&pieces),
            Any::Number(_) | Any::Other => Self::default(),
        })
    }
}

impl Content<'_> {
    fn from_pieces(pieces: &[serde_json::Value]) -> Self {
        let (mut text, mut thinking) = (String::new(), String::new());
        for piece in pieces {
            match piece["type"].as_str() {
                Some("thinking" | "reasoning") => push_texts(piece, &mut thinking),
                _ => push_texts(piece, &mut text),
            }
        }
        Self { text: Cow::Owned(text), thinking: thinking.into() }
    }
}

/// A JSON value of any type. Types that no field accepts are `Other`.
#[derive(Debug)]
enum Any<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    List(Vec<serde_json::Value>),
    Other,
}

#[derive(Debug)]
struct Lenient;

impl<'de> Visitor<'de> for Lenient {
    type Value = Any<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Any::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Any::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Any::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Any::Other)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Any::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Any::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Any::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Any::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Any::List(values))
    }
}

/// Appends the text of a content block to `into`: its own, or that of the blocks within it.
fn push_texts(piece: &serde_json::Value, into: &mut String) {
    match piece {
        serde_json::Value::String(text) => into.push_str(text),
        serde_json::Value::Array(pieces) => pieces.iter().for_each(|it| push_texts(it, into)),
        serde_json::Value::Object(fields) => {
            let inner = ["text", "thinking", "reasoning"].iter().find_map(|it| fields.get(*it));
            inner.into_iter().for_each(|it| push_texts(it, into));
        }
        _ => (),
    }
}

/// Parses the token usage in a chat completion. `None` if it has no numbers.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    let usage: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
    let first = |names: &[&str]| names.iter().find_map(|it| number(usage.pointer(it)?));
    let input = first(&["/prompt_tokens", "/input_tokens"]);
    let output = first(&["/completion_tokens", "/output_tokens"]);
    let total = first(&["/total_tokens"]);
    let (input_tokens, output_tokens) = match (input, output, total) {
        (None, None, None) => return None,
        (input, output, _) => (input.unwrap_or(0), output.unwrap_or(0)),
    };
    Some(Usage {
        input_tokens,
        output_tokens,
        total_tokens: total.unwrap_or_else(|| input_tokens.saturating_add(output_tokens)),
        cached_tokens: first(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]),
        reasoning_tokens: first(&["/completion_tokens_details/reasoning_tokens"]),
    })
}

fn number(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|it| *it >= 0.0).map(|it| it as u64))
}

/// Parses the token usage in the `x_groq` field, where Groq sends it.
pub(super) fn groq_usage(raw: &RawValue) -> Option<Usage> {
    #[derive(serde::Deserialize)]
    struct Groq<'a> {
        #[serde(borrow)]
        usage: &'a RawValue,
    }
    usage(serde_json::from_str::<Groq<'_>>(raw.get()).ok()?.usage)
}

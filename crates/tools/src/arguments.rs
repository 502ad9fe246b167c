//! Arguments of a call, parsed and checked against the JSON schema of their tool.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde::Deserialize;
use serde_json::{Map, Value};
use transcript::{ErrorCode, ErrorInfo};

/// Start of the sentence in an error message that tells a model how to correct a tool call's
/// arguments.
const ADVICE: &str = " Send";

/// JSON schema of a tool's arguments. Its validator is compiled once, when it is first needed.
pub(crate) struct Schema {
    parameters: Value,
    validator: OnceLock<Option<Validator>>,
}

impl Schema {
    pub(crate) fn new(parameters: Value) -> Arc<Self> {
        Arc::new(Self { parameters, validator: OnceLock::new() })
    }

    pub(crate) fn parameters(&self) -> &Value {
        &self.parameters
    }

    /// Lists how the arguments of a tool call violate the JSON schema. An invalid schema accepts
    /// everything; its author has to fix it.
    fn errors(&self, value: &Value) -> Vec<String> {
        let validator =
            self.validator.get_or_init(|| jsonschema::validator_for(&self.parameters).ok());
        let errors = validator.iter().flat_map(|it| it.iter_errors(value));
        errors.map(describe).collect()
    }
}

/// Arguments of a tool call that match the JSON schema of the tool.
#[derive(Clone)]
pub(crate) struct Arguments {
    value: Arc<Value>,
    tool: String,
    schema: Arc<Schema>,
}

/// Parses the arguments of a tool call, which are JSON text. An empty text counts as an empty
/// object, because some models send it for a tool without arguments. Invalid JSON becomes a string.
pub(crate) fn parse(text: &str) -> Arc<Value> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    Arc::new(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
}

impl Arguments {
    /// Checks the arguments of a tool call against the JSON schema of the tool. If they do not
    /// match, null fields are removed and the rest is checked.
    pub(crate) fn check(
        tool: &str,
        schema: &Arc<Schema>,
        value: Arc<Value>,
    ) -> Result<Self, ErrorInfo> {
        let mut arguments = Self { value, tool: tool.to_owned(), schema: Arc::clone(schema) };
        if arguments.value.is_string() {
            return Err(arguments.invalid("they are no JSON object"));
        }
        if schema.errors(&arguments.value).is_empty() {
            return Ok(arguments);
        }
        if let Value::Object(fields) = Arc::make_mut(&mut arguments.value) {
            fields.retain(|_, it| !it.is_null());
        }
        let errors = schema.errors(&arguments.value);
        if errors.is_empty() { Ok(arguments) } else { Err(arguments.invalid(errors.join("; "))) }
    }

    pub(crate) fn value(&self) -> &Arc<Value> {
        &self.value
    }

    pub(crate) fn fields(&self) -> Map<String, Value> {
        self.value.as_object().cloned().unwrap_or_default()
    }

    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ErrorInfo> {
        T::deserialize(&*self.value).map_err(|error| self.invalid(error.to_string()))
    }

    pub(crate) fn invalid(&self, why: impl AsRef<str>) -> ErrorInfo {
        let (name, fields) = (&self.tool, describe_fields(self.schema.parameters()));
        let message = format!(
            "The arguments do not fit: {}.{ADVICE} {name} one JSON object with these fields and no \
             others: {fields}.",
            why.as_ref()
        );
        ErrorInfo::new(ErrorCode::InvalidArguments, message)
    }
}

/// Returns an error message about the arguments of a tool call for display to people, without its
/// advice for the model.
pub fn without_advice(message: &str) -> &str {
    message.split_once(ADVICE).map_or(message, |(problem, _)| problem)
}

/// Describes a violation of a tool's JSON schema with the field: `path: 5 is not of type "string"`.
fn describe(error: jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    match place.trim_start_matches('/') {
        "" => error.to_string(),
        field => format!("{field}: {error}"),
    }
}

/// Lists the fields of a tool's JSON schema as text: `path (string, required), from_line
/// (integer)`.
fn describe_fields(schema: &Value) -> String {
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|it| it.iter().any(|field| field == name))
    };
    let fields = schema["properties"].as_object().into_iter().flatten();
    let described = fields.map(|(name, field)| {
        let kind = field["type"].as_str().unwrap_or("any");
        let required = if is_required(name) { ", required" } else { "" };
        format!("{name} ({kind}{required})")
    });
    described.collect::<Vec<_>>().join(", ")
}

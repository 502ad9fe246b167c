//! Form fields from the schema of an MCP server: a flat object of texts, numbers, booleans and choices. The
//! answers are sent back under the names of the properties.

use maud::{Markup, html};
use serde_json::Value;

/// Draws one form field for each property of an MCP server's schema, in the given order.
pub(super) fn fields(schema: &Value) -> Vec<Markup> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    properties.map(|(name, about)| field(name, about, is_required(name))).collect()
}

fn field(name: &str, about: &Value, is_required: bool) -> Markup {
    let text = |of: &str| about.get(of).and_then(Value::as_str).filter(|it| !it.is_empty());
    let title = text("title").unwrap_or(name);
    let kind = match text("type") {
        Some("integer" | "number") => "number",
        Some(kind @ ("boolean" | "array")) => kind,
        _ => "string",
    };
    let choices = choices(if kind == "array" { &about["items"] } else { about });
    html! {
        fieldset data-question=(name) data-kind=(kind) data-optional=[(!is_required).then_some("true")] {
            legend {
                (title)
                @if !is_required && kind != "boolean" { " " span.meta { "may be left out" } }
            }
            @if let Some(description) = text("description") { p.meta { (description) } }
            @if kind == "boolean" {
                label { input type="checkbox" checked[about["default"] == true]; span { "Yes" } }
            } @else if choices.is_empty() {
                input type=(input_type(kind, text("format"))) aria-label=(title) value=[default(about)]
                    step=[(kind == "number").then_some("any")];
            } @else {
                @for (value, label) in &choices {
                    label {
                        input type=(if kind == "array" { "checkbox" } else { "radio" }) name=(name)
                            value=(value) checked[is_default(about, value)];
                        span { (label) }
                    }
                }
            }
        }
    }
}

fn input_type(kind: &str, format: Option<&str>) -> &'static str {
    match (kind, format) {
        ("number", _) => "number",
        (_, Some("email")) => "email",
        (_, Some("uri")) => "url",
        (_, Some("date")) => "date",
        _ => "text",
    }
}

/// Returns the values and labels of the choices that a property's schema allows; empty for free
/// input.
fn choices(about: &Value) -> Vec<(&str, &str)> {
    let list =
        |name: &str| about.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let titled = list("oneOf").iter().chain(list("anyOf")).filter_map(|it| {
        let value = it.get("const")?.as_str()?;
        Some((value, it.get("title").and_then(Value::as_str).unwrap_or(value)))
    });
    let names = list("enumNames").iter().map(Value::as_str).chain(std::iter::repeat(None));
    let plain = list("enum").iter().zip(names).filter_map(|(value, name)| {
        let value = value.as_str()?;
        Some((value, name.unwrap_or(value)))
    });
    plain.chain(titled).collect()
}

fn default(about: &Value) -> Option<String> {
    match about.get("default")? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn is_default(about: &Value, choice: &str) -> bool {
    match &about["default"] {
        Value::Array(several) => several.iter().any(|it| it == choice),
        one => one == choice,
    }
}

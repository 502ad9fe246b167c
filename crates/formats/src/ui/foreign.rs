//! Parts of imported messages that Callboard does not interpret: sources, files, data of other programs, and
//! unknown fields. They are kept and written again unchanged, if the reader's version has them; otherwise a data
//! part describes them.

use serde_json::{Map, Value};
use transcript::PartKind;

use super::Profile;

/// Source of the `unrecognized` events that keep imported parts.
pub(crate) const SOURCE: &str = transcript::FOREIGN_PART;

/// Returns an imported part unchanged; `None` for other kinds of parts, and if stored messages of
/// the reader's version cannot have it.
pub(crate) fn part(kind: &PartKind, profile: Profile) -> Option<Value> {
    read(kind).filter(|it| is_stored(it, profile)).map(Value::Object)
}

/// Returns an imported part unchanged, as a chunk of a stream; `None` for other kinds of parts, and
/// if it has fields that not every client accepts.
pub(crate) fn chunk(kind: &PartKind) -> Option<Value> {
    read(kind).filter(is_strict).map(Value::Object)
}

fn read(kind: &PartKind) -> Option<Map<String, Value>> {
    let PartKind::Unrecognized { source, raw, .. } = kind else { return None };
    serde_json::from_str(raw).ok().filter(|_| source == SOURCE)
}

/// Returns whether stored messages of a version may have this part. It needs its required fields,
/// and known fields need the right type; unknown fields are allowed.
fn is_stored(part: &Map<String, Value>, profile: Profile) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_new = matches!(kind, "custom" | "reasoning-file");
    fields(kind).is_some_and(|(needed, _)| needed.iter().all(|name| part.contains_key(*name)))
        && part.iter().all(|(name, value)| is_well_formed(name, value))
        && (!is_new || profile == Profile::V7)
}

fn is_strict(part: &Map<String, Value>) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_of_all = !matches!(kind, "custom" | "reasoning-file");
    let Some((needed, optional)) = fields(kind).filter(|_| is_of_all) else { return false };
    let is_known = |name: &str| {
        let of_source = name == "providerMetadata" && kind.starts_with("source-");
        name == "type" || needed.contains(&name) || optional.contains(&name) || of_source
    };
    needed.iter().all(|name| part.contains_key(*name))
        && part.iter().all(|(name, value)| is_known(name) && is_well_formed(name, value))
}

type Fields = (&'static [&'static str], &'static [&'static str]);

/// Returns the required and the optional fields of a part of this type; `None` for unknown types.
fn fields(kind: &str) -> Option<Fields> {
    Some(match kind {
        "source-url" => (&["sourceId", "url"], &["title"]),
        "source-document" => (&["sourceId", "mediaType", "title"], &["filename"]),
        "file" | "reasoning-file" => (&["url", "mediaType"], &[]),
        "custom" => (&["kind"], &[]),
        _ if kind.starts_with("data-") => (&["data"], &["id"]),
        _ => return None,
    })
}

/// Returns whether the value of a field has the type that every reader expects.
fn is_well_formed(name: &str, value: &Value) -> bool {
    match name {
        "data" => true,
        "sourceId" | "url" | "title" | "mediaType" | "filename" | "id" | "kind" | "type" => {
            value.is_string()
        }
        "providerExecuted" => value.is_boolean(),
        "toolMetadata" => value.is_object(),
        "providerMetadata" | "callProviderMetadata" | "resultProviderMetadata" => {
            value.as_object().is_some_and(|it| it.values().all(Value::is_object))
        }
        _ => !value.is_null(),
    }
}

/// Returns the fields of an imported part that Callboard does not interpret.
pub(crate) fn extras(part: &Value) -> Map<String, Value> {
    let no_fields = Map::new();
    let fields = part.as_object().unwrap_or(&no_fields).iter();
    let unread = fields.filter(|(name, value)| !is_read(name) && is_well_formed(name, value));
    let mut extras: Map<String, Value> = unread.map(|(k, it)| (k.clone(), it.clone())).collect();
    // Our own fields are imported.
    if let Some(Value::Object(by_provider)) = extras.get_mut("providerMetadata") {
        by_provider.remove("callboard");
        if by_provider.is_empty() {
            extras.remove("providerMetadata");
        }
    }
    if part["type"] == "dynamic-tool" {
        extras.extend(["type", "toolName"].map(|name| (name.to_owned(), part[name].clone())));
    }
    extras
}

fn is_read(field: &str) -> bool {
    const OF_WORDS: [&str; 4] = ["type", "id", "text", "state"];
    const OF_CALLS: [&str; 8] = [
        "toolCallId",
        "toolName",
        "input",
        "rawInput",
        "output",
        "errorText",
        "approval",
        "preliminary",
    ];
    OF_WORDS.contains(&field) || OF_CALLS.contains(&field)
}

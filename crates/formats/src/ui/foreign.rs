//! Parts that a client brought along and that are nothing to us: sources, files and data of others. They
//! are kept as they came and go out again unchanged, as parts and as chunks alike, if every client
//! takes them; else they are data that say what they were.

use serde_json::{Map, Value};
use transcript::PartKind;

/// What `import` calls the source of such a part.
pub(crate) const SOURCE: &str = "part";

/// As it came in, if it is one.
pub(crate) fn part(kind: &PartKind) -> Option<Value> {
    let PartKind::Unrecognized { source, raw } = kind else { return None };
    if source != SOURCE {
        return None;
    }
    let part: Value = serde_json::from_str(raw).ok()?;
    part.as_object().is_some_and(is_taken).then_some(part)
}

/// The first release of each version takes these fields and no others.
fn is_taken(part: &Map<String, Value>) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let (needed, optional): (&[&str], &[&str]) = match kind {
        "source-url" => (&["sourceId", "url"], &["title"]),
        "source-document" => (&["sourceId", "mediaType", "title"], &["filename"]),
        "file" => (&["url", "mediaType"], &[]),
        _ if kind.starts_with("data-") => (&["data"], &["id"]),
        _ => return false,
    };
    let is_known = |name: &str| needed.contains(&name) || optional.contains(&name);
    needed.iter().all(|name| part.contains_key(*name))
        && part.iter().all(|(name, value)| match name.as_str() {
            "data" => needed.contains(&"data"),
            "providerMetadata" => kind.starts_with("source-") && is_by_provider(value),
            name => name == "type" || (is_known(name) && value.is_string()),
        })
}

fn is_by_provider(metadata: &Value) -> bool {
    metadata.as_object().is_some_and(|it| it.values().all(Value::is_object))
}

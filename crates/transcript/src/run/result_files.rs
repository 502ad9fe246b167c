//! Files in a tool's result, mostly pictures, in the form of a message's attachments.

use serde_json::Value;

use crate::Attachment;

/// Returns the files that the result of a tool call lists in its field `files`, without malformed
/// entries. The result is untrusted.
pub fn result_files(result: &Value) -> Vec<Attachment> {
    let named = result.get("files").and_then(Value::as_array).into_iter().flatten();
    let files = named.filter_map(|it| serde_json::from_value::<Attachment>(it.clone()).ok());
    files.filter(|it| is_hash(&it.blob)).collect()
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit())
}

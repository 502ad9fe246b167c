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

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;

    #[test]
    fn only_well_formed_files_count() {
        let blob = "0a".repeat(32);
        let file = json!({ "blob": blob, "name": "a", "mediaType": "image/png", "size": 1 });
        let result = json!({ "text": "t", "files": [
            file, "a", 5, null, {}, [file],
            { "blob": "../../api/sessions", "name": "a", "mediaType": "image/png", "size": 1 },
            { "blob": blob, "name": 1, "mediaType": "image/png", "size": 1 },
            { "blob": blob, "name": "a", "mediaType": "image/png", "size": -1 },
        ]});
        assert_eq!(result_files(&result).len(), 1);
        for nothing in [json!(null), json!([file]), json!({ "files": file }), json!("files")] {
            assert_eq!(result_files(&nothing), [], "{nothing}");
        }
    }
}

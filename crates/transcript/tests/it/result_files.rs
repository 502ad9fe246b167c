//! Files in the results of calls.

use serde_json::json;
use transcript::result_files;

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

//! Pictures in a person's messages. The reader writes no files: an attachment has its picture as a data
//! address, `data:image/png;base64,...`, until the importer has stored it.

use serde_json::Value;
use transcript::Attachment;

use super::words;

/// Returns the text of a message's content, and the pictures that are embedded in it as
/// attachments.
pub(super) fn text_and_pictures(content: &Value) -> (String, Vec<Attachment>) {
    let Value::Array(blocks) = content else { return (words(content), Vec::new()) };
    let (mut pictures, mut rest) = (Vec::new(), Vec::new());
    for block in blocks {
        match address(block).and_then(|it| picture(pictures.len() + 1, it)) {
            Some(picture) => pictures.push(picture),
            None => rest.push(block.clone()),
        }
    }
    (words(&Value::Array(rest)), pictures)
}

/// Returns the `data:` URL of an image block. Claude Code has a `source`, Pi has fields, and Codex
/// has a URL. `None` for any other block.
fn address(block: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let source = &block["source"];
    let (media_type, data) = match block["type"].as_str()? {
        "image" | "input_image" if block["image_url"].is_string() => {
            return text(&block["image_url"]);
        }
        "image" if source["type"] == "base64" => (&source["media_type"], &source["data"]),
        "image" => (&block["mimeType"], &block["data"]),
        _ => return None,
    };
    Some(format!("data:{};base64,{}", text(media_type)?, text(data)?))
}

/// Returns the attachment for the `data:` URL of a picture. Its size is zero until the importer has
/// stored the picture.
fn picture(number: usize, address: String) -> Option<Attachment> {
    let (media_type, _) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let kind =
        media_type.strip_prefix("image/").filter(|it| it.chars().all(char::is_alphanumeric))?;
    let name = format!("picture-{number}.{kind}");
    let media_type = media_type.to_owned();
    Some(Attachment { blob: address, name, media_type, size: 0 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::text_and_pictures;

    #[test]
    fn pictures_are_attached_and_other_blocks_named() {
        let text = json!({ "type": "text", "text": "Look:" });
        let source = json!({ "type": "base64", "media_type": "image/png", "data": "QUJD" });
        for picture in [
            json!({ "type": "image", "source": source }),
            json!({ "type": "image", "mimeType": "image/png", "data": "QUJD" }),
            json!({ "type": "input_image", "image_url": "data:image/png;base64,QUJD" }),
            json!({ "type": "image", "image_url": "data:image/png;base64,QUJD" }),
        ] {
            let (words, pictures) = text_and_pictures(&json!([text, picture]));
            assert_eq!((words.as_str(), pictures.len()), ("Look:", 1), "{picture}");
            assert_eq!(pictures[0].blob, "data:image/png;base64,QUJD");
            assert_eq!(pictures[0].name, "picture-1.png");
        }
        for other in [
            json!({ "type": "image", "source": { "type": "url", "url": "https://x/y.png" } }),
            json!({ "type": "image", "mimeType": "image/../x", "data": "QUJD" }),
        ] {
            assert_eq!(
                text_and_pictures(&json!([text, other])),
                ("Look:\n[image]".to_owned(), Vec::new())
            );
        }
    }
}

//! HTML escaping and percent-encoding for code that builds strings.

/// Appends `text` with HTML escapes, safe as an element's content and in a quoted attribute.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            // An HTML parser would replace these two.
            b'\r' => "&#13;",
            0 => "\u{fffd}",
            _ => continue,
        };
        out.push_str(&text[plain_from..at]);
        out.push_str(entity);
        plain_from = at + 1;
    }
    out.push_str(&text[plain_from..]);
}

pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_escaped(&mut out, text);
    out
}

/// Reverses [`push_escaped`]: returns the text from which it made `html`.
pub(crate) fn unescaped(html: &str) -> String {
    let html = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    html.replace("&#13;", "\r").replace("&amp;", "&")
}

/// Percent-encodes an id for a URL; ids may contain any character.
pub(crate) fn percent_encoded(id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let character =
        |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    id.bytes().map(character).collect()
}

//! Untrusted text to HTML: the one place that escapes for writers that build strings.

/// Appends `text`, safe as an element's content and inside a quoted attribute.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            // A parser reads these two as something else.
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

/// The text that [`push_escaped`] made `html` from.
pub(crate) fn unescaped(html: &str) -> String {
    let html = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    html.replace("&#13;", "\r").replace("&amp;", "&")
}

/// Ids may come from anywhere; in an address all but the plainest characters are written as numbers.
pub(crate) fn in_address(id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let character =
        |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    id.bytes().map(character).collect()
}

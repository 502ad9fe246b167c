//! Links and images: which targets untrusted text may have.

use crate::html::escape::push_escaped;

const LINK_ATTRIBUTES: &str = " rel=\"noopener noreferrer nofollow\" target=\"_blank\"";
const PICTURES: [&str; 4] = [
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/gif;base64,",
    "data:image/webp;base64,",
];
const MAX_PICTURE_URL: usize = 6 << 20;

/// Writes the start of a link and returns its closing markup. A link with an unsafe URL becomes
/// text followed by the URL.
pub(super) fn open_link(out: &mut String, url: &str, title: &str) -> String {
    if !is_safe(url) {
        out.push_str("<span class=\"no-link\">");
        let mut close = String::from("<span class=\"url\"> (");
        push_escaped(&mut close, url);
        close.push_str(")</span></span>");
        return close;
    }
    out.push_str("<a href=\"");
    push_escaped(out, url);
    out.push('"');
    push_title(out, title);
    out.push_str(LINK_ATTRIBUTES);
    out.push('>');
    "</a>".to_owned()
}

/// Draws an image that is embedded as a `data:` URL; any other image becomes a link that the page
/// can load on request.
pub(super) fn push_image(out: &mut String, url: &str, title: &str, alt: &str, in_link: bool) {
    if is_picture(url) {
        out.push_str("<img src=\"");
        push_escaped(out, url);
        out.push_str("\" alt=\"");
        push_escaped(out, alt);
        out.push('"');
        push_title(out, title);
        out.push('>');
        return;
    }
    let label = if alt.is_empty() { url } else { alt };
    if !is_safe(url) {
        let close = open_link(out, url, title);
        push_escaped(out, label);
        out.push_str(&close);
        return;
    }
    // Links do not nest.
    let element = if in_link { "span" } else { "a" };
    out.push('<');
    out.push_str(element);
    out.push_str(" class=\"remote-image\" data-host=\"");
    push_escaped(out, host(url));
    out.push('"');
    if !in_link {
        out.push_str(" data-action=\"show-picture\" href=\"");
        push_escaped(out, url);
        out.push('"');
        out.push_str(LINK_ATTRIBUTES);
    }
    push_title(out, title);
    out.push('>');
    push_escaped(out, label);
    out.push_str("</");
    out.push_str(element);
    out.push('>');
}

/// Returns the host that a request for the URL would reach.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Appends a text as HTML, with bare URLs as links.
pub(super) fn push_text(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some((start, end, scheme)) = find_url(rest) {
        push_escaped(out, &rest[..start]);
        let url = &rest[start..end];
        out.push_str("<a class=\"autolink\" href=\"");
        out.push_str(scheme);
        push_escaped(out, url);
        out.push('"');
        out.push_str(LINK_ATTRIBUTES);
        out.push('>');
        push_escaped(out, url);
        out.push_str("</a>");
        rest = &rest[end..];
    }
    push_escaped(out, rest);
}

fn push_title(out: &mut String, title: &str) {
    if !title.is_empty() {
        out.push_str(" title=\"");
        push_escaped(out, title);
        out.push('"');
    }
}

fn is_safe(url: &str) -> bool {
    let has =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    ["http://", "https://", "mailto:"].into_iter().any(has)
}

fn is_picture(url: &str) -> bool {
    url.len() <= MAX_PICTURE_URL
        && PICTURES.iter().filter_map(|it| url.strip_prefix(it)).any(|data| {
            data.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'='))
        })
}

/// Prefixes of bare URLs in a text, and the scheme that each omits.
const BEGINNINGS: [(&str, &str); 3] = [("https://", ""), ("http://", ""), ("www.", "http://")];

/// Finds the first bare URL in the text: start, end and omitted scheme.
fn find_url(text: &str) -> Option<(usize, usize, &'static str)> {
    // Only these letters can start a URL, so the rest is skipped quickly.
    let mut starts = text.match_indices(['h', 'w']).map(|(start, _)| start);
    starts.find_map(|start| url_at(text, start))
}

/// Returns the bare URL that begins at `start`: start, end and omitted scheme. It ends before white
/// space, `<` and closing punctuation. `None` if there is none.
fn url_at(text: &str, start: usize) -> Option<(usize, usize, &'static str)> {
    let rest = &text[start..];
    let (beginning, scheme) = BEGINNINGS.into_iter().find(|(it, _)| rest.starts_with(it))?;
    let before = text[..start].chars().next_back();
    let may_follow = |it: char| match scheme {
        "" => !it.is_alphanumeric(),
        // Elsewhere it may be part of a path or of another host name.
        _ => it.is_whitespace() || "*_~(".contains(it),
    };
    let is_end = |it: char| it.is_whitespace() || it.is_control() || "<>\"`".contains(it);
    let url = without_closing_punctuation(&rest[..rest.find(is_end).unwrap_or(rest.len())]);
    let host = url.get(beginning.len()..).filter(|it| !it.is_empty())?;
    let is_named = scheme.is_empty() || host.starts_with(char::is_alphanumeric);
    (is_named && before.is_none_or(may_follow)).then_some((start, start + url.len(), scheme))
}

fn without_closing_punctuation(mut url: &str) -> &str {
    let mut unopened = url.matches(')').count().saturating_sub(url.matches('(').count());
    while let Some(last) = url.chars().next_back() {
        if last == ')' && unopened > 0 {
            unopened -= 1;
        } else if !"?!.,:;*_~'".contains(last) {
            break;
        }
        url = &url[..url.len() - last.len_utf8()];
    }
    url
}

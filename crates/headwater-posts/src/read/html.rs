//! Text out of the HTML that Mastodon serves: tags taken off, paragraphs and breaks as line ends, entities decoded.

/// The plain text.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find(['<', '&']) {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        if let Some(inside) = rest.strip_prefix('<') {
            let Some(end) = inside.find('>') else { break };
            let tag = inside[..end].trim_end_matches('/').trim();
            match tag.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "br" => text.push('\n'),
                "/p" => text.push_str("\n\n"),
                "/li" | "/blockquote" | "/div" | "/h1" | "/h2" | "/h3" => text.push('\n'),
                _ => {}
            }
            rest = &inside[end + 1..];
        } else {
            let (decoded, length) = entity(rest);
            text.push(decoded);
            rest = &rest[length..];
        }
    }
    // What follows a tag that is never closed is no text.
    if !rest.starts_with('<') {
        text.push_str(rest);
    }
    text.truncate(text.trim_end().len());
    text
}

/// A text with its entities decoded, and everything else as it is.
pub(crate) fn entities(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        decoded.push_str(&rest[..start]);
        let (character, length) = entity(&rest[start..]);
        decoded.push(character);
        rest = &rest[start + length..];
    }
    decoded.push_str(rest);
    decoded
}

/// The character at the start of a text that begins with `&`, and how many bytes stood for it.
fn entity(text: &str) -> (char, usize) {
    const LONGEST: usize = 12;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';');
    let Some(end) = end else { return ('&', 1) };
    let name = &text[1..end];
    let decoded = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "hellip" => Some('…'),
        "ndash" => Some('–'),
        "mdash" => Some('—'),
        _ => match name.strip_prefix('#') {
            Some(number) => match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok().and_then(char::from_u32),
                None => number.parse().ok().and_then(char::from_u32),
            },
            None => None,
        },
    };
    decoded.map_or(('&', 1), |decoded| (decoded, end + 1))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn statuses_become_text() {
        let html = "<p>Ann &amp; Bob&#39;s &lt;3<br />second&nbsp;line</p><p><a href=\"https://x.y\"><span class=\"invisible\">https://</span>x.y</a> #<span>tag</span></p>";
        assert_eq!(plain(html), "Ann & Bob's <3\nsecond line\n\nhttps://x.y #tag");
        assert_eq!(plain("a < b"), "a");
        assert_eq!(plain("AT&T &bogus; &#x1F600; &#xD800; & é&"), "AT&T &bogus; 😀 &#xD800; & é&");
        assert_eq!(plain("&é;"), "&é;");
    }
}

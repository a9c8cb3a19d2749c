//! Escaped text and identifiers for XML.

use std::borrow::Cow;
use std::collections::HashSet;

/// Replaces a character that XML 1.0 does not allow.
const REPLACEMENT: char = '\u{fffd}';

/// Escapes text, and counts the characters that had to be replaced.
#[derive(Debug, Default)]
pub(super) struct XmlText {
    /// Characters that were replaced.
    pub(super) replaced: usize,
}

fn forbidden(letter: char) -> bool {
    matches!(letter, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

impl XmlText {
    /// With forbidden characters replaced.
    fn allowed<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let bad = text.chars().filter(|letter| forbidden(*letter)).count();
        self.replaced += bad;
        if bad == 0 { Cow::Borrowed(text) } else { Cow::Owned(text.replace(forbidden, &REPLACEMENT.to_string())) }
    }

    /// For an element or an attribute in double quotes. Tabs and line ends are kept by number: a reader turns them into
    /// spaces otherwise.
    pub(super) fn escape(&mut self, text: &str) -> String {
        escaped(&self.allowed(text))
    }

    /// One escaped identifier per name: the name itself, numbered where replacing made two names one.
    pub(super) fn identifiers(&mut self, names: &[String]) -> Vec<String> {
        let mut taken: HashSet<String> = names.iter().filter(|name| !name.contains(forbidden)).cloned().collect();
        let mut identifiers = Vec::with_capacity(names.len());
        for name in names {
            let mut identifier = self.allowed(name).into_owned();
            if identifier != *name {
                let plain = identifier.clone();
                let mut number = 2;
                while !taken.insert(identifier.clone()) {
                    identifier = format!("{plain} ({number})");
                    number += 1;
                }
            }
            identifiers.push(escaped(&identifier));
        }
        identifiers
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_characters_are_replaced_and_counted() {
        let mut texts = XmlText::default();
        assert_eq!(
            texts.escape("<a href=\"&\">\n\u{1}\u{ffff}"),
            "&lt;a href=&quot;&amp;&quot;&gt;&#10;\u{fffd}\u{fffd}"
        );
        assert_eq!(texts.replaced, 2);
        let names = ["a\u{1}", "a\u{2}", "a\u{fffd}", "b"].map(String::from);
        let identifiers = texts.identifiers(&names);
        assert_eq!(identifiers, ["a\u{fffd} (2)", "a\u{fffd} (3)", "a\u{fffd}", "b"]);
        assert_eq!(texts.replaced, 4);
    }
}

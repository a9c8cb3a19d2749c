//! Tokens: a post in, its words, tags, emoticons and marks out, each in a normal form.
//!
//! Accounts become `@user`, links `http`, digits `0`; letters are lower case, and three or more of the same in a row
//! become two. What this loses and matters (capitals, drawn-out words) is kept as flags of the token. The scanner is
//! written by hand: it is most of the cost of a score.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Tag,
    Number,
    User,
    Link,
    Emoticon,
    /// A run of `!`, `?` and `.`: the end of a negation.
    Stop,
    /// Any other sign, emoji among them.
    Sign,
}

/// One token; its normal form is a range of [`Tokens::text`].
#[derive(Debug, Clone, Copy)]
pub(super) struct TextToken {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Written in capitals, two letters at least.
    pub(super) capitals: bool,
    /// Letters were repeated more than twice.
    pub(super) drawn_out: bool,
    /// Stands after a negation in the same sentence.
    pub(super) negated: bool,
    /// Is a negation.
    pub(super) negation: bool,
}

/// The tokens of one post; reused from post to post.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    text: String,
    list: Vec<TextToken>,
    decoded: String,
}

impl Tokens {
    pub(super) fn list(&self) -> &[TextToken] {
        &self.list
    }

    pub(super) fn text(&self, token: &TextToken) -> &str {
        &self.text[token.start..token.end]
    }

    /// Replaces the tokens by those of a post.
    pub(super) fn read(&mut self, post: &str) {
        self.text.clear();
        self.list.clear();
        if post.contains('&') {
            let mut decoded = std::mem::take(&mut self.decoded);
            decode_entities(post, &mut decoded);
            self.scan(&decoded);
            self.decoded = decoded;
        } else {
            self.scan(post);
        }
        self.mark_negations();
    }

    fn scan(&mut self, post: &str) {
        let mut rest = post;
        while let Some(first) = rest.chars().next() {
            let taken = if first.is_whitespace() || invisible(first) {
                first.len_utf8()
            } else if let Some(length) = link(rest) {
                self.push(TokenKind::Link, "http");
                length
            } else if let Some(length) = marked(rest, '@') {
                self.push(TokenKind::User, "@user");
                length
            } else if let Some(length) = marked(rest, '#') {
                self.word(TokenKind::Tag, &rest[..length]);
                length
            } else if let Some((length, normal)) = emoticon(rest) {
                self.push(TokenKind::Emoticon, normal.as_str());
                length
            } else if first.is_numeric() {
                let length = number(rest);
                self.number(&rest[..length]);
                length
            } else if first.is_alphanumeric() || first == '_' {
                let length = word(rest);
                self.word(TokenKind::Word, &rest[..length]);
                length
            } else if matches!(first, '!' | '?' | '.' | '…') {
                let length = run(rest, |sign| matches!(sign, '!' | '?' | '.' | '…'));
                self.stop(&rest[..length]);
                length
            } else {
                self.push(TokenKind::Sign, &rest[..first.len_utf8()]);
                first.len_utf8()
            };
            rest = &rest[taken..];
        }
    }

    fn push(&mut self, kind: TokenKind, normal: &str) {
        let start = self.text.len();
        self.text.push_str(normal);
        self.finish(kind, start, false, false);
    }

    fn finish(&mut self, kind: TokenKind, start: usize, capitals: bool, drawn_out: bool) {
        let end = self.text.len();
        self.list.push(TextToken { kind, start, end, capitals, drawn_out, negated: false, negation: false });
    }

    fn word(&mut self, kind: TokenKind, written: &str) {
        let start = self.text.len();
        let (mut previous, mut times, mut upper, mut lower) = ('\0', 0, 0, 0);
        let mut drawn_out = false;
        for letter in written.chars() {
            let mut small = letter;
            if letter.is_ascii() {
                upper += usize::from(letter.is_ascii_uppercase());
                lower += usize::from(letter.is_ascii_lowercase());
                small = letter.to_ascii_lowercase();
            } else if letter == '’' {
                small = '\'';
            } else if letter.is_uppercase() {
                upper += 1;
                // The first character of the lower case is enough for a normal form.
                small = letter.to_lowercase().next().unwrap_or(letter);
            }
            times = if small == previous { times + 1 } else { 1 };
            previous = small;
            if times > 2 {
                drawn_out = true;
            } else {
                self.text.push(small);
            }
        }
        self.finish(kind, start, upper > 1 && lower == 0, drawn_out);
    }

    fn number(&mut self, written: &str) {
        let start = self.text.len();
        for letter in written.chars() {
            self.text.push(if letter.is_numeric() { '0' } else { letter.to_ascii_lowercase() });
        }
        self.finish(TokenKind::Number, start, false, false);
    }

    fn stop(&mut self, written: &str) {
        let start = self.text.len();
        let (mut previous, mut times) = ('\0', 0);
        for sign in written.chars() {
            times = if sign == previous { times + 1 } else { 1 };
            previous = sign;
            if times <= 3 {
                self.text.push(sign);
            }
        }
        self.finish(TokenKind::Stop, start, false, false);
    }

    fn mark_negations(&mut self) {
        let mut negated = false;
        for token in &mut self.list {
            match token.kind {
                TokenKind::Word | TokenKind::Tag => {
                    token.negated = negated;
                    token.negation = is_negation(&self.text[token.start..token.end]);
                    negated |= token.negation;
                }
                TokenKind::Stop | TokenKind::Emoticon | TokenKind::Link => negated = false,
                TokenKind::Sign => negated &= !matches!(&self.text[token.start..token.end], ":" | ";"),
                TokenKind::Number | TokenKind::User => {}
            }
        }
    }
}

fn is_negation(word: &str) -> bool {
    if word.ends_with("n't") {
        return true;
    }
    matches!(
        word,
        "no" | "not"
            | "never"
            | "none"
            | "nothing"
            | "nobody"
            | "nowhere"
            | "noone"
            | "neither"
            | "nor"
            | "cannot"
            | "without"
            | "hardly"
            | "barely"
            | "cant"
            | "dont"
            | "doesnt"
            | "didnt"
            | "isnt"
            | "arent"
            | "aint"
            | "wasnt"
            | "werent"
            | "wont"
            | "wouldnt"
            | "couldnt"
            | "shouldnt"
            | "havent"
            | "hasnt"
            | "hadnt"
    )
}

/// Variation selectors, skin tones and joiners: an emoji is the same with and without them.
fn invisible(sign: char) -> bool {
    matches!(sign, '\u{fe0e}' | '\u{fe0f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{1f3fb}'..='\u{1f3ff}')
        || sign.is_control()
}

fn run(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|sign| !wanted(sign)).unwrap_or(text.len())
}

fn link(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let starts = |prefix: &str| {
        bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
            && bytes.len() > prefix.len()
    };
    let first = bytes.first()?.to_ascii_lowercase();
    let found = (first == b'h' && (starts("http://") || starts("https://"))) || (first == b'w' && starts("www."));
    found.then(|| run(text, |sign| !sign.is_whitespace()))
}

/// `@name` or `#name`: its length.
fn marked(text: &str, mark: char) -> Option<usize> {
    let name = text.strip_prefix(mark)?;
    let length = run(name, |letter| letter.is_alphanumeric() || letter == '_');
    (length > 0).then_some(length + mark.len_utf8())
}

/// Letters and digits, with apostrophes and hyphens between them.
fn word(text: &str) -> usize {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let inside = letter.is_alphanumeric() || letter == '_';
        let joint = matches!(letter, '\'' | '’' | '-')
            && at > 0
            && letters.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !inside && !joint {
            break;
        }
        end = at + letter.len_utf8();
    }
    end
}

fn number(text: &str) -> usize {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let joint =
            matches!(letter, '.' | ',' | ':' | '/') && letters.peek().is_some_and(|(_, next)| next.is_numeric());
        if !letter.is_alphanumeric() && !joint {
            break;
        }
        end = at + letter.len_utf8();
    }
    end
}

/// The normal form of an emoticon: at most four ASCII characters, kept on the stack.
struct Normal([u8; 4], usize);

impl Normal {
    fn new(parts: &[u8]) -> Self {
        let mut bytes = [0; 4];
        let length = parts.len().min(4);
        bytes[..length].copy_from_slice(&parts[..length]);
        Normal(bytes, length)
    }

    fn as_str(&self) -> &str {
        // Only ASCII is ever put in.
        std::str::from_utf8(&self.0[..self.1]).unwrap_or("")
    }
}

/// Western emoticons in both directions, hearts and a few faces: `:-)))` is `:)`, `(:` is itself.
fn emoticon(text: &str) -> Option<(usize, Normal)> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    if !first.is_ascii_punctuation() && !matches!(first, b'x' | b'X' | b'8' | b'D' | b'd' | b'T') {
        return None;
    }
    for (face, normal) in
        [("<3", "<3"), ("</3", "</3"), ("^_^", "^_^"), ("^^", "^_^"), ("-_-", "-_-"), ("-__-", "-_-"), ("T_T", "T_T")]
    {
        if text.starts_with(face) {
            let more = if face == "<3" { run(&text[2..], |sign| sign == '3') } else { 0 };
            return Some((face.len() + more, Normal::new(normal.as_bytes())));
        }
    }
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b' ');
    let eyes = |byte: u8| matches!(byte, b':' | b';' | b'=');
    let nose = |byte: u8| matches!(byte, b'-' | b'o' | b'\'' | b'^');
    let ends = |index: usize| text[index..].chars().next().is_none_or(|next| !next.is_alphanumeric());
    if eyes(first) || (matches!(first, b'x' | b'X' | b'8') && !at(1).is_ascii_alphanumeric()) {
        for skip in [0, 1] {
            let mouth = at(1 + skip);
            if skip == 1 && !nose(at(1)) {
                break;
            }
            let shape = matches!(
                mouth,
                b')' | b'(' | b']' | b'[' | b'}' | b'{' | b'|' | b'/' | b'\\' | b'*' | b'@' | b'>' | b'<'
            ) || matches!(mouth, b'D' | b'd' | b'P' | b'p' | b'O' | b'o' | b'3' | b'S' | b's' | b'$');
            // `x/` and `8)` in running text are rarely faces; `:/` in a link never comes here.
            if !shape || (!eyes(first) && !matches!(mouth, b'D' | b')' | b'(' | b'd')) {
                continue;
            }
            let mut end = 2 + skip;
            while at(end) == mouth {
                end += 1;
            }
            if !mouth.is_ascii_alphanumeric() || ends(end) {
                return Some((end, Normal::new(&[first.to_ascii_lowercase(), mouth.to_ascii_lowercase()])));
            }
        }
    }
    if matches!(first, b'(' | b')' | b'/' | b'\\' | b'D' | b'd') {
        let skip = usize::from(matches!(at(1), b'-' | b'\''));
        if eyes(at(1 + skip)) && ends(2 + skip) && at(2 + skip) != b'/' {
            return Some((2 + skip, Normal::new(&[first.to_ascii_lowercase(), at(1 + skip)])));
        }
    }
    None
}

/// Platforms deliver `&`, `<`, `>` and quotes as HTML entities.
fn decode_entities(post: &str, out: &mut String) {
    out.clear();
    let mut rest = post;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = [
            ("&amp;", '&'),
            ("&lt;", '<'),
            ("&gt;", '>'),
            ("&quot;", '"'),
            ("&apos;", '\''),
            ("&#39;", '\''),
            ("&nbsp;", ' '),
        ];
        match known.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some(("&amp;", _)) if rest[5..].starts_with("lt;") || rest[5..].starts_with("gt;") => {
                // Escaped twice somewhere on the way.
                out.push(if rest[5..].starts_with('l') { '<' } else { '>' });
                rest = &rest[8..];
            }
            Some((entity, sign)) => {
                out.push(*sign);
                rest = &rest[entity.len()..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(post: &str) -> Vec<String> {
        let mut tokens = Tokens::default();
        tokens.read(post);
        tokens.list().iter().map(|token| tokens.text(token).to_owned()).collect()
    }

    #[test]
    fn posts_are_cut_into_normal_forms() {
        assert_eq!(
            forms("RT @Ann_1: I LOOOOVE it!!!!! 😀\u{1f3fd} http://t.co/x #SoGood :-))) &lt;3 12:30 2nd"),
            ["rt", "@user", ":", "i", "loove", "it", "!!!", "😀", "http", "#sogood", ":)", "<3", "00:00", "0nd"]
        );
        assert_eq!(
            forms("don’t, well-known (: xD :D 8) ex: d: a"),
            ["don't", ",", "well-known", "(:", "xd", ":d", "8)", "ex", ":", "d:", "a"]
        );
        assert_eq!(forms("ÄÖÜ été 日本語 \u{200d}\0"), ["äöü", "été", "日本語"]);
        assert!(forms("").is_empty() && forms(" \n\t").is_empty());
    }

    #[test]
    fn negation_lasts_to_the_end_of_the_sentence() {
        let mut tokens = Tokens::default();
        tokens.read("I do not like this, really. Good");
        let negated: Vec<&str> =
            tokens.list().iter().filter(|token| token.negated).map(|token| tokens.text(token)).collect();
        assert_eq!(negated, ["like", "this", "really"]);
    }
}

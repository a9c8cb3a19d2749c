//! Topics: a query in, yes or no per text out.
//!
//! Words, `"phrases"`, `prefix*`, `#tag`, `@name`, `AND`, `OR`, `NOT` and parentheses; NOT binds before AND before OR, and
//! two terms side by side are an error, because half the world reads them as AND and the other half as OR. Case does not
//! matter. A term matches between characters that are neither letters nor digits: `biden` matches `Biden's` and `#Biden`,
//! not `JoeBiden`.
//!
//! ```
//! use headwater_posts::query::{Query, Text};
//! let query = Query::parse("(biden OR \"white house\") AND NOT trump*").unwrap();
//! assert!(query.matches(&Text::new("Biden's speech")));
//! assert!(!query.matches(&Text::new("JoeBiden")));
//! assert!(!query.matches(&Text::new("From the White House: Trumpism")));
//! ```

use crate::Error;
use std::fmt::{Display, Formatter, Result as Formatted};

/// Parentheses and NOTs within each other beyond this are refused, so that no query can exhaust the stack.
const DEEPEST: usize = 64;

/// What a text must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// A word, phrase, tag or beginning of a word.
    QueryTerm(QueryTerm),
    /// Not this.
    Not(Box<Query>),
    /// All of these; at least two.
    And(Vec<Query>),
    /// One of these; at least two.
    Or(Vec<Query>),
}

/// One thing to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryTerm {
    /// Folded as [`Text`] is.
    text: String,
    /// Whether the last word may go on.
    prefix: bool,
    /// Whether it was written in quotes.
    quoted: bool,
}

/// A text made ready for matching: lower case, one space for any white space, straight apostrophes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Of a post.
    pub fn new(text: &str) -> Self {
        let mut folded = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                space if space.is_whitespace() => {
                    if !folded.ends_with(' ') {
                        folded.push(' ');
                    }
                }
                '’' | '‘' | 'ʼ' => folded.push('\''),
                'ς' => folded.push('σ'),
                'İ' => folded.push('i'),
                ascii if ascii.is_ascii() => folded.push(ascii.to_ascii_lowercase()),
                other => folded.extend(other.to_lowercase()),
            }
        }
        Text(folded)
    }
}

impl Query {
    /// Reads a query; an error points at the column.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let tokens = tokens(text)?;
        let mut parser = Parser { text, tokens: &tokens, next: 0, depth: 0 };
        let query = parser.any()?;
        match parser.peek() {
            None => Ok(query),
            Some(token) if token.kind == QueryTokenKind::Close => {
                Err(parser.error(token.column, "this parenthesis closes nothing; remove it, or open one before"))
            }
            Some(token) => Err(parser.side_by_side(token)),
        }
    }

    /// Whether a text is about this.
    pub fn matches(&self, text: &Text) -> bool {
        match self {
            Query::QueryTerm(term) => term.is_in(&text.0),
            Query::Not(query) => !query.matches(text),
            Query::And(queries) => queries.iter().all(|query| query.matches(text)),
            Query::Or(queries) => queries.iter().any(|query| query.matches(text)),
        }
    }
}

impl QueryTerm {
    fn is_in(&self, text: &str) -> bool {
        let mut from = 0;
        while let Some(found) = text[from..].find(&self.text) {
            let (start, end) = (from + found, from + found + self.text.len());
            let outside = |character: Option<char>| character.is_none_or(|character| !character.is_alphanumeric());
            if outside(text[..start].chars().next_back()) && (self.prefix || outside(text[end..].chars().next())) {
                return true;
            }
            from = start + text[start..].chars().next().map_or(1, char::len_utf8);
        }
        false
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum QueryTokenKind {
    QueryTerm(QueryTerm),
    And,
    Or,
    Not,
    Open,
    Close,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueryToken {
    kind: QueryTokenKind,
    /// In characters, from 1.
    column: usize,
}

fn error(text: &str, column: usize, problem: impl Into<String>) -> Error {
    // A line end or tab would bring the caret out of place.
    let query = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    Error::Query { query, column, problem: problem.into() }
}

fn tokens(text: &str) -> Result<Vec<QueryToken>, Error> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().enumerate().map(|(index, character)| (index + 1, character)).peekable();
    while let Some((column, character)) = characters.next() {
        let kind = match character {
            space if space.is_whitespace() => continue,
            '(' => QueryTokenKind::Open,
            ')' => QueryTokenKind::Close,
            '"' | '“' | '”' | '„' => {
                let mut phrase = String::new();
                loop {
                    match characters.next() {
                        None => return Err(error(text, column, "this quote is never closed; close it with \"")),
                        Some((_, '"' | '“' | '”')) => break,
                        Some((_, character)) => phrase.push(character),
                    }
                }
                let folded = Text::new(phrase.trim()).0;
                if folded.is_empty() {
                    return Err(error(text, column, "there is nothing between these quotes; put words there"));
                }
                QueryTokenKind::QueryTerm(QueryTerm { text: folded, prefix: false, quoted: true })
            }
            first => {
                let mut word = String::from(first);
                while let Some((_, character)) = characters
                    .next_if(|(_, next)| !next.is_whitespace() && !matches!(next, '(' | ')' | '"' | '“' | '”' | '„'))
                {
                    word.push(character);
                }
                match word.as_str() {
                    "AND" => QueryTokenKind::And,
                    "OR" => QueryTokenKind::Or,
                    "NOT" => QueryTokenKind::Not,
                    _ => QueryTokenKind::QueryTerm(
                        term(&word).map_err(|(offset, problem)| error(text, column + offset, problem))?,
                    ),
                }
            }
        };
        tokens.push(QueryToken { kind, column });
    }
    if tokens.is_empty() {
        return Err(error(text, 1, "there is nothing to look for; give at least one word"));
    }
    Ok(tokens)
}

/// A word as written; what is wrong comes with its place in the word.
fn term(word: &str) -> Result<QueryTerm, (usize, &'static str)> {
    let (stem, prefix) = match word.strip_suffix('*') {
        Some(stem) => (stem, true),
        None => (word, false),
    };
    if let Some(star) = stem.chars().position(|character| character == '*') {
        return Err((star, "a * can only end a word: it stands for the rest of it"));
    }
    // Only now: among the apostrophes is one that counts as a letter until it is folded.
    let text = Text::new(stem).0;
    if !text.chars().any(char::is_alphanumeric) {
        return Err((0, "there is no letter or digit to look for; put phrases of other signs into quotes"));
    }
    Ok(QueryTerm { text, prefix, quoted: false })
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [QueryToken],
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a QueryToken> {
        self.tokens.get(self.next)
    }

    fn take(&mut self, kind: &QueryTokenKind) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.next += usize::from(found);
        found
    }

    fn error(&self, column: usize, problem: impl Into<String>) -> Error {
        error(self.text, column, problem)
    }

    fn side_by_side(&self, token: &QueryToken) -> Error {
        let problem = match &token.kind {
            QueryTokenKind::QueryTerm(term) if !term.quoted && ["and", "or", "not"].contains(&term.text.as_str()) => {
                format!("write {} in capitals", term.text.to_uppercase())
            }
            _ => "two terms stand side by side; put AND or OR between them, or quotes around a phrase".to_owned(),
        };
        self.error(token.column, problem)
    }

    fn any(&mut self) -> Result<Query, Error> {
        let mut queries = vec![self.all()?];
        while self.take(&QueryTokenKind::Or) {
            queries.push(self.all()?);
        }
        Ok(single(queries, Query::Or))
    }

    fn all(&mut self) -> Result<Query, Error> {
        let mut queries = vec![self.one()?];
        while self.take(&QueryTokenKind::And) {
            queries.push(self.one()?);
        }
        if let Some(token) = self.peek()
            && matches!(token.kind, QueryTokenKind::QueryTerm(_) | QueryTokenKind::Open | QueryTokenKind::Not)
        {
            return Err(self.side_by_side(token));
        }
        Ok(single(queries, Query::And))
    }

    fn one(&mut self) -> Result<Query, Error> {
        let Some(token) = self.peek() else {
            let end = self.text.trim_end().chars().count() + 1;
            return Err(self.error(end, "the query ends where a term is expected"));
        };
        self.next += 1;
        match &token.kind {
            QueryTokenKind::QueryTerm(term) => Ok(Query::QueryTerm(term.clone())),
            QueryTokenKind::Not | QueryTokenKind::Open if self.depth == DEEPEST => {
                Err(self.error(token.column, format!("the query is nested more than {DEEPEST} deep; simplify it")))
            }
            QueryTokenKind::Not => {
                self.depth += 1;
                let query = self.one()?;
                self.depth -= 1;
                Ok(Query::Not(Box::new(query)))
            }
            QueryTokenKind::Open => {
                self.depth += 1;
                let query = self.any()?;
                self.depth -= 1;
                if self.take(&QueryTokenKind::Close) {
                    return Ok(query);
                }
                Err(self.error(token.column, "this parenthesis is never closed; close it with )"))
            }
            QueryTokenKind::Close => Err(self.error(token.column, "a term is expected before this parenthesis")),
            QueryTokenKind::And => Err(self.error(token.column, "a term is expected before AND")),
            QueryTokenKind::Or => Err(self.error(token.column, "a term is expected before OR")),
        }
    }
}

fn single(mut queries: Vec<Query>, many: fn(Vec<Query>) -> Query) -> Query {
    match queries.len() {
        1 => queries.remove(0),
        _ => many(queries),
    }
}

impl Display for QueryTerm {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        match (self.quoted, self.prefix) {
            (true, _) => write!(f, "\"{}\"", self.text),
            (false, true) => write!(f, "{}*", self.text),
            (false, false) => write!(f, "{}", self.text),
        }
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        // What binds less closely than its place asks for goes into parentheses.
        let list = |f: &mut Formatter<'_>, queries: &[Query], word: &str, tight: fn(&Query) -> bool| -> Formatted {
            for (position, query) in queries.iter().enumerate() {
                if position > 0 {
                    write!(f, " {word} ")?;
                }
                if tight(query) { write!(f, "{query}")? } else { write!(f, "({query})")? }
            }
            Ok(())
        };
        match self {
            Query::QueryTerm(term) => write!(f, "{term}"),
            Query::Not(query) => match **query {
                Query::QueryTerm(_) | Query::Not(_) => write!(f, "NOT {query}"),
                _ => write!(f, "NOT ({query})"),
            },
            Query::And(queries) => {
                list(f, queries, "AND", |query| matches!(query, Query::QueryTerm(_) | Query::Not(_)))
            }
            Query::Or(queries) => list(f, queries, "OR", |query| !matches!(query, Query::Or(_))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn about(query: &str, text: &str) -> bool {
        Query::parse(query).unwrap().matches(&Text::new(text))
    }

    fn said(query: &str) -> String {
        Query::parse(query).unwrap_err().to_string()
    }

    #[test]
    fn words_match_between_other_signs() {
        for text in ["Biden's", "#Biden", "@biden!", "joe_biden", "BIDEN", "x\nbiden\ty", "JoeBiden biden"] {
            assert!(about("biden", text), "{text}");
        }
        for text in ["JoeBiden", "bidens", "Bidenomics", "biden2", "", "bidé"] {
            assert!(!about("biden", text), "{text}");
        }
        assert!(about("#biden", "so #Biden!") && !about("#biden", "Biden") && !about("#biden", "#Bidenomics"));
        assert!(about("@potus", "hi @POTUS:") && !about("@potus", "potus"));
        assert!(about("vaccin*", "anti-Vaccination") && !about("vaccin*", "revaccinate") && about("#cov*", "#COVID19"));
        assert!(about("\"white   house\"", "the White\n House.") && !about("\"white house\"", "white houses"));
        assert!(
            about("don't", "Don’t")
                && about("covid-19", "COVID-19:")
                && about("ÉTÉ", "l'été")
                && about("straße", "STRAẞE")
        );
        assert!(about("οδυσσεύς", "ΟΔΥΣΣΕΎΣ") && about("istanbul", "İstanbul"));
    }

    #[test]
    fn not_binds_before_and_before_or() {
        assert_eq!(Query::parse("a OR b AND NOT c").unwrap(), Query::parse("a OR (b AND (NOT c))").unwrap());
        assert_eq!(Query::parse("NOT a OR b").unwrap(), Query::parse("(NOT a) OR b").unwrap());
        assert_ne!(Query::parse("NOT a OR b").unwrap(), Query::parse("NOT (a OR b)").unwrap());
        assert!(about("(a OR b)AND\"c\"", "b c") && about("\"and\"", "And"));
    }

    #[test]
    fn errors_point_at_the_column() {
        assert_eq!(
            said("(biden OR trump"),
            "topic, column 1: this parenthesis is never closed; close it with )\n  (biden OR trump\n  ^"
        );
        assert!(said("biden) OR x").starts_with("topic, column 6: this parenthesis closes nothing"));
        assert!(said("white house").starts_with("topic, column 7: two terms stand side by side; put AND or OR"));
        assert!(said("a NOT b").starts_with("topic, column 3: two terms"));
        assert!(said("a and b").starts_with("topic, column 3: write AND in capitals"));
        assert!(said("a AND").starts_with("topic, column 6: the query ends"));
        assert!(said("OR a").starts_with("topic, column 1: a term is expected before OR"));
        assert!(said("()").starts_with("topic, column 2: a term is expected before this"));
        assert!(said("é AND \"open").starts_with("topic, column 7: this quote"));
        assert!(said("a OR \" \"").starts_with("topic, column 6: there is nothing between"));
        assert!(said("a*b").starts_with("topic, column 2: a * can only end"));
        assert!(said("* OR #").starts_with("topic, column 1: there is no letter"));
        // Found by fuzzing: a letter that is folded to an apostrophe is none to look for.
        assert!(said("ʼ\0\0\0;\0").starts_with("topic, column 1: there is no letter"));
        assert!(said("  ").starts_with("topic, column 1: there is nothing to look for"));
        assert!(said(&"(".repeat(100_000)).contains("nested"));
        assert!(said(&"NOT ".repeat(100_000)).contains("nested"));
    }

    fn queries() -> impl Strategy<Value = Query> {
        let word = "[a-zé0-9]{1,6}"
            .prop_filter("operators are no words", |word| !["and", "or", "not"].contains(&word.as_str()));
        let term = prop_oneof![
            (word.clone(), any::<bool>()).prop_map(|(text, prefix)| QueryTerm { text, prefix, quoted: false }),
            (word.clone()).prop_map(|text| QueryTerm { text: format!("#{text}"), prefix: false, quoted: false }),
            (word.clone(), word).prop_map(|(a, b)| QueryTerm { text: format!("{a} {b}"), prefix: false, quoted: true }),
        ];
        term.prop_map(Query::QueryTerm).prop_recursive(5, 40, 4, |inner| {
            let some = |inner: BoxedStrategy<Query>| prop::collection::vec(inner, 2..4);
            prop_oneof![
                inner.clone().prop_map(|query| Query::Not(Box::new(query))),
                some(inner.clone()).prop_map(Query::And),
                some(inner).prop_map(Query::Or),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(query in queries()) {
            prop_assert_eq!(&Query::parse(&query.to_string()).unwrap(), &query);
        }

        #[test]
        fn no_text_is_too_odd(query in "\\PC{0,40}", text in "\\PC{0,80}") {
            if let Ok(query) = Query::parse(&query) {
                query.matches(&Text::new(&text));
                prop_assert_eq!(Query::parse(&query.to_string()).map_err(|error| error.to_string()), Ok(query));
            }
        }
    }
}

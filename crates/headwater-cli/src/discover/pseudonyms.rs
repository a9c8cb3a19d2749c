//! Pseudonyms: names of users in, keyed hashes out.
//!
//! HMAC-SHA-256 with the bytes of a key file. The same key gives the same pseudonyms, so that runs can be compared; without
//! it a list of guessed names cannot be checked against an output.

use crate::error::CliError;
use hmac::{Hmac, KeyInit, Mac};
use indexmap::IndexSet;
use sha2::Sha256;
use std::collections::HashMap;
use std::path::Path;

/// Fewer bytes than this can be guessed.
const SHORTEST_KEY: usize = 16;

/// Bytes of the hash that a pseudonym shows, so that it fits into a table: among ten thousand users two share one with
/// probability 2 in 10⁷, which is noticed.
const SHOWN: usize = 6;

/// How to come by a key.
const CURE: &str = "make a key with: head -c 32 /dev/urandom > key; whoever has it can tell who is who";

/// Gives users other names.
pub(crate) struct Pseudonyms {
    keyed: Hmac<Sha256>,
    /// Names met, and who has which pseudonym.
    given: HashMap<String, String>,
    taken: IndexSet<String>,
    /// Whether two names met have the same pseudonym.
    collided: bool,
}

impl Pseudonyms {
    /// With the key in a file.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let problem = |problem: String| CliError::Data {
            message: format!("{}: {problem}", path.display()),
            hint: Some(CURE.to_owned()),
        };
        let key = std::fs::read(path).map_err(|error| CliError::File {
            message: format!("{}: cannot read the key: {error}", path.display()),
            hint: Some(CURE.to_owned()),
            kind: error.kind(),
        })?;
        if key.len() < SHORTEST_KEY {
            return Err(problem(format!("the key has {} bytes; at least {SHORTEST_KEY} are needed", key.len())));
        }
        Ok(Pseudonyms::with(&key))
    }

    fn with(key: &[u8]) -> Self {
        Pseudonyms {
            keyed: Hmac::new_from_slice(key).expect("HMAC takes keys of any length"),
            given: HashMap::new(),
            taken: IndexSet::new(),
            collided: false,
        }
    }

    /// Which key this is, without giving it away.
    pub(crate) fn fingerprint(&self) -> String {
        // No user is named like this: names hold no line ends.
        hex(&self.hash("\nkey"))
    }

    /// The pseudonym of a user.
    pub(crate) fn of(&mut self, name: &str) -> String {
        if let Some(pseudonym) = self.given.get(name) {
            return pseudonym.clone();
        }
        let pseudonym = format!("u-{}", hex(&self.hash(name)[..SHOWN]));
        self.collided |= !self.taken.insert(pseudonym.clone());
        self.given.insert(name.to_owned(), pseudonym.clone());
        pseudonym
    }

    /// Two users under one name would be one user.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if !self.collided {
            return Ok(());
        }
        Err(CliError::Data {
            message: "two users have the same pseudonym under this key".to_owned(),
            hint: Some("take another key".to_owned()),
        })
    }

    /// A text with the users in it under their pseudonyms; words are told apart as in topics, capitals do not matter.
    pub(crate) fn redact(&self, text: &str) -> String {
        let known: HashMap<String, &String> =
            self.given.iter().map(|(name, pseudonym)| (name.to_lowercase(), pseudonym)).collect();
        let part = |character: char| character.is_alphanumeric() || character == '_';
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|character| part(character) != part(first)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            match known.get(&piece.to_lowercase()) {
                Some(pseudonym) => out.push_str(pseudonym),
                None => out.push_str(piece),
            }
            rest = after;
        }
        // Names with other characters in them are no single piece; the longest first, which may hold a shorter one.
        let mut odd: Vec<(&String, &&String)> = known.iter().filter(|(name, _)| !name.chars().all(part)).collect();
        odd.sort_by_key(|(name, _)| (std::cmp::Reverse(name.len()), *name));
        odd.into_iter().fold(out, |out, (name, pseudonym)| match out.to_lowercase() {
            lower if lower.contains(name.as_str()) => lower.replace(name.as_str(), pseudonym),
            _ => out,
        })
    }

    fn hash(&self, message: &str) -> [u8; 32] {
        self.keyed.clone().chain_update(message).finalize().into_bytes().into()
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_hmac_sha_256() {
        // RFC 4231, test cases 2 and 6.
        let short = Pseudonyms::with(b"Jefe").hash("what do ya want for nothing?");
        assert_eq!(hex(&short), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = Pseudonyms::with(&[0xaa; 131]).hash("Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(hex(&long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn users_get_other_names_and_topics_lose_theirs() {
        let mut pseudonyms = Pseudonyms::with(&[7; 32]);
        let ann = pseudonyms.of("Ann");
        let odd = pseudonyms.of("b.o'b");
        assert!(ann.starts_with("u-") && ann.len() == 14 && ann != odd);
        assert_eq!(pseudonyms.of("Ann"), ann);
        assert!(pseudonyms.check().is_ok());
        assert_eq!(pseudonyms.redact("@ann OR annex*"), format!("@{ann} OR annex*"));
        assert!(!pseudonyms.redact("say B.O'B").to_lowercase().contains("b.o'b"));
        assert_ne!(Pseudonyms::with(&[8; 32]).of("Ann"), ann);
    }
}

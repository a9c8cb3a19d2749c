//! Pseudonyms: names of accounts in, keyed hashes out.
//!
//! HMAC-SHA-256 with the bytes of a key. The same key gives the same pseudonyms, so that runs can be compared; without it a
//! list of guessed names cannot be checked against an output.

use crate::Error;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Shorter keys can be guessed.
pub const SHORTEST_KEY: usize = 32;

/// Bytes of the hash that a pseudonym shows, so that it fits into a table: among ten thousand accounts two share one with
/// probability 2 in 10⁷, which is noticed.
const SHOWN: usize = 6;

/// Why a key does not protect names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyProblem {
    /// It can be guessed.
    #[error("the key has {bytes} bytes; at least {SHORTEST_KEY} are needed")]
    Short {
        /// Its length.
        bytes: usize,
    },
    /// It can be guessed.
    #[error("all bytes of the key are the same")]
    Constant,
    /// Whoever has it can tell who is who.
    #[error("the key can be read by other users of this machine")]
    Readable,
}

/// Whether anybody but the owner may read a file.
#[cfg(unix)]
fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0)
}

/// Whether anybody but the owner may read a file; not known here.
#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> bool {
    false
}

/// Shorter names are replaced in a text only where they stand alone: two letters are part of many words.
const SHORTEST_PART: usize = 4;

/// Replaces names of accounts.
#[derive(Debug, Clone)]
pub struct Pseudonyms {
    keyed: Hmac<Sha256>,
    /// Pseudonyms by name, for all names met.
    given: HashMap<String, String>,
    taken: HashSet<String>,
    collided: bool,
}

impl Pseudonyms {
    /// With the key in a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let key = std::fs::read(path).map_err(|source| Error::Key { path: path.to_owned(), source })?;
        let refused = |problem: KeyProblem| Err(Error::WeakKey { path: path.to_owned(), problem });
        if key.len() < SHORTEST_KEY {
            return refused(KeyProblem::Short { bytes: key.len() });
        }
        if key.iter().all(|byte| *byte == key[0]) {
            return refused(KeyProblem::Constant);
        }
        if readable_by_others(path) {
            return refused(KeyProblem::Readable);
        }
        Ok(Pseudonyms::with_key(&key))
    }

    /// With a key of any length; [`Pseudonyms::read`] refuses short ones.
    pub fn with_key(key: &[u8]) -> Self {
        // HMAC takes keys of every length: the error cannot occur, and an empty key would be refused by `read`.
        let keyed =
            Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC accepts keys of any length"));
        Pseudonyms { keyed, given: HashMap::new(), taken: HashSet::new(), collided: false }
    }

    /// Which key this is, without giving it away.
    pub fn fingerprint(&self) -> String {
        // No account has this name: names hold no line ends.
        hex(&self.hash("\nkey"))
    }

    /// A keyed hash of a hash, so that nobody can check which file was read.
    pub(crate) fn keyed_hash(&self, hash: &str) -> String {
        hex(&self.hash(&format!("\nfile {hash}")))
    }

    /// The pseudonym of a name.
    pub fn replace(&mut self, name: &str) -> String {
        if let Some(pseudonym) = self.given.get(name) {
            return pseudonym.clone();
        }
        let pseudonym = format!("u-{}", hex(&self.hash(name)[..SHOWN]));
        self.collided |= !self.taken.insert(pseudonym.clone());
        self.given.insert(name.to_owned(), pseudonym.clone());
        pseudonym
    }

    /// Fails when two names met have the same pseudonym: they would count as one account.
    pub fn check(&self) -> Result<(), Error> {
        if self.collided { Err(Error::PseudonymCollision) } else { Ok(()) }
    }

    /// A text with the names in it replaced, whatever their case. Names of fewer than four characters are replaced where they
    /// are a word as in topics, longer ones also inside of words.
    pub fn redact(&self, text: &str) -> String {
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
        // Names inside of words, or with other characters in them; the longest first, which may contain a shorter one.
        let inside = |name: &str| name.chars().count() >= SHORTEST_PART || !name.chars().all(part);
        let mut odd: Vec<(&String, &&String)> = known.iter().filter(|(name, _)| inside(name)).collect();
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
        let short = Pseudonyms::with_key(b"Jefe").hash("what do ya want for nothing?");
        assert_eq!(hex(&short), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = Pseudonyms::with_key(&[0xaa; 131]).hash("Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(hex(&long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn names_are_replaced_and_topics_lose_theirs() {
        let mut pseudonyms = Pseudonyms::with_key(&[7; 32]);
        let ann = pseudonyms.replace("Ann");
        let odd = pseudonyms.replace("b.o'b");
        assert!(ann.starts_with("u-") && ann.len() == 14 && ann != odd);
        assert_eq!(pseudonyms.replace("Ann"), ann);
        assert!(pseudonyms.check().is_ok());
        assert_eq!(pseudonyms.redact("@ann OR annex*"), format!("@{ann} OR annex*"));
        assert!(!pseudonyms.redact("say B.O'B").to_lowercase().contains("b.o'b"));
        let zebedee = pseudonyms.replace("Zebedee");
        assert_eq!(pseudonyms.redact("#TeamZebedee"), format!("#team{zebedee}"));
        assert_ne!(Pseudonyms::with_key(&[8; 32]).replace("Ann"), ann);
    }
}

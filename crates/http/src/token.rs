//! Tokens: secrets that authenticate a client.

use std::fmt;
use std::str::FromStr;

use ring::rand::{SecureRandom, SystemRandom};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A token, to be shown once: 256 random bits as 64 hex digits. [`Debug`](fmt::Debug) does not show
/// it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one, from the system's random numbers.
    ///
    /// # Errors
    /// When the system has none.
    pub fn random() -> Result<Self, &'static str> {
        let mut bytes = [0; 32];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| "the system has no random numbers")?;
        Ok(Self(hex(&bytes)))
    }

    /// Reads the text that its owner keeps: 64 hex digits, and white space around them.
    ///
    /// # Errors
    /// What it has to be.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        match text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            true => Ok(Self(text.to_owned())),
            false => Err("it is not a token: 64 hex digits"),
        }
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    /// The text, to show it to its owner.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The SHA-256 of a token: enough to recognise it, and of no use to who reads it.
#[derive(Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// That of a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

/// Takes the same time for all.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for TokenHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "write 64 hex digits, as `printf %s TOKEN | sha256sum` prints them";
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong);
        }
        let mut hash = [0; 32];
        for (index, byte) in hash.iter_mut().enumerate() {
            let pair = text.get(2 * index..2 * index + 2).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong)?;
        }
        Ok(Self(hash))
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or_default());
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_hash() {
        let token = Token::random().unwrap();
        assert_eq!(token.reveal().len(), 64);
        assert_ne!(token, Token::random().unwrap());
        assert_eq!(
            Token::read(&format!("{}\n", token.reveal())),
            Ok(token.clone())
        );
        assert!(Token::read("").is_err() && Token::read(&"g".repeat(64)).is_err());
        assert_eq!(token.hash(), TokenHash::of(token.reveal()));
        assert_ne!(token.hash(), TokenHash::of("bob"));
        let bob = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9";
        assert_eq!(TokenHash::of("bob").to_string(), bob);
        assert_eq!(bob.parse(), Ok(TokenHash::of("bob")));
        assert!(!format!("{token:?}{:?}", token.hash()).contains(token.reveal()));
    }

    #[test]
    fn hashes_are_64_hex_digits() {
        for wrong in ["", "81", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert!(wrong.parse::<TokenHash>().is_err(), "{wrong:?}");
        }
    }
}

//! The short code that both sides type in place of keys.

use std::fmt;
use std::str::FromStr;

use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;

/// The characters, in the order of their values: base32 of D. Crockford, without letters that are
/// read as digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The number of characters; the last one is a check.
const LENGTH: usize = 9;
/// Characters between hyphens.
const GROUP: usize = 3;

/// A short code, as `k7q-m3f-xdn`: 40 random bits and a check character.
///
/// A server offers it once: the holder of another code has one try in 2^40. The check character
/// finds every single wrong character, and every swap of two, before that try is spent.
#[derive(Clone)]
pub struct Code([u8; LENGTH]);

/// A text is not a code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// It has another form.
    #[error("`{0}` is not a code: it is nine letters and digits, as in `k7q-m3f-xdn`")]
    Form(String),
    /// It is not what a server made.
    #[error("the code `{0}` is mistyped: one of its characters at least is wrong")]
    Mistyped(String),
}

/// The system gives no random numbers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the system gives no random numbers")]
pub struct NoRandom;

/// `N` random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut bytes = [0; N];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(NoRandom),
    }
}

impl Code {
    /// Makes a new code.
    ///
    /// # Errors
    /// [`NoRandom`] when the system gives no random numbers.
    pub fn generate() -> Result<Self, NoRandom> {
        let bits = random::<5>()?.into_iter();
        let bits = bits.fold(0, |bits, byte| bits << 8 | u64::from(byte));
        Ok(Self::of(bits))
    }

    /// The code of the low 40 bits of `bits`.
    fn of(bits: u64) -> Self {
        let mut values = [0; LENGTH];
        for (i, value) in values[..LENGTH - 1].iter_mut().enumerate() {
            *value = (bits >> (5 * (LENGTH - 2 - i)) & 31) as u8;
        }
        values[LENGTH - 1] = remainder(&values);
        Self(values.map(|value| ALPHABET[usize::from(value)]))
    }

    /// The characters, without hyphens.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The values as a polynomial over GF(32), the first one with the highest power, at `x`, a generator
/// of the field (modulo x^5 + x^2 + 1). It is 0 for a code: no two powers of `x` in it are equal, so
/// that neither a wrong value nor a swap of two leaves it at 0.
fn remainder(values: &[u8; LENGTH]) -> u8 {
    values.iter().fold(0, |sum, value| times_x(sum) ^ value)
}

fn times_x(value: u8) -> u8 {
    let product = value << 1;
    if product & 32 == 0 {
        product
    } else {
        product ^ 0b10_0101
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let hyphen = if i > 0 && i % GROUP == 0 { "-" } else { "" };
            write!(f, "{hyphen}{}", char::from(*byte))?;
        }
        Ok(())
    }
}

/// Does not show the code.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(..)")
    }
}

/// Accepts capitals, other grouping by hyphens and blanks, `o` for `0`, and `i` and `l` for `1`.
impl FromStr for Code {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let characters = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let values: Option<Vec<u8>> = characters.map(value).collect();
        let values = values.and_then(|values| values.try_into().ok());
        let values: [u8; LENGTH] = values.ok_or_else(|| CodeError::Form(text.into()))?;
        if remainder(&values) != 0 {
            return Err(CodeError::Mistyped(text.into()));
        }
        Ok(Self(values.map(|value| ALPHABET[usize::from(value)])))
    }
}

fn value(character: char) -> Option<u8> {
    let character = match character.to_ascii_lowercase() {
        'o' => '0',
        'i' | 'l' => '1',
        other => other,
    };
    let at = ALPHABET.iter().position(|c| char::from(*c) == character)?;
    u8::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_written_in_groups() {
        // The example of docs/bulk-protocol.md and of the messages.
        let code: Code = "k7q-m3f-xdn".parse().unwrap();
        assert_eq!(code.to_string(), "k7q-m3f-xdn");
        assert_eq!(Code::of(0).to_string(), "000-000-000");
        assert_eq!(
            Code::of(u64::MAX).to_string().replace('-', "")[..8],
            *"zzzzzzzz"
        );
        assert_eq!(format!("{code:?}"), "Code(..)");
    }

    #[test]
    fn codes_are_random() {
        let codes: Vec<_> = (0..100).map(|_| Code::generate().unwrap().0).collect();
        for i in 0..LENGTH {
            // Each place takes several values.
            assert!(codes.iter().any(|code| code[i] != codes[0][i]));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "k7q-m3f-xd",
            "k7q-m3f-xdnn",
            "k7q-m3f-xdu",
            "k7q-m3f-xd\u{e9}",
        ] {
            let error = text.parse::<Code>().unwrap_err();
            assert_eq!(error, CodeError::Form(text.into()));
        }
        let error = "k7q-m3f-xd0".parse::<Code>().unwrap_err();
        assert_eq!(error, CodeError::Mistyped("k7q-m3f-xd0".into()));
    }

    proptest! {
        #[test]
        fn codes_are_read_as_people_type_them(bits: u64) {
            let code = Code::of(bits);
            let text = code.to_string();
            let forms = [
                text.clone(),
                text.replace('-', ""),
                text.to_uppercase().replace('-', " "),
                text.replace('0', "o").replace('1', "l"),
                text.replace('0', "O").replace('1', "I"),
                format!(" {text}\n"),
            ];
            for form in forms {
                let read = form.parse::<Code>().unwrap();
                prop_assert_eq!(read.0, code.0, "{}", form);
            }
        }

        #[test]
        fn one_wrong_character_is_found(bits: u64, at in 0..LENGTH, by in 1usize..32) {
            let mut code = Code::of(bits).0;
            let value = ALPHABET.iter().position(|c| *c == code[at]).unwrap();
            code[at] = ALPHABET[value ^ by];
            let text = Code(code).to_string();
            prop_assert_eq!(text.parse::<Code>().unwrap_err(), CodeError::Mistyped(text));
        }

        #[test]
        fn two_swapped_characters_are_found(bits: u64, a in 0..LENGTH, b in 0..LENGTH) {
            let mut code = Code::of(bits).0;
            code.swap(a, b);
            let found = Code(code).to_string().parse::<Code>().is_err();
            prop_assert_eq!(found, code[a] != code[b]);
        }

        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            let _ = text.parse::<Code>();
        }
    }
}

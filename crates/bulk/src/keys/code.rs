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
pub(super) fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
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
    pub(super) fn as_bytes(&self) -> &[u8] {
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

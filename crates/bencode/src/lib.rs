//! Bencode (BEP 3), read strictly, in its one canonical form, or tolerantly, as many programs write
//! it: the encoding of `.torrent` files and of the messages of peers, trackers and the DHT.

use thiserror::Error;

/// Deepest nesting read. The file tree of a hybrid torrent nests as deep as its folders do (BEP
/// 52); the bound keeps the recursion off the end of the stack.
const MAX_DEPTH: usize = 120;

/// Most values read from one document, so that two-byte values cannot turn a small file into a
/// large tree: 200,000 files need about a million.
const MAX_VALUES: usize = 1_500_000;

/// Why bytes are not bencode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BencodeError {
    /// The bytes end inside a value.
    #[error("it ends at byte {0}, in the middle of a value: the file is cut short")]
    CutShort(usize),
    /// A byte that cannot be there.
    #[error("byte {0} does not belong there: this is not bencode")]
    Unexpected(usize),
    /// An integer that is not in canonical form or does not fit 64 bits.
    #[error("the number at byte {0} is malformed or too large")]
    Number(usize),
    /// Dictionary keys out of order or repeated.
    #[error("the dictionary key at byte {0} is repeated or out of order")]
    KeyOrder(usize),
    /// More nesting or more values than any real document has.
    #[error("it is nested deeper or holds more values than any real torrent (byte {0})")]
    TooComplex(usize),
    /// Bytes after the end of the document.
    #[error("{0} bytes follow the end of the document")]
    Trailing(usize),
}

/// One bencoded value, its strings borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// `i…e`
    Int(i64),
    /// `N:…`
    Bytes(&'a [u8]),
    /// `l…e`
    List(Vec<Self>),
    /// `d…e`
    Dict(Dict<'a>),
}

/// A dictionary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dict<'a> {
    /// All keys with their values, in the order of the input.
    pub entries: Vec<(&'a [u8], Value<'a>)>,
    /// The bytes of the input that it was read from; empty if there are none.
    pub raw: &'a [u8],
}

impl<'a> Dict<'a> {
    /// The value under `key`; the first one, where the key is repeated.
    pub fn find(&self, key: &str) -> Option<&Value<'a>> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(name, _)| *name == key.as_bytes());
        found.map(|(_, value)| value)
    }

    /// The integer under `key`.
    pub fn int(&self, key: &str) -> Option<i64> {
        match self.find(key)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The string under `key`.
    pub fn bytes(&self, key: &str) -> Option<&'a [u8]> {
        self.find(key)?.as_bytes()
    }

    /// The list under `key`.
    pub fn list(&self, key: &str) -> Option<&[Value<'a>]> {
        match self.find(key)? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// The dictionary under `key`.
    pub fn dict(&self, key: &str) -> Option<&Self> {
        self.find(key)?.as_dict()
    }
}

impl<'a> Value<'a> {
    /// The string, if it is one.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The dictionary, if it is one.
    pub fn as_dict(&self) -> Option<&Dict<'a>> {
        match self {
            Value::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// A string.
    pub fn text(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }

    /// A list of strings.
    pub fn texts<T: AsRef<[u8]> + ?Sized + 'a>(texts: impl IntoIterator<Item = &'a T>) -> Self {
        let texts = texts.into_iter();
        Self::List(texts.map(|text| Self::Bytes(text.as_ref())).collect())
    }

    /// A dictionary of the entries that have a value; the caller gives the keys in order.
    pub fn dict<K: AsRef<[u8]> + ?Sized + 'a>(
        entries: impl IntoIterator<Item = (&'a K, Option<Self>)>,
    ) -> Self {
        let entries = entries.into_iter();
        let entries = entries.filter_map(|(key, value)| Some((key.as_ref(), value?)));
        Self::Dict(Dict {
            entries: entries.collect(),
            raw: &[],
        })
    }

    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_to(&mut out);
        out
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Value::Int(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
            Value::Bytes(bytes) => append(bytes, out),
            Value::List(list) => {
                out.push(b'l');
                list.iter().for_each(|value| value.append_to(out));
                out.push(b'e');
            }
            Value::Dict(dict) => {
                out.push(b'd');
                for (key, value) in &dict.entries {
                    append(key, out);
                    value.append_to(out);
                }
                out.push(b'e');
            }
        }
    }
}

/// Writes a string.
fn append(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
}

/// Reads one document that fills `input` to the last byte, in canonical form: keys sorted and
/// unique, numbers without leading zeros.
///
/// # Errors
/// [`BencodeError`] at the first byte that breaks the form.
pub fn parse(input: &[u8]) -> Result<Value<'_>, BencodeError> {
    let mut reader = Reader::new(input, true);
    let value = reader.value(0)?;
    match input.len() - reader.at {
        0 => Ok(value),
        left => Err(BencodeError::Trailing(left)),
    }
}

/// Reads one document from the front of `input` as libtorrent does: keys in any order and repeated
/// (the first counts), numbers with leading zeros or a negative zero, and whatever bytes after the
/// end. A number beyond 64 bits is read as the one nearest to it that fits.
///
/// # Errors
/// [`BencodeError`] at the first byte that cannot be read even so.
pub fn parse_tolerant(input: &[u8]) -> Result<Value<'_>, BencodeError> {
    Reader::new(input, false).value(0)
}

struct Reader<'a> {
    input: &'a [u8],
    /// Whether only the canonical form is read.
    strict: bool,
    at: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn new(input: &'a [u8], strict: bool) -> Self {
        Reader {
            input,
            strict,
            at: 0,
            values: 0,
        }
    }

    fn peek(&self) -> Result<u8, BencodeError> {
        let byte = self.input.get(self.at).copied();
        byte.ok_or(BencodeError::CutShort(self.at))
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, BencodeError> {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return Err(BencodeError::TooComplex(self.at));
        }
        match self.peek()? {
            b'i' => {
                self.at += 1;
                let start = self.at;
                let number = self.number(b'e')?;
                if self.strict && number == 0 && self.input[start] == b'-' {
                    return Err(BencodeError::Number(start));
                }
                Ok(Value::Int(number))
            }
            b'0'..=b'9' => self.string().map(Value::Bytes),
            b'l' => {
                self.at += 1;
                let mut list = Vec::new();
                while self.peek()? != b'e' {
                    list.push(self.value(depth + 1)?);
                }
                self.at += 1;
                Ok(Value::List(list))
            }
            b'd' => self.dict(depth).map(Value::Dict),
            _ => Err(BencodeError::Unexpected(self.at)),
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Dict<'a>, BencodeError> {
        let begin = self.at;
        self.at += 1;
        let mut entries: Vec<(&[u8], Value<'a>)> = Vec::new();
        while self.peek()? != b'e' {
            let key_at = self.at;
            if !self.peek()?.is_ascii_digit() {
                return Err(BencodeError::Unexpected(key_at));
            }
            let key = self.string()?;
            if self.strict && entries.last().is_some_and(|(last, _)| *last >= key) {
                return Err(BencodeError::KeyOrder(key_at));
            }
            entries.push((key, self.value(depth + 1)?));
        }
        self.at += 1;
        let raw = &self.input[begin..self.at];
        Ok(Dict { entries, raw })
    }

    fn string(&mut self) -> Result<&'a [u8], BencodeError> {
        let start = self.at;
        let length = self.number(b':')?;
        let length = usize::try_from(length).map_err(|_| BencodeError::Number(start))?;
        let bytes = self.input[self.at..].get(..length);
        let bytes = bytes.ok_or(BencodeError::CutShort(self.input.len()))?;
        self.at += length;
        Ok(bytes)
    }

    /// Digits up to `end`; steps over `end`.
    fn number(&mut self, end: u8) -> Result<i64, BencodeError> {
        let start = self.at;
        let negative = self.peek()? == b'-';
        if negative {
            self.at += 1;
        }
        let digits_at = self.at;
        let mut number: i64 = 0;
        loop {
            let byte = self.peek()?;
            if byte == end {
                break;
            }
            if !byte.is_ascii_digit() {
                return Err(BencodeError::Number(start));
            }
            let digit = i64::from(byte - b'0');
            let digit = if negative { -digit } else { digit };
            let next = number.checked_mul(10).and_then(|n| n.checked_add(digit));
            number = match next {
                Some(next) => next,
                None if self.strict => return Err(BencodeError::Number(start)),
                None if negative => i64::MIN,
                None => i64::MAX,
            };
            self.at += 1;
        }
        let digits = &self.input[digits_at..self.at];
        let leading_zero = digits.len() > 1 && digits[0] == b'0';
        if digits.is_empty() || (self.strict && leading_zero) {
            return Err(BencodeError::Number(start));
        }
        self.at += 1;
        Ok(number)
    }
}

#[cfg(test)]
mod tests;

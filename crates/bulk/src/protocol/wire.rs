//! Fields of messages and packets: big-endian numbers, and the variable-length integers of RFC
//! 9000, section 16.

use thiserror::Error;

/// The version of the protocol.
pub const VERSION: u64 = 2;

/// The largest number that a varint holds.
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// Why bytes are not a message or packet of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A field reaches beyond the end.
    #[error("it ends inside a field")]
    Truncated,
    /// Bytes are left after the last field.
    #[error("it has {0} bytes after its last field")]
    Trailing(usize),
    /// A type of message that this version does not have.
    #[error("its type {0} is unknown")]
    UnknownType(u8),
    /// A session of another version of the protocol is asked for.
    #[error("it speaks version {0} of the protocol, not {VERSION}")]
    UnknownVersion(u64),
    /// A kind of packet that this version does not have.
    #[error("its kind {0} is unknown")]
    UnknownKind(u8),
    /// A field has a value that it cannot have.
    #[error("its {0} is invalid")]
    Invalid(&'static str),
}

/// Reads fields from the beginning of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// All bytes that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = (self.0.split_at_checked(length)).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A number of one byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    /// A number of two bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A signed number of eight bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    /// A varint. Longer encodings than needed are accepted (RFC 9000, 16).
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let first = *self.0.first().ok_or(DecodeError::Truncated)?;
        let length = 1 << (first >> 6);
        let (value, rest) = (self.0.split_at_checked(length)).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        let mut bytes = [0; 8];
        bytes[8 - length..].copy_from_slice(value);
        bytes[8 - length] &= 0x3f;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Bytes after their length.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| DecodeError::Truncated)?)
    }

    /// Text after its length.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], or [`DecodeError::Invalid`] if it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Invalid("text"))
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`].
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

/// Writes fields to the end of a buffer.
#[derive(Debug)]
pub struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    /// Appends `bytes` alone.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a number of one byte.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Appends a number of two bytes.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// Appends a number of four bytes.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// Appends a number of eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_be_bytes());
    }

    /// Appends a signed number of eight bytes.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// Appends a varint of at most [`MAX_VARINT`], in the shortest encoding.
    pub fn varint(&mut self, value: u64) {
        debug_assert!(value <= MAX_VARINT, "{value} does not fit a varint");
        let length = varint_length(value);
        let mut bytes = value.to_be_bytes();
        bytes[8 - length] |= (length.ilog2() as u8) << 6;
        self.raw(&bytes[8 - length..]);
    }

    /// Appends `bytes` after their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.raw(bytes);
    }
}

/// Bytes of a varint.
pub(super) fn varint_length(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn varints_are_those_of_the_rfc() {
        // RFC 9000, A.1.
        let cases: [(&[u8], u64); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.finish(), Ok(()));
            for cut in 0..bytes.len() {
                let error = Reader::new(&bytes[..cut]).varint();
                assert_eq!(error, Err(DecodeError::Truncated));
            }
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        let mut out = Vec::new();
        Writer::new(&mut out).varint(MAX_VARINT);
        out.extend([1; 5]);
        assert_eq!(Reader::new(&out).bytes(), Err(DecodeError::Truncated));
        assert_eq!(
            Reader::new(&[2, 0xff, 0xff]).text(),
            Err(DecodeError::Invalid("text"))
        );
        assert_eq!(Reader::new(&[1, 2]).finish(), Err(DecodeError::Trailing(2)));
    }

    proptest! {
        #[test]
        fn fields_survive(
            varint in 0..=MAX_VARINT,
            shift in 0_u32..62,
            numbers: (u8, u16, u32, u64, i64),
            bytes: Vec<u8>,
            text: String,
        ) {
            let varint = varint >> shift;
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out);
            writer.varint(varint);
            writer.u8(numbers.0);
            writer.u16(numbers.1);
            writer.u32(numbers.2);
            writer.u64(numbers.3);
            writer.i64(numbers.4);
            writer.bytes(&bytes);
            writer.bytes(text.as_bytes());
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(varint));
            let read = (
                reader.u8().unwrap(),
                reader.u16().unwrap(),
                reader.u32().unwrap(),
                reader.u64().unwrap(),
                reader.i64().unwrap(),
            );
            prop_assert_eq!(read, numbers);
            prop_assert_eq!(reader.bytes(), Ok(&bytes[..]));
            prop_assert_eq!(reader.text(), Ok(&text[..]));
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }
}

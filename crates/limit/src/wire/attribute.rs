//! Attributes of netlink(7): a length, a type and a value, each a multiple of four bytes.

/// Length of an attribute's header: its length with the header, and its type.
const HEADER: usize = 4;
/// The bits of a type that say what its value is (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
const TYPE_FLAGS: u16 = 0xc000;

/// Writes attributes one after the other.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// Begins after `head`, whose length is a multiple of four bytes.
    pub fn after(head: Vec<u8>) -> Self {
        Self(head)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn bytes(&mut self, kind: u16, value: &[u8]) {
        let length = (HEADER + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    pub fn word(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    pub fn words(&mut self, kind: u16, values: &[u32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.bytes(kind, &bytes);
    }

    pub fn text(&mut self, kind: u16, value: &str) {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes);
    }

    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.bytes(kind, &[]);
        write(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }
}

/// The attributes in `bytes`: type and value of each, up to the first that is cut short.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&[a, b, c, d], _) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & !TYPE_FLAGS, value))
    })
}

/// The value of the first attribute of this type.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    read(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// The number at `at`, in the machine's order.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(word))
}

/// A text that ends with a zero byte.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    let end = value.iter().position(|&byte| byte == 0);
    std::str::from_utf8(&value[..end.unwrap_or(value.len())]).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_attributes_are_read_unchanged(
            all in prop::collection::vec((1..0x4000_u16, prop::collection::vec(any::<u8>(), 0..20)), 0..5),
            outer in 1..0x4000_u16,
        ) {
            let mut writer = Writer::default();
            writer.nested(outer, |inner| {
                for (kind, value) in &all {
                    inner.bytes(*kind, value);
                }
            });
            let bytes = writer.into_bytes();
            let inner = find(&bytes, outer).unwrap();
            let found: Vec<_> = read(inner).map(|(kind, value)| (kind, value.to_vec())).collect();
            prop_assert_eq!(found, all);
        }

        #[test]
        fn reading_any_bytes_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).count() <= bytes.len());
            let _ = (word(&bytes, 3), text(&bytes));
        }
    }
}

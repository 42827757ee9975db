//! Netlink attributes. In nf_tables all numbers of the protocol are big-endian.

/// Length in bytes of an attribute's header (`struct nlattr`).
const HEADER: usize = 4;
/// `NLA_F_NESTED`: the value is attributes.
const NESTED: u16 = 1 << 15;

/// Attributes, one after the other. All together and each for itself are shorter than 64 KiB.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        self.put(kind, value);
        self
    }

    pub fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// A string with the zero that ends it.
    pub fn string(self, kind: u16, value: &str) -> Self {
        let value = [value.as_bytes(), &[0]].concat();
        self.bytes(kind, &value)
    }

    pub fn nested(self, kind: u16, value: Self) -> Self {
        self.bytes(kind | NESTED, &value.0)
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    fn put(&mut self, kind: u16, value: &[u8]) {
        let length = (HEADER + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        // Attributes begin at multiples of four bytes.
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

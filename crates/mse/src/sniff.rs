//! Whether an accepted connection is encrypted.

/// The beginning of a handshake that is not encrypted (BEP 3).
const PLAIN: &[u8; 20] = b"\x13BitTorrent protocol";

/// What the first bytes of a connection show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// It begins with the handshake of BEP 3.
    Plain,
    /// It does not. Those bytes may be a key of MSE, or of another protocol.
    Encrypted,
    /// There are too few bytes to tell: at most [`Sniffed::BYTES`] are needed.
    NeedMore,
}

impl Sniffed {
    /// Number of bytes that suffice.
    pub const BYTES: usize = PLAIN.len();
}

/// Judges the first bytes of a connection that a peer opened.
pub fn sniff(bytes: &[u8]) -> Sniffed {
    let length = bytes.len().min(PLAIN.len());
    match bytes[..length] == PLAIN[..length] {
        true if length == PLAIN.len() => Sniffed::Plain,
        true => Sniffed::NeedMore,
        false => Sniffed::Encrypted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_handshakes_are_recognized_by_all_of_their_beginning() {
        for length in 0..20 {
            assert_eq!(sniff(&PLAIN[..length]), Sniffed::NeedMore);
            let mut other = PLAIN[..=length].to_vec();
            other[length] ^= 1;
            assert_eq!(sniff(&other), Sniffed::Encrypted);
        }
        assert_eq!(sniff(PLAIN), Sniffed::Plain);
        assert_eq!(sniff(&[&PLAIN[..], &[0; 48]].concat()), Sniffed::Plain);
        assert_eq!(sniff(&[0; 96]), Sniffed::Encrypted);
    }
}

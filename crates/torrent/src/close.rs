//! The reasons for closing a connection: a code for programs, a text for people.
//!
//! QUIC carries both (RFC 9000, 19.19). TCP carries neither: a connection to an IP peer only ends,
//! which counts as [`CloseCode::Plain`].

use std::fmt;

/// Why a side closes a connection, as the QUIC application error code that the other end receives.
///
/// | code | name | meaning | what the other end does |
/// | --- | --- | --- | --- |
/// | 0 | `Plain` | no longer needed, or its path failed | dials again after its usual backoff |
/// | 1 | `PathRefused` | a policy does not allow the path | uses another path, and dials this one again after a minute |
/// | 2 | `TooMany` | no more connections are accepted | as for 0 |
/// | 3 | `Banned` | the other end broke the protocol or sent wrong data | as for 0 |
/// | 4 | `Withdrawn` | offered pieces have been withdrawn | as for 0, and learns which pieces are offered |
/// | 5 | `Storage` | the content cannot be read | as for 0 |
///
/// Other codes count as 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CloseCode {
    Plain = hawser_quic::NO_CODE,
    PathRefused = 1,
    TooMany = 2,
    Banned = 3,
    Withdrawn = 4,
    Storage = 5,
}

impl CloseCode {
    const ALL: [Self; 6] = [
        Self::Plain,
        Self::PathRefused,
        Self::TooMany,
        Self::Banned,
        Self::Withdrawn,
        Self::Storage,
    ];

    /// The code for a number sent by a peer.
    pub fn received(code: u64) -> Self {
        let known = Self::ALL.into_iter();
        let mut known = known.filter(|known| u64::from(*known as u32) == code);
        known.next().unwrap_or(Self::Plain)
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    /// The peer's code; `Plain` also if the peer did not close the connection.
    pub code: CloseCode,
    /// The reason, for people to read.
    pub text: String,
}

impl Closed {
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            code: CloseCode::Plain,
            text: text.into(),
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_received_as_sent_and_unknown_ones_as_plain() {
        for (number, code) in (0..).zip(CloseCode::ALL) {
            assert_eq!(code as u32, number);
            assert_eq!(CloseCode::received(number.into()), code);
        }
        for unknown in [6, 1 << 32, (1 << 32) | 1, (1 << 62) - 1] {
            assert_eq!(CloseCode::received(unknown), CloseCode::Plain);
        }
    }
}

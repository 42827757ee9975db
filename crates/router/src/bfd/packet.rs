//! A BFD control packet as bytes (RFC 5880, section 4.1).

use std::time::Duration;

/// Length of a packet without authentication.
pub(crate) const LENGTH: usize = 24;

const VERSION: u8 = 1;
const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const AUTHENTICATED: u8 = 0x04;
const DEMAND: u8 = 0x02;
const MULTIPOINT: u8 = 0x01;

/// The state of a session, as a system announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SessionState {
    AdminDown = 0,
    Down = 1,
    Init = 2,
    Up = 3,
}

/// The fields of a control packet that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    /// Why the session last went down (RFC 5880, section 4.1).
    pub diagnostic: u8,
    pub state: SessionState,
    /// The poll bit, which requests a packet with the final bit.
    pub poll: bool,
    /// The final bit, which answers a poll.
    pub last: bool,
    pub detect_mult: u8,
    pub mine: u32,
    pub yours: u32,
    pub desired_min_tx: Duration,
    pub required_min_rx: Duration,
}

impl Control {
    /// Reads a packet; `None` if it must be discarded (RFC 5880, section 6.8.6), or uses
    /// authentication or demand mode, which are not supported.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.first_chunk()?;
        let flags = bytes[1];
        let u32_at =
            |at| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let control = Self {
            diagnostic: bytes[0] & 0x1f,
            state: match flags >> 6 {
                0 => SessionState::AdminDown,
                1 => SessionState::Down,
                2 => SessionState::Init,
                _ => SessionState::Up,
            },
            poll: flags & POLL != 0,
            last: flags & FINAL != 0,
            detect_mult: bytes[2],
            mine: u32_at(4),
            yours: u32_at(8),
            desired_min_tx: Duration::from_micros(u32_at(12).into()),
            required_min_rx: Duration::from_micros(u32_at(16).into()),
        };
        let acceptable = bytes[0] >> 5 == VERSION
            && usize::from(bytes[3]) == LENGTH
            && flags & (AUTHENTICATED | DEMAND | MULTIPOINT) == 0
            && control.detect_mult != 0
            && control.mine != 0
            && (control.yours != 0
                || matches!(control.state, SessionState::AdminDown | SessionState::Down));
        acceptable.then_some(control)
    }

    /// The packet. Times above 71 minutes are sent as 71 minutes, the maximum of the 32-bit field
    /// in microseconds.
    pub fn to_bytes(self) -> [u8; LENGTH] {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let mut bytes = [0; LENGTH];
        bytes[0] = VERSION << 5 | self.diagnostic;
        bytes[1] = (self.state as u8) << 6
            | if self.poll { POLL } else { 0 }
            | if self.last { FINAL } else { 0 };
        bytes[2] = self.detect_mult;
        bytes[3] = LENGTH as u8;
        for (at, value) in [
            (4, self.mine),
            (8, self.yours),
            (12, micros(self.desired_min_tx)),
            (16, micros(self.required_min_rx)),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Control = Control {
        diagnostic: 0,
        state: SessionState::Up,
        poll: false,
        last: false,
        detect_mult: 3,
        mine: 1,
        yours: 2,
        desired_min_tx: Duration::from_millis(200),
        required_min_rx: Duration::from_millis(200),
    };

    #[test]
    fn invalid_packets_are_discarded() {
        let good = PLAIN.to_bytes();
        assert_eq!(Control::parse(&good), Some(PLAIN));
        let wrong = [
            ("version", 0, 0x40),
            ("authentication", 1, 0xc0 | AUTHENTICATED),
            ("demand mode", 1, 0xc0 | DEMAND),
            ("multipoint", 1, 0xc0 | MULTIPOINT),
            ("no detection", 2, 0),
            ("length", 3, 23),
        ];
        for (name, at, value) in wrong {
            let mut bytes = good;
            bytes[at] = value;
            assert_eq!(Control::parse(&bytes), None, "{name}");
        }
        let without_discriminator = Control { mine: 0, ..PLAIN };
        assert_eq!(Control::parse(&without_discriminator.to_bytes()), None);
        let up_without_remote = Control { yours: 0, ..PLAIN };
        assert_eq!(Control::parse(&up_without_remote.to_bytes()), None);
        let down = Control {
            state: SessionState::Down,
            ..up_without_remote
        };
        assert_eq!(Control::parse(&down.to_bytes()), Some(down));
        assert_eq!(Control::parse(&good[..23]), None);
    }

    proptest! {
        #[test]
        fn parsed_packets_are_written_unchanged(bytes: [u8; LENGTH]) {
            if let Some(control) = Control::parse(&bytes) {
                let again = control.to_bytes();
                // The control-plane bit and the echo interval are not kept.
                prop_assert_eq!(again[1], bytes[1] & !0x08);
                prop_assert_eq!(&again[2..20], &bytes[2..20]);
            }
        }

        #[test]
        fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Control::parse(&bytes);
        }
    }
}

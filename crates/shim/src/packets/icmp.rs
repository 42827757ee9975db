//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and errors.

use std::net::IpAddr;

use hawser_packet::Checksum;

use super::ip::{Ends, ICMP, ICMP6, Received, write};

/// Bytes of a header: type, code, checksum, and four bytes whose meaning the type gives.
const HEADER: usize = 8;
/// Bytes of the longest packet with an error: RFC 1812, 4.3.2.3; RFC 4443, 2.4 (c).
const LONGEST4: usize = 576;
const LONGEST6: usize = 1280;

/// An echo request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo<'a> {
    pub is_request: bool,
    pub id: u16,
    /// The sequence number, and the data behind it.
    pub rest: &'a [u8],
}

/// Why a packet was not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// There is no route to its destination.
    NoRoute,
    /// The host behind its destination cannot be reached.
    Host,
    /// Nobody listens at its port.
    Port,
    /// It is larger than this number of bytes.
    TooLarge(u16),
}

impl<'a> Echo<'a> {
    /// Reads a message of a packet; `None` if it is another one, or its checksum is wrong.
    pub(crate) fn parse(ends: Ends, bytes: &'a [u8]) -> Option<Self> {
        let (&[kind, 0, _, _, high, low], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let is_request = match (ends.source, kind) {
            (IpAddr::V4(_), 8) | (IpAddr::V6(_), 128) => true,
            (IpAddr::V4(_), 0) | (IpAddr::V6(_), 129) => false,
            _ => return None,
        };
        let has_all = rest.len() >= 2;
        (has_all && sum(ends, bytes)?.is_valid()).then_some(Self {
            is_request,
            id: u16::from_be_bytes([high, low]),
            rest,
        })
    }

    /// The bytes of the message between `ends`.
    pub(crate) fn encode(&self, ends: Ends) -> Vec<u8> {
        let kind = match (ends.source, self.is_request) {
            (IpAddr::V4(_), true) => 8,
            (IpAddr::V4(_), false) => 0,
            (IpAddr::V6(_), true) => 128,
            (IpAddr::V6(_), false) => 129,
        };
        let [high, low] = self.id.to_be_bytes();
        let bytes = [&[kind, 0, 0, 0, high, low], self.rest].concat();
        with_checksum(ends, bytes)
    }
}

/// The number of the protocol for these addresses.
pub(crate) fn protocol(ends: Ends) -> u8 {
    match ends.source {
        IpAddr::V4(_) => ICMP,
        IpAddr::V6(_) => ICMP6,
    }
}

/// The packet that informs the sender of `packet`, in the name of its destination; `None` if none must
/// be sent: for packets that may be errors themselves, for fragments but the first, and where there are
/// several receivers (RFC 1122, 3.2.2; RFC 4443, 2.4 (e)).
pub(crate) fn error(problem: Problem, packet: &[u8]) -> Option<Vec<u8>> {
    let received = Received::parse(packet)?;
    let Ends {
        source,
        destination,
    } = received.ends;
    let is_later = (received.fragment).is_some_and(|fragment| fragment.offset.value() > 0);
    let is_error = [ICMP, ICMP6].contains(&received.protocol)
        && Echo::parse(received.ends, received.payload).is_none_or(|echo| !echo.is_request);
    if is_later || is_error || destination.is_multicast() || source.is_unspecified() {
        return None;
    }
    let (is_v4, longest) = match source {
        IpAddr::V4(_) => (true, LONGEST4 - 20),
        IpAddr::V6(_) => (false, LONGEST6 - 40),
    };
    let (kind, code, field) = match (problem, is_v4) {
        (Problem::NoRoute, true) => (3, 0, 0),
        (Problem::NoRoute, false) => (1, 0, 0),
        (Problem::Host, true) => (3, 1, 0),
        (Problem::Host, false) => (1, 3, 0),
        (Problem::Port, true) => (3, 3, 0),
        (Problem::Port, false) => (1, 4, 0),
        // RFC 1191, 4; RFC 4443, 3.2.
        (Problem::TooLarge(mtu), true) => (3, 4, u32::from(mtu)),
        (Problem::TooLarge(mtu), false) => (2, 0, u32::from(mtu)),
    };
    let quote = &packet[..packet.len().min(longest - HEADER)];
    let message = [&[kind, code, 0, 0], &field.to_be_bytes()[..], quote].concat();
    let ends = received.ends.reversed();
    let message = with_checksum(ends, message);
    let mut whole = None;
    write(ends, protocol(ends), &message, usize::MAX, 0, |packet| {
        whole = Some(packet.to_vec());
    });
    whole
}

fn with_checksum(ends: Ends, mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(sum) = sum(ends, &bytes) {
        bytes[2..4].copy_from_slice(&sum.finish());
    }
    bytes
}

/// The sum of a message: ICMPv6 adds a pseudo header.
fn sum(ends: Ends, bytes: &[u8]) -> Option<Checksum> {
    let length = u16::try_from(bytes.len()).ok()?;
    let start = match ends.source {
        IpAddr::V4(_) => Checksum::default(),
        IpAddr::V6(_) => ends.pseudo_header(ICMP6, length),
    };
    Some(start.add_bytes(bytes))
}

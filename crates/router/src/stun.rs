//! STUN binding requests (RFC 8489), by which a host finds the address and port that its packets
//! have at the router: another than its own if a NAT is in between.
//!
//! They arrive at the internal address among SCION packets, and cannot be taken for such: read as a
//! SCION header, the magic cookie says that the payload has 42050 bytes, more than [`MAX_MESSAGE`].
//! A SCION packet that begins like a STUN message is longer than that.

use std::net::{IpAddr, SocketAddr};

/// Longest message, in bytes: what fits in the smallest packet that IPv6 carries whole.
pub const MAX_MESSAGE: usize = 1232;

/// Length of the header: type, length, magic cookie and transaction ID.
const HEADER: usize = 20;
const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();

/// Types of messages: method binding, of these classes.
const REQUEST: u16 = 0x0001;
const SUCCESS: u16 = 0x0101;
const ERROR: u16 = 0x0111;

/// Types of attributes. A request with one below this that is not known is refused.
const COMPREHENSION_OPTIONAL: u16 = 0x8000;
const ERROR_CODE: u16 = 0x0009;
const UNKNOWN_ATTRIBUTES: u16 = 0x000a;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const FINGERPRINT: u16 = 0x8028;

/// The other attributes of RFC 8489 that must be comprehended: addresses, errors and credentials.
/// A server that demands no credentials ignores them.
const IGNORED_ATTRIBUTES: [u16; 8] = [
    0x0001, 0x0006, 0x0008, 0x0014, 0x0015, 0x001c, 0x001d, 0x001e,
];

/// The body of the error: class 4, number 20.
const UNKNOWN_ATTRIBUTE: [u8; 4] = [0, 0, 4, 20];

/// Length of the attribute FINGERPRINT.
const FINGERPRINT_LENGTH: usize = 8;
/// The checksum of a message is XORed with this: "STUN".
const FINGERPRINT_XOR: u32 = 0x5354_554e;

/// Most unknown attributes that an answer lists. One of four bytes in the request costs two here.
const MAX_UNKNOWN: usize = 4;

/// By how many bytes an answer may exceed its request.
pub const MAX_GAIN: usize = 24;

/// A binding request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindingRequest {
    transaction: [u8; 12],
    /// Whether it has a fingerprint; then its answer has one too.
    fingerprint: bool,
    /// The first attributes that it must not have.
    unknown: [Option<u16>; MAX_UNKNOWN],
}

/// The reason why a STUN message gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StunError {
    /// Lengths that contradict each other, or a wrong fingerprint.
    #[error("the STUN message is malformed")]
    Malformed,
    /// Not a request, or not for a binding.
    #[error("the STUN message is not a binding request")]
    Unsupported,
}

/// Whether a packet that is not a valid SCION packet is a STUN message.
#[inline]
pub fn is_stun(packet: &[u8]) -> bool {
    (HEADER..=MAX_MESSAGE).contains(&packet.len())
        && packet[0] & 0xc0 == 0
        && packet[4..8] == COOKIE
}

impl BindingRequest {
    /// Reads a message that [`is_stun`].
    ///
    /// # Errors
    /// When it is malformed, or not a binding request.
    pub fn parse(message: &[u8]) -> Result<Self, StunError> {
        if !is_stun(message) {
            return Err(StunError::Malformed);
        }
        let (head, mut rest) = message.split_at(HEADER);
        if usize::from(u16_at(head, 2)) != rest.len() || !rest.len().is_multiple_of(4) {
            return Err(StunError::Malformed);
        }
        if u16_at(head, 0) != REQUEST {
            return Err(StunError::Unsupported);
        }
        let mut request = Self {
            transaction: [0; 12],
            fingerprint: false,
            unknown: [None; MAX_UNKNOWN],
        };
        request.transaction.copy_from_slice(&head[8..]);
        while let Some((kind, value, next)) = attribute(rest)? {
            if kind == FINGERPRINT {
                let covered = message.len() - FINGERPRINT_LENGTH;
                if !next.is_empty() || *value != checksum(&message[..covered]) {
                    return Err(StunError::Malformed);
                }
                request.fingerprint = true;
            } else {
                request.note(kind);
            }
            rest = next;
        }
        Ok(request)
    }

    /// Notes an attribute that the request has.
    fn note(&mut self, kind: u16) {
        let is_known = [ERROR_CODE, UNKNOWN_ATTRIBUTES, XOR_MAPPED_ADDRESS].contains(&kind)
            || IGNORED_ATTRIBUTES.contains(&kind)
            || kind >= COMPREHENSION_OPTIONAL;
        if is_known || self.unknown.contains(&Some(kind)) {
            return;
        }
        if let Some(free) = self.unknown.iter_mut().find(|kind| kind.is_none()) {
            *free = Some(kind);
        }
    }

    /// Writes into `out` the answer to the request, which came from `from`: that address, or that
    /// the request has attributes which this does not know. It is at most [`MAX_GAIN`] bytes longer
    /// than the request.
    pub fn write_answer(&self, from: SocketAddr, out: &mut Vec<u8>) {
        out.clear();
        let is_refused = self.unknown[0].is_some();
        let kind = if is_refused { ERROR } else { SUCCESS };
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&COOKIE);
        out.extend_from_slice(&self.transaction);
        if is_refused {
            write_attribute(out, ERROR_CODE, &UNKNOWN_ATTRIBUTE);
            let unknown = self.unknown.iter().flatten();
            let list: Vec<u8> = unknown.flat_map(|kind| kind.to_be_bytes()).collect();
            write_attribute(out, UNKNOWN_ATTRIBUTES, &list);
        } else {
            self.write_address(from, out);
        }
        let length = out.len() - HEADER;
        if self.fingerprint {
            // The checksum covers the length of the whole message.
            set_length(out, length + FINGERPRINT_LENGTH);
            let checksum = checksum(out);
            write_attribute(out, FINGERPRINT, &checksum);
        } else {
            set_length(out, length);
        }
    }

    fn write_address(&self, from: SocketAddr, out: &mut Vec<u8>) {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&COOKIE);
        key[4..].copy_from_slice(&self.transaction);
        let [p0, p1] = from.port().to_be_bytes();
        let (family, mut value) = match from.ip().to_canonical() {
            IpAddr::V4(ip) => (1, ip.octets().to_vec()),
            IpAddr::V6(ip) => (2, ip.octets().to_vec()),
        };
        for (byte, key) in value.iter_mut().zip(key) {
            *byte ^= key;
        }
        let head = [0, family, p0 ^ key[0], p1 ^ key[1]];
        write_attribute(out, XOR_MAPPED_ADDRESS, &[&head, &value[..]].concat());
    }
}

/// An attribute's type and value, and the attributes that follow it.
type Attribute<'a> = (u16, &'a [u8], &'a [u8]);

/// The first attribute. `None` at the end.
fn attribute(bytes: &[u8]) -> Result<Option<Attribute<'_>>, StunError> {
    let Some((head, rest)) = bytes.split_at_checked(4) else {
        return match bytes {
            [] => Ok(None),
            _ => Err(StunError::Malformed),
        };
    };
    let length = usize::from(u16_at(head, 2));
    let padded = length.next_multiple_of(4);
    let (value, next) = rest.split_at_checked(padded).ok_or(StunError::Malformed)?;
    Ok(Some((u16_at(head, 0), &value[..length], next)))
}

fn write_attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend_from_slice(&kind.to_be_bytes());
    // Values have at most 20 bytes.
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn set_length(message: &mut [u8], length: usize) {
    message[2..4].copy_from_slice(&(length as u16).to_be_bytes());
}

/// The value of the attribute FINGERPRINT after `message`, whose length includes the attribute.
fn checksum(message: &[u8]) -> [u8; 4] {
    (crc32fast::hash(message) ^ FINGERPRINT_XOR).to_be_bytes()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests;

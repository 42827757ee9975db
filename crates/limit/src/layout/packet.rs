//! Where in a packet is what filters compare.

use std::net::IpAddr;

use super::Stage;
use crate::limit::Direction;
use crate::state::Key;

/// Protocol numbers (IANA).
const UDP: u32 = 17;
/// Extension headers of IPv6 before which no port can be: hop-by-hop options, routing, fragment,
/// destination options.
const EXTENSIONS: [u32; 4] = [0, 43, 44, 60];

/// The IP version of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V4,
    V6,
}

/// Bits of 32 in a packet, and their offset in bytes from the begin of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    pub mask: u32,
    pub at: i32,
}

/// The offsets of the far end's address and port from the begin of the IP header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    version: Version,
    address: i32,
    /// Of the UDP header, without options.
    udp: i32,
    /// How far the port is shifted in the UDP header's first word.
    port_shift: u32,
}

pub(super) fn key(mask: u32, value: u32, at: i32) -> Key {
    Key { mask, value, at }
}

/// The key that all packets match.
pub(super) fn any() -> Key {
    key(0, 0, 0)
}

impl Version {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

impl Bits {
    /// Their value in a packet whose 32 bits at the offset are `word`.
    pub fn of(self, word: u32) -> u8 {
        ((word & self.mask) >> self.mask.trailing_zeros()) as u8
    }
}

impl Offsets {
    pub fn new(direction: Direction, version: Version) -> Self {
        let (source, length, udp) = match version {
            Version::V4 => (12, 4, 20),
            Version::V6 => (8, 16, 40),
        };
        let (address, port_shift) = match direction {
            Direction::Ingress => (source, 16),
            Direction::Egress => (source + length, 0),
        };
        Self {
            version,
            address,
            udp,
            port_shift,
        }
    }

    /// The last byte of the address.
    pub fn last_byte(self) -> Bits {
        let last = match self.version {
            Version::V4 => 0,
            Version::V6 => 12,
        };
        Bits {
            mask: 0xff,
            at: self.address + last,
        }
    }

    /// What else differs among links of a stage whose addresses have the same last byte: the last byte of
    /// the port; without one another byte of the address. In IPv6 that is the end of the prefix of a
    /// site's network (RFC 6177), as hosts of different sites often have equal last bytes.
    pub fn second_byte(self, stage: Stage) -> Bits {
        match (stage, self.version) {
            (Stage::Port, _) => Bits {
                mask: 0xff << self.port_shift,
                at: self.udp,
            },
            (_, Version::V4) => Bits {
                mask: 0xff00,
                at: self.address,
            },
            (_, Version::V6) => Bits {
                mask: 0xff,
                at: self.address + 4,
            },
        }
    }

    /// The value of such a byte in packets of a far end.
    pub fn byte(self, bits: Bits, address: IpAddr, port: Option<u16>) -> u8 {
        if bits.at == self.udp {
            return port.unwrap_or_default() as u8;
        }
        let word = words(address).nth((bits.at - self.address) as usize / 4);
        bits.of(word.unwrap_or_default())
    }

    /// The keys of all packets of an address, or of those with a port.
    pub fn keys(self, address: IpAddr, port: Option<u16>) -> Vec<Key> {
        let of_address = words(address)
            .enumerate()
            .map(|(i, value)| key(u32::MAX, value, self.address + 4 * i as i32));
        let of_port = port.map(|port| {
            let value = u32::from(port) << self.port_shift;
            key(0xffff << self.port_shift, value, self.udp)
        });
        of_address.chain(of_port).collect()
    }

    /// The far end whose packets have these keys; `None` if they are others.
    pub fn parse(self, keys: &[Key]) -> Option<(IpAddr, Option<u16>)> {
        let count = match self.version {
            Version::V4 => 1,
            Version::V6 => 4,
        };
        let (of_address, of_port) = keys.split_at_checked(count)?;
        let bytes = of_address.iter().flat_map(|key| key.value.to_be_bytes());
        let bytes: Vec<u8> = bytes.collect();
        let address = match self.version {
            Version::V4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
            Version::V6 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        };
        let port = of_port
            .first()
            .map(|key| (key.value >> self.port_shift) as u16);
        (self.keys(address, port) == keys).then_some((address, port))
    }
}

/// An address as numbers of 32 bits.
fn words(address: IpAddr) -> impl Iterator<Item = u32> {
    let (bytes, count) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 1),
        IpAddr::V6(address) => (u128::from(address), 4),
    };
    (0..count).map(move |i| (bytes >> (96 - 32 * i)) as u32)
}

/// Keys of UDP datagrams whose header is where it usually is.
pub(super) fn plain_udp(version: Version) -> Vec<Key> {
    match version {
        Version::V4 => vec![
            // Five words of header.
            key(0x0f00_0000, 0x0500_0000, 0),
            // Not a later fragment.
            key(0x0000_1fff, 0, 4),
            key(0x00ff_0000, UDP << 16, 8),
        ],
        Version::V6 => vec![key(0x0000_ff00, UDP << 8, 4)],
    }
}

/// Keys of packets whose port is not where it usually is.
pub(super) fn unusual(version: Version) -> Vec<Vec<Key>> {
    match version {
        Version::V4 => {
            let udp = key(0x00ff_0000, UDP << 16, 8);
            // A fragment's offset that is not 0 has one bit at least, a header of more than five
            // words is 6, 7, or 8 and more long.
            let offset = (0..13).map(|bit| key(1 << bit, 1 << bit, 4));
            let options = [(0x0e00_0000, 0x0600_0000), (0x0800_0000, 0x0800_0000)];
            let options = options.map(|(mask, value)| key(mask, value, 0));
            offset.chain(options).map(|one| vec![udp, one]).collect()
        }
        Version::V6 => {
            let extension = |next: &u32| vec![key(0x0000_ff00, next << 8, 4)];
            EXTENSIONS.iter().map(extension).collect()
        }
    }
}

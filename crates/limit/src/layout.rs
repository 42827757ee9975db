//! Where the filters of links are, so that the link of a packet is found in a few steps however many
//! there are.
//!
//! `u32` hash tables of 256 buckets in two stages: the first by the last byte of the address; the second,
//! for links with a port, by the port's last byte, for others by another byte of the address. Addresses
//! that differ in either byte share no bucket. The preferences, in the order in which they are tried:
//!
//! 1. links with a port, by address and UDP port;
//! 2. packets whose port cannot be read where it usually is (later fragments, IP options, extension
//!    headers), by address: they count as those of the address's link with the lowest port, as a sender
//!    could evade its limit with them otherwise;
//! 3. links without a port, by address;
//! 4. at ingress, all others, if there is a default limit.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::limit::{Direction, Remote};
use crate::state::{Filter, Key, ROOT_TABLE, Spot, Then};

/// The first of hawser's preferences.
pub(crate) const FIRST_PREFERENCE: u16 = 0x4857;
/// How many preferences hawser uses.
const PREFERENCES: u16 = 8;

/// Protocol numbers (IANA).
const UDP: u32 = 17;
/// Extension headers of IPv6 before which no port can be: hop-by-hop options, routing, fragment,
/// destination options.
const EXTENSIONS: [u32; 4] = [0, 43, 44, 60];

/// The IP version of a preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// What a preference is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Port,
    NoPort,
    Address,
    Rest,
}

const STAGES: [Stage; 4] = [Stage::Port, Stage::NoPort, Stage::Address, Stage::Rest];

/// Whether this is one of hawser's preferences.
pub(crate) fn is_own(preference: u16) -> bool {
    (FIRST_PREFERENCE..FIRST_PREFERENCE + PREFERENCES).contains(&preference)
}

/// The IP version of the packets that a preference looks at. The kernel has one protocol for each.
pub(crate) fn version(preference: u16) -> Version {
    match (preference - FIRST_PREFERENCE).is_multiple_of(2) {
        true => Version::V4,
        false => Version::V6,
    }
}

/// Whether filters of this preference take all packets that no link has.
pub(crate) fn is_rest(preference: u16) -> bool {
    preference >= FIRST_PREFERENCE + 2 * Stage::Rest as u16
}

fn preference(stage: Stage, version: Version) -> u16 {
    FIRST_PREFERENCE + 2 * stage as u16 + version as u16
}

/// The first table of a stage.
fn first_table(stage: Stage, version: Version) -> u16 {
    0x10 + 2 * stage as u16 + version as u16
}

/// The second table of a stage for a bucket of the first.
fn second_table(stage: Stage, version: Version, bucket: u8) -> u16 {
    let block = match (stage, version) {
        (Stage::Port, Version::V4) => 1,
        (Stage::Port, Version::V6) => 2,
        (_, Version::V4) => 3,
        (_, Version::V6) => 4,
    };
    (block << 8) | u16::from(bucket)
}

/// The wanted filters of a point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// Tables, each with the preference that it belongs to.
    pub tables: BTreeMap<u16, u16>,
    /// Filters by place.
    pub nodes: BTreeMap<Spot, Vec<Filter>>,
}

/// The offsets of a version's headers from the begin of the IP header.
#[derive(Clone, Copy)]
struct Offsets {
    /// Of the far end's address.
    address: i32,
    /// Of the UDP header, without options.
    udp: i32,
    /// How far the far end's port is shifted in the UDP header's first word.
    port_shift: u32,
}

fn offsets(direction: Direction, version: Version) -> Offsets {
    let (source, length, udp) = match version {
        Version::V4 => (12, 4, 20),
        Version::V6 => (8, 16, 40),
    };
    match direction {
        Direction::Ingress => Offsets {
            address: source,
            udp,
            port_shift: 16,
        },
        Direction::Egress => Offsets {
            address: source + length,
            udp,
            port_shift: 0,
        },
    }
}

/// An address as numbers of 32 bits in network order.
fn words(address: IpAddr) -> Vec<u32> {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (words, _) = bytes.as_chunks();
    words.iter().copied().map(u32::from_be_bytes).collect()
}

fn version_of(address: IpAddr) -> Version {
    match address {
        IpAddr::V4(_) => Version::V4,
        IpAddr::V6(_) => Version::V6,
    }
}

impl Offsets {
    /// Bits of the last word of the address.
    fn last_byte(self, version: Version) -> (u32, i32) {
        let last = match version {
            Version::V4 => 0,
            Version::V6 => 12,
        };
        (0xff, self.address + last)
    }

    /// Bits of the address for the second stage: in IPv6 the end of the prefix of a site's network
    /// (RFC 6177), as hosts of different sites often have equal last bytes.
    fn other_byte(self, version: Version) -> (u32, i32) {
        match version {
            Version::V4 => (0xff00, self.address),
            Version::V6 => (0xff, self.address + 4),
        }
    }

    fn keys(self, address: IpAddr) -> Vec<Key> {
        let key = |(i, value)| Key {
            mask: u32::MAX,
            value,
            at: self.address + 4 * i as i32,
        };
        words(address).into_iter().enumerate().map(key).collect()
    }

    /// Bits of the UDP header: the last byte of the far end's port.
    fn port_byte(self) -> (u32, i32) {
        (0xff << self.port_shift, self.udp)
    }

    fn port_key(self, port: u16) -> Key {
        Key {
            mask: 0xffff << self.port_shift,
            value: u32::from(port) << self.port_shift,
            at: self.udp,
        }
    }
}

/// Keys of UDP datagrams whose header is where it usually is.
fn plain_udp(version: Version) -> Vec<Key> {
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
fn unusual(version: Version) -> Vec<Vec<Key>> {
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

/// The packets that a stage looks at: those that have all keys of any of these.
fn entries(stage: Stage, version: Version) -> Vec<Vec<Key>> {
    match stage {
        Stage::Port => vec![plain_udp(version)],
        Stage::NoPort => unusual(version),
        Stage::Address | Stage::Rest => vec![vec![any()]],
    }
}

fn key(mask: u32, value: u32, at: i32) -> Key {
    Key { mask, value, at }
}

/// The key that all packets match.
fn any() -> Key {
    key(0, 0, 0)
}

fn bits((mask, _): (u32, i32), word: u32) -> u8 {
    ((word & mask) >> mask.trailing_zeros()) as u8
}

impl Layout {
    /// The filters for links of `direction`: what happens with the packets of each; and of all others, if
    /// that is said.
    pub fn new(direction: Direction, links: &BTreeMap<Remote, Then>, rest: Option<Then>) -> Self {
        let mut layout = Self::default();
        // Remotes are ordered by address, then port: the first with a port has the lowest.
        let mut last_address = None;
        for (&remote, &then) in links {
            let version = version_of(remote.address);
            let offsets = offsets(direction, version);
            let first = remote.port.is_some() && last_address != Some(remote.address);
            match remote.port {
                Some(port) => layout.port(remote.address, port, version, offsets, then),
                None => layout.address(remote.address, version, offsets, then),
            }
            if remote.port.is_some() {
                last_address = Some(remote.address);
            }
            let has_whole = links.contains_key(&Remote {
                port: None,
                ..remote
            });
            if first && !has_whole {
                layout.no_port(remote.address, version, offsets, then);
            }
        }
        if let Some(then) = rest {
            for version in [Version::V4, Version::V6] {
                let spot = Spot {
                    preference: preference(Stage::Rest, version),
                    table: ROOT_TABLE,
                    bucket: 0,
                };
                layout.add(spot, vec![any()], then);
            }
        }
        layout
    }

    fn port(&mut self, to: IpAddr, port: u16, version: Version, offsets: Offsets, then: Then) {
        let stage = Stage::Port;
        let spot = self.first_stage(stage, to, version, offsets);
        let by = offsets.port_byte();
        let table = second_table(stage, version, spot.bucket);
        self.table(table, spot, by);
        let spot = Spot {
            table,
            bucket: port as u8,
            ..spot
        };
        let mut keys = offsets.keys(to);
        keys.push(offsets.port_key(port));
        self.add(spot, keys, then);
    }

    fn no_port(&mut self, to: IpAddr, version: Version, offsets: Offsets, then: Then) {
        let spot = self.first_stage(Stage::NoPort, to, version, offsets);
        self.add(spot, offsets.keys(to), then);
    }

    fn address(&mut self, to: IpAddr, version: Version, offsets: Offsets, then: Then) {
        let stage = Stage::Address;
        let spot = self.first_stage(stage, to, version, offsets);
        let by = offsets.other_byte(version);
        let table = second_table(stage, version, spot.bucket);
        self.table(table, spot, by);
        let word = words(to)[(by.1 - offsets.address) as usize / 4];
        let spot = Spot {
            table,
            bucket: bits(by, word),
            ..spot
        };
        self.add(spot, offsets.keys(to), then);
    }

    /// The place of an address in the first table of a stage.
    fn first_stage(
        &mut self,
        stage: Stage,
        to: IpAddr,
        version: Version,
        offsets: Offsets,
    ) -> Spot {
        let preference = preference(stage, version);
        let table = first_table(stage, version);
        let by = offsets.last_byte(version);
        if self.tables.insert(table, preference).is_none() {
            let root = Spot {
                preference,
                table: ROOT_TABLE,
                bucket: 0,
            };
            for keys in entries(stage, version) {
                self.add(root, keys, then_table(table, by));
            }
        }
        let last = words(to).last().copied().unwrap_or_default();
        Spot {
            preference,
            table,
            bucket: bits(by, last),
        }
    }

    /// Has all packets that reach `from` go on to the table `table`.
    fn table(&mut self, table: u16, from: Spot, by: (u32, i32)) {
        if self.tables.insert(table, from.preference).is_none() {
            self.add(from, vec![any()], then_table(table, by));
        }
    }

    fn add(&mut self, spot: Spot, keys: Vec<Key>, then: Then) {
        self.nodes
            .entry(spot)
            .or_default()
            .push(Filter { keys, then });
    }

    /// Whether a filter that leads on to a table is one that some set of links has.
    pub fn is_possible(direction: Direction, spot: Spot, filter: &Filter) -> bool {
        let version = version(spot.preference);
        let offsets = offsets(direction, version);
        STAGES.into_iter().any(|stage| {
            if preference(stage, version) != spot.preference {
                return false;
            }
            let first = first_table(stage, version);
            if spot.table == ROOT_TABLE {
                let then = then_table(first, offsets.last_byte(version));
                return filter.then == then && entries(stage, version).contains(&filter.keys);
            }
            let by = match stage {
                Stage::Port => offsets.port_byte(),
                Stage::Address => offsets.other_byte(version),
                Stage::NoPort | Stage::Rest => return false,
            };
            let then = then_table(second_table(stage, version, spot.bucket), by);
            spot.table == first && filter.then == then && filter.keys == [any()]
        })
    }

    /// The link whose filter has these keys; `None` if they are those of another filter.
    pub fn remote(direction: Direction, preference: u16, keys: &[Key]) -> Option<Remote> {
        let version = version(preference);
        let offsets = offsets(direction, version);
        let stage = (preference - FIRST_PREFERENCE) / 2;
        let count = match version {
            Version::V4 => 1,
            Version::V6 => 4,
        };
        let address: Vec<u8> = keys
            .get(..count)?
            .iter()
            .flat_map(|key| key.value.to_be_bytes())
            .collect();
        let address = match version {
            Version::V4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
            Version::V6 => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        };
        if keys[..count] != offsets.keys(address) {
            return None;
        }
        let port = match (stage, &keys[count..]) {
            (stage, []) if stage == Stage::Address as u16 => None,
            (stage, [key]) if stage == Stage::Port as u16 => {
                let port = (key.value >> offsets.port_shift) as u16;
                (*key == offsets.port_key(port)).then_some(Some(port))?
            }
            _ => return None,
        };
        Some(Remote { address, port })
    }
}

fn then_table(table: u16, (mask, at): (u32, i32)) -> Then {
    Then::Table { table, mask, at }
}

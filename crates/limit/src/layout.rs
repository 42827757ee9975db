//! Where the filters of links are, so that the link of a packet is found in a few steps however many
//! there are.
//!
//! `u32` hash tables of 256 buckets: by the last byte of the address; where more than [`FULL`] links share
//! a bucket, by a second byte, too ([`Offsets::second_byte`]). The preferences, in the order in which they
//! are tried:
//!
//! 1. links with a port, by address and UDP port;
//! 2. packets whose port cannot be read where it usually is (later fragments, IP options, extension
//!    headers), by address: they count as those of the address's link with the lowest port, as a sender
//!    could evade its limit with them otherwise;
//! 3. links without a port, by address;
//! 4. at ingress, all others, if there is a default limit.

mod packet;

use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) use self::packet::Version;
use self::packet::{Bits, Offsets, any, plain_udp, unusual};
use crate::limit::{Direction, Remote};
use crate::state::{Filter, Filters, Key, ROOT_TABLE, Spot, Then};

/// The first of hawser's preferences.
pub(crate) const FIRST_PREFERENCE: u16 = 0x4857;
/// How many preferences hawser uses.
const PREFERENCES: u16 = 8;
/// The number of the first table of the first stage.
const FIRST_TABLE: u16 = 0x10;
/// Most links in a bucket of a first table. Each is compared with a packet, which takes some nanoseconds;
/// a second table takes two kilobytes.
const FULL: usize = 16;

/// What a preference is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// Whether this is the number of a table that hawser may need.
pub(crate) fn is_own_table(table: u32) -> bool {
    let first = u32::from(FIRST_TABLE)..u32::from(FIRST_TABLE + PREFERENCES);
    let second = 1 << 8..u32::from(PREFERENCES) << 8;
    first.contains(&table) || second.contains(&table)
}

/// Whether filters of this preference take all packets that no link has.
pub(crate) fn is_rest(preference: u16) -> bool {
    stage(preference) == Stage::Rest
}

/// The IP version of the packets that a preference looks at. The kernel has one protocol for each.
pub(crate) fn version(preference: u16) -> Version {
    match (preference - FIRST_PREFERENCE).is_multiple_of(2) {
        true => Version::V4,
        false => Version::V6,
    }
}

fn stage(preference: u16) -> Stage {
    let at = usize::from(preference - FIRST_PREFERENCE) / 2;
    STAGES.get(at).copied().unwrap_or(Stage::Rest)
}

fn preference(stage: Stage, version: Version) -> u16 {
    FIRST_PREFERENCE + 2 * stage as u16 + version as u16
}

/// The first table of a stage.
fn first_table(stage: Stage, version: Version) -> u16 {
    FIRST_TABLE + 2 * stage as u16 + version as u16
}

/// The second table of a stage for a bucket of the first.
fn second_table(stage: Stage, version: Version, bucket: u8) -> u16 {
    let block = 1 + 2 * stage as u16 + version as u16;
    (block << 8) | u16::from(bucket)
}

/// The packets that a stage looks at: those that have all keys of any of these.
fn entries(stage: Stage, version: Version) -> Vec<Vec<Key>> {
    match stage {
        Stage::Port => vec![plain_udp(version)],
        Stage::NoPort => unusual(version),
        Stage::Address | Stage::Rest => vec![vec![any()]],
    }
}

/// The wanted filters of a point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// Tables, each with the preference that it belongs to.
    pub tables: BTreeMap<u16, u16>,
    /// Filters by place.
    pub nodes: BTreeMap<Spot, Vec<Filter>>,
}

/// An entry of a stage: the far end, and what happens with its packets.
struct Entry {
    address: IpAddr,
    port: Option<u16>,
    then: Then,
}

impl Layout {
    /// The filters for links of `direction`: what happens with the packets of each; and of all others, if
    /// that is said.
    pub fn new(direction: Direction, links: &BTreeMap<Remote, Then>, rest: Option<Then>) -> Self {
        let mut buckets: BTreeMap<(Stage, Version, u8), Vec<Entry>> = BTreeMap::new();
        // Remotes are ordered by address, then port, none first: the first of an address has all that
        // has no port.
        let mut last = None;
        for (&Remote { address, port }, &then) in links {
            let version = Version::of(address);
            let offsets = Offsets::new(direction, version);
            let bucket = offsets.byte(offsets.last_byte(), address, port);
            let is_first = last.replace(address) != Some(address);
            let of_port = port.map(|_| (Stage::Port, port));
            let whole = match (is_first, port) {
                (false, _) => None,
                (true, None) => Some((Stage::Address, None)),
                (true, Some(_)) => Some((Stage::NoPort, None)),
            };
            for (stage, port) in of_port.into_iter().chain(whole) {
                let entries = buckets.entry((stage, version, bucket)).or_default();
                entries.push(Entry {
                    address,
                    port,
                    then,
                });
            }
        }
        let mut layout = Self::default();
        for ((stage, version, bucket), entries) in buckets {
            let offsets = Offsets::new(direction, version);
            layout.bucket(stage, version, bucket, offsets, entries);
        }
        if let Some(then) = rest {
            for version in [Version::V4, Version::V6] {
                let spot = root(preference(Stage::Rest, version));
                layout.add(spot, vec![any()], then);
            }
        }
        layout
    }

    /// Adds the entries of a bucket of a stage's first table.
    fn bucket(
        &mut self,
        stage: Stage,
        version: Version,
        bucket: u8,
        offsets: Offsets,
        all: Vec<Entry>,
    ) {
        let preference = preference(stage, version);
        let first = first_table(stage, version);
        if self.tables.insert(first, preference).is_none() {
            for keys in entries(stage, version) {
                let then = then_table(first, offsets.last_byte());
                self.add(root(preference), keys, then);
            }
        }
        let spot = Spot {
            preference,
            table: first,
            bucket,
        };
        let second = (all.len() > FULL).then(|| second_table(stage, version, bucket));
        let by = offsets.second_byte(stage);
        if let Some(table) = second {
            self.tables.insert(table, preference);
            self.add(spot, vec![any()], then_table(table, by));
        }
        for Entry {
            address,
            port,
            then,
        } in all
        {
            let spot = match second {
                None => spot,
                Some(table) => Spot {
                    table,
                    bucket: offsets.byte(by, address, port),
                    ..spot
                },
            };
            self.add(spot, offsets.keys(address, port), then);
        }
    }

    fn add(&mut self, spot: Spot, keys: Vec<Key>, then: Then) {
        let filters = self.nodes.entry(spot).or_default();
        filters.push(Filter { keys, then });
    }

    /// Whether a filter that leads on to a table is one that some set of links has.
    pub fn is_possible(direction: Direction, spot: Spot, filter: &Filter) -> bool {
        let (stage, version) = (stage(spot.preference), version(spot.preference));
        if stage == Stage::Rest {
            return false;
        }
        let offsets = Offsets::new(direction, version);
        let first = first_table(stage, version);
        if spot.table == ROOT_TABLE {
            let then = then_table(first, offsets.last_byte());
            return filter.then == then && entries(stage, version).contains(&filter.keys);
        }
        let second = second_table(stage, version, spot.bucket);
        spot.table == first
            && filter.then == then_table(second, offsets.second_byte(stage))
            && filter.keys == [any()]
    }

    /// The class to which filters lead a link's packets.
    pub fn class(direction: Direction, remote: Remote, filters: &Filters) -> Option<u16> {
        let Remote { address, port } = remote;
        let version = Version::of(address);
        let stage = match port {
            Some(_) => Stage::Port,
            None => Stage::Address,
        };
        let offsets = Offsets::new(direction, version);
        let bucket = offsets.byte(offsets.last_byte(), address, port);
        let first = Spot {
            preference: preference(stage, version),
            table: first_table(stage, version),
            bucket,
        };
        let second = Spot {
            table: second_table(stage, version, bucket),
            bucket: offsets.byte(offsets.second_byte(stage), address, port),
            ..first
        };
        let keys = offsets.keys(address, port);
        [first, second].into_iter().find_map(|spot| {
            let mut here = filters.nodes.range((spot, 0)..=(spot, u16::MAX));
            here.find_map(|(_, filter)| match filter.then {
                Then::Class(class) if filter.keys == keys => Some(class),
                _ => None,
            })
        })
    }

    /// The link whose filter has these keys; `None` if they are those of another filter.
    pub fn remote(direction: Direction, preference: u16, keys: &[Key]) -> Option<Remote> {
        let offsets = Offsets::new(direction, version(preference));
        let (address, port) = offsets.parse(keys)?;
        let is_link = match stage(preference) {
            Stage::Port => port.is_some(),
            Stage::Address => port.is_none(),
            Stage::NoPort | Stage::Rest => false,
        };
        is_link.then_some(Remote { address, port })
    }
}

fn root(preference: u16) -> Spot {
    Spot {
        preference,
        table: ROOT_TABLE,
        bucket: 0,
    }
}

fn then_table(table: u16, bits: Bits) -> Then {
    let Bits { mask, at } = bits;
    Then::Table { table, mask, at }
}

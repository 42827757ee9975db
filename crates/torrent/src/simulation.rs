//! A swarm on virtual time: every host has a picker, requests and a choker as downloads and seeders
//! have them.
//!
//! Hosts know each other from the beginning. Messages take half a round trip. What a host sends
//! passes its uplink, which its connections share at random, and differently every 200 ms; what it has handed to its
//! system cannot be cancelled any more. A piece is verified as soon as it is complete. Downlinks
//! have no limit, and disks take no time.

mod host;
mod tests;
mod world;

use std::time::Duration;

use hawser_choker::DEFAULT_SLOTS;

use crate::picker::AddressFamily;
use crate::pieces::Pieces;
use crate::pipeline::SLACK;
use crate::wire::{BLOCK, Request};

/// A host.
type HostId = u64;

/// Steps of the virtual time, and how many of them are between two ticks of a host.
const STEP: Duration = Duration::from_millis(5);
const TICK: u32 = 10;

/// Round-trip time between any two hosts.
const RTT: Duration = Duration::from_millis(20);

/// What hosts send to each other.
#[derive(Debug, Clone, Copy)]
enum Message {
    Interested(bool),
    Choked(bool),
    Have(u32),
    Request(Request),
    Cancel(Request),
    Block(Request),
}

/// A swarm of one seeder and some leechers.
#[derive(Debug, Clone, Copy)]
struct Setting {
    leechers: u64,
    seeders: u64,
    /// How many of the leechers have an id of their own for each other host.
    strangers: u64,
    /// How many of the leechers send nothing.
    free_riders: u64,
    pieces: Pieces,
    /// How many others a leecher serves at a time.
    slots: usize,
    /// Whether half of the uplink of seeders is for the first leecher alone: over a path of its own.
    own_path: bool,
    /// Whether plain IP has one of two links of seeders, each with half of their uplink, and SCION both.
    two_links: bool,
    /// How many of the leechers are on plain IP alone, and how many on SCION alone. All others are on both.
    on_one: (u64, u64),
    /// What each leecher gets of an uplink, compared with the one before.
    skew: f64,
    /// What hosts send at most, in bytes per second.
    seeder_uplink: f64,
    leecher_uplink: f64,
    /// The time for which blocks are requested in advance, beyond the round trip.
    slack: Duration,
    /// Blocks that a host has handed to its system: a cancel comes too late for them.
    committed: usize,
}

impl Setting {
    /// A slow seeder and eight fast leechers.
    fn slow_seeder() -> Self {
        Self {
            leechers: 8,
            seeders: 1,
            strangers: 0,
            free_riders: 0,
            slots: DEFAULT_SLOTS,
            own_path: false,
            two_links: false,
            on_one: (0, 0),
            skew: 1.0,
            pieces: Pieces {
                length: 16 * BLOCK,
                total: 64 << 20,
            },
            seeder_uplink: 4e6,
            leecher_uplink: 25e6,
            slack: SLACK,
            committed: 4,
        }
    }

    /// Number of hosts: seeders come first, free riders last.
    fn hosts(&self) -> u64 {
        self.seeders + self.leechers
    }

    /// The only kind of address of a host; `None` if it has both.
    fn family(&self, host: HostId) -> Option<AddressFamily> {
        let leecher = host.checked_sub(self.seeders)?;
        let (on_ip, on_scion) = self.on_one;
        match leecher {
            _ if leecher < on_ip => Some(AddressFamily::Ip),
            _ if leecher < on_ip + on_scion => Some(AddressFamily::Scion),
            _ => None,
        }
    }

    /// The kind of address that connects two hosts; `None` if nothing does.
    fn between(&self, one: HostId, other: HostId) -> Option<AddressFamily> {
        match (self.family(one), self.family(other)) {
            (Some(one), Some(other)) if one != other => None,
            (Some(family), _) | (_, Some(family)) => Some(family),
            (None, None) => Some(AddressFamily::Scion),
        }
    }

    /// The shortest time in which the seeder can send everything once, in seconds.
    fn shortest(&self) -> f64 {
        self.pieces.total as f64 / (self.seeder_uplink * self.seeders as f64)
    }
}

/// What became of a swarm.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    /// When each leecher that is no free rider had everything, in seconds: then the swarm ends.
    complete: Vec<f64>,
    /// Bytes that the seeder sent.
    seeded: u64,
    /// Bytes of blocks that arrived and were not needed.
    wasted: u64,
    /// Bytes of blocks that each leecher, free riders among them, received from other leechers.
    shared: Vec<u64>,
}

impl Outcome {
    /// When the last leecher had everything, in seconds.
    fn last(&self) -> f64 {
        self.complete.iter().copied().fold(0.0, f64::max)
    }
}

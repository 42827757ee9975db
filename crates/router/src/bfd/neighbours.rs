//! The BFD sessions of a router, one with each neighbour.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use super::frame::Frame;
use super::packet::Control;
use super::session::Session;
use crate::mac::HopKey;
use crate::verdict::Origin;

/// A router that this one has a BFD session with.
pub(crate) struct Neighbour {
    pub session: Session,
    pub frame: Frame,
    /// The name in the counters.
    pub name: String,
    pub location: Location,
}

/// Where a neighbour is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Location {
    /// Another router of this AS: its number and its internal address.
    Sibling(u8, SocketAddr),
    /// A neighbour AS: the interface.
    Interface(u16),
}

impl Neighbour {
    /// Where its packets come from.
    fn origin(&self) -> Origin {
        match self.location {
            Location::Sibling(number, _) => Origin::Sibling(number),
            Location::Interface(id) => Origin::Interface(id),
        }
    }
}

/// A neighbour has come up or gone down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub origin: Origin,
    pub up: bool,
}

/// A BFD packet that is invalid, or belongs to no session.
pub(crate) struct Unexpected;

/// All neighbours.
pub(crate) struct Neighbours {
    neighbours: Vec<Neighbour>,
    next_due: Option<Instant>,
}

impl Neighbours {
    pub fn new(neighbours: Vec<Neighbour>) -> Self {
        let mut new = Self {
            neighbours,
            next_due: None,
        };
        new.schedule();
        new
    }

    /// Where the neighbours' packets come from.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        self.neighbours.iter().map(Neighbour::origin)
    }

    /// When a session next expires or a packet is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.next_due
    }

    /// Whether each neighbour is up, by name.
    pub fn states(&self) -> BTreeMap<String, bool> {
        self.neighbours
            .iter()
            .map(|neighbour| (neighbour.name.clone(), neighbour.session.is_up()))
            .collect()
    }

    /// Processes the BFD packet `bytes` from `origin`.
    pub fn receive(
        &mut self,
        origin: Origin,
        bytes: &[u8],
        now: Instant,
    ) -> Result<Option<Change>, Unexpected> {
        let control = Control::parse(bytes).ok_or(Unexpected)?;
        let mut neighbours = self.neighbours.iter_mut();
        let neighbour = neighbours
            .find(|neighbour| neighbour.origin() == origin && neighbour.session.accepts(&control))
            .ok_or(Unexpected)?;
        let changed = neighbour.session.receive(&control, now);
        let change = changed.then(|| log_change(neighbour));
        self.schedule();
        Ok(change)
    }

    /// Ends the sessions whose neighbour has been silent for too long at `now`. `last_arrival` is
    /// when another packet last came in by an interface.
    pub fn expire(
        &mut self,
        now: Instant,
        last_arrival: impl Fn(u16) -> Option<Instant>,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        for neighbour in &mut self.neighbours {
            let arrival = match neighbour.location {
                Location::Sibling(..) => None,
                Location::Interface(id) => last_arrival(id),
            };
            if neighbour.session.expire(now, arrival) {
                changes.push(log_change(neighbour));
            }
        }
        changes
    }

    /// Has `send` send the packets that are due at `now`, which is `time` in Unix seconds, each
    /// written into `out`. Packets that are nearly due are sent along: a router with many
    /// neighbours wakes up no more often than one with few.
    pub fn send_due(
        &mut self,
        now: Instant,
        time: u64,
        key: &HopKey,
        out: &mut Vec<u8>,
        mut send: impl FnMut(Location, &[u8]),
    ) {
        let mut neighbours = self.neighbours.iter();
        if neighbours.any(|neighbour| neighbour.session.must_send(now)) {
            for neighbour in &mut self.neighbours {
                if let Some(control) = neighbour.session.take(now) {
                    neighbour.frame.write(control, key, time, out);
                    send(neighbour.location, out);
                }
            }
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        let neighbours = self.neighbours.iter();
        self.next_due = neighbours
            .map(|neighbour| neighbour.session.next_due())
            .min();
    }
}

fn log_change(neighbour: &Neighbour) -> Change {
    let (name, up) = (&neighbour.name, neighbour.session.is_up());
    tracing::info!(neighbour = name, up, "BFD");
    let origin = neighbour.origin();
    Change { origin, up }
}

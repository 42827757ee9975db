//! The BFD sessions of a router, one with each neighbour.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use hawser_packet::path::HopKey;

use super::frame::Frame;
use super::packet::Control;
use super::session::Session;
use crate::reason::DropReason;
use crate::verdict::Origin;

/// A router that this one has a BFD session with.
pub(crate) struct Neighbour {
    pub session: Session,
    pub frame: Frame,
    /// The name in the counters.
    pub name: String,
    /// The origin of its packets.
    pub origin: Origin,
    /// Its internal address if it is another router of this AS.
    pub address: Option<SocketAddr>,
}

impl Neighbour {
    /// Logs that the neighbour has come up or gone down; returns whether it is up.
    fn log_change(&self) -> bool {
        let (name, up) = (&self.name, self.session.is_up());
        tracing::info!(neighbour = name, up, "BFD");
        up
    }
}

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

    /// The origins of the neighbours' packets.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        self.neighbours.iter().map(|neighbour| neighbour.origin)
    }

    /// The names and addresses of the AS's other routers, in the order of their numbers.
    pub fn siblings(&self) -> impl Iterator<Item = (&str, Option<SocketAddr>)> {
        let neighbours = self.neighbours.iter();
        neighbours
            .filter(|neighbour| matches!(neighbour.origin, Origin::Sibling(_)))
            .map(|neighbour| (neighbour.name.as_str(), neighbour.address))
    }

    /// Takes all neighbours out.
    pub fn take(&mut self) -> Vec<Neighbour> {
        std::mem::take(&mut self.neighbours)
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

    /// The names of neighbours whose link is at rest.
    pub fn resting(&self) -> BTreeSet<String> {
        let neighbours = self.neighbours.iter();
        neighbours
            .filter(|neighbour| neighbour.session.is_resting())
            .map(|neighbour| neighbour.name.clone())
            .collect()
    }

    /// Tells the sessions of links when packets other than BFD last crossed them.
    pub fn observe(&mut self, now: Instant, last_use: impl Fn(Origin) -> Option<Instant>) {
        for neighbour in &mut self.neighbours {
            if let Origin::Interface(_) = neighbour.origin {
                let was_resting = neighbour.session.is_resting();
                neighbour.session.observe(last_use(neighbour.origin), now);
                if was_resting && !neighbour.session.is_resting() {
                    tracing::debug!(neighbour = neighbour.name, "BFD: the link is in use again");
                }
            }
        }
        self.schedule();
    }

    /// Processes the BFD packet `bytes` from `origin`; returns whether the neighbour is up if that
    /// has changed.
    ///
    /// # Errors
    /// When the packet is invalid, or belongs to no session.
    pub fn receive(
        &mut self,
        origin: Origin,
        bytes: &[u8],
        now: Instant,
    ) -> Result<Option<bool>, DropReason> {
        let control = Control::parse(bytes).ok_or(DropReason::UnexpectedBfd)?;
        let mut neighbours = self.neighbours.iter_mut();
        let neighbour = neighbours
            .find(|neighbour| neighbour.origin == origin && neighbour.session.accepts(&control))
            .ok_or(DropReason::UnexpectedBfd)?;
        let was_resting = neighbour.session.is_resting();
        let changed = neighbour.session.receive(&control, now);
        if !was_resting && neighbour.session.is_resting() {
            tracing::debug!(neighbour = neighbour.name, "BFD: the link is at rest");
        }
        let change = changed.then(|| neighbour.log_change());
        self.schedule();
        Ok(change)
    }

    /// Ends the sessions whose neighbour has been silent for too long at `now`, and returns those
    /// neighbours. `last_arrival` is when another packet last came in from one.
    pub fn expire(
        &mut self,
        now: Instant,
        last_arrival: impl Fn(Origin) -> Option<Instant>,
    ) -> Vec<Origin> {
        let mut down = Vec::new();
        for neighbour in &mut self.neighbours {
            if neighbour
                .session
                .expire(now, last_arrival(neighbour.origin))
            {
                neighbour.log_change();
                down.push(neighbour.origin);
            }
        }
        down
    }

    /// Writes each packet that is due at `now`, which is `time` in Unix seconds, into `out` and
    /// passes it to `send`. Packets that are nearly due are sent with them: a router with many
    /// neighbours wakes up no more often than one with few.
    pub fn send_due(
        &mut self,
        now: Instant,
        time: u64,
        key: &HopKey,
        out: &mut Vec<u8>,
        mut send: impl FnMut(&Neighbour, &[u8]),
    ) {
        let mut neighbours = self.neighbours.iter();
        if neighbours.any(|neighbour| neighbour.session.must_send(now)) {
            for neighbour in &mut self.neighbours {
                if let Some(control) = neighbour.session.take(now) {
                    neighbour.frame.write(control, key, time, out);
                    send(neighbour, out);
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

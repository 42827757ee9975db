//! The BFD sessions of a router, and what follows from them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Instant;

use super::{Engine, INSIDE, unix_time};
use crate::bfd::{Control, Frame, Session};
use crate::reason::Reason;
use crate::verdict::Origin;

/// A neighbour that is watched.
pub(crate) struct Watched {
    pub session: Session,
    pub frame: Frame,
    /// The name in the counters.
    pub name: String,
    pub place: WatchedPlace,
}

/// Where a watched neighbour is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WatchedPlace {
    /// Another router of this AS: its number and its internal address.
    Sibling(u8, SocketAddr),
    /// A neighbour AS: the interface.
    Interface(u16),
}

impl Watched {
    /// Where its packets come from.
    pub fn origin(&self) -> Origin {
        match self.place {
            WatchedPlace::Sibling(number, _) => Origin::Sibling(number),
            WatchedPlace::Interface(id) => Origin::Interface(id),
        }
    }
}

/// All of them.
pub(super) struct Watch {
    watched: Vec<Watched>,
    next: Option<Instant>,
}

impl Watch {
    pub fn new(watched: Vec<Watched>) -> Self {
        let mut watch = Self {
            watched,
            next: None,
        };
        watch.plan();
        watch
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Instant> {
        self.next
    }

    pub fn states(&self) -> BTreeMap<String, bool> {
        self.watched
            .iter()
            .map(|watched| (watched.name.clone(), watched.session.is_up()))
            .collect()
    }

    fn plan(&mut self) {
        let due = self
            .watched
            .iter()
            .map(|watched| watched.session.next_due());
        self.next = due.min();
    }
}

impl Engine {
    /// Takes in the BFD packet at `place` of the inbox.
    #[cold]
    pub(super) fn hear(&mut self, origin: Origin, place: Range<usize>, now: Instant) {
        let control = Control::parse(&self.inbox.data()[place]);
        let mut watched = self.watch.watched.iter();
        let at = watched.position(|watched| watched.origin() == origin);
        let (Some(control), Some(at)) = (control, at) else {
            self.drops.add(Reason::UnexpectedBfd, 1);
            return;
        };
        let session = &mut self.watch.watched[at].session;
        if !session.accepts(&control) {
            self.drops.add(Reason::UnexpectedBfd, 1);
            return;
        }
        if session.hear(&control, now) {
            self.changed(at);
        }
        self.watch.plan();
    }

    /// Notices who has been silent for too long, and sends what is due. What is nearly due goes
    /// along: a router with many neighbours wakes up no more often than one with few.
    pub(super) fn look_around(&mut self, now: Instant) {
        if self.watch.next.is_none_or(|next| now < next) {
            return;
        }
        let mut is_due = false;
        for at in 0..self.watch.watched.len() {
            let watched = &mut self.watch.watched[at];
            let heard = match watched.place {
                WatchedPlace::Sibling(..) => None,
                WatchedPlace::Interface(id) => self
                    .ports
                    .iter()
                    .find(|port| port.id == id && port.up)
                    .and_then(|port| port.heard),
            };
            let expired = watched.session.expire(now, heard);
            is_due |= watched.session.must_send(now);
            if expired {
                self.changed(at);
            }
        }
        if is_due {
            self.speak(now);
        }
        self.watch.plan();
    }

    fn speak(&mut self, now: Instant) {
        let time = unix_time();
        for watched in &mut self.watch.watched {
            let Some(control) = watched.session.take(now) else {
                continue;
            };
            let key = &self.forwarder.key;
            watched.frame.write(control, key, time, &mut self.scratch);
            let (id, to) = match watched.place {
                WatchedPlace::Sibling(_, address) => (0, Some(address)),
                WatchedPlace::Interface(id) => (id, None),
            };
            if let Some(port) = self.ports.iter_mut().find(|port| port.id == id) {
                port.send_bfd(&self.scratch, to, now);
            }
        }
    }

    /// A neighbour has come up or gone down.
    fn changed(&mut self, at: usize) {
        let watched = &self.watch.watched[at];
        let (origin, up) = (watched.origin(), watched.session.is_up());
        let name = &watched.name;
        tracing::info!(neighbour = name, up, "BFD");
        self.forwarder.set_bfd_up(origin, up);
        // What is down may come back as something else.
        if up
            && let Origin::Interface(id) = origin
            && let Ok(port) = self.ports[INSIDE + 1..].binary_search_by_key(&id, |port| port.id)
        {
            self.measure(INSIDE + 1 + port);
        }
    }
}

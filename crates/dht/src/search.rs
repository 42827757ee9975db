//! A search: a lookup, the peers found on the way, and the announcement at its end.

use std::collections::{HashSet, VecDeque};

use crate::address::Address;
use crate::config::Announce;
use crate::lookup::{Announcee, Lookup};
use crate::message::{Answer, Method};
use crate::output::Summary;

/// Most peers that a search reports.
const MAX_PEERS: usize = 2000;

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The routing table.
    Nodes,
    /// Peers of a torrent.
    Peers(Option<Announce>),
}

/// A part of a search that a query belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Lookup,
    Announcement,
}

/// A search.
#[derive(Debug)]
pub(crate) struct Search<A> {
    pub lookup: Lookup<A>,
    goal: Goal,
    seen: HashSet<A>,
    announcement: Option<Announcement<A>>,
    announced: usize,
}

/// The announcement to the nearest nodes.
#[derive(Debug)]
struct Announcement<A> {
    port: Option<u16>,
    left: VecDeque<Announcee<A>>,
    waiting: Vec<A>,
}

impl<A: Address> Search<A> {
    pub fn new(lookup: Lookup<A>, goal: Goal) -> Self {
        Self {
            lookup,
            goal,
            seen: HashSet::new(),
            announcement: None,
            announced: 0,
        }
    }

    /// What it is for.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// The next query. It counts as sent.
    pub fn next(&mut self) -> Option<(A, Method, Part)> {
        let target = self.lookup.target();
        if let Some(announcement) = &mut self.announcement {
            let (to, token) = announcement.left.pop_front()?;
            announcement.waiting.push(to);
            let port = announcement.port;
            let method = Method::Announce {
                info_hash: target,
                port,
                token,
            };
            return Some((to, method, Part::Announcement));
        }
        if let Some(to) = self.lookup.next() {
            let method = match self.goal {
                Goal::Nodes => Method::FindNode(target),
                Goal::Peers(_) => Method::GetPeers(target),
            };
            return Some((to, method, Part::Lookup));
        }
        let Goal::Peers(Some(announce)) = self.goal else {
            return None;
        };
        if !self.lookup.is_done() {
            return None;
        }
        self.announcement = Some(Announcement {
            port: match announce {
                Announce::Port(0) | Announce::SamePort => None,
                Announce::Port(port) => Some(port),
            },
            left: self.lookup.announcees().into(),
            waiting: Vec::new(),
        });
        self.next()
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> bool {
        match &self.announcement {
            Some(announcement) => announcement.left.is_empty() && announcement.waiting.is_empty(),
            None => !matches!(self.goal, Goal::Peers(Some(_))) && self.lookup.is_done(),
        }
    }

    /// A node has answered. Returns the new peers that it named.
    pub fn answered(&mut self, from: A, part: Part, answer: &Answer<A>) -> Vec<A> {
        if part == Part::Announcement {
            self.announced += usize::from(self.end_announcement(from));
            return Vec::new();
        }
        let (id, token) = (answer.id, answer.token.clone());
        self.lookup.answered(from, id, token, &answer.nodes);
        let mut peers = Vec::new();
        if let Goal::Peers(_) = self.goal {
            for peer in &answer.values {
                let fits = peer.is_reachable() && (from.is_local() || !peer.is_local());
                if fits && self.seen.len() < MAX_PEERS && self.seen.insert(*peer) {
                    peers.push(*peer);
                }
            }
        }
        peers
    }

    /// A node has answered with an error, or not in time.
    pub fn failed(&mut self, from: A, part: Part) {
        match part {
            Part::Lookup => self.lookup.failed(from),
            Part::Announcement => drop(self.end_announcement(from)),
        }
    }

    /// The answer of a node is late.
    pub fn stalled(&mut self, from: A, part: Part) {
        if part == Part::Lookup {
            self.lookup.stalled(from);
        }
    }

    fn end_announcement(&mut self, from: A) -> bool {
        let Some(announcement) = &mut self.announcement else {
            return false;
        };
        let at = announcement.waiting.iter().position(|to| *to == from);
        at.map(|at| announcement.waiting.swap_remove(at)).is_some()
    }

    /// What came of it so far.
    pub fn summary(&self) -> Summary {
        let (asked, answered) = self.lookup.counts();
        Summary {
            asked,
            answered,
            peers: self.seen.len(),
            announced: self.announced,
            hops: self.lookup.hops(),
        }
    }
}

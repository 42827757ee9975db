//! The decision about each path.

use std::fmt;

use super::assignment::{Assignment, Offer};
use super::table::Item;
use crate::{Decision, Fingerprint, Interface, Reason, Verdict};

impl<K: Copy + Ord + fmt::Display> Assignment<K> {
    /// What was decided about a path, and why.
    pub(super) fn decision_on(&self, item: Item) -> Decision {
        let table = &self.table;
        let entry = &table.items[item];
        let seat = &table.seats[entry.seat];
        let (verdict, reason) = if table.taken[item] {
            let reason = match table.sharing(item).next() {
                None => {
                    let path = &self.offer(item).path;
                    let counted = self.unavoidable.without(path);
                    Reason::Apart {
                        but_only_way: counted.len() < path.interfaces.len(),
                    }
                }
                Some(other) => {
                    let (interface, with, peer) = self.shared(item, other);
                    Reason::SharesAtNoCost {
                        interface,
                        with,
                        peer,
                    }
                }
            };
            (Verdict::Taken, reason)
        } else if seat.count == 0 {
            (Verdict::Waiting, Reason::NextTurn)
        } else {
            let mut sharing = table.sharing(item);
            let reason = match sharing.find(|&other| !table.may_share(item, other)) {
                Some(other) => {
                    let (interface, with, peer) = self.shared(item, other);
                    Reason::SharesWithPeer {
                        interface,
                        with,
                        peer,
                    }
                }
                None => Reason::PeerLimit {
                    peer: self.keys[entry.seat].to_string(),
                    max: seat.most,
                },
            };
            (Verdict::Left, reason)
        };
        Decision { verdict, reason }
    }

    /// What a path shares with another: its first interface that both cross, and which path of
    /// which peer the other is.
    fn shared(&self, item: Item, other: Item) -> (Interface, Fingerprint, String) {
        let table = &self.table;
        let links = table.links(item);
        let theirs = table.links(other);
        let shared = links.iter().find(|link| theirs.contains(link));
        let interface = self
            .offer(item)
            .links
            .iter()
            .position(|link| Some(link) == shared);
        let interface = self.offer(item).path.interfaces[interface.unwrap_or(0)];
        let peer = self.keys[table.items[other].seat].to_string();
        (interface, self.offer(other).fingerprint, peer)
    }

    fn offer(&self, item: Item) -> &Offer {
        let seat = self.table.items[item].seat;
        let rank = item - self.table.seats[seat].items.start;
        &self.peers[&self.keys[seat]].offers[rank]
    }
}

//! The decision about each path.

use std::fmt;

use super::assignment::{Assignment, Offer};
use super::table::Item;
use crate::{Decision, PeerOverlap, Reason, Verdict};

impl<K: Copy + Ord + fmt::Display> Assignment<K> {
    /// The decision about a path, and its reason.
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
                        but_unavoidable: counted.len() < path.interfaces.len(),
                    }
                }
                Some(other) => Reason::SharesAtNoCost(self.shared(item, other)),
            };
            (Verdict::Taken, reason)
        } else if seat.count == 0 {
            (Verdict::Waiting, Reason::NextTurn)
        } else {
            let mut sharing = table.sharing(item);
            let reason = match sharing.find(|&other| !table.may_share(item, other)) {
                Some(other) => Reason::SharesWithPeer(self.shared(item, other)),
                None => Reason::PeerLimit {
                    peer: self.keys[entry.seat].to_string(),
                    max: seat.most,
                },
            };
            (Verdict::Left, reason)
        };
        Decision { verdict, reason }
    }

    /// The first interface of a path that another one crosses too, and the path and peer that the
    /// other is.
    fn shared(&self, item: Item, other: Item) -> PeerOverlap {
        let (offer, table) = (self.offer(item), &self.table);
        let theirs = table.links(other);
        let mut links = table.links(item).iter();
        let shared = links.find(|link| theirs.contains(link));
        let place = offer.links.iter().position(|link| Some(link) == shared);
        PeerOverlap {
            interface: offer.path.interfaces[place.unwrap_or(0)],
            with: self.offer(other).fingerprint,
            peer: self.keys[table.items[other].seat].to_string(),
        }
    }

    fn offer(&self, item: Item) -> &Offer {
        let seat = self.table.items[item].seat;
        let rank = item - self.table.seats[seat].items.start;
        &self.peers[&self.keys[seat]].offers[rank]
    }
}

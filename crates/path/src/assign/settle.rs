//! Shares out again after a change, and lists the differences.

use std::collections::BTreeSet;
use std::fmt;

use super::assignment::{Assignment, Change, Offered};
use super::share;
use super::stuck::Class;
use super::table::{Item, Seat, Table};
use crate::{Decision, Reason};

impl<K: Copy + Ord + fmt::Display> Assignment<K> {
    /// The paths in use.
    pub(super) fn in_use(&self) -> BTreeSet<Offered<K>> {
        let all = self.peers.iter();
        all.flat_map(|(&key, peer)| {
            let taken = peer.offers.iter().filter(|offer| offer.taken);
            taken.map(move |offer| (key, offer.fingerprint))
        })
        .collect()
    }

    /// Shares out again, and returns what differs from `before`.
    pub(super) fn settle(&mut self, before: &BTreeSet<Offered<K>>) -> Vec<Change<K>> {
        self.clock += 1;
        self.keys = self.peers.keys().copied().collect();
        self.table = self.lay_out();
        share::share_out(&mut self.table, &mut self.stuck);
        let leaders = &mut self.stuck.leaders;
        if leaders.len() > 2 * self.peers.len() {
            let classes: BTreeSet<Class> = self.peers.values().map(|peer| peer.class).collect();
            leaders.retain(|class, _| classes.contains(class));
        }
        let (least, greatest) = ([0; 32].into(), [u8::MAX; 32].into());
        for ((key, peer), seat) in self.peers.iter_mut().zip(&self.table.seats) {
            let had_any = before
                .range((*key, least)..=(*key, greatest))
                .next()
                .is_some();
            for (offer, item) in peer.offers.iter_mut().zip(seat.items.clone()) {
                offer.taken = self.table.taken[item];
            }
            if had_any != (seat.count > 0) {
                peer.since = self.clock;
            }
        }
        self.changes(before)
    }

    /// The table of the offered paths, with nothing in use.
    fn lay_out(&self) -> Table {
        let mut table = Table::new(self.links.end());
        for (key, peer) in &self.peers {
            table.seat(Seat {
                peer: peer.number,
                class: Some(peer.class),
                items: 0..0,
                most: peer.most,
                count: 0,
                turn: self.turns.contains(key),
                order: (peer.since, peer.joined),
            });
            for offer in &peer.offers {
                let counted = self.unavoidable.without(&offer.path);
                table.offer(&offer.links[counted], offer.taken);
            }
        }
        if self.allowed.is_empty() {
            return table;
        }
        let mut pairs = BTreeSet::new();
        for (one, others) in &self.allowed {
            let Some(first) = self.item_in(&table, *one) else {
                continue;
            };
            let seconds = others.iter().filter(|other| *other > one);
            let seconds = seconds.filter_map(|other| self.item_in(&table, *other));
            // Fingerprints and places differ in their order.
            pairs.extend(seconds.map(|second| (first.min(second), first.max(second))));
            if !others.is_empty() {
                let seat = table.items[first].seat;
                table.seats[seat].class = None;
            }
        }
        table.allowed = pairs;
        table
    }

    /// The place of a path in a table of the offered paths.
    pub(super) fn item_in(&self, table: &Table, (peer, fingerprint): Offered<K>) -> Option<Item> {
        let seat = self.keys.binary_search(&peer).ok()?;
        let mut offers = self.peers.get(&peer)?.offers.iter();
        let rank = offers.position(|offer| offer.fingerprint == fingerprint)?;
        Some(table.seats[seat].items.start + rank)
    }

    /// The path that a waiting peer gets in its turn: the one whose users have had theirs longest,
    /// of these the one with the fewest users, of these the best.
    pub(super) fn take_over(table: &Table, seat: usize) -> Option<Item> {
        let items = table.seats[seat].items.clone();
        let open = items.filter_map(|item| {
            let blockers = table.blockers(item);
            let users = || {
                blockers
                    .iter()
                    .map(|&one| &table.seats[table.items[one].seat])
            };
            if users().any(|user| user.turn) {
                return None;
            }
            let newest = users().map(|user| user.order).max();
            Some(((newest, blockers.len(), item), item))
        });
        open.min_by_key(|(key, _)| *key).map(|(_, item)| item)
    }

    fn changes(&self, before: &BTreeSet<Offered<K>>) -> Vec<Change<K>> {
        let after = self.in_use();
        let mut changes = Vec::new();
        // Paths given up come first, so that a peer never has too many while the list is applied.
        for &(peer, path) in before.difference(&after).chain(after.difference(before)) {
            let gone = || {
                let peer = peer.to_string();
                Decision::left(Reason::Withdrawn { peer })
            };
            changes.push(Change {
                peer,
                path,
                decision: self.decision(peer, path).unwrap_or_else(gone),
            });
        }
        changes
    }
}

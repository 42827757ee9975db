//! When which torrents are announced on the own network, and what the announcements of others mean.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::message::{Announcement, MAX_HASHES};

/// Least time between two messages (BEP 14: at most one a minute).
pub(crate) const MESSAGE_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two announcements of a torrent (BEP 14: five minutes).
pub(crate) const TORRENT_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// The torrents of one client. Events in, announcements out.
#[derive(Debug)]
pub(crate) struct LocalAnnouncer {
    cookie: String,
    torrents: BTreeMap<[u8; 20], Torrent>,
    /// When the next message may be sent.
    free_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Torrent {
    /// Whether it is announced, or only looked for.
    announces: bool,
    /// When it may be announced next.
    due: Instant,
}

impl LocalAnnouncer {
    /// Without torrents. `cookie` is of this client alone.
    pub fn new(cookie: String) -> Self {
        Self {
            cookie,
            torrents: BTreeMap::new(),
            free_at: None,
        }
    }

    /// Adds a torrent, which is announced at once if it `announces`.
    pub fn add(&mut self, info_hash: [u8; 20], announces: bool, now: Instant) {
        let new = Torrent {
            announces,
            due: now,
        };
        // One that is known keeps its time.
        self.torrents.entry(info_hash).or_insert(new).announces = announces;
    }

    /// Removes a torrent. Its announcements of the past still count for the time of the next message.
    pub fn remove(&mut self, info_hash: [u8; 20]) {
        self.torrents.remove(&info_hash);
    }

    /// When [`advance`](Self::advance) is due next.
    pub fn next_due(&self) -> Option<Instant> {
        let torrents = self.torrents.values().filter(|it| it.announces);
        let due = torrents.map(|it| it.due).min()?;
        Some(self.free_at.map_or(due, |free_at| free_at.max(due)))
    }

    /// The torrents to be announced now, in one message; those due for longest first.
    pub fn advance(&mut self, now: Instant) -> Vec<[u8; 20]> {
        if self.free_at.is_some_and(|free_at| free_at > now) {
            return Vec::new();
        }
        let torrents = self.torrents.iter_mut();
        let due = torrents.filter(|(_, it)| it.announces && it.due <= now);
        let mut due: Vec<_> = due.collect();
        due.sort_unstable_by_key(|(hash, it)| (it.due, **hash));
        due.truncate(MAX_HASHES);
        if !due.is_empty() {
            self.free_at = Some(now + MESSAGE_INTERVAL);
        }
        let announced = due.into_iter().map(|(hash, it)| {
            it.due = now + TORRENT_INTERVAL;
            *hash
        });
        announced.collect()
    }

    /// The announcement of torrents with peers at `port`.
    pub fn announcement(&self, port: u16, info_hashes: Vec<[u8; 20]>) -> Announcement {
        Announcement {
            port,
            info_hashes,
            cookie: Some(self.cookie.clone()),
        }
    }

    /// The torrents that are looked for here and that another client announces. An own message says nothing.
    pub fn announced(&self, announcement: &Announcement) -> Vec<[u8; 20]> {
        let is_own = announcement.cookie.as_ref() == Some(&self.cookie);
        let hashes = announcement.info_hashes.iter().filter(|_| !is_own);
        let known = hashes.filter(|hash| self.torrents.contains_key(*hash));
        known.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_torrent_is_announced_at_once_and_every_five_minutes() {
        let begin = Instant::now();
        let mut announcer = LocalAnnouncer::new("me".to_owned());
        assert_eq!(announcer.next_due(), None);
        announcer.add([1; 20], false, begin);
        assert_eq!(announcer.next_due(), None);
        announcer.add([1; 20], true, begin);
        assert_eq!(announcer.next_due(), Some(begin));
        assert_eq!(announcer.advance(begin), [[1; 20]]);
        // A second one waits a minute.
        announcer.add([2; 20], true, begin);
        announcer.add([1; 20], true, begin);
        assert!(announcer.advance(begin).is_empty());
        let next = begin + MESSAGE_INTERVAL;
        assert_eq!(announcer.next_due(), Some(next));
        assert_eq!(announcer.advance(next), [[2; 20]]);
        assert_eq!(announcer.next_due(), Some(begin + TORRENT_INTERVAL));
    }

    #[test]
    fn others_are_peers_and_the_own_messages_are_not() {
        let mut announcer = LocalAnnouncer::new("me".to_owned());
        announcer.add([1; 20], false, Instant::now());
        let own = announcer.announcement(7, vec![[1; 20]]);
        assert!(announcer.announced(&own).is_empty());
        for cookie in [None, Some("you".to_owned())] {
            let other = Announcement {
                cookie,
                ..own.clone()
            };
            assert_eq!(announcer.announced(&other), [[1; 20]]);
            let info_hashes = vec![[2; 20], [1; 20]];
            let both = Announcement {
                info_hashes,
                ..other
            };
            assert_eq!(announcer.announced(&both), [[1; 20]]);
            announcer.remove([1; 20]);
            assert!(announcer.announced(&both).is_empty());
            announcer.add([1; 20], false, Instant::now());
        }
    }

    #[derive(Debug, Clone)]
    enum Operation {
        /// A torrent is added, to be announced or not.
        Add(u8, bool),
        /// It is removed.
        Remove(u8),
        /// These seconds pass.
        Wait(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (any::<u8>(), prop::bool::weighted(0.8))
                .prop_map(|(hash, announces)| Operation::Add(hash, announces)),
            any::<u8>().prop_map(Operation::Remove),
            (0u64..200).prop_map(Operation::Wait),
        ]
    }

    proptest! {
        #[test]
        fn intervals_are_kept_and_each_torrent_gets_its_turn(
            operations in prop::collection::vec(operation(), 0..300),
        ) {
            let mut now = Instant::now();
            let mut announcer = LocalAnnouncer::new("me".to_owned());
            let mut last_message: Option<Instant> = None;
            let mut announced: BTreeMap<[u8; 20], Instant> = BTreeMap::new();
            let mut wanted: BTreeMap<[u8; 20], Instant> = BTreeMap::new();
            for operation in operations {
                match operation {
                    Operation::Add(hash, announces) => {
                        announcer.add([hash; 20], announces, now);
                        match announces {
                            true => drop(wanted.entry([hash; 20]).or_insert(now)),
                            false => drop(wanted.remove(&[hash; 20])),
                        }
                    }
                    Operation::Remove(hash) => {
                        announcer.remove([hash; 20]);
                        wanted.remove(&[hash; 20]);
                        // It is another one when it is added again.
                        announced.remove(&[hash; 20]);
                    }
                    Operation::Wait(seconds) => now += Duration::from_secs(seconds),
                }
                // As its driver calls it: whenever it is due.
                if announcer.next_due().is_none_or(|due| due > now) {
                    prop_assert!(announcer.advance(now).is_empty());
                    continue;
                }
                let hashes = announcer.advance(now);
                prop_assert!(!hashes.is_empty() && hashes.len() <= MAX_HASHES);
                let is_apart = |last: Instant| now - last >= MESSAGE_INTERVAL;
                prop_assert!(last_message.replace(now).is_none_or(is_apart));
                for hash in hashes {
                    prop_assert!(wanted.contains_key(&hash));
                    let is_apart = |last: Instant| now - last >= TORRENT_INTERVAL;
                    prop_assert!(announced.insert(hash, now).is_none_or(is_apart));
                }
                prop_assert!(announcer.next_due().is_some_and(|due| due > now));
            }
            // With messages every minute, all have their turn within their number of minutes.
            let rounds = wanted.len().div_ceil(MAX_HASHES) + 5;
            let begin = now;
            for _ in 0..rounds {
                now += MESSAGE_INTERVAL;
                for hash in announcer.advance(now) {
                    announced.insert(hash, now);
                }
            }
            for hash in wanted.keys() {
                prop_assert!(announced.get(hash).is_some_and(|at| *at > begin), "{hash:?}");
            }
        }
    }
}

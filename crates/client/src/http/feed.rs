//! What has changed of the torrents, by difference: a page with thousands of them asks each second.
//!
//! Each look at the torrents that finds a difference is a revision. A reader names the last revision that it
//! knows, as a cursor, and gets what is newer. Nothing is kept for a reader.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::body::{Changes, Torrent};

/// Most removals that are remembered. A reader that has missed more gets all torrents.
const MAX_REMOVED: usize = 1000;

/// Time for which a look at the torrents is good, however many ask.
const FRESH: Duration = Duration::from_millis(800);

/// A revision as readers name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Which run of the daemon it is of.
    epoch: u64,
    revision: u64,
}

impl Cursor {
    /// Reads a cursor; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let (epoch, revision) = text.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits(epoch) || !digits(revision) {
            return None;
        }
        Some(Self {
            epoch: u64::from_str_radix(epoch, 16).ok()?,
            revision: u64::from_str_radix(revision, 16).ok()?,
        })
    }

    fn text(self) -> String {
        format!("{:x}-{:x}", self.epoch, self.revision)
    }
}

/// A torrent as it was seen last, and the revision since which it is so.
#[derive(Debug)]
struct Seen {
    revision: u64,
    torrent: Torrent,
}

/// The torrents as they were seen last.
#[derive(Debug)]
pub(super) struct Feed {
    epoch: u64,
    revision: u64,
    torrents: HashMap<String, Seen>,
    /// What was removed with which revision, the latest.
    removed: VecDeque<(u64, String)>,
    /// The oldest revision from which on all removals are known.
    complete_since: u64,
    /// When the torrents were last looked at; `None` before the first time.
    looked: Option<Duration>,
}

impl Feed {
    /// Without torrents. No other run of the daemon may have the same `epoch`.
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch,
            revision: 0,
            torrents: HashMap::new(),
            removed: VecDeque::new(),
            complete_since: 0,
            looked: None,
        }
    }

    /// Whether the torrents should be looked at again before an answer.
    pub fn is_stale(&self, now: Duration) -> bool {
        self.looked.is_none_or(|looked| now >= looked + FRESH)
    }

    /// Takes the torrents as they are now.
    pub fn observe(&mut self, torrents: Vec<Torrent>, now: Duration) {
        self.looked = Some(now);
        let revision = self.revision + 1;
        let mut before = std::mem::take(&mut self.torrents);
        let mut is_changed = false;
        for torrent in torrents {
            let hash = torrent.info_hash.clone();
            let known = before.remove(&hash);
            let seen = match known {
                Some(seen) if seen.torrent == torrent => seen,
                _ => {
                    is_changed = true;
                    Seen { revision, torrent }
                }
            };
            self.torrents.insert(hash, seen);
        }
        for hash in before.into_keys() {
            is_changed = true;
            if self.removed.len() >= MAX_REMOVED
                && let Some((forgotten, _)) = self.removed.pop_front()
            {
                self.complete_since = forgotten;
            }
            self.removed.push_back((revision, hash));
        }
        if is_changed {
            self.revision = revision;
        }
    }

    /// What has changed since a reader last asked.
    pub fn since(&self, cursor: Option<Cursor>) -> Changes {
        let known = cursor.filter(|cursor| {
            let revisions = self.complete_since..=self.revision;
            cursor.epoch == self.epoch && revisions.contains(&cursor.revision)
        });
        let now = Cursor {
            epoch: self.epoch,
            revision: self.revision,
        };
        let is_new = |revision: u64| known.is_none_or(|cursor| revision > cursor.revision);
        let changed = self.torrents.values().filter(|seen| is_new(seen.revision));
        let removed = self.removed.iter().filter(|_| known.is_some());
        let removed = removed.filter(|(revision, hash)| {
            // One that was added again is there.
            is_new(*revision) && !self.torrents.contains_key(hash)
        });
        let mut removed: Vec<String> = removed.map(|(_, hash)| hash.clone()).collect();
        removed.sort_unstable();
        removed.dedup();
        Changes {
            cursor: now.text(),
            whole: known.is_none(),
            torrents: changed.map(|seen| seen.torrent.clone()).collect(),
            removed,
        }
    }
}

#[cfg(test)]
mod tests;

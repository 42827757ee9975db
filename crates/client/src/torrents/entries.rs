//! The table of torrents, which knows whether a plan made of it still holds.

use std::collections::HashMap;
use std::ops::Deref;

use hawser_torrent::InfoHash;

use super::entry::Entry;

/// The torrents, and whether anything that plans depend on may have changed since the last plan. Reading is that
/// of the map.
#[derive(Debug)]
pub(super) struct Entries {
    /// Boxed, so that free places of the table cost little.
    all: HashMap<InfoHash, Box<Entry>>,
    is_changed: bool,
}

impl Entries {
    /// No torrents, and no plan.
    pub fn new() -> Self {
        Self {
            all: HashMap::new(),
            is_changed: true,
        }
    }

    /// A torrent, to change it: the next plan is made anew.
    pub fn get_mut(&mut self, info_hash: &InfoHash) -> Option<&mut Entry> {
        self.is_changed = true;
        self.all.get_mut(info_hash).map(Box::as_mut)
    }

    /// A torrent, to change numbers of it that no plan depends on.
    pub fn numbers_mut(&mut self, info_hash: &InfoHash) -> Option<&mut Entry> {
        self.all.get_mut(info_hash).map(Box::as_mut)
    }

    /// All torrents, to change numbers of them that no plan depends on.
    pub fn all_numbers_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.all.values_mut().map(Box::as_mut)
    }

    /// Adds a torrent in place of one with the same info-hash.
    pub fn insert(&mut self, info_hash: InfoHash, entry: Entry) {
        self.is_changed = true;
        self.all.insert(info_hash, Box::new(entry));
    }

    /// Removes a torrent.
    pub fn remove(&mut self, info_hash: &InfoHash) {
        self.is_changed = true;
        self.all.remove(info_hash);
    }

    /// The next plan is made anew.
    pub fn set_changed(&mut self) {
        self.is_changed = true;
    }

    /// A plan was made.
    pub fn set_planned(&mut self) {
        self.is_changed = false;
    }

    /// Whether the last plan may hold no more.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }
}

impl Deref for Entries {
    type Target = HashMap<InfoHash, Box<Entry>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

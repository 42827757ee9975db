//! All searches: those under way, and those that wait.

use std::collections::{BTreeMap, VecDeque};

use crate::address::Address;
use crate::config::{Announce, Config};
use crate::id::Id;
use crate::output::{SearchError, SearchId};
use crate::search::{Goal, Search};

/// A search that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub id: SearchId,
    pub info_hash: Id,
    pub announce: Option<Announce>,
}

/// All searches.
#[derive(Debug)]
pub(crate) struct Searches<A> {
    active: BTreeMap<SearchId, Search<A>>,
    waiting: VecDeque<Waiting>,
    next_id: u64,
    max_active: usize,
    max_waiting: usize,
}

impl<A: Address> Searches<A> {
    pub fn new(config: &Config<A>) -> Self {
        Self {
            active: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_id: 0,
            max_active: config.max_searches.max(1),
            max_waiting: config.max_waiting,
        }
    }

    /// An id that no other search has.
    pub fn new_id(&mut self) -> SearchId {
        self.next_id += 1;
        SearchId(self.next_id)
    }

    /// Adds a search for peers to those that wait.
    pub fn push(
        &mut self,
        info_hash: Id,
        announce: Option<Announce>,
    ) -> Result<SearchId, SearchError> {
        let free = self.max_active.saturating_sub(self.for_peers());
        if self.waiting.len() >= self.max_waiting + free {
            return Err(SearchError::TooMany(self.waiting.len()));
        }
        let id = self.new_id();
        self.waiting.push_back(Waiting {
            id,
            info_hash,
            announce,
        });
        Ok(id)
    }

    /// Takes the search to begin next, if there may be another.
    pub fn pop_waiting(&mut self) -> Option<Waiting> {
        match self.for_peers() < self.max_active {
            true => self.waiting.pop_front(),
            false => None,
        }
    }

    /// Adds a search under way.
    pub fn begin(&mut self, id: SearchId, search: Search<A>) {
        self.active.insert(id, search);
    }

    /// The search under way with this id.
    pub fn find(&mut self, id: SearchId) -> Option<&mut Search<A>> {
        self.active.get_mut(&id)
    }

    /// Ends a search.
    pub fn remove(&mut self, id: SearchId) -> Option<Search<A>> {
        self.waiting.retain(|waiting| waiting.id != id);
        self.active.remove(&id)
    }

    /// The ids of all under way.
    pub fn ids(&self) -> Vec<SearchId> {
        self.active.keys().copied().collect()
    }

    /// Number of searches for peers under way.
    pub fn for_peers(&self) -> usize {
        let searches = self.active.values();
        let for_peers = searches.filter(|search| matches!(search.goal(), Goal::Peers(_)));
        for_peers.count()
    }

    /// Number of searches that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

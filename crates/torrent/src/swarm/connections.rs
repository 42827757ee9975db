//! The open connections, and the peers they belong to.

use std::collections::{BTreeMap, HashMap, HashSet};

use hawser_magnet::Serve;

use super::conn::Conn;
use super::exchange::Exchanges;
use super::hash_answers::HashAnswers;
use crate::picker::{ConnId, GroupId};

/// The open connections, and the peers they belong to.
#[derive(Default)]
pub(super) struct Connections {
    pub open: BTreeMap<ConnId, Conn>,
    /// Connections that may have room for requests.
    touched: HashSet<ConnId>,
    /// Every peer that was ever connected, by the key of its certificate.
    groups: HashMap<[u8; 32], GroupId>,
    last_id: ConnId,
    /// Number of connections opened by peers whose handshake is not over.
    pub handshaking: usize,
    /// What peers are told of each other.
    pub exchanges: Exchanges,
    /// What peers may still ask of the info dictionary, for those that asked.
    pub metadata: HashMap<ConnId, Serve>,
    /// How many answers with hashes peers may still have, for those that asked.
    pub hashes: HashMap<ConnId, HashAnswers>,
}

impl Connections {
    /// Adds a new connection, which may have room for requests.
    pub fn add(&mut self, conn: Conn) -> ConnId {
        let id = self.new_id();
        self.open.insert(id, conn);
        id
    }

    /// An id that no connection has, also none later.
    pub fn new_id(&mut self) -> ConnId {
        self.last_id += 1;
        self.last_id
    }

    pub fn remove(&mut self, id: &ConnId) -> Option<Conn> {
        self.touched.remove(id);
        self.exchanges.leave(*id);
        self.metadata.remove(id);
        self.hashes.remove(id);
        self.open.remove(id)
    }

    pub fn ids(&self) -> Vec<ConnId> {
        self.open.keys().copied().collect()
    }

    /// Notes that a connection may have room for requests.
    pub fn touch(&mut self, id: ConnId) {
        self.touched.insert(id);
    }

    /// Notes that every connection may have room for requests.
    pub fn touch_all(&mut self) {
        self.touched.extend(self.open.keys());
    }

    /// Removes and returns the marks of connections that may have room for requests.
    pub fn take_touched(&mut self) -> Vec<ConnId> {
        self.touched.drain().collect()
    }

    /// The peer with this key, added if it is new.
    pub fn group(&mut self, key: [u8; 32]) -> GroupId {
        let next = self.groups.len() as GroupId;
        *self.groups.entry(key).or_insert(next)
    }
}

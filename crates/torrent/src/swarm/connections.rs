//! The connections that are open, and whose they are.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::conn::Conn;
use crate::picker::{ConnId, GroupId};

/// The connections that are open, and whose they are.
#[derive(Default)]
pub(super) struct Connections {
    pub open: BTreeMap<ConnId, Conn>,
    /// Those that may have room for requests.
    touched: HashSet<ConnId>,
    /// By the key of its certificate, every peer that ever was connected.
    groups: HashMap<[u8; 32], GroupId>,
    last_id: ConnId,
    /// How many that peers opened are not through the handshake.
    pub handshaking: usize,
}

impl Connections {
    /// Takes in a new connection, which may have room for requests.
    pub fn add(&mut self, conn: Conn) -> ConnId {
        self.last_id += 1;
        self.open.insert(self.last_id, conn);
        self.last_id
    }

    pub fn remove(&mut self, id: &ConnId) -> Option<Conn> {
        self.touched.remove(id);
        self.open.remove(id)
    }

    pub fn ids(&self) -> Vec<ConnId> {
        self.open.keys().copied().collect()
    }

    /// A connection may have room for requests.
    pub fn touch(&mut self, id: ConnId) {
        self.touched.insert(id);
    }

    /// All may.
    pub fn touch_all(&mut self) {
        self.touched.extend(self.open.keys());
    }

    /// Those that may have room for requests, which are then looked through.
    pub fn take_touched(&mut self) -> Vec<ConnId> {
        self.touched.drain().collect()
    }

    /// The peer with this key, new or known.
    pub fn group(&mut self, key: [u8; 32]) -> GroupId {
        let next = self.groups.len() as GroupId;
        *self.groups.entry(key).or_insert(next)
    }
}

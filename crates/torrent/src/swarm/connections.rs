//! The connections that are open, and whose they are.

use std::collections::{HashMap, HashSet, hash_map};

use super::conn::Conn;
use crate::picker::{ConnId, GroupId};

/// The connections that are open, and whose they are.
#[derive(Debug)]
pub(super) struct Connections<C> {
    open: HashMap<ConnId, Conn<C>>,
    /// Those that may have room for requests.
    touched: HashSet<ConnId>,
    /// By the key of its certificate, every peer that ever was connected.
    groups: HashMap<[u8; 32], GroupId>,
    last_id: ConnId,
    /// How many that peers opened are not through the handshake.
    pub handshaking: usize,
}

impl<C> Connections<C> {
    pub fn new() -> Self {
        Self {
            open: HashMap::new(),
            touched: HashSet::new(),
            groups: HashMap::new(),
            last_id: 0,
            handshaking: 0,
        }
    }

    /// Takes in a new connection, which may have room for requests.
    pub fn add(&mut self, conn: Conn<C>) -> ConnId {
        self.last_id += 1;
        self.open.insert(self.last_id, conn);
        self.last_id
    }

    pub fn remove(&mut self, id: &ConnId) -> Option<Conn<C>> {
        self.touched.remove(id);
        self.open.remove(id)
    }

    pub fn get(&self, id: &ConnId) -> Option<&Conn<C>> {
        self.open.get(id)
    }

    pub fn get_mut(&mut self, id: &ConnId) -> Option<&mut Conn<C>> {
        self.open.get_mut(id)
    }

    pub fn iter(&self) -> hash_map::Iter<'_, ConnId, Conn<C>> {
        self.open.iter()
    }

    pub fn iter_mut(&mut self) -> hash_map::IterMut<'_, ConnId, Conn<C>> {
        self.open.iter_mut()
    }

    pub fn keys(&self) -> hash_map::Keys<'_, ConnId, Conn<C>> {
        self.open.keys()
    }

    pub fn values(&self) -> hash_map::Values<'_, ConnId, Conn<C>> {
        self.open.values()
    }

    pub fn values_mut(&mut self) -> hash_map::ValuesMut<'_, ConnId, Conn<C>> {
        self.open.values_mut()
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
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

    /// The peer with this key, if it was connected before.
    pub fn known_group(&self, key: &[u8; 32]) -> Option<GroupId> {
        self.groups.get(key).copied()
    }

    /// The key of a peer.
    pub fn key(&self, group: GroupId) -> Option<[u8; 32]> {
        let mut keys = self.groups.iter();
        keys.find(|(_, known)| **known == group)
            .map(|(key, _)| *key)
    }
}

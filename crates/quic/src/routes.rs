//! The ways to peers, each behind an address made up for it.
//!
//! QUIC knows peers by IP address and port. Here every pair of peer and path has one of its own,
//! `fd00:5c10::N`, which exists only inside this process: `N` counts up and is never used twice.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use hawser_endhost::ScionAddr;
use hawser_endhost::wire::Route;

use crate::quotes::Budget;

/// The first half of made-up addresses.
const PREFIX: u128 = 0xfd00_5c10 << 96;
/// Any port will do.
const PORT: u16 = 4242;
/// Ways kept that no connection uses. Packets from whoever likes make such; beyond this the oldest
/// goes.
const IDLE: usize = 1024;
/// Forms of one way that are recognised without reading the packet's path: one, and some more while
/// a path is refreshed. Whoever sends others only makes us read.
const FORMS: usize = 4;

/// A peer and a path, with the headers that lead there now.
#[derive(Debug)]
pub(crate) struct Way {
    id: u64,
    peer: ScionAddr,
    /// The path's interfaces from here to the peer.
    interfaces: Vec<u16>,
    route: ArcSwap<Route>,
    /// Those before, of which packets may still be under way.
    previous: ArcSwapOption<Route>,
    /// SCMP errors about it that may still be acted upon.
    reports: Mutex<Budget>,
    /// When the path in `route` expires, in seconds since the Unix epoch.
    expiry: AtomicU64,
}

impl Way {
    /// The address QUIC knows the way by.
    pub(crate) fn addr(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(PREFIX | u128::from(self.id));
        SocketAddr::V6(SocketAddrV6::new(ip, PORT, 0, 0))
    }

    pub(crate) fn peer(&self) -> ScionAddr {
        self.peer
    }

    pub(crate) fn interfaces(&self) -> &[u16] {
        &self.interfaces
    }

    /// The headers that lead there now.
    #[inline]
    pub(crate) fn route(&self) -> Guard<Arc<Route>> {
        self.route.load()
    }

    pub(crate) fn expiry(&self) -> u64 {
        self.expiry.load(Ordering::Relaxed)
    }

    /// Goes on with other headers for the same path.
    pub(crate) fn refresh(&self, route: Route, expiry: u64) {
        let before = self.route.swap(Arc::new(route));
        if before.path() != self.route().path() {
            self.previous.store(Some(before));
        }
        self.expiry.store(expiry, Ordering::Relaxed);
    }

    /// The headers that led there before the present ones.
    pub(crate) fn previous(&self) -> Guard<Option<Arc<Route>>> {
        self.previous.load()
    }

    /// Whether one more SCMP error about it may be acted upon.
    pub(crate) fn takes_report(&self, now: Instant) -> bool {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.take(now)
    }
}

/// The number in a made-up address.
fn id_of(addr: SocketAddr) -> Option<u64> {
    match addr {
        SocketAddr::V6(addr) => {
            let bits = u128::from(*addr.ip());
            let id = bits as u64;
            (bits == PREFIX | u128::from(id)).then_some(id)
        }
        SocketAddr::V4(_) => None,
    }
}

/// The address this endpoint goes by inside QUIC.
pub(crate) fn local_addr() -> SocketAddr {
    let ip = Ipv6Addr::from(PREFIX);
    SocketAddr::V6(SocketAddrV6::new(ip, PORT, 0, 0))
}

/// All ways of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<Table>);

#[derive(Debug, Default)]
pub(crate) struct Table {
    last_id: u64,
    ways: HashMap<u64, Entry>,
    by_path: HashMap<(ScionAddr, Vec<u16>), u64>,
    /// Ways by the form packets from there have.
    by_form: HashMap<Box<[u8]>, u64>,
    /// Ways nobody uses, the one longest unused first.
    idle: BTreeMap<u64, u64>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    way: Arc<Way>,
    users: usize,
    idle_since: u64,
    forms: VecDeque<Box<[u8]>>,
}

/// A way in use: it keeps its address as long as this exists.
#[derive(Debug)]
pub(crate) struct InUse {
    routes: Arc<Routes>,
    way: Arc<Way>,
}

impl InUse {
    pub(crate) fn way(&self) -> &Arc<Way> {
        &self.way
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.routes.lock().release(self.way.id);
    }
}

impl Routes {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        // No operation on the table can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way over `interfaces` that `route` leads, for a connection to use.
    pub(crate) fn take(self: &Arc<Self>, route: Route, interfaces: &[u16], expiry: u64) -> InUse {
        let mut table = self.lock();
        let way = Arc::clone(table.way(route.clone(), interfaces, expiry));
        table.hold(way.id);
        drop(table);
        // What the local side asks for counts, also where packets came in another form before.
        way.refresh(route, expiry);
        InUse {
            routes: Arc::clone(self),
            way,
        }
    }

    /// The way known by `addr`, for a connection to use; none if it is gone.
    pub(crate) fn take_addr(self: &Arc<Self>, addr: SocketAddr) -> Option<InUse> {
        let mut table = self.lock();
        let id = id_of(addr)?;
        let way = Arc::clone(&table.ways.get(&id)?.way);
        table.hold(id);
        drop(table);
        Some(InUse {
            routes: Arc::clone(self),
            way,
        })
    }

    /// The way known by `addr`, to send something there; none if it is gone.
    pub(crate) fn find(&self, addr: SocketAddr) -> Option<Arc<Way>> {
        let table = self.lock();
        Some(Arc::clone(&table.ways.get(&id_of(addr)?)?.way))
    }
}

impl Table {
    /// The way packets of this form come from.
    #[inline]
    pub(crate) fn by_form(&self, form: &[u8]) -> Option<&Arc<Way>> {
        let id = self.by_form.get(form)?;
        self.ways.get(id).map(|entry| &entry.way)
    }

    /// Takes in that packets of `form` come from `way`.
    pub(crate) fn remember(&mut self, way: &Way, form: &[u8]) {
        let Some(entry) = self.ways.get_mut(&way.id) else {
            return;
        };
        if entry.forms.len() == FORMS
            && let Some(oldest) = entry.forms.pop_front()
        {
            self.by_form.remove(&oldest);
        }
        entry.forms.push_back(form.into());
        self.by_form.insert(form.into(), way.id);
    }

    /// The way to `route`'s peer over `interfaces`, made if it is not there.
    pub(crate) fn way(&mut self, route: Route, interfaces: &[u16], expiry: u64) -> &Arc<Way> {
        let path = (route.peer(), interfaces.to_vec());
        let id = match self.by_path.get(&path) {
            Some(id) => *id,
            None => {
                self.make_room();
                self.last_id += 1;
                let id = self.last_id;
                let way = Arc::new(Way {
                    id,
                    peer: path.0,
                    interfaces: path.1.clone(),
                    route: ArcSwap::from_pointee(route),
                    previous: ArcSwapOption::empty(),
                    reports: Mutex::new(Budget::new(Instant::now())),
                    expiry: AtomicU64::new(expiry),
                });
                self.by_path.insert(path, id);
                let entry = Entry {
                    way,
                    users: 0,
                    idle_since: self.clock,
                    forms: VecDeque::new(),
                };
                self.ways.insert(id, entry);
                self.rest(id);
                id
            }
        };
        &self.ways[&id].way
    }

    fn hold(&mut self, id: u64) {
        if let Some(entry) = self.ways.get_mut(&id) {
            entry.users += 1;
            self.idle.remove(&entry.idle_since);
        }
    }

    fn release(&mut self, id: u64) {
        let Some(entry) = self.ways.get_mut(&id) else {
            return;
        };
        entry.users -= 1;
        if entry.users == 0 {
            self.rest(id);
            self.make_room();
        }
    }

    /// Puts a way nobody uses at the end of those that may go.
    fn rest(&mut self, id: u64) {
        if let Some(entry) = self.ways.get_mut(&id) {
            self.clock += 1;
            entry.idle_since = self.clock;
            self.idle.insert(self.clock, id);
        }
    }

    fn make_room(&mut self) {
        while self.idle.len() >= IDLE
            && let Some((_, id)) = self.idle.pop_first()
            && let Some(entry) = self.ways.remove(&id)
        {
            for form in &entry.forms {
                self.by_form.remove(form);
            }
            self.by_path
                .remove(&(entry.way.peer, entry.way.interfaces.clone()));
        }
    }
}

#[cfg(test)]
mod tests;

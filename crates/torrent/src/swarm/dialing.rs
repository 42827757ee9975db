//! The peers that are dialed, and over which paths.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_address::PeerAddr;
use hawser_manager::{Carried, Order, PathOptions, Room, SelectBy};
use hawser_path::Policy;
use hawser_session::{Dials, PolicyChanges};

use super::connections::Connections;
use super::event::DialResult;
use super::remotes::{Remote, RemoteId, Remotes};
use super::subflow::{Dialed, Peer, Subflows};
use crate::candidates::Candidates;
use crate::picker::{ConnId, Picker};
use crate::transport::Transport;
use crate::wire::BLOCK;

/// The path managers of the peers that are dialed, and the subflows that they ordered.
pub(super) struct Dialing<T: Transport> {
    /// Which side chooses paths. A downloader announces to uploaders whether they may.
    pub select_by: SelectBy,
    /// How the paths to each SCION peer are chosen and used.
    pub options: PathOptions,
    pub remotes: Remotes<T::Path>,
    last_remote: RemoteId,
    /// Peers that were found while the torrent ran.
    pub found: Candidates,
    /// The dials under way, also those to downloaders.
    pub dials: Dials<Dialed, DialResult>,
    /// The subflows that are open, also those to downloaders.
    pub subflows: Subflows,
    /// The policies that take the place of that in `options`.
    pub policies: PolicyChanges,
}

impl<T: Transport> Dialing<T> {
    /// For these peers, none of which is dialed yet.
    pub fn new(peers: Vec<PeerAddr>, select_by: SelectBy, options: PathOptions) -> Self {
        let mut dialing = Self {
            select_by,
            options,
            remotes: Remotes::new(),
            last_remote: RemoteId::default(),
            found: Candidates::default(),
            dials: Dials::default(),
            subflows: Subflows::default(),
            policies: PolicyChanges::default(),
        };
        for addr in peers {
            let mut known = dialing.remotes.values();
            if known.all(|known| known.addr != addr) {
                dialing.add(addr, None);
            }
        }
        dialing
    }

    /// Adds a remote to which no path is known yet, found at a time, or listed.
    pub fn add(&mut self, addr: PeerAddr, found_at: Option<Instant>) -> RemoteId {
        let id = self.last_remote.next();
        self.last_remote = id;
        let remote = Remote::new(addr, found_at, self.select_by, &self.options);
        self.remotes.insert(id, remote);
        id
    }

    /// Sets which paths may be used. Policies do not apply to IP peers.
    pub fn set_policy(&mut self, policy: Option<Policy>) {
        let remotes = self.remotes.values_mut();
        for remote in remotes.filter(|remote| remote.addr.scion().is_some()) {
            remote.paths.set_policy(policy.clone());
            remote.log_decisions();
        }
        self.options.policy = policy;
    }

    /// The orders of the path managers of remotes.
    pub fn orders(&mut self, now: Instant) -> Vec<(Peer, Order)> {
        let mut orders = Vec::new();
        for (id, remote) in &mut self.remotes {
            let of_remote = remote.paths.orders(now).into_iter();
            orders.extend(of_remote.map(|order| (Peer::Remote(*id), order)));
        }
        orders
    }

    /// When a path manager is due next.
    pub fn next_due(&self) -> Option<Instant> {
        let remotes = self.remotes.values();
        remotes.filter_map(|remote| remote.paths.next_due()).min()
    }

    /// Ends the dials and forgets the subflows to a peer that has left.
    pub fn leave(&mut self, peer: Peer) {
        self.dials.retain(|dialed| dialed.to != peer);
        self.subflows.leave(peer);
    }

    /// Reports to the path managers what each subflow carried, to be weighed.
    pub fn weigh(&mut self, conns: &Connections, picker: &Picker, now: Instant) {
        // Near the end the plan, not the path, limits the rate.
        let ending = picker.free_blocks() == 0;
        for (id, remote) in &mut self.remotes {
            let (conns, subflows) = (&conns.open, &self.subflows);
            let carried = |subflow| {
                let id = subflows.conn(Peer::Remote(*id), subflow);
                let Some((id, conn)) = id.and_then(|id| Some((id, conns.get(&id)?))) else {
                    return Carried::default();
                };
                let asked = picker.asked(id) > 0 || conn.ordered.held;
                Carried {
                    bytes: conn.traffic.received.load(Ordering::Relaxed),
                    usable: !ending && asked && conn.theirs.unchoked,
                }
            };
            remote.paths.tick(carried, now);
            remote.log_decisions();
        }
    }

    /// Whether requests over one path limit those over another.
    pub fn any_shares(&self) -> bool {
        let mut remotes = self.remotes.values();
        remotes.any(|remote| remote.paths.has_shares())
    }

    /// How much more may be requested over a connection.
    pub fn room(&self, id: ConnId, picker: &Picker, conns: &Connections) -> Room {
        let conn = conns.open.get(&id);
        let Some((remote, dialed)) = conn.and_then(|conn| conn.remote()) else {
            return Room::ANY;
        };
        let known = self.remotes.get(&remote);
        let Some(known) = known.filter(|known| known.paths.has_shares()) else {
            return Room::ANY;
        };
        let bytes = |blocks: u64| blocks * u64::from(BLOCK);
        let asked = conns.open.keys();
        let asked: u64 = asked.map(|id| picker.asked(*id) as u64).sum();
        let doubles = asked.saturating_sub(picker.asked_blocks());
        let requested = |subflow| {
            let conn = self.subflows.conn(dialed.to, subflow);
            bytes(conn.map_or(0, |id| picker.asked(id)) as u64)
        };
        known.paths.room(dialed.path, requested, bytes(doubles))
    }
}

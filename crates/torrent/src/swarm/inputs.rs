//! Handling what peers send, and what the disk reports about blocks and pieces.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_address::PeerAddr;
use hawser_store::{DiskEvent, Hash, Reservation};

use super::conn::queued;
use super::digests::Purpose;
use super::state::Swarm;
use crate::error::DownloadError;
use crate::metainfo::Metainfo;
use crate::peer::{Gone, Input};
use crate::picker::{Arrival, ConnId};
use crate::transport::Transport;
use crate::wire::{Message, Request, WireError};

/// How many times a peer may take back every piece of the torrent, by sending a smaller bitfield.
/// Each time costs as much work as adding the pieces, so this bounds the work.
const MAX_TAKEN_BACK: u64 = 4;

impl<T: Transport> Swarm<T> {
    /// Handles what a peer sent.
    pub(super) fn take_input(
        &mut self,
        conn: ConnId,
        input: Input,
        room: Option<&Reservation>,
        now: Instant,
    ) {
        let Some(known) = self.conns.open.get_mut(&conn) else {
            return;
        };
        match input {
            Input::Block {
                mut request,
                mut data,
            } => {
                if let Some(padded) = &mut known.wants.padded {
                    padded.arrived(&mut request, &mut data);
                }
                known.delivered(data.len() as u64);
                if let Some((remote, dialed)) = self.remote_of(conn) {
                    remote.paths.delivered(dialed.path, data.len() as u64);
                }
                self.fetching.requests.arrived(data.len() as u64, now);
                self.arrived(conn, request, data, room, now);
            }
            Input::Have(piece) => {
                self.sees(conn, [piece]);
                let cancel = self.fetching.picker.add_has(conn, piece);
                super::fetching::cancel(&mut self.conns, cancel);
                self.show_interest(conn);
            }
            Input::Bitfield(has) => {
                let seen = match self.uploads.super_seeding {
                    Some(_) => has.iter().collect(),
                    None => Vec::new(),
                };
                let taken_back = self.fetching.picker.set_has(conn, has);
                known.theirs.taken_back += u64::from(taken_back);
                let most = u64::from(self.metainfo.pieces.count()) * MAX_TAKEN_BACK;
                if known.theirs.taken_back > most {
                    return self.gone(conn, &Gone::Broke(WireError::TakesBack), now);
                }
                if taken_back > 0 {
                    let released = self.fetching.picker.release_missing(conn);
                    known.send(released.into_iter().map(Message::Cancel));
                    self.conns.touch_all();
                }
                self.sees(conn, seen);
                self.show_interest(conn);
            }
            Input::Choke => {
                known.theirs.unchoked = false;
                known.theirs.choke_at = now;
                // The peer drops the requests when it chokes (BEP 3).
                if let Some(padded) = &mut known.wants.padded {
                    padded.choked();
                }
                self.fetching.picker.release(conn);
                known.set_asked(0, now);
            }
            Input::Unchoke => {
                known.theirs.unchoked = true;
                known.theirs.choke_at = now;
            }
            Input::Interested => {
                known.set_peer_interested(true);
                let peer = known.peer;
                self.weigh_interest(peer, now);
            }
            Input::NotInterested => {
                known.set_peer_interested(false);
                let peer = known.peer;
                self.weigh_interest(peer, now);
            }
            Input::Port(port) => self.on_dht_port(conn, port),
            Input::HashRequest(wanted) => self.on_hash_request(conn, &wanted, now),
            Input::Hashes(named, hashes) => self.on_block_hashes(conn, &named, &hashes, now),
            Input::HashReject(named) => self.fetching.held.on_reject(conn, &named),
            Input::Multipath(message) => self.on_multipath(conn, message, now),
            Input::MetadataRequest(piece) => self.on_metadata_request(conn, piece, now),
            Input::Exchange(exchange) => self.on_exchange(conn, exchange, now),
            Input::Extended(theirs) => {
                tracing::debug!(conn, client = theirs.client, "peer");
                if let Some(client) = theirs.client {
                    known.theirs.client = Some(client.into());
                }
                if let Some(limit) = theirs.request_queue {
                    known.theirs.limit = queued(limit);
                }
                known.theirs.upload_only = theirs.upload_only;
                let peer = known.peer;
                let upload_only = theirs.upload_only;
                self.uploads.choker.set_upload_only(peer, upload_only);
                known.theirs.port = theirs.port;
                known.theirs.metadata = theirs.ut_metadata;
                let exchange = match known.connection.peer() {
                    PeerAddr::Scion(_) => theirs.scion_pex,
                    PeerAddr::Ip(_) => theirs.ut_pex,
                };
                self.exchange_with(conn, exchange, now);
                self.introduced(conn, theirs.multipath, now);
            }
        }
    }

    pub(super) fn show_interest(&mut self, conn: ConnId) {
        let interesting = self.fetching.picker.is_interesting(conn);
        if let Some(known) = self.conns.open.get_mut(&conn)
            && known.wants.interested != interesting
        {
            known.wants.interested = interesting;
            known.send([if interesting {
                Message::Interested
            } else {
                Message::NotInterested
            }]);
        }
    }

    /// Handles a block from a peer, or from a web seed.
    pub(super) fn arrived(
        &mut self,
        conn: ConnId,
        request: Request,
        data: bytes::Bytes,
        room: Option<&Reservation>,
        now: Instant,
    ) {
        self.tally.fetched_bytes += data.len() as u64;
        match self.fetching.picker.receive(conn, request, now) {
            Arrival::New { cancel, complete } => {
                super::fetching::cancel(&mut self.conns, cancel);
                if let Some(room) = room.cloned() {
                    let begin = u64::from(request.begin);
                    self.fetching.disk.write(request.piece, begin, data, room);
                }
                if complete {
                    self.fetching.disk.check(request.piece);
                }
            }
            Arrival::Surplus => {
                self.tally.wasted_bytes += data.len() as u64;
            }
            Arrival::Flood(received) => {
                self.tally.wasted_bytes += data.len() as u64;
                let fault = WireError::Flood(received);
                self.gone(conn, &Gone::Broke(fault), now);
            }
        }
    }

    pub(super) fn on_disk_event(&mut self, event: DiskEvent<Hash<Metainfo>>, now: Instant) {
        match event {
            DiskEvent::Checked { range, is_right } => match is_right {
                true => self.verified(range, now),
                false => self.failed(range, now),
            },
            DiskEvent::Digests { range, digests } => {
                let digests = digests.into_iter().map(Into::into);
                self.on_digests(range, digests.collect(), now);
            }
            DiskEvent::Failed(error) => {
                drop(self.ending.failure.replace(DownloadError::Store(error)))
            }
        }
    }

    fn verified(&mut self, piece: u32, now: Instant) {
        self.fetching.picker.verify(piece);
        self.fetching
            .files
            .verify(piece, self.fetching.picker.wanted());
        self.shared.offer(piece, true);
        self.note_demand();
        self.ending.alive_at = now;
        self.tally.verified_bytes += u64::from(self.metainfo.pieces.size(piece));
        if self.blame.suspects.contains(&piece) {
            self.digest(piece, Purpose::Blame);
        }
        self.fetching.unannounced.push(piece);
    }

    /// Takes note of whether anything more is to be fetched.
    pub(super) fn note_demand(&mut self) {
        let missing = !self.is_complete();
        self.shared.fetching.store(missing, Ordering::Relaxed);
        if !missing {
            let remotes = self.dialing.remotes.values_mut();
            remotes.for_each(|remote| remote.set_complete(false));
        }
    }

    /// Announces the pieces verified since the last call to all peers that lack them. Peers may
    /// have become uninteresting.
    pub(super) fn announce(&mut self) {
        let pieces = std::mem::take(&mut self.fetching.unannounced);
        if pieces.is_empty() {
            return;
        }
        for (id, conn) in &self.conns.open {
            let lacking = pieces.iter().copied();
            let lacking = lacking.filter(|piece| !self.fetching.picker.has(*id, *piece));
            conn.send(lacking.map(Message::Have));
        }
        for id in self.conns.ids() {
            self.show_interest(id);
        }
    }
}

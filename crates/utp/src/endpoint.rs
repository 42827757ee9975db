//! The connections of one UDP socket: which packet belongs to which, and which are new.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use thiserror::Error;

use crate::config::Config;
use crate::connection::{CloseReason, Connection, Ids, Opening, Read, reset_for};
use crate::packet::{HEADER_LENGTH, Header, Packet, PacketKind};

/// Most answers to packets of unknown connections that wait to be sent; the others are dropped.
const MAX_REPLIES: usize = 64;
/// How often a free number is drawn for a connection before there counts as none.
const ID_ATTEMPTS: usize = 64;

/// A connection of an endpoint. It is never given to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u64);

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A peer has opened a connection: [`Endpoint::accept`].
    Incoming,
    /// There is something to read, the end, or an error.
    Readable(Handle),
    /// It is connected, there is room to write again, or an error.
    Writable(Handle),
}

/// Packets to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Their destination.
    pub to: SocketAddr,
    /// Bytes of each, but for the last, which may be shorter.
    pub stride: usize,
}

/// Why no connection is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has as many as it may.
    #[error("there are {0} connections over uTP already")]
    TooMany(usize),
    /// All numbers that were tried are in use with this peer.
    #[error("no connection number to {0} is free")]
    NoFreeId(SocketAddr),
}

#[derive(Debug)]
struct Entry {
    connection: Connection,
    peer: SocketAddr,
    /// Under which time it is in the list of those that are due.
    due: Option<Instant>,
    /// It is in the list of those that may send.
    is_ready: bool,
    /// It waits to be accepted.
    is_incoming: bool,
}

/// The connections of one UDP socket, without I/O and without a clock.
///
/// After each call: send what [`Self::transmit`] returns, take the [events](Self::poll), and call
/// [`Self::advance`] at [`Self::next_due`]. Each call takes at most the time of one connection, but for
/// [`Self::advance`] and [`Self::abort`].
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    rng: Rng,
    /// When timestamps are zero.
    epoch: Instant,
    next_handle: u64,
    connections: HashMap<Handle, Entry>,
    /// Those that are open, by the peer and the number in its packets.
    open: HashMap<(SocketAddr, u16), Handle>,
    due: BTreeSet<(Instant, Handle)>,
    /// Those that may send, in turn.
    ready: VecDeque<Handle>,
    incoming: VecDeque<Handle>,
    events: VecDeque<Event>,
    replies: VecDeque<(SocketAddr, [u8; HEADER_LENGTH])>,
}

impl Endpoint {
    /// An endpoint without connections. Their numbers are drawn from `rng`.
    pub fn new(config: Config, rng: Rng, now: Instant) -> Self {
        Self {
            config,
            rng,
            epoch: now,
            next_handle: 0,
            connections: HashMap::new(),
            open: HashMap::new(),
            due: BTreeSet::new(),
            ready: VecDeque::new(),
            incoming: VecDeque::new(),
            events: VecDeque::new(),
            replies: VecDeque::new(),
        }
    }

    /// Opens a connection. It is connected with the first [`Event::Writable`], or closed.
    ///
    /// # Errors
    /// [`ConnectError`] if there are too many.
    pub fn connect(&mut self, peer: SocketAddr, now: Instant) -> Result<Handle, ConnectError> {
        if self.connections.len() >= self.config.max_connections {
            return Err(ConnectError::TooMany(self.connections.len()));
        }
        let draw = |_| self.rng.u16(..);
        let mut drawn = (0..ID_ATTEMPTS).map(draw);
        let is_free = |id: &u16| !self.open.contains_key(&(peer, *id));
        let receive = drawn.find(is_free).ok_or(ConnectError::NoFreeId(peer))?;
        let ids = Ids {
            receive,
            send: receive.wrapping_add(1),
            syn: None,
        };
        let connection = Connection::connect(&self.opening(ids, peer), now);
        Ok(self.insert(connection, peer, false, now))
    }

    fn opening(&mut self, ids: Ids, peer: SocketAddr) -> Opening<'_> {
        Opening {
            ids,
            sequence: self.rng.u16(..),
            payload: Config::payload(peer),
            epoch: self.epoch,
            config: &self.config,
        }
    }

    fn insert(
        &mut self,
        connection: Connection,
        peer: SocketAddr,
        is_incoming: bool,
        now: Instant,
    ) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        self.open.insert((peer, connection.ids.receive), handle);
        let entry = Entry {
            connection,
            peer,
            due: None,
            is_ready: false,
            is_incoming,
        };
        self.connections.insert(handle, entry);
        self.with(handle, |connection| connection.advance(now), now);
        handle
    }

    /// The next connection that a peer has opened, and the peer.
    pub fn accept(&mut self) -> Option<(Handle, SocketAddr)> {
        loop {
            let handle = self.incoming.pop_front()?;
            // One that has ended meanwhile is not there any more.
            if let Some(entry) = self.connections.get_mut(&handle) {
                entry.is_incoming = false;
                return Some((handle, entry.peer));
            }
        }
    }

    /// Takes a datagram. What is no packet of uTP is ignored: other protocols may use the same port.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        let Ok(packet) = Packet::parse(datagram) else {
            return;
        };
        let id = packet.header.connection_id;
        match packet.header.kind {
            PacketKind::Syn => self.receive_syn(from, &packet, now),
            PacketKind::Reset => {
                if let Some(handle) = self.find_reset(from, id) {
                    self.with(handle, |it| it.receive(&packet, now), now);
                }
            }
            _ => match self.open.get(&(from, id)) {
                Some(handle) => self.with(*handle, |it| it.receive(&packet, now), now),
                None => self.refuse(from, &packet.header),
            },
        }
    }

    /// The connection that a reset is for: its number is that of packets to this side, or, if it answers an
    /// unknown connection, that of packets from this side.
    fn find_reset(&self, from: SocketAddr, id: u16) -> Option<Handle> {
        if let Some(handle) = self.open.get(&(from, id)) {
            return Some(*handle);
        }
        let near = [id.wrapping_sub(1), id.wrapping_add(1)];
        let found = near.iter().filter_map(|it| self.open.get(&(from, *it)));
        let mut found = found.filter(|it| {
            let entry = self.connections.get(it);
            entry.is_some_and(|entry| entry.connection.ids.send == id)
        });
        found.next().copied()
    }

    fn receive_syn(&mut self, from: SocketAddr, packet: &Packet<'_>, now: Instant) {
        let header = &packet.header;
        let ids = Ids {
            receive: header.connection_id.wrapping_add(1),
            send: header.connection_id,
            syn: Some(header.sequence),
        };
        if let Some(handle) = self.open.get(&(from, ids.receive)).copied() {
            let entry = self.connections.get(&handle);
            match entry.is_some_and(|it| it.connection.is_opened_by(header.sequence)) {
                true => self.with(handle, |it| it.receive(packet, now), now),
                // The number belongs to another connection of this peer.
                false => self.refuse(from, header),
            }
            return;
        }
        if self.config.backlog == 0 {
            return self.refuse(from, header);
        }
        let waiting = self.incoming.len();
        if waiting >= self.config.backlog || self.connections.len() >= self.config.max_connections {
            // The peer sends it again, when there may be room.
            return;
        }
        let connection = Connection::accept(&self.opening(ids, from), header, now);
        let handle = self.insert(connection, from, true, now);
        self.incoming.push_back(handle);
        self.events.push_back(Event::Incoming);
    }

    /// Answers a packet of a connection that does not exist, with no more bytes than it has.
    fn refuse(&mut self, from: SocketAddr, header: &Header) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back((from, reset_for(header)));
        }
    }

    /// Appends packets to `out`, for one peer, at most `most`. `None` if there is nothing to send now.
    pub fn transmit(&mut self, out: &mut Vec<u8>, most: usize, now: Instant) -> Option<Transmit> {
        if let Some((to, reply)) = self.replies.pop_front() {
            out.extend(reply);
            let stride = reply.len();
            return Some(Transmit { to, stride });
        }
        while let Some(handle) = self.ready.pop_front() {
            let Some(entry) = self.connections.get_mut(&handle) else {
                continue;
            };
            entry.is_ready = false;
            let to = entry.peer;
            let stride = entry.connection.transmit(out, most, now);
            self.refresh(handle);
            if let Some(stride) = stride {
                return Some(Transmit { to, stride });
            }
        }
        None
    }

    /// Whether [`Self::transmit`] may have something to send.
    pub fn wants_to_transmit(&self) -> bool {
        !self.ready.is_empty() || !self.replies.is_empty()
    }

    /// When [`Self::advance`] is to be called; `None` if never.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        while let Some((due, handle)) = self.due.first().copied()
            && due <= now
        {
            self.with(handle, |it| it.advance(now), now);
            // Not even a fault of a timer may keep this loop going.
            if let Some(entry) = self.connections.get_mut(&handle)
                && entry.due.is_some_and(|due| due <= now)
            {
                debug_assert!(false, "a timer is due again at once");
                self.due.remove(&(due, handle));
                entry.due = None;
            }
        }
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the peer has answered.
    pub fn is_connected(&self, handle: Handle) -> bool {
        self.get(handle).is_some_and(Connection::is_connected)
    }

    /// Why a connection is no more; `None` while it is open.
    pub fn closed(&self, handle: Handle) -> Option<CloseReason> {
        match self.get(handle) {
            Some(connection) => connection.closed(),
            None => Some(CloseReason::Closed),
        }
    }

    /// The smoothed round-trip time, if it was measured.
    pub fn rtt(&self, handle: Handle) -> Option<Duration> {
        self.get(handle).and_then(Connection::rtt)
    }

    /// Reads into `out`.
    ///
    /// # Errors
    /// If the connection was closed before the peer has ended its direction.
    pub fn read(
        &mut self,
        handle: Handle,
        out: &mut [u8],
        now: Instant,
    ) -> Result<Read, CloseReason> {
        let closed = Err(CloseReason::Closed);
        self.with_or(handle, closed, |it| it.read(out), now)
    }

    /// Writes. Returns how many bytes were taken; 0 if there is no room now.
    ///
    /// # Errors
    /// If the connection is closed, or [finished](Self::finish).
    pub fn write(
        &mut self,
        handle: Handle,
        bytes: &[u8],
        now: Instant,
    ) -> Result<usize, CloseReason> {
        let closed = Err(CloseReason::Closed);
        self.with_or(handle, closed, |it| it.write(bytes, now), now)
    }

    /// Ends the own direction behind what was written.
    pub fn finish(&mut self, handle: Handle, now: Instant) {
        self.with(handle, Connection::finish, now);
    }

    /// The user needs the connection no more: what was written is still sent, for 30 s at most. The handle is
    /// not valid after that.
    pub fn close(&mut self, handle: Handle, now: Instant) {
        self.with(handle, |it| it.close(now), now);
    }

    /// Ends all connections at once; the peers are told by what is to be sent next.
    pub fn abort(&mut self, now: Instant) {
        let handles: Vec<Handle> = self.connections.keys().copied().collect();
        for handle in handles {
            self.with(handle, Connection::abort, now);
        }
    }

    /// A packet to this peer was larger than a device takes, and was not sent: segments to the peer are smaller
    /// from now on, and what it had is sent in such ones.
    pub fn on_too_large(&mut self, peer: SocketAddr, refused: &[u8], now: Instant) {
        let Ok(refused) = Packet::parse(refused) else {
            return;
        };
        let of_peer = self.connections.iter().filter(|(_, it)| it.peer == peer);
        let handles: Vec<Handle> = of_peer.map(|(handle, _)| *handle).collect();
        for handle in handles {
            self.with(handle, |it| it.on_too_large(&refused, now), now);
        }
    }

    fn get(&self, handle: Handle) -> Option<&Connection> {
        self.connections.get(&handle).map(|it| &it.connection)
    }

    fn with(&mut self, handle: Handle, call: impl FnOnce(&mut Connection), now: Instant) {
        self.with_or(handle, (), call, now);
    }

    /// Calls a connection, and keeps the lists in which it is; `none` if it does not exist.
    fn with_or<T>(
        &mut self,
        handle: Handle,
        none: T,
        call: impl FnOnce(&mut Connection) -> T,
        now: Instant,
    ) -> T {
        let Some(entry) = self.connections.get_mut(&handle) else {
            return none;
        };
        let result = call(&mut entry.connection);
        if entry.is_incoming && entry.connection.closed().is_some() {
            // Nobody has it.
            entry.connection.close(now);
            entry.is_incoming = false;
            self.incoming.retain(|it| *it != handle);
        }
        self.refresh(handle);
        result
    }

    fn refresh(&mut self, handle: Handle) {
        let Some(entry) = self.connections.get_mut(&handle) else {
            return;
        };
        let connection = &mut entry.connection;
        let signals = connection.take_signals();
        if signals.readable {
            self.events.push_back(Event::Readable(handle));
        }
        if signals.writable {
            self.events.push_back(Event::Writable(handle));
        }
        let key = (entry.peer, connection.ids.receive);
        if connection.closed().is_some() && self.open.get(&key) == Some(&handle) {
            self.open.remove(&key);
        }
        let due = connection.due();
        if due != entry.due {
            if let Some(before) = entry.due.take() {
                self.due.remove(&(before, handle));
            }
            self.due.extend(due.map(|due| (due, handle)));
            entry.due = due;
        }
        if connection.is_gone() {
            self.connections.remove(&handle);
        } else if !entry.is_ready && connection.wants_to_transmit() {
            entry.is_ready = true;
            self.ready.push_back(handle);
        }
    }

    /// Bytes that are kept for all connections, and how many there are.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        let kept = self.connections.values().map(|it| it.connection.kept());
        (kept.sum(), self.connections.len())
    }
}

#[cfg(test)]
mod tests;

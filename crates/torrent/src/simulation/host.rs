//! A host: what it fetches, serves and sends.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use hawser_choker::{Action, Choker, Counters, DEFAULT_SLOTS, Goal};
use hawser_endhost::IsdAsn;
use hawser_manager::Room;
use hawser_path::Fingerprint;

use super::{HostId, Message, RTT, STEP, Setting};
use crate::bitfield::Bitfield;
use crate::picker::{AddressFamily, Arrival, ConnId, GroupId, Picker};
use crate::pipeline::{self, Subflow};
use crate::requests::{Filled, Pace, Requests, Source};
use crate::wire::Request;

/// Requests that a host queues for each peer.
const QUEUE: usize = 500;

/// A connection to another host.
pub(super) struct Connection {
    path: Fingerprint,
    pace: Pace,
    is_stalled: bool,
    /// Whether the other host answers requests.
    is_open: bool,
    is_interested: bool,
    /// Whether the other host is interested, and holds a slot.
    wants: bool,
    has_slot: bool,
    /// Blocks to be sent, and how many bytes of the first were sent already.
    queue: VecDeque<Request>,
    begun: u32,
    /// Its part of the uplink, compared with others.
    pub weight: f64,
    family: AddressFamily,
    pub received: u64,
    pub sent: u64,
}

impl Connection {
    fn new(other: HostId, family: AddressFamily, now: Instant) -> Self {
        Self {
            path: Fingerprint::local(IsdAsn(other + 1)),
            family,
            pace: Pace::new(now),
            is_stalled: false,
            is_open: false,
            is_interested: false,
            wants: false,
            has_slot: false,
            queue: VecDeque::new(),
            begun: 0,
            weight: 1.0,
            received: 0,
            sent: 0,
        }
    }
}

/// A host, and its connections by the other host.
pub(super) struct Host {
    setting: Setting,
    pub picker: Picker,
    requests: Requests,
    choker: Choker<HostId>,
    is_seeder: bool,
    uplink: f64,
    rides_free: bool,
    pub connections: BTreeMap<HostId, Connection>,
    /// Messages to be sent.
    pub outbox: Vec<(HostId, Message)>,
    pub wasted: u64,
}

impl Host {
    pub fn new(setting: Setting, id: HostId, seed: u64, now: Instant) -> Self {
        let count = setting.pieces.count();
        let is_seeder = id < setting.seeders;
        let verified = match is_seeder {
            true => Bitfield::full(count),
            false => Bitfield::empty(count),
        };
        let (goal, slots, uplink) = match is_seeder {
            true => (Goal::Seeding, DEFAULT_SLOTS, setting.seeder_uplink),
            false => (Goal::Fetching, setting.slots, setting.leecher_uplink),
        };
        let mut picker = Picker::new(setting.pieces, verified, seed);
        let ids = |host: HostId| {
            let is_stranger = host >= setting.hosts() - setting.strangers;
            let own = if is_stranger && host != id { id + 1 } else { 0 };
            host ^ own << 32
        };
        picker.set_own_id(ids(id));
        let mut connections = BTreeMap::new();
        let mut choker = Choker::new(goal, slots, seed, now);
        for other in (0..setting.hosts()).filter(|other| *other != id) {
            let Some(family) = setting.between(id, other) else {
                continue;
            };
            picker.add_conn(other, other as GroupId);
            picker.set_peer(other, ids(other), family);
            if other < setting.seeders {
                picker.set_has(other, Bitfield::full(count));
            }
            choker.join(other);
            connections.insert(other, Connection::new(other, family, now));
        }
        Self {
            requests: Requests::new(picker.free_blocks(), now),
            picker,
            choker,
            is_seeder,
            uplink,
            rides_free: id >= setting.hosts() - setting.free_riders,
            connections,
            outbox: Vec::new(),
            wasted: 0,
            setting,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.picker.is_complete()
    }

    /// Handles a message that has arrived.
    pub fn handle(&mut self, from: HostId, message: Message, now: Instant) {
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        match message {
            Message::Interested(interested) => {
                connection.wants = interested;
                self.choker
                    .set_interested(from, interested && !self.rides_free);
            }
            Message::Choked(choked) => {
                connection.is_open = !choked;
                if choked {
                    self.picker.release(from);
                    connection.pace.set_asked(0, RTT, now);
                }
            }
            Message::Have(piece) => {
                let cancel = self.picker.add_has(from, piece);
                self.cancel(cancel);
            }
            Message::Request(request) if connection.has_slot => {
                connection.queue.push_back(request);
            }
            Message::Request(_) => {}
            Message::Cancel(request) => {
                let committed = self.setting.committed;
                let mut waiting = connection.queue.iter().skip(committed);
                if let Some(at) = waiting.position(|it| *it == request) {
                    connection.queue.remove(at + committed);
                }
            }
            Message::Block(request) => self.receive(from, request, now),
        }
    }

    fn receive(&mut self, from: HostId, request: Request, now: Instant) {
        let bytes = u64::from(request.length);
        if let Some(connection) = self.connections.get_mut(&from) {
            connection.received += bytes;
            connection.pace.delivered();
        }
        match self.picker.receive(from, request, now) {
            Arrival::New { cancel, complete } => {
                self.requests.arrived(bytes, now);
                self.cancel(cancel);
                if complete {
                    self.picker.verify(request.piece);
                    let others = self.connections.keys();
                    let lacking = others.filter(|it| !self.picker.has(**it, request.piece));
                    let have = Message::Have(request.piece);
                    self.outbox.extend(lacking.map(|other| (*other, have)));
                }
            }
            Arrival::Surplus => self.wasted += bytes,
            Arrival::Flood(_) => panic!("no more was sent than was requested"),
        }
    }

    fn cancel(&mut self, placed: Vec<(ConnId, Request)>) {
        let cancels = placed.into_iter();
        self.outbox
            .extend(cancels.map(|(to, request)| (to, Message::Cancel(request))));
    }

    /// Sends what its uplink carries in a step.
    pub fn send(&mut self) {
        for (to, rate) in self.parts() {
            self.send_to(to, (rate * STEP.as_secs_f64()) as u32);
        }
    }

    /// What each connection with something to send gets of the uplink, in bytes per second.
    fn parts(&self) -> BTreeMap<HostId, f64> {
        let setting = self.setting;
        let sending = || {
            let connections = self.connections.iter();
            connections.filter(|(_, it)| !it.queue.is_empty())
        };
        let first = setting.seeders;
        let mut parts = BTreeMap::new();
        let mut share = |uplink: f64, has: &dyn Fn(HostId, &Connection) -> bool| {
            let having = || sending().filter(|(to, it)| has(**to, it));
            let weights: f64 = having().map(|(_, it)| it.weight).sum();
            for (to, it) in having() {
                *parts.entry(*to).or_default() += uplink * it.weight / weights;
            }
        };
        match self.is_seeder {
            true if setting.own_path => {
                share(self.uplink / 2.0, &|to, _| to == first);
                share(self.uplink / 2.0, &|to, _| to != first);
            }
            true if setting.two_links => {
                share(self.uplink / 2.0, &|_, it| {
                    it.family == AddressFamily::Scion
                });
                share(self.uplink / 2.0, &|_, _| true);
            }
            _ => share(self.uplink, &|_, _| true),
        }
        parts
    }

    /// Sends as many bytes to a host, or what there is.
    fn send_to(&mut self, to: HostId, mut bytes: u32) {
        let Some(connection) = self.connections.get_mut(&to) else {
            return;
        };
        while bytes > 0
            && let Some(first) = connection.queue.front().copied()
        {
            let now = bytes.min(first.length - connection.begun);
            (connection.begun, bytes) = (connection.begun + now, bytes - now);
            connection.sent += u64::from(now);
            if connection.begun == first.length {
                connection.begun = 0;
                connection.queue.pop_front();
                self.outbox.push((to, Message::Block(first)));
            }
        }
    }

    /// Does what the owner of a torrent does after events, and at a tick.
    pub fn act(&mut self, ticked: bool, now: Instant) {
        self.rechoke(now);
        for (id, connection) in &mut self.connections {
            let interested = self.picker.is_interesting(*id);
            if std::mem::replace(&mut connection.is_interested, interested) != interested {
                self.outbox.push((*id, Message::Interested(interested)));
            }
        }
        if !self.is_complete() {
            self.find_stalls(now);
            self.request(ticked, now);
        }
    }

    fn rechoke(&mut self, now: Instant) {
        let connections = &self.connections;
        let report = || {
            let connections = connections.iter();
            connections.map(|(id, it)| {
                let (received, sent) = (it.received, it.sent);
                (*id, Counters { received, sent })
            })
        };
        for order in self.choker.tick(report, now) {
            let Some(connection) = self.connections.get_mut(&order.peer) else {
                continue;
            };
            connection.has_slot = order.action == Action::Unchoke;
            if !connection.has_slot {
                connection.queue.truncate(self.setting.committed);
            }
            let choked = !connection.has_slot;
            self.outbox.push((order.peer, Message::Choked(choked)));
        }
    }

    fn find_stalls(&mut self, now: Instant) {
        let mut cancel = Vec::new();
        for (id, connection) in &mut self.connections {
            let is_new = connection.pace.observe(connection.received, false, now);
            if connection.is_stalled && is_new {
                connection.is_stalled = false;
                self.picker.resume(*id);
            } else if !connection.is_stalled && connection.pace.is_silent(RTT) {
                connection.is_stalled = true;
                let released = self.picker.suspend(*id);
                cancel.extend(released.into_iter().map(|request| (*id, request)));
                connection.pace.stall();
            }
        }
        self.cancel(cancel);
    }

    fn request(&mut self, ticked: bool, now: Instant) {
        let mut sources = BTreeMap::new();
        for (id, connection) in &mut self.connections {
            let asked = self.picker.asked(*id);
            connection.pace.set_asked(asked, RTT, now);
            let is_usable = connection.is_open && !connection.is_stalled;
            if !is_usable || !self.picker.is_interesting(*id) {
                continue;
            }
            let slack = self.setting.slack;
            let peak = connection.pace.peak(RTT, now);
            let source = Source {
                path: connection.path,
                subflow: Subflow {
                    rate: connection.pace.rate(RTT, now),
                    rtt: RTT,
                    asked,
                },
                depth: pipeline::depth(peak, RTT, slack, QUEUE),
                time: pipeline::time(RTT, slack),
            };
            sources.insert(*id, source);
        }
        if ticked {
            self.picker.review(now);
            self.requests.review(&sources, false, now);
        }
        if self.requests.is_ending(&self.picker, now) {
            let any = |_: &Picker, _| Room::ANY;
            let filled = self.requests.fill_by_plan(&mut self.picker, &sources, any);
            return self.place(filled, now);
        }
        for (id, source) in &sources {
            let picker = &mut self.picker;
            let filled = self.requests.fill_one(picker, *id, source, Room::ANY);
            self.place(filled, now);
        }
    }

    fn place(&mut self, filled: Filled, now: Instant) {
        self.cancel(filled.cancel);
        for (id, requests) in filled.requests {
            let requests = requests.into_iter();
            self.outbox
                .extend(requests.map(|request| (id, Message::Request(request))));
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.pace.set_asked(self.picker.asked(id), RTT, now);
            }
        }
    }
}

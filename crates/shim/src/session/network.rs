//! Both sides of a session on virtual time, over a network that delays, reorders and loses packets, and
//! whose paths fail and come back.

mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_keys::PeerKey;
use hawser_manager::{PathOptions, SubflowId};
use hawser_path::{Interface, Metadata, Path};
use hawser_seal::Cipher;

use super::*;
use crate::address::Slot;
use crate::choice::{CarrierKind, CarrierSet};
use crate::plane::table::SlotTable;
use crate::plane::table::tests::{TestLane, bound, close, table};
use crate::protocol::{Epoch, Message, Open};

const MS: Duration = Duration::from_millis(1);
/// Time between two packets over a lane.
const STEP: Duration = Duration::from_millis(50);
/// When a connection without an answer ends, when it is noticed that nothing comes back, and how long a
/// dial takes over a path that has failed.
const IDLE: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_millis(400);
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
/// Paths between the two hosts, each over a link of its own.
const PATHS: usize = 5;

const TAG: u64 = 7;
const CLIENT: PeerKey = PeerKey([1; 32]);
const SERVER: PeerKey = PeerKey([2; 32]);

fn path(number: usize) -> Arc<Path> {
    let ends = ["1-ff00:0:1", "1-ff00:0:99"].map(|one| one.parse().unwrap());
    let id = number as u16 + 1;
    let interfaces = ends.map(|isd_as| Interface { isd_as, id }).to_vec();
    Arc::new(Path::new(ends[0], ends[1], interfaces, Metadata::default()).unwrap())
}

fn number(path: &Path) -> usize {
    usize::from(path.interfaces[0].id) - 1
}

/// The lanes of the server have numbers of their own.
fn server_lane(link: usize) -> LaneKey {
    LaneKey(1000 + link as u64)
}

fn server_link(lane: LaneKey) -> usize {
    (lane.0 - 1000) as usize
}

/// A side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A connection, with a lane at each side.
struct Link {
    path: usize,
    lanes: [Option<LaneKey>; 2],
    /// That of the server, as its threads have it.
    lane: Arc<TestLane>,
    /// The slot that it was opened with.
    opened: (Slot, Epoch),
    /// Messages to each side, in order.
    messages: [VecDeque<Message>; 2],
    /// Whether each side has reported that nothing comes back.
    is_stalled: [bool; 2],
    /// Whether datagrams have arrived at the client.
    is_up: bool,
}

/// What is on its way.
#[derive(Debug)]
enum Event {
    /// A dial over this path comes to its end.
    Dialed(LaneOrigin, usize),
    /// The next message of a connection arrives at this side.
    Message(usize, Side),
    /// A datagram over a connection arrives at this side, with this slot.
    Datagram(usize, Side, Slot, Epoch),
    /// This side learns that the other one has closed a connection.
    Closed(usize, Side),
}

/// Two hosts, and the network between them.
struct Network {
    now: Instant,
    client: ClientSession<Arc<Path>>,
    server: ServerSessions,
    links: Vec<Link>,
    /// The slots as the client's packets have them, by connection, and as the server has learned them.
    table: BTreeMap<Slot, (usize, Epoch)>,
    learned: SlotTable<TestLane>,
    published: [Vec<Slot>; 2],
    pending: BTreeMap<(Instant, u64), Event>,
    next: u64,
    dialing: BTreeSet<SubflowId>,
    /// Since when paths fail.
    broken: [Option<Instant>; PATHS],
    /// The share of datagrams that is lost, in percent.
    loss: u64,
    random: u64,
    /// How each side has ended the session.
    ends: [Vec<String>; 2],
}

impl Network {
    fn new(carrier: CarrierKind, loss: u64, random: u64) -> Self {
        let now = Instant::now();
        let settings = Settings {
            peer: "1-ff00:0:99,192.0.2.1:31800".parse().unwrap(),
            tag: TAG,
            carrier,
            carriers: CarrierSet(3),
            plain_ip: None,
            paths: PathOptions::default(),
        };
        let server = ServerSettings {
            carriers: CarrierSet(3),
            cipher: Cipher::Aes128Gcm,
            announced: None,
        };
        let mut network = Self {
            now,
            client: ClientSession::new(settings, now),
            server: ServerSessions::new(server),
            links: Vec::new(),
            table: BTreeMap::new(),
            learned: table(),
            published: Default::default(),
            pending: BTreeMap::new(),
            next: 0,
            dialing: BTreeSet::new(),
            broken: Default::default(),
            loss,
            random,
            ends: Default::default(),
        };
        network.offer(&[0, 1, 2, 3, 4]);
        network.client.on_request(RequestId(0));
        network.settle();
        network
    }

    /// A number below `end`: xorshift.
    fn draw(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    fn offer(&mut self, numbers: &[usize]) {
        let paths: Vec<_> = numbers.iter().map(|number| path(*number)).collect();
        self.client.offer(&paths, |_| Ok(()), self.now);
    }

    fn after(&mut self, delay: Duration, event: Event) {
        self.pending.insert((self.now + delay, self.next), event);
        self.next += 1;
    }

    fn is_broken_for(&self, path: usize, time: Duration) -> bool {
        self.broken[path].is_some_and(|since| since + time <= self.now)
    }

    /// The time that a packet takes over a path: those of one path overtake each other.
    fn delay(&mut self, path: usize) -> Duration {
        (5 + 10 * path as u32 + self.draw(60) as u32) * MS
    }

    /// Sends a message over a connection.
    fn send(&mut self, link: usize, to: Side, message: Message) {
        let delay = self.delay(self.links[link].path);
        self.links[link].messages[to as usize].push_back(message);
        self.after(delay, Event::Message(link, to));
    }

    fn send_datagram(&mut self, link: usize, to: Side, slot: Slot, epoch: Epoch) {
        if self.draw(100) >= self.loss {
            let delay = self.delay(self.links[link].path);
            self.after(delay, Event::Datagram(link, to, slot, epoch));
        }
    }

    fn link_of(&self, side: Side, lane: LaneKey) -> Option<usize> {
        let mut links = self.links.iter();
        links.position(|link| link.lanes[side as usize] == Some(lane))
    }

    /// A side no longer has a lane. Returns the slots that it had at the server.
    fn close(&mut self, side: Side, link: usize) -> Vec<(Slot, Epoch)> {
        self.links[link].lanes[side as usize] = None;
        let delay = self.delay(self.links[link].path) + 100 * MS;
        self.after(delay, Event::Closed(link, side.other()));
        match side {
            Side::Client => {
                self.table.retain(|_, (under, _)| *under != link);
                Vec::new()
            }
            Side::Server => close(&self.learned, &self.links[link].lane),
        }
    }

    /// The connection under each slot.
    fn slots(&self, side: Side) -> BTreeMap<Slot, (usize, Epoch)> {
        match side {
            Side::Client => self.table.clone(),
            Side::Server => {
                let bindings = self.learned.bindings().into_iter();
                let links =
                    bindings.map(|(slot, (lane, epoch))| (slot, (server_link(lane), epoch)));
                links.collect()
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Dialed(origin, number) => self.dialed(origin, number),
            Event::Message(link, to) => {
                if self.broken[self.links[link].path].is_some() {
                    // QUIC sends it again.
                    return self.after(200 * MS, Event::Message(link, to));
                }
                let message = self.links[link].messages[to as usize].pop_front();
                let message = message.expect("one for each event");
                match (to, self.links[link].lanes[to as usize]) {
                    (Side::Client, Some(lane)) => {
                        self.client.on_message(lane, message, self.now);
                    }
                    (Side::Server, lane) => self.on_server(link, lane, message),
                    (Side::Client, None) => {}
                }
            }
            Event::Datagram(link, to, slot, epoch) => {
                if self.broken[self.links[link].path].is_some() {
                    return;
                }
                let Some(lane) = self.links[link].lanes[to as usize] else {
                    return;
                };
                match to {
                    Side::Server => self.learn(link, slot, epoch),
                    Side::Client if !std::mem::replace(&mut self.links[link].is_up, true) => {
                        self.client.on_up(lane);
                    }
                    Side::Client => {}
                }
            }
            Event::Closed(link, side) => {
                let Link { path, messages, .. } = &self.links[link];
                if self.broken[*path].is_some() || !messages[side as usize].is_empty() {
                    // What was sent before arrives first.
                    return self.after(200 * MS, Event::Closed(link, side));
                }
                if let Some(lane) = self.links[link].lanes[side as usize] {
                    self.fail(side, lane);
                }
            }
        }
    }

    fn fail(&mut self, side: Side, lane: LaneKey) {
        let reason = "the connection has ended".to_owned();
        match side {
            Side::Client => self.client.on_failed(lane, reason, self.now),
            Side::Server => self.server.on_failed(lane, reason, self.now),
        }
    }

    fn dialed(&mut self, origin: LaneOrigin, number: usize) {
        let LaneOrigin::Path(subflow) = origin else {
            panic!("plain IP is not allowed");
        };
        if !self.dialing.remove(&subflow) {
            return;
        }
        if self.broken[number].is_some() {
            let error = DialError::Path("no answer".to_owned());
            return self.client.on_not_connected(origin, error, self.now);
        }
        let lane = LaneKey(self.links.len() as u64);
        self.links.push(Link {
            path: number,
            lanes: [Some(lane), None],
            lane: TestLane::new(server_lane(self.links.len())),
            opened: Default::default(),
            messages: Default::default(),
            is_stalled: [false; 2],
            is_up: false,
        });
        let connected = Connected {
            lane,
            key: SERVER,
            path: path(number),
            rtt: 2 * (5 + 10 * number as u32) * MS,
        };
        self.client.on_connected(origin, connected, self.now);
    }

    /// A message arrives at the server.
    fn on_server(&mut self, link: usize, lane: Option<LaneKey>, message: Message) {
        match (message, lane) {
            (Message::Open(open), None) => self.server.on_open(Opening {
                lane: server_lane(link),
                peer: "1-ff00:0:1,192.0.2.2:4000".parse().unwrap(),
                key: CLIENT,
                open,
                port: 31801,
            }),
            (message, Some(lane)) => {
                self.report_bindings();
                self.server.on_message(lane, message, self.now);
            }
            // The lane was closed.
            (_, None) => {}
        }
    }

    fn session() -> SessionId {
        SessionId {
            key: CLIENT,
            tag: TAG,
        }
    }

    /// As the server's threads do.
    fn learn(&mut self, link: usize, slot: Slot, epoch: Epoch) {
        if self
            .learned
            .learn(bound(slot, epoch.0), &self.links[link].lane)
        {
            self.report_bindings();
        }
    }

    fn report_bindings(&mut self) {
        let bindings = self.learned.bindings();
        self.server.on_bindings(Self::session(), bindings);
    }

    /// Time passes, in which lanes carry packets.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let step = self.now + STEP;
            while let Some(entry) = self.pending.first_entry()
                && entry.key().0 <= step
            {
                self.now = self.now.max(entry.key().0);
                let event = entry.remove();
                self.happen(event);
                self.settle();
            }
            self.now = step;
            self.look_at_links();
            self.exchange();
            self.settle();
        }
    }

    /// Both sides send a packet over each lane under a slot.
    fn exchange(&mut self) {
        for (slot, (link, epoch)) in self.slots(Side::Client) {
            self.send_datagram(link, Side::Server, slot, epoch);
        }
        for (slot, (link, epoch)) in self.slots(Side::Server) {
            self.send_datagram(link, Side::Client, slot, epoch);
        }
    }

    /// Each side judges its lanes.
    fn look_at_links(&mut self) {
        for link in 0..self.links.len() {
            let path = self.links[link].path;
            for side in [Side::Client, Side::Server] {
                let Some(lane) = self.links[link].lanes[side as usize] else {
                    continue;
                };
                let mut others = self.slots(side).into_values();
                let has_other = others.any(|(other, _)| {
                    other != link && self.broken[self.links[other].path].is_none()
                });
                let was_stalled = self.links[link].is_stalled[side as usize];
                if self.is_broken_for(path, IDLE) || self.is_broken_for(path, SILENCE) && has_other
                {
                    self.fail(side, lane);
                } else if self.is_broken_for(path, SILENCE) && !was_stalled {
                    self.links[link].is_stalled[side as usize] = true;
                    match side {
                        Side::Client => self.client.on_stalled(lane, self.now),
                        Side::Server => self.server.on_stalled(lane),
                    }
                } else if self.broken[path].is_none() && was_stalled {
                    self.links[link].is_stalled[side as usize] = false;
                    match side {
                        Side::Client => self.client.on_recovered(lane),
                        Side::Server => self.server.on_recovered(lane),
                    }
                }
                self.settle();
            }
        }
    }

    /// Carries out all actions of both sides.
    fn settle(&mut self) {
        loop {
            let of_client = self.client.advance(|_| Figures::default(), true, self.now);
            let of_server = self.server.advance(self.now);
            if of_client.is_empty() && of_server.is_empty() {
                break;
            }
            of_client.into_iter().for_each(|action| self.obey(action));
            of_server
                .into_iter()
                .for_each(|action| self.obey_server(action));
        }
        self.check();
    }

    fn obey(&mut self, action: Action<Arc<Path>>) {
        match action {
            Action::DialPath { subflow, path } => {
                let number = number(&path);
                assert!(self.dialing.insert(subflow));
                let delay = match self.broken[number] {
                    None => 2 * self.delay(number),
                    Some(_) => DIAL_TIMEOUT,
                };
                self.after(delay, Event::Dialed(LaneOrigin::Path(subflow), number));
            }
            Action::CancelDial(subflow) => assert!(self.dialing.remove(&subflow)),
            Action::Open { lane, slot, epoch } => {
                let link = self.link_of(Side::Client, lane).unwrap();
                let open = Open {
                    cipher: Cipher::Aes128Gcm.to_u8(),
                    port: 31801,
                    tag: TAG,
                    slot,
                    epoch,
                    carriers: CarrierSet(3),
                };
                self.links[link].opened = (slot, epoch);
                self.send(link, Side::Server, Message::Open(open));
                self.table.insert(slot, (link, epoch));
            }
            Action::Bind { lane, slot, epoch } => {
                let link = self.link_of(Side::Client, lane).unwrap();
                self.table.insert(slot, (link, epoch));
            }
            Action::Send { lane, message } => {
                let link = self.link_of(Side::Client, lane).unwrap();
                self.send(link, Side::Server, message);
            }
            Action::Close(lane) => {
                let link = self.link_of(Side::Client, lane).unwrap();
                self.close(Side::Client, link);
            }
            Action::Publish(slots) => self.published[Side::Client as usize] = slots,
            Action::End { ending, reason } => {
                assert_eq!(ending, Ending::InOrder, "{reason}");
                self.ends[Side::Client as usize].push(reason);
                self.dialing.clear();
                for link in 0..self.links.len() {
                    // It closes them once the server has.
                    if self.links[link].lanes[Side::Client as usize].is_some() {
                        self.send(link, Side::Server, Message::Bye);
                    }
                }
            }
            Action::Answer { found, .. } => assert!(found.is_ok(), "{found:?}"),
            Action::OpenPath { .. }
            | Action::Probe { .. }
            | Action::Failover { .. }
            | Action::WarnOfShared { .. } => {}
            Action::DialPlainIp(_) => panic!("plain IP is not allowed"),
        }
    }

    fn obey_server(&mut self, action: ServerAction) {
        match action {
            ServerAction::Accept { lane, answer, .. } => {
                let link = server_link(lane);
                self.links[link].lanes[Side::Server as usize] = Some(lane);
                self.send(link, Side::Client, answer);
                let (slot, epoch) = self.links[link].opened;
                self.learn(link, slot, epoch);
                self.report_bindings();
            }
            ServerAction::Refuse { refusal, .. } => panic!("{refusal:?}"),
            ServerAction::Send { lane, message } => {
                let link = self.link_of(Side::Server, lane).unwrap();
                self.send(link, Side::Client, message);
            }
            ServerAction::Close { lane, session, .. } => {
                let link = self.link_of(Side::Server, lane).unwrap();
                let unbound = self.close(Side::Server, link);
                self.server.on_unbound(session, unbound);
                self.report_bindings();
            }
            ServerAction::SuspendPath(_) | ServerAction::ResumePath(_) => {}
            ServerAction::Publish { live, .. } => self.published[Side::Server as usize] = live,
            ServerAction::End { reason, .. } => {
                self.ends[Side::Server as usize].push(reason);
                self.published[Side::Server as usize].clear();
                for link in 0..self.links.len() {
                    if self.links[link].lanes[Side::Server as usize].is_some() {
                        self.close(Side::Server, link);
                    }
                }
            }
        }
    }
}

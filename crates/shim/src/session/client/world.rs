//! A driver of a session on virtual time, which checks that each action makes sense.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_keys::PeerKey;
use hawser_path::{Fingerprint, Interface, Metadata, Path, Policy};

use super::*;
use crate::address::Slot;
use crate::protocol::{Epoch, Message};

pub(super) const MS: Duration = Duration::from_millis(1);

/// The key of the other host.
pub(super) const KEY: PeerKey = PeerKey([1; 32]);

/// Where the other host may listen on plain IP.
pub(super) fn guess() -> SocketAddr {
    "192.0.2.1:30800".parse().unwrap()
}

/// A path from AS 1 to AS 99 whose links have these interface numbers. Paths with the same number at the
/// same place overlap.
pub(super) fn path(ids: &[u16]) -> Arc<Path> {
    let isd_as = |n: usize| format!("1-ff00:0:{n}").parse().unwrap();
    let mut interfaces = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        let next = if n + 1 == ids.len() { 99 } else { n + 2 };
        for isd_as in [isd_as(n + 1), isd_as(next)] {
            interfaces.push(Interface { isd_as, id: *id });
        }
    }
    Arc::new(Path::new(isd_as(1), isd_as(99), interfaces, Metadata::default()).unwrap())
}

/// A lane, as the driver has it.
#[derive(Debug)]
pub(super) struct Driven {
    pub origin: LaneOrigin,
    pub path: Arc<Path>,
    pub is_opened: bool,
    pub figures: Figures,
}

/// A driver.
pub(super) struct World {
    pub session: ClientSession<Arc<Path>>,
    pub now: Instant,
    pub dials: Vec<(LaneOrigin, Option<Arc<Path>>)>,
    pub lanes: BTreeMap<LaneKey, Driven>,
    next_lane: u64,
    /// The lane under each slot, and its epoch, as packets see it.
    pub table: BTreeMap<Slot, (LaneKey, Epoch)>,
    pub published: Vec<Slot>,
    pub answers: BTreeMap<RequestId, Option<Result<Connect, String>>>,
    pub sent: Vec<(LaneKey, Message)>,
    pub failovers: Vec<(Slot, String)>,
    pub probes: usize,
    pub warnings: Vec<Vec<Interface>>,
    pub end: Option<(Ending, String)>,
    /// The AS that must not be crossed; 0 if there is none.
    pub denied: u16,
    offered: BTreeSet<Fingerprint>,
}

impl World {
    pub(super) fn new(carrier: CarrierKind, plain_ip: bool) -> Self {
        Self::choosing(carrier, plain_ip, PathOptions::default())
    }

    pub(super) fn choosing(carrier: CarrierKind, plain_ip: bool, paths: PathOptions) -> Self {
        let settings = Settings {
            peer: "1-ff00:0:99,192.0.2.1:31800".parse().unwrap(),
            tag: 7,
            carrier,
            carriers: CarrierSet(3),
            plain_ip: plain_ip.then(guess),
            paths,
        };
        let now = Instant::now();
        Self {
            session: ClientSession::new(settings, now),
            now,
            dials: Vec::new(),
            lanes: BTreeMap::new(),
            next_lane: 1,
            table: BTreeMap::new(),
            published: Vec::new(),
            answers: BTreeMap::new(),
            sent: Vec::new(),
            failovers: Vec::new(),
            probes: 0,
            warnings: Vec::new(),
            end: None,
            denied: 0,
            offered: BTreeSet::new(),
        }
    }

    /// A session to which paths of these numbers are offered, each over a link of its own.
    pub(super) fn with_paths(carrier: CarrierKind, numbers: &[u16]) -> Self {
        let mut world = Self::new(carrier, false);
        let paths: Vec<_> = numbers.iter().map(|number| path(&[*number])).collect();
        world.offer(&paths);
        world.settle();
        world
    }

    pub(super) fn offer(&mut self, paths: &[Arc<Path>]) {
        self.offered = paths.iter().map(|path| path.fingerprint()).collect();
        self.session.offer(paths, |_| Ok(()), self.now);
    }

    /// Denies the paths over an AS; none, if it is 0.
    pub(super) fn deny(&mut self, isd_as: u16) {
        self.denied = isd_as;
        let acl = format!("- 1-ff00:0:{isd_as}; +");
        let policy = || Policy::new().with_acl(acl.parse().unwrap());
        self.session.set_policy((isd_as > 0).then(policy));
    }

    pub(super) fn ask(&mut self) -> RequestId {
        let request = RequestId(self.answers.len() as u64);
        self.answers.insert(request, None);
        self.session.on_request(request);
        request
    }

    /// The dial with this number succeeds; the host that answers has this key.
    pub(super) fn connect(&mut self, dial: usize, key: PeerKey, rtt: Duration) -> LaneKey {
        let (origin, over) = self.dials.remove(dial);
        let lane = LaneKey(self.next_lane);
        self.next_lane += 1;
        let over = over.unwrap_or_else(|| path(&[1]));
        let driven = Driven {
            origin,
            path: Arc::clone(&over),
            is_opened: false,
            figures: Figures {
                rtt: Some(rtt),
                ..Figures::default()
            },
        };
        self.lanes.insert(lane, driven);
        let connected = Connected {
            lane,
            key,
            path: over,
            rtt,
        };
        self.session.on_connected(origin, connected, self.now);
        lane
    }

    /// All dials succeed, with round trips of 10 ms, 20 ms and so on.
    pub(super) fn connect_all(&mut self) -> Vec<LaneKey> {
        let mut lanes = Vec::new();
        while !self.dials.is_empty() {
            let rtt = (lanes.len() as u32 + 1) * 10 * MS;
            let lane = self.connect(0, KEY, rtt);
            self.session.on_up(lane);
            lanes.push(lane);
            self.settle();
        }
        lanes
    }

    pub(super) fn fail(&mut self, dial: usize, error: DialError) {
        let (origin, _) = self.dials.remove(dial);
        self.session.on_not_connected(origin, error, self.now);
    }

    pub(super) fn message(&mut self, lane: LaneKey, message: Message) {
        self.session.on_message(lane, message, self.now);
    }

    pub(super) fn refuse(&mut self, lane: LaneKey, code: u8) {
        let (code, text) = (crate::protocol::RefusalCode(code), "no".to_owned());
        self.message(lane, Message::Refuse { code, text });
    }

    /// Lets time pass in steps of 50 ms.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += 50 * MS;
            self.settle();
        }
    }

    /// The process does not run for this long.
    pub(super) fn pause(&mut self, time: Duration) {
        self.now += time;
        self.settle();
    }

    /// Carries out all actions.
    pub(super) fn settle(&mut self) {
        loop {
            let lanes = &self.lanes;
            let figures = |lane| lanes.get(&lane).expect("measured after its end").figures;
            let actions = self.session.advance(figures, false, self.now);
            if actions.is_empty() {
                break;
            }
            actions.into_iter().for_each(|action| self.obey(action));
        }
        self.check();
    }

    fn obey(&mut self, action: Action<Arc<Path>>) {
        if self.end.is_some() {
            let is_late = matches!(action, Action::Close(_) | Action::Answer { .. });
            assert!(is_late, "after the end: {action:?}");
        }
        match action {
            Action::DialPath { subflow, path } => {
                assert!(self.offered.contains(&path.fingerprint()), "not offered");
                assert!(self.is_allowed(&path), "dialed against the policy");
                let origin = LaneOrigin::Path(subflow);
                assert!(self.dials.iter().all(|(one, _)| *one != origin));
                self.dials.push((origin, Some(path)));
            }
            Action::DialPlainIp(to) => {
                let origin = LaneOrigin::PlainIp(to);
                assert!(self.dials.iter().all(|(one, _)| *one != origin));
                self.dials.push((origin, None));
            }
            Action::CancelDial(subflow) => {
                let before = self.dials.len();
                let cancelled = LaneOrigin::Path(subflow);
                self.dials.retain(|(origin, _)| *origin != cancelled);
                assert_eq!(self.dials.len() + 1, before, "it was not dialed");
            }
            Action::Open { lane, slot, epoch } => {
                let driven = self.lanes.get_mut(&lane).expect("opened after its end");
                assert!(!std::mem::replace(&mut driven.is_opened, true));
                self.place(lane, slot, epoch);
            }
            Action::Bind { lane, slot, epoch } => {
                assert!(!self.table.contains_key(&slot), "taken from another one");
                self.place(lane, slot, epoch);
            }
            Action::OpenPath { lane, .. } => assert!(self.lanes[&lane].is_opened),
            Action::Send { lane, message } => {
                assert!(self.lanes[&lane].is_opened);
                self.sent.push((lane, message));
            }
            Action::Probe { lane, count } => {
                assert!(self.lanes[&lane].is_opened);
                self.probes += count;
            }
            Action::Failover { lane, slot, reason } => {
                assert_eq!(self.table[&slot].0, lane);
                self.failovers.push((slot, reason));
            }
            Action::Close(lane) => {
                assert!(self.lanes.remove(&lane).is_some(), "closed twice");
                self.table.retain(|_, (under, _)| *under != lane);
            }
            Action::Publish(slots) => {
                assert_ne!(self.published, slots, "published twice");
                self.published = slots;
            }
            Action::Answer { request, found } => {
                if found.is_ok() {
                    assert!(!self.lanes.is_empty(), "there is no path");
                    let is_published = self.published.len() == self.table.len();
                    assert!(
                        is_published || !self.published.is_empty(),
                        "before the slots"
                    );
                }
                let answer = self.answers.get_mut(&request).expect("nobody asked");
                assert!(answer.replace(found).is_none(), "answered twice");
            }
            Action::WarnOfShared { interfaces, .. } => self.warnings.push(interfaces),
            Action::End { ending, reason } => {
                assert!(!reason.is_empty());
                self.end = Some((ending, reason));
                self.dials.clear();
                self.lanes.clear();
                self.table.clear();
            }
        }
    }

    /// Puts a lane under a slot.
    fn place(&mut self, lane: LaneKey, slot: Slot, epoch: Epoch) {
        assert!((1..=SLOTS).contains(&slot));
        assert!(self.table.values().all(|(under, _)| *under != lane));
        if let Some((_, before)) = self.table.insert(slot, (lane, epoch)) {
            assert!(epoch.is_after(before), "the other side would not follow");
        }
    }

    fn is_allowed(&self, path: &Path) -> bool {
        let denied = format!("1-ff00:0:{}", self.denied).parse().ok();
        let mut interfaces = path.interfaces.iter();
        !interfaces.any(|interface| Some(interface.isd_as) == denied)
    }

    /// What always holds.
    fn check(&self) {
        if self.end.is_some() {
            assert!(self.session.is_over() && self.session.next_due().is_none());
            assert!(
                self.answers.values().all(Option::is_some),
                "left unanswered"
            );
            return;
        }
        let due = self.session.next_due().unwrap();
        assert!(due > self.now, "due in the past");
        for (lane, driven) in &self.lanes {
            assert!(driven.is_opened, "{lane:?} was forgotten");
            let is_over_path = matches!(driven.origin, LaneOrigin::Path(_));
            assert!(
                !is_over_path || self.is_allowed(&driven.path),
                "denied, and open"
            );
        }
        // Both sides have the same lanes, and the same dials under way.
        assert!(self.session.lanes.keys().eq(self.lanes.keys().copied()));
        let dials = self.dials.iter().filter_map(|(origin, _)| match origin {
            LaneOrigin::Path(subflow) => Some(*subflow),
            LaneOrigin::PlainIp(_) => None,
        });
        assert_eq!(self.session.dialing, dials.collect());
        // Packets follow the session.
        let under = |(slot, (lane, _)): (&Slot, &(LaneKey, Epoch))| (*slot, *lane);
        let table: BTreeMap<Slot, LaneKey> = self.table.iter().map(under).collect();
        let slots = self.lanes.keys().filter_map(|lane| {
            let slot = self.session.lanes.slot_of(*lane)?;
            Some((slot, *lane))
        });
        assert_eq!(slots.collect::<BTreeMap<_, _>>(), table);
        self.check_published();
        if !self.lanes.is_empty() {
            assert!(
                self.answers.values().all(Option::is_some),
                "left unanswered"
            );
        }
    }

    /// What is published has a lane that MPTCP may use; one that does not deliver has its slot only while
    /// no other lane has come in its place.
    fn check_published(&self) {
        let lane = |slot: &Slot| self.session.lanes.get(self.table[slot].0).unwrap();
        let usable = |slot: &Slot| lane(slot).hold.is_usable();
        let published: BTreeSet<Slot> = self.published.iter().copied().collect();
        assert_eq!(published.len(), self.published.len());
        let live: BTreeSet<Slot> = self.table.keys().copied().collect();
        let expected: BTreeSet<Slot> = live.iter().copied().filter(usable).collect();
        assert_eq!(published, if expected.is_empty() { live } else { expected });
        for key in self.lanes.keys() {
            let lane = self.session.lanes.get(*key).unwrap();
            let delivers = !lane.is_stalled && lane.closes.is_none();
            let has_slot = self.session.lanes.slot_of(*key).is_some();
            let is_full = self.table.len() == usize::from(SLOTS);
            assert!(
                has_slot || is_full || !delivers,
                "{key:?} delivers for nothing"
            );
        }
    }
}

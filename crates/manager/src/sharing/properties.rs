//! Random sequences of events of an uploader, with invariants checked after each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Path, Reason, Verdict};
use proptest::prelude::*;

use super::tests::path;
use super::*;
use crate::backoff::{Backoff, Pace};

const DOWNLOADERS: u16 = 5;

/// A path by its three links: out of the uploader's AS, in the middle, into the downloader's AS.
type Links = (u16, u16, u16);

#[derive(Debug, Clone)]
enum Step {
    Join(u16, usize),
    Leave(u16),
    /// These paths are offered; those that leave by link 4 do not fit.
    Offer(u16, Vec<Links>),
    /// The downloader opens a connection.
    Accept(u16, Links),
    /// A dial under way is connected.
    Connect(usize),
    /// A dial or a connection ends.
    Lose(usize, Failure),
    /// The policy denies paths over this link in the middle; `None` denies none.
    Policy(Option<u16>),
    /// Whether links in the middle are bottlenecks, and the rate of a subflow in Mbit/s; `None` if
    /// nothing is sent.
    Carry(bool, Option<u8>),
    /// Nothing is sent to the downloader for now, or something again.
    Choke(u16, bool),
    Tick(u64),
}

fn links() -> impl Strategy<Value = Links> {
    (1..5u16, 1..3u16, 1..3u16)
}

fn step() -> impl Strategy<Value = Step> {
    let key = 1..=DOWNLOADERS;
    let failure = prop_oneof![
        Just(Failure::Failed),
        Just(Failure::Refused),
        Just(Failure::Closed),
        Just(Failure::Rejected),
    ];
    prop_oneof![
        3 => (key.clone(), 0..4usize).prop_map(|(key, max)| Step::Join(key, max)),
        1 => key.clone().prop_map(Step::Leave),
        4 => (key.clone(), prop::collection::vec(links(), 0..5))
            .prop_map(|(key, paths)| Step::Offer(key, paths)),
        2 => (key, links()).prop_map(|(key, path)| Step::Accept(key, path)),
        6 => any::<usize>().prop_map(Step::Connect),
        3 => (any::<usize>(), failure).prop_map(|(at, failure)| Step::Lose(at, failure)),
        1 => prop::option::of(1..3u16).prop_map(Step::Policy),
        2 => (any::<bool>(), prop::option::of(1..20u8))
            .prop_map(|(narrow, rate)| Step::Carry(narrow, rate)),
        2 => (1..=DOWNLOADERS, any::<bool>())
            .prop_map(|(key, is_choked)| Step::Choke(key, is_choked)),
        8 => prop_oneof![0..200u64, 900..1200u64, Just(10_000), Just(61_000)].prop_map(Step::Tick),
    ]
}

/// A path to a downloader; each AS has two downloaders.
fn to_path(key: u16, (out, middle, into): Links) -> Path {
    path(out, middle, into, key / 2 + 1)
}

/// The state of a subflow according to the orders alone.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    Dialing,
    Used,
    Held,
    /// Opened by the downloader, without an order yet.
    Opened,
}

#[derive(Debug)]
struct Known {
    key: u16,
    path: Fingerprint,
    is_dialed: bool,
    is: Is,
    sent: u64,
}

/// A simple model of the state after the steps so far.
struct Model {
    sharing: Sharing<u16, Path>,
    max_dialed: usize,
    now: Instant,
    max: BTreeMap<u16, usize>,
    offered: BTreeMap<u16, BTreeMap<Fingerprint, Path>>,
    backoffs: BTreeMap<(u16, Fingerprint), Backoff>,
    policy: Option<Policy>,
    subflows: BTreeMap<SubflowId, Known>,
    /// Since when none of a downloader's assigned paths is connected.
    unserved: BTreeMap<u16, Instant>,
    carry: (bool, Option<u8>),
    choked: BTreeSet<u16>,
}

impl Model {
    fn new(max_dialed: usize) -> Self {
        let now = Instant::now();
        Self {
            sharing: Sharing::new(PathOptions::default(), max_dialed, now),
            max_dialed,
            now,
            max: BTreeMap::new(),
            offered: BTreeMap::new(),
            backoffs: BTreeMap::new(),
            policy: None,
            subflows: BTreeMap::new(),
            unserved: BTreeMap::new(),
            carry: (false, None),
            choked: BTreeSet::new(),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Join(key, max) => {
                self.sharing.join(key, max, self.now);
                self.max.insert(key, max.max(1));
            }
            Step::Leave(key) => {
                self.sharing.leave(key);
                self.max.remove(&key);
                self.choked.remove(&key);
                self.offered.remove(&key);
                self.unserved.remove(&key);
            }
            Step::Offer(key, ref paths) => {
                let paths: Vec<Path> = paths.iter().map(|links| to_path(key, *links)).collect();
                self.sharing.offer(key, &paths, fits);
                if self.max.contains_key(&key) {
                    let named = paths.into_iter().map(|path| (path.fingerprint(), path));
                    self.offered.insert(key, named.collect());
                }
            }
            Step::Accept(key, links) => {
                let path = to_path(key, links).fingerprint();
                let subflow = self.sharing.accepted(key, path);
                prop_assert_eq!(subflow.is_some(), self.max.contains_key(&key));
                if let Some(id) = subflow {
                    self.add(id, key, path, Is::Opened)?;
                }
            }
            Step::Connect(at) => {
                let mut dialing = self.subflows.iter_mut().filter(|it| it.1.is == Is::Dialing);
                let count = dialing.by_ref().count();
                let mut dialing = self.subflows.iter_mut().filter(|it| it.1.is == Is::Dialing);
                if let Some((id, known)) = dialing.nth(at.checked_rem(count).unwrap_or(0)) {
                    known.is = Is::Used;
                    self.backoffs.remove(&(known.key, known.path));
                    self.sharing.connected(*id);
                }
            }
            Step::Lose(at, failure) => {
                let at = at.checked_rem(self.subflows.len()).unwrap_or(0);
                if let Some(id) = self.subflows.keys().nth(at).copied() {
                    self.sharing.lost(id, failure, "it broke", self.now);
                    let gone = self.subflows.remove(&id).unwrap();
                    let of = (gone.key, gone.path);
                    if gone.is_dialed && !self.is_up(of.0, of.1) {
                        let backoff = self.backoffs.entry(of);
                        let backoff = backoff.or_insert(Backoff::new(Pace::Assigned));
                        backoff.fail(failure, Duration::ZERO, self.now);
                    }
                }
            }
            Step::Policy(denied) => {
                let acl = denied.map(|link| format!("- 1-ff00:0:98#{link}; +").parse().unwrap());
                self.policy = acl.map(|acl| Policy::new().with_acl(acl));
                self.sharing.set_policy(self.policy.clone());
            }
            Step::Choke(key, is_choked) => {
                self.sharing.set_choked(key, is_choked);
                match is_choked && self.max.contains_key(&key) {
                    true => drop(self.choked.insert(key)),
                    false => drop(self.choked.remove(&key)),
                }
            }
            Step::Carry(narrow, rate) => self.carry = (narrow, rate),
            Step::Tick(time) => {
                // In steps, so that no order is missed.
                let end = self.now + Duration::from_millis(time);
                while let Some(due) = self.sharing.next_due().filter(|due| *due < end) {
                    self.send(due);
                    self.tick()?;
                    self.check()?;
                }
                self.send(end);
            }
        }
        // A path that is neither offered nor used has no backoff.
        let (offered, subflows) = (&self.offered, &self.subflows);
        self.backoffs.retain(|(key, path), _| {
            let is_offered = offered.get(key).is_some_and(|of| of.contains_key(path));
            let mut subflows = subflows.values();
            is_offered || subflows.any(|known| (known.key, known.path) == (*key, *path))
        });
        self.tick()?;
        self.check()
    }

    fn add(
        &mut self,
        id: SubflowId,
        key: u16,
        path: Fingerprint,
        is: Is,
    ) -> Result<(), TestCaseError> {
        let known = Known {
            key,
            path,
            is_dialed: is == Is::Dialing,
            is,
            sent: 0,
        };
        let before = self.subflows.insert(id, known);
        prop_assert!(before.is_none(), "{id:?} is there twice");
        Ok(())
    }

    /// Advances the time, and sends bytes meanwhile.
    fn send(&mut self, until: Instant) {
        let seconds = (until - self.now).as_secs_f64();
        self.now = until;
        let (narrow, Some(rate)) = self.carry else {
            return;
        };
        let used = self
            .subflows
            .values_mut()
            .filter(|known| known.is == Is::Used);
        let used: Vec<&mut Known> = used.collect();
        let sharing = if narrow { used.len() as f64 } else { 1.0 };
        for known in used {
            known.sent += (f64::from(rate) * 125_000.0 * seconds / sharing) as u64;
        }
    }

    fn tick(&mut self) -> Result<(), TestCaseError> {
        for backoff in self.backoffs.values_mut() {
            backoff.end(self.now);
        }
        let (subflows, rate) = (&self.subflows, self.carry.1);
        let carried = |_, id| Carried {
            bytes: subflows[&id].sent,
            usable: rate.is_some(),
        };
        let orders = self.sharing.tick(carried, self.now);
        for (key, order) in orders {
            self.obey(key, &order)?;
        }
        let again = self.sharing.tick(|_, _| Carried::default(), self.now);
        prop_assert!(again.is_empty(), "ordered twice: {again:?}");
        let due = self.sharing.next_due();
        prop_assert!(due.is_none_or(|due| due > self.now), "due before now");
        Ok(())
    }

    fn obey(&mut self, key: u16, order: &Order) -> Result<(), TestCaseError> {
        prop_assert!(!order.cause.to_string().is_empty());
        let path = order.path;
        let known = self.subflows.get_mut(&order.subflow);
        let (is, of) = match &known {
            Some(known) => (Some(known.is), Some((known.key, known.path))),
            None => (None, None),
        };
        let matches = of.is_none_or(|of| of == (key, path));
        prop_assert!(matches, "{order:?} is of {of:?}");
        match (order.action, is, known) {
            (Action::Dial, None, _) => {
                let mut same = self.subflows.values();
                let beside = same.any(|known| (known.key, known.path) == (key, path));
                prop_assert!(!beside, "dialed beside another: {order:?}");
                let blocked = self.blocked(key, path);
                prop_assert_eq!(blocked, None, "dialed: {:?}", order);
                self.add(order.subflow, key, path, Is::Dialing)?;
                let dialed = self.subflows.values().filter(|known| known.is_dialed);
                prop_assert!(dialed.count() <= self.max_dialed);
            }
            (Action::Hold, Some(Is::Used | Is::Opened), Some(known)) => known.is = Is::Held,
            (Action::Resume, Some(Is::Held | Is::Opened), Some(known)) => known.is = Is::Used,
            (Action::Close { .. }, Some(_), Some(_)) => drop(self.subflows.remove(&order.subflow)),
            _ => prop_assert!(false, "{order:?} for what is {is:?}"),
        }
        Ok(())
    }

    fn is_up(&self, key: u16, path: Fingerprint) -> bool {
        let mut subflows = self.subflows.values();
        subflows.any(|it| (it.key, it.path) == (key, path) && it.is != Is::Dialing)
    }

    fn denied(&self, path: &Path) -> bool {
        let denied = self.policy.as_ref().map(|policy| policy.filter(&[path]));
        denied.is_some_and(|judged| judged[0].is_err())
    }

    /// Why a path may not be assigned.
    fn blocked(&self, key: u16, path: Fingerprint) -> Option<&'static str> {
        let offered = self.offered.get(&key).and_then(|paths| paths.get(&path));
        let backoff = self.backoffs.get(&(key, path));
        match offered {
            None => Some("not offered"),
            Some(path) if fits(path).is_err() => Some("unfit"),
            Some(path) if self.denied(path) => Some("policy"),
            _ if backoff.is_some_and(|it| it.until().is_some()) => Some("backoff"),
            _ => None,
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let mut free = Vec::new();
        let mut taken: Vec<(u16, Path, Reason)> = Vec::new();
        let decided = self.sharing.decisions();
        let mut decisions: BTreeMap<(u16, Fingerprint), Decision> = decided
            .map(|(key, path, decision)| ((key, path), decision))
            .collect();
        for (key, paths) in &self.offered {
            for (name, path) in paths {
                let decision = decisions.remove(&(*key, *name));
                let Some(Decision { verdict, reason }) = decision else {
                    return Err(TestCaseError::fail(format!("{name} has no decision")));
                };
                let blocked = self.blocked(*key, *name);
                match verdict {
                    Verdict::Taken => {
                        prop_assert_eq!(blocked, None, "taken: {}", reason);
                        prop_assert!(!self.choked.contains(key), "taken by a choked one");
                        taken.push((*key, path.clone(), reason));
                    }
                    _ if blocked.is_none() && self.choked.contains(key) => {
                        prop_assert_eq!(reason, Reason::NoSlot);
                    }
                    _ if blocked.is_none() => free.push((*key, path.clone())),
                    _ => prop_assert_eq!(verdict, Verdict::Left, "{:?}", reason),
                }
            }
        }
        prop_assert!(
            decisions.is_empty(),
            "decided, but not offered: {decisions:?}"
        );
        let keys: Vec<u16> = self.max.keys().copied().collect();
        for key in keys {
            self.check_downloader(key, &taken)?;
        }
        let all = || taken.iter().map(|(key, path, _)| (*key, path));
        let counted = Counted::of(all().chain(free.iter().map(|(key, path)| (*key, path))));
        for (at, (key, path, why)) in taken.iter().enumerate() {
            for (other, with, why_other) in &taken[at + 1..] {
                let shared = counted.shared(path, with);
                let allowed =
                    |why: &Reason| matches!(why, Reason::Sensed(_) | Reason::SharesAtNoCost { .. });
                let allowed = allowed(why) || allowed(why_other);
                prop_assert!(!shared || allowed, "{key}: {why}; {other}: {why_other}");
            }
        }
        for (key, path) in &free {
            let count = all().filter(|(other, _)| other == key).count();
            let in_the_way = all().any(|(_, other)| counted.shared(path, other));
            let is_paused = self.sharing.assignment.paused() == Some((*key, path.fingerprint()));
            let full = count >= self.max[key];
            prop_assert!(
                full || in_the_way || is_paused,
                "free, and not given to {key}"
            );
        }
        Ok(())
    }

    /// Checks the subflows of one downloader.
    fn check_downloader(
        &mut self,
        key: u16,
        taken: &[(u16, Path, Reason)],
    ) -> Result<(), TestCaseError> {
        let of = taken.iter().filter(|(of, ..)| *of == key);
        let assigned: BTreeSet<Fingerprint> = of.map(|(_, path, _)| path.fingerprint()).collect();
        prop_assert!(assigned.len() <= self.max[&key]);
        let served = assigned.is_empty() || assigned.iter().any(|path| self.is_up(key, *path));
        match served {
            true => drop(self.unserved.remove(&key)),
            false => drop(self.unserved.entry(key).or_insert(self.now)),
        }
        let unserved = self.unserved.get(&key);
        let unserved = unserved.is_some_and(|since| self.now - *since >= Duration::from_secs(1));
        let known = self.offered.get(&key).into_iter().flatten();
        let none = !known
            .clone()
            .any(|(path, _)| self.blocked(key, *path).is_none());
        for (id, known) in self.subflows.iter().filter(|(_, known)| known.key == key) {
            let is_assigned = assigned.contains(&known.path);
            let offered = self
                .offered
                .get(&key)
                .and_then(|paths| paths.get(&known.path));
            let denied = offered.is_some_and(|path| self.denied(path));
            let is_choked = self.choked.contains(&key);
            let stands_in = !denied && !is_choked && (none || unserved && !known.is_dialed);
            match known.is {
                Is::Opened => prop_assert!(false, "{id:?} has no order"),
                Is::Dialing => prop_assert!(is_assigned, "{id:?} is dialed for nothing"),
                Is::Used => prop_assert!(is_assigned || stands_in, "{id:?} is used"),
                Is::Held => prop_assert!(!is_assigned && !stands_in, "{id:?} is held"),
            }
        }
        let dialed = || self.subflows.values().filter(|known| known.is_dialed);
        for path in &assigned {
            let mut subflows = self.subflows.values();
            let any = subflows.any(|known| (known.key, known.path) == (key, *path));
            let is_full = dialed().count() == self.max_dialed;
            let held = dialed().filter(|known| known.is == Is::Held).count();
            prop_assert!(any || is_full && held == 0, "assigned and not dialed");
        }
        Ok(())
    }
}

fn fits(path: &Path) -> Result<(), String> {
    match path.interfaces[0].id {
        4 => Err("too narrow".into()),
        _ => Ok(()),
    }
}

/// Which interfaces count as shared: not the first if all paths leave by it, and not the last if
/// all paths into that AS arrive by it (001, section VI).
struct Counted {
    first: bool,
    last: BTreeMap<hawser_path::Interface, bool>,
}

impl Counted {
    fn of<'a>(paths: impl Iterator<Item = (u16, &'a Path)>) -> Self {
        let paths: Vec<&Path> = paths.map(|(_, path)| path).collect();
        let outs: BTreeSet<_> = paths.iter().map(|path| path.interfaces[0]).collect();
        let ends = || paths.iter().map(|path| path.interfaces[5]);
        let counts = |end: &hawser_path::Interface| {
            ends().any(|other| other.isd_as == end.isd_as && other != *end)
        };
        Self {
            first: outs.len() > 1,
            last: ends().map(|end| (end, counts(&end))).collect(),
        }
    }

    fn shared(&self, one: &Path, other: &Path) -> bool {
        let is_shared = |at: usize| one.interfaces[at] == other.interfaces[at];
        let first = self.first && is_shared(0);
        let last = self.last[&one.interfaces[5]] && is_shared(5);
        first || is_shared(2) || last
    }
}

proptest! {
    #[test]
    fn invariants_hold_after_any_steps(
        steps in prop::collection::vec(step(), 1..60),
        max_dialed in prop_oneof![Just(usize::MAX), 1..6usize],
    ) {
        let mut model = Model::new(max_dialed);
        for step in &steps {
            model.take(step)?;
        }
        // In the end everything works: no path that could be used is forgotten.
        model.take(&Step::Policy(None))?;
        model.take(&Step::Choke(1, false))?;
        for key in 2..=DOWNLOADERS {
            model.take(&Step::Leave(key))?;
        }
        for _ in 0..3 {
            model.take(&Step::Tick(61_000))?;
            while model.subflows.values().any(|known| known.is == Is::Dialing) {
                model.take(&Step::Connect(0))?;
            }
        }
        let paths = model.offered.get(&1).into_iter().flatten();
        let usable = paths.filter(|(_, path)| fits(path).is_ok()).count();
        let used = model.subflows.values().filter(|known| known.is == Is::Used).count();
        prop_assert!(usable == 0 || used > 0, "{usable} usable, none used");
    }
}

//! Random operations on a set, with invariants checked after each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_path::{Fingerprint, Path, Policy, Reason, Select, SlotOptions, Verdict};
use proptest::prelude::*;

use super::testing::{MS, path};
use super::*;
use crate::order::Action;

/// An event of a set. Numbers of paths and subflows are taken modulo how many there are.
#[derive(Debug, Clone)]
enum Operation {
    /// Only the paths of these numbers are offered.
    Offer(Vec<usize>),
    /// A dial under way succeeds, with this round-trip time in ms.
    Connect(usize, u64),
    /// A dial under way fails, or a subflow ends.
    Fail(usize, Failure),
    /// A subflow stalls.
    Stall(usize),
    /// A subflow delivers nothing, though the remote answers over it.
    Late(usize),
    /// A path is down: all its subflows stall, and none can be dialed.
    Outage(usize),
    /// The path works again, and so do its subflows.
    Back(usize),
    /// Sets the rate of a path, in bytes per ms.
    Carry(usize, u64),
    /// Only paths that do not cross the AS of this number may be used; all, if 0.
    Policy(u16),
    /// This many ms pass, in steps of 50.
    Tick(u64),
    /// The program does not run for this many ms.
    Pause(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let failure = prop::sample::select(vec![
        Failure::Failed,
        Failure::Rejected,
        Failure::Refused,
        Failure::Closed,
        Failure::Interrupted,
    ]);
    prop_oneof![
        2 => prop::collection::vec(0..PATHS.len(), 0..PATHS.len()).prop_map(Operation::Offer),
        6 => (any::<usize>(), 1..500_u64).prop_map(|(at, rtt)| Operation::Connect(at, rtt)),
        3 => (any::<usize>(), failure).prop_map(|(at, failure)| Operation::Fail(at, failure)),
        2 => any::<usize>().prop_map(Operation::Stall),
        2 => any::<usize>().prop_map(Operation::Late),
        1 => (0..PATHS.len()).prop_map(Operation::Outage),
        2 => (0..PATHS.len()).prop_map(Operation::Back),
        2 => (0..PATHS.len(), 0..10_000_u64).prop_map(|(at, rate)| Operation::Carry(at, rate)),
        1 => (0..4_u16).prop_map(Operation::Policy),
        6 => (1..8_000_u64).prop_map(Operation::Tick),
        1 => (1..100_000_u64).prop_map(Operation::Pause),
    ]
}

/// Paths by the interfaces they cross, as [`path`] takes them: some share the first one, some one
/// in the middle, some none.
const PATHS: [&[u16]; 7] = [
    &[1],
    &[2, 2],
    &[3, 2, 3],
    &[4, 2, 4],
    &[5, 5],
    &[1, 6],
    &[7, 7, 7],
];

/// A subflow that was dialed and has not ended.
#[derive(Debug, Clone, Copy)]
struct Flow {
    path: Fingerprint,
    open: bool,
    held: bool,
    stalled: bool,
    /// Whether the remote answers over it though it is stalled.
    late: bool,
    bytes: u64,
}

/// A transfer that executes orders, and checks that they make sense.
struct World {
    set: PathSet<Arc<Path>>,
    most: usize,
    paths: Vec<Arc<Path>>,
    offered: BTreeSet<Fingerprint>,
    /// The AS that must not be crossed; 0 if there is none.
    denied: u16,
    down: BTreeSet<Fingerprint>,
    rates: BTreeMap<Fingerprint, u64>,
    flows: BTreeMap<SubflowId, Flow>,
    /// Every subflow that was ever dialed.
    seen: BTreeSet<SubflowId>,
    now: Instant,
}

impl World {
    fn new(select: Select, most: usize, sensing: bool) -> Self {
        Self {
            set: PathSet::new(PathOptions {
                select,
                subflows: most,
                sensing,
                slots: SlotOptions {
                    min_weight: 0.1,
                    time_slot: Duration::from_millis(500),
                    ..SlotOptions::default()
                },
                ..PathOptions::default()
            }),
            most,
            paths: PATHS.iter().map(|ids| path(ids)).collect(),
            offered: BTreeSet::new(),
            denied: 0,
            down: BTreeSet::new(),
            rates: BTreeMap::new(),
            flows: BTreeMap::new(),
            seen: BTreeSet::new(),
            now: Instant::now(),
        }
    }

    fn name(&self, at: usize) -> Fingerprint {
        self.paths[at].fingerprint()
    }

    /// The subflow with this number among those for which `is` holds.
    fn pick(&self, at: usize, is: impl Fn(&Flow) -> bool) -> Option<SubflowId> {
        let flows = self.flows.iter().filter(|(_, flow)| is(flow));
        let flows: Vec<SubflowId> = flows.map(|(subflow, _)| *subflow).collect();
        flows.get(at.checked_rem(flows.len())?).copied()
    }

    fn is_allowed(&self, path: Fingerprint) -> bool {
        let denied = format!("1-ff00:0:{}", self.denied).parse().ok();
        let path = self.paths.iter().find(|one| one.fingerprint() == path);
        let mut crosses = path.iter().flat_map(|path| &path.interfaces);
        !crosses.any(|interface| Some(interface.isd_as) == denied)
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Offer(at) => {
                let paths: Vec<_> = at.iter().map(|at| Arc::clone(&self.paths[*at])).collect();
                self.offered = paths.iter().map(|path| path.fingerprint()).collect();
                self.set.offer(&paths, |_| Ok(()), self.now);
            }
            Operation::Connect(at, rtt) => {
                let down = self.down.clone();
                let dialing = |flow: &Flow| !flow.open && !down.contains(&flow.path);
                if let Some(subflow) = self.pick(at, dialing) {
                    self.connect(subflow, rtt);
                }
            }
            Operation::Fail(at, failure) => {
                if let Some(subflow) = self.pick(at, |_| true) {
                    self.flows.remove(&subflow);
                    self.set
                        .lost(subflow, failure, "it failed".into(), self.now);
                }
            }
            Operation::Stall(at) => {
                let not_yet = |flow: &Flow| flow.open && (!flow.stalled || flow.late);
                if let Some(subflow) = self.pick(at, not_yet) {
                    self.stall(subflow);
                }
            }
            Operation::Late(at) => {
                let down = self.down.clone();
                let answers = |flow: &Flow| flow.open && !down.contains(&flow.path);
                let late = self.pick(at, answers);
                if let Some((subflow, flow)) =
                    late.and_then(|at| Some((at, self.flows.get_mut(&at)?)))
                {
                    (flow.stalled, flow.late) = (true, true);
                    self.set.late(subflow, self.now);
                }
            }
            Operation::Outage(at) => {
                let name = self.name(at);
                self.down.insert(name);
                for subflow in self.of(name, |flow| flow.open && (!flow.stalled || flow.late)) {
                    self.stall(subflow);
                }
            }
            Operation::Back(at) => {
                let name = self.name(at);
                self.down.remove(&name);
                for subflow in self.of(name, |flow| flow.open && flow.stalled) {
                    if let Some(flow) = self.flows.get_mut(&subflow) {
                        (flow.stalled, flow.late) = (false, false);
                    }
                    self.set.recovered(subflow);
                }
            }
            Operation::Carry(at, rate) => drop(self.rates.insert(self.name(at), rate)),
            Operation::Policy(denied) => {
                self.denied = denied;
                let acl = format!("- 1-ff00:0:{denied}; +");
                let policy = || Policy::new().with_acl(acl.parse().unwrap());
                self.set.set_policy((denied > 0).then(policy));
            }
            Operation::Tick(ms) => {
                let end = self.now + ms as u32 * MS;
                while self.now < end {
                    self.pass(50);
                }
            }
            Operation::Pause(ms) => self.pass(ms),
        }
        self.obey();
    }

    /// Lets this many ms pass at once. What was due is done then: it must not be due still.
    fn pass(&mut self, ms: u64) {
        self.now += ms as u32 * MS;
        self.tick();
        self.obey();
        let due = self.set.next_due();
        assert!(due.is_none_or(|due| due > self.now), "due in the past");
    }

    fn of(&self, path: Fingerprint, is: impl Fn(&Flow) -> bool) -> Vec<SubflowId> {
        let flows = self.flows.iter();
        let flows = flows.filter(|(_, flow)| flow.path == path && is(flow));
        flows.map(|(subflow, _)| *subflow).collect()
    }

    fn connect(&mut self, subflow: SubflowId, rtt: u64) {
        if let Some(flow) = self.flows.get_mut(&subflow) {
            flow.open = true;
            self.set.connected(subflow, Some(rtt as u32 * MS), self.now);
        }
    }

    fn stall(&mut self, subflow: SubflowId) {
        if let Some(flow) = self.flows.get_mut(&subflow) {
            (flow.stalled, flow.late) = (true, false);
            self.set.stalled(subflow, self.now);
        }
    }

    fn tick(&mut self) {
        for flow in self.flows.values_mut() {
            if flow.open && !flow.held && !flow.stalled && !self.down.contains(&flow.path) {
                flow.bytes += 50 * self.rates.get(&flow.path).copied().unwrap_or(1000);
            }
        }
        let flows = &self.flows;
        let carried = |subflow| Carried {
            bytes: flows[&subflow].bytes,
            usable: true,
        };
        self.set.tick(carried, self.now);
    }

    /// Executes the orders, each of which must make sense.
    fn obey(&mut self) {
        for Order {
            subflow,
            path,
            action,
            cause,
        } in self.set.orders(self.now)
        {
            assert!(!cause.to_string().is_empty());
            match action {
                Action::Dial => {
                    assert!(self.seen.insert(subflow), "{subflow:?} is dialed twice");
                    assert!(
                        self.of(path, |flow| !flow.open).is_empty(),
                        "dialed already"
                    );
                    let working = self.of(path, |flow| flow.open && !flow.stalled);
                    assert!(working.is_empty(), "dialed beside one that delivers");
                    let late = self.of(path, |flow| flow.open && flow.late);
                    assert!(late.is_empty(), "dialed beside one that is late");
                    assert!(self.is_allowed(path), "dialed against the policy");
                    assert!(self.offered.contains(&path), "dialed, not offered");
                    let flow = Flow {
                        path,
                        open: false,
                        held: false,
                        stalled: false,
                        late: false,
                        bytes: 0,
                    };
                    self.flows.insert(subflow, flow);
                }
                Action::Hold | Action::Resume => {
                    let flow = self.flows.get_mut(&subflow).expect("it has ended");
                    assert!(flow.open, "{action:?} of one that is not connected");
                    let held = action == Action::Hold;
                    assert_ne!(flow.held, held, "{action:?} twice");
                    flow.held = held;
                    // A transfer requests nothing over a path that is not offered any more.
                    flow.stalled |= cause == Cause::NotOffered;
                }
                Action::Close { .. } => {
                    let flow = self.flows.remove(&subflow).expect("it has ended");
                    assert_eq!(flow.path, path);
                }
            }
        }
        assert!(
            self.set.orders(self.now).is_empty(),
            "an order is left over"
        );
        self.check();
    }

    fn check(&self) {
        let mut used = Vec::new();
        for status in self.set.paths() {
            let (name, decision) = (status.fingerprint, status.decision());
            assert!(!decision.reason.to_string().is_empty());
            let offered = self.offered.contains(&name);
            assert_eq!(offered, status.offered);
            match decision.verdict {
                Verdict::Taken | Verdict::Waiting => {
                    assert!(offered && self.is_allowed(name), "{decision}");
                    used.push(status);
                }
                Verdict::Left => assert!(!status.taken || !offered, "{decision}"),
            }
        }
        assert!(used.len() <= self.most, "{} paths used", used.len());
        // Only those that deliver count: the others may never deliver again.
        let working = self
            .flows
            .values()
            .filter(|flow| flow.open && !flow.stalled);
        let working = working.filter(|flow| self.offered.contains(&flow.path));
        assert!(working.count() <= self.most, "too many subflows");
        for flow in self.flows.values() {
            assert!(self.is_allowed(flow.path), "a subflow against the policy");
        }
        self.check_sharing(&used);
        self.check_forgotten();
    }

    /// No two paths that the selection takes as disjoint share an interface.
    fn check_sharing(&self, used: &[&PathStatus<Arc<Path>>]) {
        let apart = |status: &&&PathStatus<Arc<Path>>| {
            matches!(status.decision().reason, Reason::Disjoint { .. })
        };
        let apart: Vec<_> = used.iter().filter(apart).collect();
        for (at, one) in apart.iter().enumerate() {
            for other in &apart[at + 1..] {
                let shared: Vec<_> = one.path.shared(&other.path).collect();
                let ends = |interface: &hawser_path::Interface| {
                    // The only link out or in, which no choice can avoid.
                    one.path.interfaces[..2].contains(interface)
                        || one
                            .path
                            .interfaces
                            .iter()
                            .rev()
                            .take(2)
                            .any(|it| it == interface)
                };
                assert!(shared.iter().all(ends), "{shared:?}");
            }
        }
    }

    /// If any path may be used, one is connected, being dialed, or will be dialed.
    fn check_forgotten(&self) {
        let usable = self.offered.iter().any(|path| self.is_allowed(*path));
        let busy = (self.flows.values()).any(|flow| !flow.stalled || flow.late);
        let later = self.set.next_due().is_some();
        assert!(!usable || busy || later, "all are forgotten");
        for status in self.set.paths().filter(|status| status.taken) {
            let active = status.open.is_some() || status.dialing.is_some();
            assert!(active || later, "a taken path is forgotten");
        }
    }

    /// Lets everything work again. The paths that are taken must then be connected.
    fn heal(&mut self) {
        self.down.clear();
        self.run(Operation::Policy(0));
        for at in 0..self.paths.len() {
            self.run(Operation::Back(at));
        }
        self.run(Operation::Offer((0..self.paths.len()).collect()));
        for _ in 0..140 {
            while let Some(subflow) = self.pick(0, |flow| !flow.open) {
                self.connect(subflow, 10);
                self.obey();
            }
            self.run(Operation::Tick(500));
        }
        assert!(
            self.flows
                .values()
                .any(|flow| flow.open && !flow.stalled && !flow.held)
        );
        for status in self.set.paths().filter(|status| status.taken) {
            assert!(status.open.is_some(), "a taken path is not connected");
        }
        let taken = self.set.paths().filter(|status| status.taken).count();
        assert!(taken > 0 && taken <= self.most);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn orders_make_sense_after_any_operations(
        operations in prop::collection::vec(operation(), 1..80),
        select in prop::sample::select(vec!["disjoint", "shortest", "latency", "disjoint:2"]),
        most in 1..5_usize,
        sensing: bool,
    ) {
        let mut world = World::new(select.parse().unwrap(), most, sensing);
        world.run(Operation::Offer(vec![0, 1, 2, 3, 4]));
        for operation in operations {
            world.run(operation);
        }
        world.heal();
    }
}

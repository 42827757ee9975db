//! Random events on virtual time, with processes that crash, hang and outlive signals.

use proptest::prelude::*;

use super::*;
use hawser_backoff::Backoff;

const SERVICES: usize = 3;
const LONGEST: Duration = Duration::from_millis(1600);
const POSTPONED: Duration = Duration::from_millis(700);

fn policy() -> Policy {
    Policy {
        backoff: Backoff::new(Duration::from_millis(100), LONGEST),
        steady: Duration::from_secs(3),
        grace: Duration::from_millis(500),
        kill_timeout: Duration::from_secs(1),
    }
}

/// What becomes of the next starts.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// A process that ends this long after SIGTERM and SIGKILL; `None` for never.
    Runs([Option<Duration>; 2]),
    Fails,
    Postponed,
}

#[derive(Debug, Clone)]
enum Operation {
    Next(Next),
    Start(usize),
    Stop(usize),
    Restart(usize),
    StopAll,
    Crash(usize),
    Listen(usize),
    Advance(Duration),
}

fn operation() -> impl Strategy<Value = Operation> {
    let millis = |most: u64| (0..most).prop_map(Duration::from_millis);
    let service = || 0..SERVICES;
    let ends = |most| prop_oneof![4 => millis(most).prop_map(Some), 1 => Just(None)];
    let runs = (ends(800), ends(1500)).prop_map(|(term, kill)| Next::Runs([term, kill]));
    prop_oneof![
        3 => runs.prop_map(Operation::Next),
        1 => Just(Operation::Next(Next::Fails)),
        1 => Just(Operation::Next(Next::Postponed)),
        2 => service().prop_map(Operation::Start),
        2 => service().prop_map(Operation::Stop),
        2 => service().prop_map(Operation::Restart),
        6 => service().prop_map(Operation::Crash),
        4 => service().prop_map(Operation::Listen),
        6 => millis(1000).prop_map(Operation::Advance),
        1 => millis(10_000).prop_map(Operation::Advance),
    ]
}

#[derive(Debug, Default)]
struct Process {
    since: Option<Instant>,
    ends_after: [Option<Duration>; 2],
    end: Option<Instant>,
    terminated: Option<Instant>,
    killed: Option<Instant>,
    is_abandoned: bool,
    listens: bool,
    /// Whether the service knows that it listens.
    is_ready: bool,
}

/// What is expected of a service.
#[derive(Debug, Default)]
struct Expected {
    process: Option<Process>,
    is_wanted: bool,
    /// Whether the process that runs is to end.
    is_replaced: bool,
    /// Failures in a row.
    row: u32,
    /// Whether the next start is one after a failure.
    has_failed: bool,
    restarts: u32,
}

#[derive(Debug)]
struct World {
    set: ServiceSet,
    now: Instant,
    next: Next,
    services: Vec<Expected>,
    is_stopped: bool,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let mut set = ServiceSet::new(policy());
        let ids: Vec<_> = (0..SERVICES).map(|_| set.add(now).index()).collect();
        assert_eq!(ids, [0, 1, 2]);
        let wanted = || Expected {
            is_wanted: true,
            ..Expected::default()
        };
        let mut this = Self {
            set,
            now,
            next: Next::Runs([Some(Duration::ZERO); 2]),
            services: (0..SERVICES).map(|_| wanted()).collect(),
            is_stopped: false,
        };
        this.settle();
        this
    }

    fn operate(&mut self, operation: Operation) {
        match operation {
            Operation::Next(next) => self.next = next,
            Operation::Start(at) => {
                self.set.start(ServiceId(at), self.now);
                self.services[at].is_wanted |= !self.is_stopped;
            }
            Operation::Stop(at) => {
                self.set.stop(ServiceId(at));
                (self.services[at].is_wanted, self.services[at].has_failed) = (false, false);
            }
            Operation::Restart(at) => {
                self.set.restart(ServiceId(at), self.now);
                let service = &mut self.services[at];
                if !self.is_stopped {
                    (service.is_wanted, service.has_failed, service.row) = (true, false, 0);
                    service.is_replaced = service.process.is_some();
                }
            }
            Operation::StopAll => {
                self.set.stop_all();
                self.is_stopped = true;
                for service in &mut self.services {
                    service.is_wanted = false;
                }
            }
            Operation::Crash(at) => {
                if let Some(process) = &mut self.services[at].process
                    && !process.is_abandoned
                {
                    process.end = Some(self.now);
                    self.end_processes();
                }
            }
            Operation::Listen(at) => {
                if let Some(process) = &mut self.services[at].process {
                    process.listens = true;
                }
            }
            Operation::Advance(time) => return self.advance(time),
        }
        self.settle();
    }

    fn advance(&mut self, time: Duration) {
        let target = self.now + time;
        while self.now < target {
            let ends = self.services.iter().filter_map(|s| s.process.as_ref()?.end);
            let due = ends.chain(self.set.next_due(self.now)).min();
            self.now = due.map_or(target, |due| due.max(self.now).min(target));
            self.end_processes();
            self.settle();
        }
    }

    /// Ends the processes whose time has come.
    fn end_processes(&mut self) {
        for at in 0..SERVICES {
            let service = &mut self.services[at];
            let is_over = |p: &&mut Process| p.end.is_some_and(|end| end <= self.now);
            let Some(process) = service.process.as_mut().filter(is_over) else {
                continue;
            };
            let ran = self.now - process.since.unwrap();
            let is_told = process.terminated.is_some();
            service.process = None;
            let exit = self.set.on_exited(ServiceId(at), self.now);
            if is_told || !service.is_wanted || service.is_replaced {
                assert_eq!(exit, Some(Exit::Requested));
            } else {
                if ran >= policy().steady {
                    service.row = 0;
                }
                service.row += 1;
                service.has_failed = true;
                let pause = policy().backoff.pause_after(service.row);
                assert_eq!(exit, Some(Exit::Unexpected(pause)));
            }
            service.is_replaced = false;
            assert_eq!(self.set.on_exited(ServiceId(at), self.now), None);
        }
    }

    /// Obeys until nothing is ordered, then checks the states.
    fn settle(&mut self) {
        const MAX_ROUNDS: usize = 4;
        let rounds = (0..MAX_ROUNDS).find(|_| {
            let orders = self.set.orders(self.now);
            orders.iter().for_each(|order| self.obey(*order));
            orders.is_empty()
        });
        assert!(rounds.is_some(), "orders without an end");
        let due = self.set.next_due(self.now);
        assert!(due.is_none_or(|due| due > self.now), "due and idle");
        for (at, service) in self.services.iter().enumerate() {
            let status = self.set.status(ServiceId(at));
            match (&service.process, status) {
                (None, Status::Waiting(due)) => {
                    assert!(service.is_wanted && due <= self.now + LONGEST);
                }
                (None, Status::Down) => assert!(!service.is_wanted),
                (Some(process), Status::Starting) => assert!(!process.is_ready),
                (Some(process), Status::Ready) => assert!(process.is_ready),
                (Some(process), Status::Ending) => assert!(process.terminated.is_some()),
                (Some(process), Status::Stuck) => assert!(process.is_abandoned),
                other => panic!("{other:?}"),
            }
            assert_eq!(self.set.restarts(ServiceId(at)), service.restarts);
        }
    }

    fn obey(&mut self, order: Order) {
        let now = self.now;
        match order {
            Order::Launch(id) => {
                let service = &mut self.services[id.0];
                assert!(service.is_wanted && !self.is_stopped && service.process.is_none());
                match self.next {
                    Next::Runs(ends_after) => {
                        service.process = Some(Process {
                            since: Some(now),
                            ends_after,
                            ..Process::default()
                        });
                        service.restarts += u32::from(service.has_failed);
                        service.has_failed = false;
                        self.set.on_started(id, now);
                    }
                    Next::Fails => {
                        service.row += 1;
                        let pause = policy().backoff.pause_after(service.row);
                        assert_eq!(self.set.on_failed(id, now), Some(pause));
                    }
                    Next::Postponed => self.set.on_postponed(id, now + POSTPONED),
                }
            }
            Order::Probe(id) => {
                let process = self.services[id.0].process.as_mut().unwrap();
                assert!(!process.is_ready && process.terminated.is_none());
                if process.listens {
                    process.is_ready = true;
                    self.set.on_ready(id);
                }
            }
            Order::Terminate(id) => {
                let service = &mut self.services[id.0];
                assert!(!service.is_wanted || service.is_replaced);
                let process = service.process.as_mut().unwrap();
                assert_eq!(process.terminated.replace(now), None);
                process.end = process.ends_after[0].map(|after| now + after);
            }
            Order::Kill(id) => {
                let process = self.services[id.0].process.as_mut().unwrap();
                assert_eq!(process.terminated, Some(now - policy().grace));
                assert_eq!(process.killed.replace(now), None);
                let end = process.ends_after[1].map(|after| now + after);
                process.end = process.end.into_iter().chain(end).min();
            }
            Order::Abandon(id) => {
                let process = self.services[id.0].process.as_mut().unwrap();
                assert_eq!(process.killed, Some(now - policy().kill_timeout));
                assert!(!std::mem::replace(&mut process.is_abandoned, true));
            }
        }
    }
}

proptest! {
    #[test]
    fn services_live_as_they_should(
        before in prop::collection::vec(operation(), 0..60),
        after in prop::collection::vec(operation(), 0..10),
    ) {
        let mut world = World::new();
        before.into_iter().for_each(|operation| world.operate(operation));
        world.operate(Operation::StopAll);
        // Nothing but time counts now.
        after.into_iter().for_each(|operation| world.operate(operation));
        world.advance(policy().grace + policy().kill_timeout);
        prop_assert!(world.set.is_over());
        world.advance(Duration::from_secs(3600));
        let runs = |service: &Expected| service.process.as_ref().is_some_and(|p| !p.is_abandoned);
        prop_assert!(!world.services.iter().any(runs));
    }
}

#[test]
fn a_service_that_fails_is_started_later_and_later_until_it_is_steady() {
    let mut now = Instant::now();
    let mut set = ServiceSet::new(policy());
    let id = set.add(now);
    let mut pauses = Vec::new();
    for runs in [0, 1, 2, 1, 0, 0, 5, 0].map(Duration::from_secs) {
        assert_eq!(set.orders(now), [Order::Launch(id)]);
        set.on_started(id, now);
        now += runs;
        let Some(Exit::Unexpected(pause)) = set.on_exited(id, now) else {
            panic!("no end");
        };
        assert_eq!(set.next_due(now), Some(now + pause));
        assert!(set.orders(now + pause - Duration::from_nanos(1)).is_empty());
        pauses.push(pause.as_millis());
        now += pause;
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 1600, 100, 200]);
    assert_eq!(set.restarts(id), 7);
}

#[test]
fn a_process_that_ignores_signals_is_reported_and_has_no_successor_until_it_ends() {
    let now = Instant::now();
    let mut set = ServiceSet::new(policy());
    let id = set.add(now);
    assert_eq!(set.orders(now), [Order::Launch(id)]);
    set.on_started(id, now);
    set.restart(id, now);
    assert_eq!(set.orders(now), [Order::Terminate(id)]);
    let killed = now + policy().grace;
    assert_eq!(set.next_due(now), Some(killed));
    assert_eq!(set.orders(killed), [Order::Kill(id)]);
    let stuck = killed + policy().kill_timeout;
    assert_eq!(set.orders(stuck), [Order::Abandon(id)]);
    assert!(set.is_over());
    let later = stuck + Duration::from_secs(1000);
    assert_eq!((set.orders(later), set.next_due(later)), (vec![], None));
    assert_eq!(set.on_exited(id, later), Some(Exit::Requested));
    assert_eq!(set.orders(later), [Order::Launch(id)]);
}

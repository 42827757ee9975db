//! The life of one service. No I/O, no clock.

use std::time::{Duration, Instant};

use hawser_backoff::Backoff;

use crate::policy::Policy;

/// Shortest interval of checks whether a process that starts is ready.
const PROBE_INTERVAL: Duration = Duration::from_millis(10);
/// The part of the time since its start after which it is checked again, if that is longer: a thousand
/// processes that start together take long, and all of them would be checked all the time.
const PROBE_PART: u32 = 8;

/// The state of a service, as [`ServiceSet::status`](crate::ServiceSet::status) reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Neither wanted nor running.
    Down,
    /// Not running; started at this time.
    Waiting(Instant),
    /// Its process is starting.
    Starting,
    /// It does its work.
    Ready,
    /// Its process was told to end.
    Ending,
    /// Its process does not end, even when killed.
    Stuck,
}

/// What the end of a process means for its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Nobody asked for it: the service is started again after this time.
    Unexpected(Duration),
    /// The process was to end.
    Requested,
}

/// What is to be done for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Launch,
    Probe,
    Terminate,
    Kill,
    Abandon,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Down,
    Waiting { due: Instant },
    Launching,
    Starting { since: Instant, probe: Instant },
    Ready { since: Instant },
    Terminated { deadline: Instant },
    Killed { deadline: Instant },
    Stuck,
}

/// A service: what is wanted of it, and what it is.
#[derive(Debug)]
pub(crate) struct Service {
    state: State,
    is_wanted: bool,
    /// Whether its process is to be replaced.
    is_replaced: bool,
    /// Whether its last process ended by itself, and no other was started since.
    has_failed: bool,
    backoff: Backoff,
    restarts: u32,
}

impl Service {
    /// A service that is down.
    pub fn new(policy: &Policy) -> Self {
        Self {
            state: State::Down,
            is_wanted: false,
            is_replaced: false,
            has_failed: false,
            backoff: policy.backoff,
            restarts: 0,
        }
    }

    pub fn status(&self) -> Status {
        match self.state {
            State::Down => Status::Down,
            State::Waiting { due } => Status::Waiting(due),
            State::Launching | State::Starting { .. } => Status::Starting,
            State::Ready { .. } => Status::Ready,
            State::Terminated { .. } | State::Killed { .. } => Status::Ending,
            State::Stuck => Status::Stuck,
        }
    }

    /// Number of starts after it had ended by itself.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// It is to run.
    pub fn want(&mut self, now: Instant) {
        self.is_wanted = true;
        if self.state == State::Down {
            self.state = State::Waiting { due: now };
        }
    }

    /// It is to be down.
    pub fn unwant(&mut self) {
        self.is_wanted = false;
        self.has_failed = false;
        if matches!(self.state, State::Waiting { .. }) {
            self.state = State::Down;
        }
    }

    /// It is to run in a new process, without a pause.
    pub fn restart(&mut self, now: Instant) {
        self.want(now);
        self.backoff.reset();
        self.has_failed = false;
        match &mut self.state {
            State::Waiting { due } => *due = now,
            State::Launching | State::Starting { .. } | State::Ready { .. } => {
                self.is_replaced = true;
            }
            // The next process is a new one.
            State::Down | State::Terminated { .. } | State::Killed { .. } | State::Stuck => {}
        }
    }

    /// Its process runs.
    pub fn on_started(&mut self, now: Instant) {
        if self.state == State::Launching {
            let has_failed = std::mem::take(&mut self.has_failed);
            self.restarts = self.restarts.saturating_add(has_failed.into());
            self.state = State::Starting {
                since: now,
                probe: now,
            };
        }
    }

    /// Its process cannot be started. Returns after which pause that is tried again, if at all.
    pub fn on_failed(&mut self, now: Instant) -> Option<Duration> {
        if self.state != State::Launching {
            return None;
        }
        let pause = match std::mem::take(&mut self.is_replaced) {
            true => Duration::ZERO,
            false => self.backoff.fail(),
        };
        self.wait_until(now + pause);
        self.is_wanted.then_some(pause)
    }

    /// It cannot be started before `until`, through no fault of its own.
    pub fn on_postponed(&mut self, until: Instant) {
        if self.state == State::Launching {
            self.is_replaced = false;
            self.wait_until(until);
        }
    }

    /// It does its work.
    pub fn on_ready(&mut self) {
        if let State::Starting { since, .. } = self.state {
            self.state = State::Ready { since };
        }
    }

    /// Its process has ended; `None` if it had none.
    pub fn on_exited(&mut self, policy: &Policy, now: Instant) -> Option<Exit> {
        let exit = match self.state {
            State::Down | State::Waiting { .. } | State::Launching => return None,
            State::Starting { since, .. } | State::Ready { since }
                if self.is_wanted && !self.is_replaced =>
            {
                if now.saturating_duration_since(since) >= policy.steady {
                    self.backoff.reset();
                }
                self.has_failed = true;
                let pause = self.backoff.fail();
                self.wait_until(now + pause);
                Exit::Unexpected(pause)
            }
            _ => {
                self.is_replaced = false;
                self.wait_until(now);
                Exit::Requested
            }
        };
        Some(exit)
    }

    fn wait_until(&mut self, due: Instant) {
        self.state = match self.is_wanted {
            true => State::Waiting { due },
            false => State::Down,
        };
    }

    /// When [`Service::act`] has something to do next.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Starting { .. } | State::Ready { .. } if self.is_to_end() => Some(now),
            State::Waiting { due } => Some(due),
            State::Starting { probe, .. } => Some(probe),
            State::Terminated { deadline } | State::Killed { deadline } => Some(deadline),
            State::Down | State::Launching | State::Ready { .. } | State::Stuck => None,
        }
    }

    /// What is to be done at `now`; the state is then that after it.
    pub fn act(&mut self, policy: &Policy, now: Instant) -> Option<Action> {
        let is_to_end = self.is_to_end();
        match &mut self.state {
            State::Waiting { due } if *due <= now => {
                self.state = State::Launching;
                Some(Action::Launch)
            }
            State::Starting { .. } | State::Ready { .. } if is_to_end => {
                let deadline = now + policy.grace;
                self.state = State::Terminated { deadline };
                Some(Action::Terminate)
            }
            State::Starting { since, probe } if *probe <= now => {
                let age = now.saturating_duration_since(*since);
                *probe = now + PROBE_INTERVAL.max(age / PROBE_PART);
                Some(Action::Probe)
            }
            State::Terminated { deadline } if *deadline <= now => {
                let deadline = now + policy.kill_timeout;
                self.state = State::Killed { deadline };
                Some(Action::Kill)
            }
            State::Killed { deadline } if *deadline <= now => {
                self.state = State::Stuck;
                Some(Action::Abandon)
            }
            _ => None,
        }
    }

    /// Whether the process that runs is not the one that is wanted.
    fn is_to_end(&self) -> bool {
        !self.is_wanted || self.is_replaced
    }
}

//! One thread of a router: the loop around its switch.

use std::io::{self, ErrorKind, Read};
use std::num::NonZeroU64;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hawser_kernel::pace::{NAP, Pace};
use rustix::thread::set_current_timer_slack;

use crate::io::Waiting;
use crate::switch::Switch;

/// After this time without a packet a thread releases memory, and blocks until the next one.
const REST: Duration = Duration::from_secs(1);
/// Longest wait for other threads to wait for changed ports. Only a thread that has ended takes longer.
const GO_OVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The switch of one thread. The others lock it to change the state of links, or to read counters;
/// its own thread locks it while it works, not while it waits.
pub(crate) fn lock(switch: &Mutex<Switch>) -> MutexGuard<'_, Switch> {
    switch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the threads of `switches`, which must have been woken, wait for the ports that there are now.
/// A thread that still waits for a port that was removed keeps its address taken. Gives up after
/// [`GO_OVER_TIMEOUT`].
pub(crate) fn wait_for_ports(switches: &[Mutex<Switch>]) {
    let deadline = Instant::now() + GO_OVER_TIMEOUT;
    let is_behind = |switch: &Mutex<Switch>| {
        let switch = lock(switch);
        switch.awaited != switch.version
    };
    while switches.iter().any(is_behind) {
        if Instant::now() >= deadline {
            tracing::warn!(
                "a thread still waits at removed interfaces, whose addresses stay taken"
            );
            return;
        }
        std::thread::sleep(NAP);
    }
}

/// A thread of the router.
pub(crate) struct Worker<'a> {
    switch: &'a Mutex<Switch>,
    pub wait: Waiting,
    pace: Pace,
    /// When the thread last began to wait.
    since: Instant,
    /// When the thread became idle; `None` once memory was released.
    idle_since: Option<Instant>,
    /// The ports that have packets; after work, those that may have more.
    ready: Vec<usize>,
}

impl<'a> Worker<'a> {
    /// The worker of the calling thread, which also waits for the descriptors `wakes`.
    pub fn new(
        switch: &'a Mutex<Switch>,
        wakes: impl IntoIterator<Item = RawFd>,
    ) -> io::Result<Self> {
        // The minimum timer slack: a wait ends on time and not up to 50 µs later.
        set_current_timer_slack(Some(NonZeroU64::MIN))?;
        let wait = {
            let mut switch = lock(switch);
            switch.awaited = switch.version;
            Waiting::new(wakes, switch.descriptors())
        };
        Ok(Self {
            switch,
            wait,
            pace: Pace::default(),
            since: Instant::now(),
            idle_since: None,
            ready: Vec::new(),
        })
    }

    /// Works until `lead`, which is the only one of the descriptors `wakes`, is closed. What arrives
    /// there ends the wait: the ports have changed.
    pub fn run(mut self, mut lead: &UnixStream) -> io::Result<()> {
        loop {
            self.wait(None)?;
            if self.wait.woken().is_some() {
                match lead.read(&mut [0; 64]) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::Interrupted => {}
                        _ => return Err(error),
                    },
                }
            }
            self.work();
        }
    }

    /// Waits until there may be something to do, at most until `also`.
    pub fn wait(&mut self, also: Option<Instant>) -> io::Result<()> {
        let due = lock(self.switch).next_due();
        let due = due.into_iter().chain(also).min();
        let until_due = due.map(|due| due.saturating_duration_since(self.since));
        let timeout = if !self.ready.is_empty() {
            // A nap would only delay the packets that are there already.
            Some(Duration::ZERO)
        } else if self.pace.naps() {
            std::thread::sleep(until_due.map_or(NAP, |time| time.min(NAP)));
            Some(Duration::ZERO)
        } else {
            let idle = self.idle_since;
            let rest = idle.map(|idle| REST.saturating_sub(self.since - idle));
            until_due.into_iter().chain(rest).min()
        };
        self.wait.wait(timeout)
    }

    /// Forwards the packets that have arrived, and does what is due.
    pub fn work(&mut self) {
        let now = Instant::now();
        let mut switch = lock(self.switch);
        if switch.version == switch.awaited {
            self.wait.ready_ports(&mut self.ready);
        } else {
            // What was waited for are other ports.
            self.wait.set_ports(switch.descriptors());
            switch.awaited = switch.version;
            self.ready.clear();
        }
        let packets = switch.receive(&mut self.ready, now);
        switch.send_due(now);
        self.pace.note(packets, now - self.since);
        if packets > 0 || switch.holds_packets() {
            self.idle_since = Some(now);
        } else if self.idle_since.is_some_and(|idle| now - idle >= REST) {
            switch.release_memory();
            self.idle_since = None;
        }
        self.since = Instant::now();
    }
}

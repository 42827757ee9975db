//! The services of one supervisor: events in, orders out. No I/O, no clock.

use std::time::{Duration, Instant};

use crate::policy::Policy;
use crate::service::{Action, Exit, Service, Status};

/// A service of a set, numbered from zero in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub(crate) usize);

impl ServiceId {
    /// Its number.
    pub fn index(self) -> usize {
        self.0
    }
}

/// What is to be done. Each order is given once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Start a process. The answer is [`ServiceSet::on_started`], [`ServiceSet::on_failed`] or
    /// [`ServiceSet::on_postponed`].
    Launch(ServiceId),
    /// Check whether the service is ready; [`ServiceSet::on_ready`] if it is. Given again until then.
    Probe(ServiceId),
    /// Send SIGTERM to the process.
    Terminate(ServiceId),
    /// Send SIGKILL to the process.
    Kill(ServiceId),
    /// Report that the process does not end.
    Abandon(ServiceId),
}

/// Services and their states. Events are told with their time by the `on_` functions; afterwards,
/// and at [`ServiceSet::next_due`], [`ServiceSet::orders`] says what is to be done.
#[derive(Debug)]
pub struct ServiceSet {
    policy: Policy,
    services: Vec<Service>,
    is_stopped: bool,
}

impl ServiceSet {
    /// A set without services.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            services: Vec::new(),
            is_stopped: false,
        }
    }

    /// Adds a service, which is started at once.
    pub fn add(&mut self, now: Instant) -> ServiceId {
        let id = ServiceId(self.services.len());
        self.services.push(Service::new(&self.policy));
        self.start(id, now);
        id
    }

    /// All services, in the order in which they were added.
    pub fn ids(&self) -> impl Iterator<Item = ServiceId> + use<> {
        (0..self.services.len()).map(ServiceId)
    }

    /// Starts a service that is down. If its process is ending, another one follows.
    pub fn start(&mut self, id: ServiceId, now: Instant) {
        if !self.is_stopped {
            self.services[id.0].want(now);
        }
    }

    /// Replaces the process of a service, as when its configuration has changed; one that is down or
    /// waits is started at once.
    pub fn restart(&mut self, id: ServiceId, now: Instant) {
        if !self.is_stopped {
            self.services[id.0].restart(now);
        }
    }

    /// Ends a service, until it is started again.
    pub fn stop(&mut self, id: ServiceId) {
        self.services[id.0].unwant();
    }

    /// Ends all services. From now on nothing is started.
    pub fn stop_all(&mut self) {
        self.is_stopped = true;
        self.services.iter_mut().for_each(Service::unwant);
    }

    /// The process of a service was started.
    pub fn on_started(&mut self, id: ServiceId, now: Instant) {
        self.services[id.0].on_started(now);
    }

    /// The process of a service cannot be started. Returns the pause until the next attempt; `None`
    /// if there is none.
    pub fn on_failed(&mut self, id: ServiceId, now: Instant) -> Option<Duration> {
        self.services[id.0].on_failed(now)
    }

    /// A service must not be started before `until`, which is no failure.
    pub fn on_postponed(&mut self, id: ServiceId, until: Instant) {
        self.services[id.0].on_postponed(until);
    }

    /// A service is ready.
    pub fn on_ready(&mut self, id: ServiceId) {
        self.services[id.0].on_ready();
    }

    /// The process of a service has ended, and was reaped. Returns what follows; `None` if the
    /// service had no process.
    pub fn on_exited(&mut self, id: ServiceId, now: Instant) -> Option<Exit> {
        self.services[id.0].on_exited(&self.policy, now)
    }

    /// What is to be done at `now`. Events that answer these orders may bring further ones at once.
    pub fn orders(&mut self, now: Instant) -> Vec<Order> {
        let policy = &self.policy;
        let services = self.services.iter_mut().enumerate();
        let orders = services.filter_map(|(index, service)| {
            let id = ServiceId(index);
            Some(match service.act(policy, now)? {
                Action::Launch => Order::Launch(id),
                Action::Probe => Order::Probe(id),
                Action::Terminate => Order::Terminate(id),
                Action::Kill => Order::Kill(id),
                Action::Abandon => Order::Abandon(id),
            })
        });
        orders.collect()
    }

    /// When there are orders next, unless an event comes before; `now` or earlier if there are some.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        let services = self.services.iter();
        services.filter_map(|service| service.next_due(now)).min()
    }

    /// The state of a service.
    pub fn status(&self, id: ServiceId) -> Status {
        self.services[id.0].status()
    }

    /// How often a service was started after it had ended by itself.
    pub fn restarts(&self, id: ServiceId) -> u32 {
        self.services[id.0].restarts()
    }

    /// Whether all services are down, or stuck: nothing more follows by itself after
    /// [`ServiceSet::stop_all`].
    pub fn is_over(&self) -> bool {
        let is_over = |service: &Service| matches!(service.status(), Status::Down | Status::Stuck);
        self.services.iter().all(is_over)
    }
}

#[cfg(test)]
mod tests;

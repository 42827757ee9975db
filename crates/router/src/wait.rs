//! Waiting for signals, packets and requests.

use std::os::fd::RawFd;

use crate::engine::Engine;
use crate::io::{Interest, Poller, Signals};

/// What the router waits for: signals, its ports, then clients of the control socket.
pub(crate) struct Waiting {
    pub poller: Poller,
    ports: usize,
    clients: usize,
}

impl Waiting {
    pub fn new(signals: &Signals, engine: &Engine) -> Self {
        let mut poller = Poller::default();
        poller.add(signals.descriptor(), Interest::Read);
        let mut ports = 0;
        for descriptor in engine.descriptors() {
            poller.add(descriptor, Interest::Read);
            ports += 1;
        }
        Self {
            poller,
            ports,
            clients: 0,
        }
    }

    /// Waits for these clients from now on.
    pub fn set_clients(&mut self, clients: impl Iterator<Item = (RawFd, Interest)>) {
        self.poller.truncate(1 + self.ports);
        self.clients = 0;
        for (descriptor, interest) in clients {
            self.poller.add(descriptor, interest);
            self.clients += 1;
        }
    }

    pub fn signalled(&self) -> bool {
        self.poller.is_ready(0)
    }

    pub fn is_ready(&self, port: usize) -> bool {
        self.poller.is_ready(1 + port)
    }

    pub fn client_is_ready(&self) -> bool {
        (0..self.clients).any(|client| self.poller.is_ready(1 + self.ports + client))
    }
}

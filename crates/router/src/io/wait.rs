//! Waiting for signals, packets and requests, with timeouts below a millisecond.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use hawser_kernel::socket::checked;

/// The descriptors that a thread of the router waits for: those that end it, its ports, then clients
/// of the control socket.
pub(crate) struct Waiting {
    entries: Vec<libc::pollfd>,
    /// Index of the first port.
    ports: usize,
    /// Index of the first client.
    clients: usize,
}

/// An entry that waits for `events` of poll(2) at a descriptor.
pub(crate) fn entry(descriptor: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd: descriptor,
        events,
        revents: 0,
    }
}

impl Waiting {
    /// Waits for `wakes` and `ports`. The descriptors must stay open: a closed one is reported as
    /// ready.
    pub fn new(wakes: impl IntoIterator<Item = RawFd>, ports: impl Iterator<Item = RawFd>) -> Self {
        let wait = |descriptor| entry(descriptor, libc::POLLIN);
        let mut entries: Vec<_> = wakes.into_iter().map(wait).collect();
        let first = entries.len();
        entries.extend(ports.map(wait));
        Self {
            clients: entries.len(),
            ports: first,
            entries,
        }
    }

    /// Replaces the ports to wait for. The clients must be set again.
    pub fn set_ports(&mut self, ports: impl Iterator<Item = RawFd>) {
        self.entries.truncate(self.ports);
        let wait = |descriptor| entry(descriptor, libc::POLLIN);
        self.entries.extend(ports.map(wait));
        self.clients = self.entries.len();
    }

    /// Replaces the clients to wait for.
    pub fn set_clients(&mut self, clients: impl Iterator<Item = libc::pollfd>) {
        self.entries.truncate(self.clients);
        self.entries.extend(clients);
    }

    /// Waits until a descriptor is ready, a signal interrupts the call, or `timeout` has passed if
    /// given.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|time| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), |time| time as _);
        // SAFETY: the pointers are to memory that outlives the call, with its true length; no
        // signal mask is given.
        let ready = checked(unsafe {
            libc::ppoll(
                self.entries.as_mut_ptr(),
                self.entries.len() as libc::nfds_t,
                timeout,
                std::ptr::null(),
            )
        });
        match ready {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.entries.iter_mut().for_each(|entry| entry.revents = 0);
                Ok(())
            }
            ready => ready.map(drop),
        }
    }

    /// The index of a descriptor among `wakes` that is ready.
    pub fn woken(&self) -> Option<usize> {
        let mut wakes = self.entries[..self.ports].iter();
        wakes.position(|entry| entry.revents != 0)
    }

    /// Sets `ready` to the indices of the ports that have packets or have failed.
    pub fn ready_ports(&self, ready: &mut Vec<usize>) {
        let ports = self.entries[self.ports..self.clients].iter().enumerate();
        ready.clear();
        ready.extend(ports.filter_map(|(port, entry)| (entry.revents != 0).then_some(port)));
    }

    /// Whether a client can be served.
    pub fn client_is_ready(&self) -> bool {
        let mut clients = self.entries[self.clients..].iter();
        clients.any(|client| client.revents != 0)
    }
}

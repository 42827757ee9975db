//! The datagrams of one UDP port, in and out of one device.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hawser_kernel::netlink::Netlink;
use rustix::io::Errno;

use crate::bpf::{Hook, Link, Program, SocketMap};
use crate::device::Device;
use crate::error::XdpError;
use crate::filter;
use crate::frame::{self, ETHERNET};
use crate::hops::Hops;
use crate::queue::{MEMORY, Queue, Setup};
use crate::umem::HEADROOM;

/// Sizes of chunks that every kernel takes, in bytes.
const CHUNKS: [u32; 2] = [2048, 4096];
/// Room for a VLAN tag, which some cards leave in the frame.
const VLAN: u32 = 4;
/// Frames that wait to be received: on all queues together, and on one.
const TOTAL_WAITING: u32 = 16384;
const MIN_WAITING: u32 = 1024;
const MAX_WAITING: u32 = 4096;

/// The datagrams of one UDP port, in and out of one device. When it is dropped, or the process ends,
/// all is with the kernel's stack again.
#[derive(Debug)]
pub struct Port {
    status: Status,
    local: SocketAddr,
    /// The largest datagram that is sent, in bytes of payload.
    longest: usize,
    sockets: Vec<Arc<OwnedFd>>,
    inner: Mutex<Inner>,
    sent: AtomicU64,
    received: AtomicU64,
    #[cfg_attr(not(test), expect(dead_code, reason = "held as long as it is to run"))]
    program: Program,
    _link: Link,
}

#[derive(Debug)]
struct Inner {
    /// The first one sends for all: one process sends.
    queues: Vec<Queue>,
    hops: Hops,
    /// The queue that is received from first.
    turn: usize,
}

/// How a device is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Its receive queues.
    pub queues: usize,
    /// Where the program runs.
    pub hook: Hook,
    /// Whether the card reads and writes frames where they are, so that the kernel copies nothing.
    pub zero_copy: bool,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = if self.zero_copy {
            "zero-copy"
        } else {
            "copies"
        };
        let hook = match self.hook {
            Hook::Native => "in the driver",
            Hook::Generic => "before the kernel's stack",
        };
        let Self {
            device,
            driver,
            queues,
            ..
        } = self;
        let s = if *queues == 1 { "" } else { "s" };
        write!(
            f,
            "{device} (driver {driver}), {copies}, {queues} queue{s}, {hook}"
        )
    }
}

/// What became of datagrams to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// They are sent.
    Sent,
    /// They are the kernel's to send, none of them is sent.
    Declined,
}

impl Port {
    /// Takes over the datagrams of the socket bound to `local`, which must stay bound, at the device
    /// called `device` in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`XdpError`]
    pub fn open(device: &str, local: SocketAddr) -> Result<Self, XdpError> {
        let mut netlink = Netlink::open()?;
        let device = Device::find(&mut netlink, device, local.ip())?;
        let refused =
            |action, source| XdpError::refused((&device.name, &device.driver), action, source);
        let frame = device.mtu + ETHERNET as u32 + VLAN;
        let fits = |chunk: &u32| chunk - HEADROOM >= frame;
        let chunk = CHUNKS.into_iter().find(fits).unwrap_or(CHUNKS[1]);

        let map = SocketMap::new(device.queues).map_err(|error| refused(MAP, error))?;
        let program = filter::program(local, chunk - HEADROOM, map.descriptor());
        let program = Program::load(&program).map_err(|error| refused(LOAD, error))?;
        let (link, hook) = attach(&program, &device).map_err(|error| refused(ATTACH, error))?;
        let share = (TOTAL_WAITING / device.queues).clamp(MIN_WAITING, MAX_WAITING);
        let mut queues = Vec::new();
        // Until the map has a queue's socket, the kernel gets the queue's packets.
        for queue in 0..device.queues {
            let setup = Setup {
                device: device.index,
                queue,
                chunk,
                receive: 1 << share.ilog2(),
                sends: queue == 0,
                // Drivers know nothing of programs before the kernel's stack.
                copy: hook == Hook::Generic,
            };
            let opened =
                Queue::open(&setup).map_err(|(action, source)| {
                    match Errno::from_io_error(&source) {
                        Some(Errno::NOBUFS | Errno::NOMEM) if action == MEMORY => {
                            XdpError::Memory {
                                device: device.name.clone(),
                                bytes: setup.bytes(),
                            }
                        }
                        _ => refused(action, source),
                    }
                })?;
            map.set(queue, &opened)
                .map_err(|error| refused(MAP, error))?;
            queues.push(opened);
        }
        let capacity = device.mtu.min(chunk - ETHERNET as u32) as usize;
        Ok(Self {
            status: Status {
                device: device.name.clone(),
                driver: device.driver.clone(),
                queues: queues.len(),
                hook,
                zero_copy: queues.iter().all(Queue::is_zero_copy),
            },
            local,
            longest: capacity.saturating_sub(frame::ip_overhead(local.ip())),
            sockets: queues.iter().map(|one| Arc::clone(one.socket())).collect(),
            inner: Mutex::new(Inner {
                hops: Hops::new(netlink, &device, local),
                queues,
                turn: 0,
            }),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            program,
            _link: link,
        })
    }

    /// How the device is used.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Datagrams received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Datagrams that arrived and were dropped, because [`Port::receive`] was not called in time.
    pub fn dropped(&self) -> u64 {
        self.lock().queues.iter().map(Queue::dropped).sum()
    }

    /// Sends `datagrams` of `stride` bytes each, the last possibly shorter, to `remote`: all of them
    /// or none.
    ///
    /// # Errors
    /// `WouldBlock` when the device has not sent enough of what it has; every other error is the
    /// system's.
    pub fn try_send(
        &self,
        datagrams: &[u8],
        stride: usize,
        remote: SocketAddr,
    ) -> io::Result<Outcome> {
        let largest = stride.min(datagrams.len());
        if largest == 0 || largest > self.longest {
            return Ok(Outcome::Declined);
        }
        let mut inner = self.lock();
        let Inner { queues, hops, .. } = &mut *inner;
        let Some(template) = hops.template(remote, Instant::now()) else {
            return Ok(Outcome::Declined);
        };
        let Some(queue) = queues.first_mut() else {
            return Ok(Outcome::Declined);
        };
        let count = datagrams.len().div_ceil(stride);
        if !queue.has_room(count) {
            queue.flush()?;
            if !queue.has_room(count) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        for datagram in datagrams.chunks(stride) {
            // There is room, and every datagram fits a frame.
            queue.push(|chunk| template.write(remote.port(), datagram, chunk));
        }
        queue.flush()?;
        self.sent.fetch_add(count as u64, Ordering::Relaxed);
        Ok(Outcome::Sent)
    }

    /// Hands the datagrams received to `take`, each with its sender, until it returns `false` for
    /// one, which stays there. Returns how many were taken. Also has the device send what it did not
    /// take before.
    pub fn receive(&self, mut take: impl FnMut(SocketAddr, &[u8]) -> bool) -> usize {
        let mut inner = self.lock();
        let Inner { queues, turn, .. } = &mut *inner;
        // Each queue is first in turn, so that a busy one does not starve others.
        *turn = (*turn + 1) % queues.len().max(1);
        let (before, first) = queues.split_at_mut(*turn);
        let mut count = 0;
        for queue in first.iter_mut().chain(before) {
            if queue.is_sending()
                && let Err(error) = queue.flush()
            {
                // The next call to send fails in the same way.
                tracing::debug!(%error, "frames wait");
            }
            let mut full = false;
            queue.receive(|frame| {
                // The program lets only such frames pass; any other is dropped.
                let Some((from, payload)) = frame::read(frame, self.local) else {
                    return true;
                };
                full = !take(from, payload);
                count += usize::from(!full);
                !full
            });
            if full {
                break;
            }
        }
        self.received.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// What to wait for until datagrams arrive: one of these can be read.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Whether the device did not take everything, so that [`Port::receive`] must be called soon.
    pub fn is_sending(&self) -> bool {
        self.lock().queues.iter().any(Queue::is_sending)
    }

    #[cfg(test)]
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Rings are in order at every step.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// What the system may refuse.
const MAP: &str = "make a map of AF_XDP sockets";
const LOAD: &str = "load an XDP program";
const ATTACH: &str = "attach an XDP program to the device";

/// Attaches the program in the driver if it can, else before the kernel's stack.
fn attach(program: &Program, device: &Device) -> io::Result<(Link, Hook)> {
    let refused = match program.attach(device.index, Hook::Native) {
        Ok(link) => return Ok((link, Hook::Native)),
        Err(error) => error,
    };
    // Others were in time, or it is not allowed: so also for the other one.
    let last = [
        Errno::BUSY,
        Errno::EXIST,
        Errno::PERM,
        Errno::ACCESS,
        Errno::NODEV,
    ];
    if Errno::from_io_error(&refused).is_some_and(|error| last.contains(&error)) {
        return Err(refused);
    }
    tracing::debug!(device = device.name, %refused, "the driver takes no program");
    let link = program.attach(device.index, Hook::Generic)?;
    Ok((link, Hook::Generic))
}

//! An AF_XDP socket: frames in and out of one queue of a device.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_kernel::socket::set_send_buffer;
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpMmapOffsets, XdpOptionsFlags, XdpRingOffset,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};

use crate::ring::{Consumer, Mapping, Producer};
use crate::umem::Umem;

/// Frames that may wait to be sent.
const SEND: u32 = 2048;
/// Entries of the completion ring of a socket that never sends: it must have one.
const UNUSED_RING_ENTRIES: u32 = 64;
/// Bytes that may wait in the device when the kernel copies frames.
const BUFFER: usize = 8 << 20;
/// Longest time for which a queue seems in use after its socket was closed: the kernel frees it in the
/// background.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(5);

/// How a socket is to be set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// The device's number, and the queue.
    pub device: u32,
    pub queue: u32,
    /// Bytes of a chunk.
    pub chunk: u32,
    /// Frames that may wait to be received, a power of two.
    pub receive: u32,
    /// Whether it sends.
    pub sends: bool,
    /// Whether the kernel must copy frames, even if the driver could do without.
    pub copy: bool,
}

impl Setup {
    /// Bytes of memory for frames.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.chunks()) * u64::from(self.chunk)
    }

    fn chunks(&self) -> u32 {
        self.receive + if self.sends { SEND } else { 0 }
    }
}

/// The step of a setup that failed, and the system's error.
pub(crate) type SetupError = (&'static str, io::Error);

/// An AF_XDP socket on one queue.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: Arc<OwnedFd>,
    umem: Umem,
    /// Chunks for the kernel to receive into.
    fill: Producer<u64>,
    received: Consumer<XdpDesc>,
    sending: Option<Sending>,
}

#[derive(Debug)]
struct Sending {
    ring: Producer<XdpDesc>,
    /// Chunks that were sent.
    completed: Consumer<u64>,
    /// Chunks to write frames to.
    free: Vec<u64>,
}

impl Queue {
    /// Opens a socket and binds it to a queue.
    ///
    /// # Errors
    /// What failed, and the system's error.
    pub(crate) fn open(setup: &Setup) -> Result<Self, SetupError> {
        let at = |step: &'static str| move |error: Errno| (step, error.into());
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::XDP, kind, flags, None);
        let socket = Arc::new(socket.map_err(at("open an AF_XDP socket"))?);
        let chunk = u64::from(setup.chunk);
        let umem = Umem::new(setup.chunks(), setup.chunk);
        let umem = umem.map_err(|error| ("map memory for frames", error))?;
        sockopt::set_xdp_umem_reg(&socket, umem.registration()).map_err(at(MEMORY))?;
        let offsets = make_rings(&socket, setup);
        let offsets = offsets.map_err(at("make the rings of an AF_XDP socket"))?;
        let ring = |page, offsets: &XdpRingOffset, size: u32, entry: usize| {
            let bytes = offsets.desc as usize + size as usize * entry;
            match Mapping::of(&socket, page, bytes) {
                Ok(mapping) => Ok(Arc::new(mapping)),
                Err(error) => Err(("map the rings of an AF_XDP socket", error)),
            }
        };
        const ADDRESS: usize = size_of::<u64>();
        const FRAME: usize = size_of::<XdpDesc>();
        let (receive, fill) = (setup.receive, XDP_UMEM_PGOFF_FILL_RING);
        let fill = ring(fill, &offsets.fr, receive, ADDRESS)?;
        let mut fill = Producer::new(fill, &offsets.fr, receive);
        let received = ring(XDP_PGOFF_RX_RING, &offsets.rx, receive, FRAME)?;
        let received = Consumer::new(received, &offsets.rx, receive);
        for index in 0..u64::from(receive) {
            fill.push(index * chunk);
        }
        fill.publish();
        let sending = match setup.sends {
            false => None,
            true => {
                let sending = ring(XDP_PGOFF_TX_RING, &offsets.tx, SEND, FRAME)?;
                let page = XDP_UMEM_PGOFF_COMPLETION_RING;
                let completed = ring(page, &offsets.cr, SEND, ADDRESS)?;
                // Small buffers cost speed, not correctness.
                let _ = set_send_buffer(&socket, BUFFER);
                let first = u64::from(receive);
                Some(Sending {
                    ring: Producer::new(sending, &offsets.tx, SEND),
                    completed: Consumer::new(completed, &offsets.cr, SEND),
                    free: (first..first + u64::from(SEND))
                        .map(|i| i * chunk)
                        .collect(),
                })
            }
        };
        bind_to(&socket, setup).map_err(at("bind an AF_XDP socket to a queue"))?;
        Ok(Self {
            socket,
            umem,
            fill,
            received,
            sending,
        })
    }

    /// The socket.
    pub(crate) fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// Whether the device reads and writes frames where they are.
    pub(crate) fn is_zero_copy(&self) -> bool {
        sockopt::xdp_options(&self.socket)
            .is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Hands the frames received to `take`, until it returns `false` for one, which stays there.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(&[u8]) -> bool) {
        let mut any = false;
        while let Some(frame) = self.received.peek() {
            // SAFETY: the kernel has written this frame and given its chunk to this process, which
            // returns it only below.
            let bytes = unsafe { self.umem.bytes(frame.addr, frame.len) };
            if !take(bytes.unwrap_or_default()) {
                break;
            }
            self.received.advance();
            // There are no more chunks to receive into than places in the ring.
            self.fill.push(self.umem.chunk_of(frame.addr));
            any = true;
        }
        if any {
            self.received.release();
            self.fill.publish();
            if self.fill.needs_wakeup() {
                // While the device is down nothing arrives; waiting for the socket wakes it too.
                let _ = recv(&self.socket, &mut [0; 0], RecvFlags::DONTWAIT);
            }
        }
    }

    /// Whether `count` frames can be written now.
    pub(crate) fn has_room(&mut self, count: usize) -> bool {
        let Some(sending) = &mut self.sending else {
            return false;
        };
        if sending.free.len() < count {
            while let Some(chunk) = sending.completed.peek() {
                sending.completed.advance();
                sending.free.push(self.umem.chunk_of(chunk));
            }
            sending.completed.release();
        }
        sending.free.len() >= count && sending.ring.room() as usize >= count
    }

    /// Adds a frame, which `write` writes and returns the length of, to those to be
    /// [sent](Self::flush). `false`, and nothing is added, when there is [no room](Self::has_room), or
    /// `write` returns `None`.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let Some(sending) = &mut self.sending else {
            return false;
        };
        let Some(&addr) = sending.free.last() else {
            return false;
        };
        // SAFETY: a chunk in `free` is this process's, and in it only once; the slice ends here.
        let chunk = unsafe { self.umem.chunk_mut(addr) };
        let len = chunk.and_then(write).and_then(|len| len.try_into().ok());
        let Some(len) = len else {
            return false;
        };
        let frame = XdpDesc {
            addr,
            len,
            options: XdpDescOptions::empty(),
        };
        if sending.ring.push(frame) {
            sending.free.pop();
            return true;
        }
        false
    }

    /// Has the device send the frames that were added, as many as it takes now.
    ///
    /// # Errors
    /// As the system says: the device is down, or gone.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(sending) = &mut self.sending else {
            return Ok(());
        };
        sending.ring.publish();
        let mut before = sending.ring.pending();
        // The kernel takes some tens of frames a call.
        while before > 0 && sending.ring.needs_wakeup() {
            tolerate(send(&self.socket, &[], SendFlags::DONTWAIT).map(|_| ()))?;
            let left = sending.ring.pending();
            if left >= before {
                break;
            }
            before = left;
        }
        Ok(())
    }

    /// Frames that were dropped because the process did not take earlier ones in time.
    pub(crate) fn dropped(&self) -> u64 {
        sockopt::xdp_statistics(&self.socket).map_or(0, |statistics| {
            statistics.rx_dropped + statistics.rx_ring_full.unwrap_or_default()
        })
    }

    /// Whether frames wait for a call to be sent.
    pub(crate) fn is_sending(&self) -> bool {
        let waits = |one: &Sending| one.ring.pending() > 0 && one.ring.needs_wakeup();
        self.sending.as_ref().is_some_and(waits)
    }
}

/// Makes the rings of a socket. Returns where they are in what it offers for mapping.
fn make_rings(socket: &OwnedFd, setup: &Setup) -> rustix::io::Result<XdpMmapOffsets> {
    let completed = if setup.sends {
        SEND
    } else {
        UNUSED_RING_ENTRIES
    };
    sockopt::set_xdp_umem_fill_ring_size(socket, setup.receive)?;
    sockopt::set_xdp_umem_completion_ring_size(socket, completed)?;
    sockopt::set_xdp_rx_ring_size(socket, setup.receive)?;
    if setup.sends {
        sockopt::set_xdp_tx_ring_size(socket, SEND)?;
    }
    sockopt::xdp_mmap_offsets(socket)
}

/// Binds a socket to its queue.
fn bind_to(socket: &OwnedFd, setup: &Setup) -> rustix::io::Result<()> {
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags.set(SocketAddrXdpFlags::XDP_COPY, setup.copy);
    let address = SocketAddrXdp::new(flags, setup.device, setup.queue);
    let began = Instant::now();
    loop {
        match bind(socket, &address) {
            Err(Errno::BUSY) if began.elapsed() < RELEASE_TIMEOUT => thread::sleep(RETRY),
            bound => return bound,
        }
    }
}

/// The step at which the limit of locked memory counts.
pub(crate) const MEMORY: &str = "register memory for frames";

/// Results of calls that only wake the kernel: whether it could do everything at once does not
/// matter.
fn tolerate(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => Ok(()),
        other => Ok(other?),
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

//! From the TUN queue to lanes.

use std::io;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hawser_kernel::pace::{NAP, Pace};
use hawser_tun::{Packet, Queue, READ_BUFFER};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::shared::{Shared, read};
use crate::address::Block;
use crate::plane::lane::SealedLane;
use crate::plane::table::Binding;
use crate::protocol::{Role, SlotEpoch};

/// Packets that are read before all lanes are flushed: an acknowledgement must not wait for long.
const PACKETS_PER_ROUND: usize = 16;

/// Waits in a row, without naps, after which little comes.
const QUIET_WAITS: u32 = 100;
/// Time without a packet after which little comes.
const QUIET_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Carries packets, when it is this thread's turn, until the plane is stopped.
///
/// # Errors
/// When the device fails.
pub(super) fn run(shared: &Shared) -> io::Result<()> {
    // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
    let Some(tun) = &shared.queue else {
        return Ok(());
    };
    loop {
        wait(shared.turn.outbound(), shared, None)?;
        if shared.is_stopped() {
            return Ok(());
        }
        if shared.turn.take_outbound() {
            run_busy(shared, tun)?;
            shared.turn.pass_to_rest();
        }
    }
}

/// Carries packets while much comes, or until the plane is stopped.
fn run_busy(shared: &Shared, tun: &Queue) -> io::Result<()> {
    let mut outbound = Outbound::default();
    let mut waits = 0;
    while waits < QUIET_WAITS {
        if outbound.round(shared, tun)? == PACKETS_PER_ROUND {
            continue;
        }
        let began = Instant::now();
        if outbound.naps() {
            waits = 0;
            thread::sleep(NAP);
        } else {
            waits += 1;
            if !wait(tun.as_fd(), shared, Some(&QUIET_TIME))? || shared.is_stopped() {
                return Ok(());
            }
        }
        outbound.waited = began.elapsed();
    }
    Ok(())
}

/// Reads packets from the device, and gives them to lanes.
pub(super) struct Outbound {
    buffer: Vec<u8>,
    touched: Vec<Arc<SealedLane>>,
    pace: Pace,
    /// How long there was nothing to read before the next round.
    waited: Duration,
}

impl Default for Outbound {
    fn default() -> Self {
        Self {
            buffer: vec![0; READ_BUFFER],
            touched: Vec::new(),
            pace: Pace::default(),
            waited: Duration::MAX,
        }
    }
}

impl Outbound {
    /// Whether packets come so fast that a nap is better than a wait for the next one.
    pub(super) fn naps(&self) -> bool {
        self.pace.naps()
    }

    /// Carries up to [`PACKETS_PER_ROUND`] packets. Returns how many.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn round(&mut self, shared: &Shared, tun: &Queue) -> io::Result<usize> {
        let mut packets = 0;
        while packets < PACKETS_PER_ROUND {
            match tun.try_read(&mut self.buffer) {
                Ok(packet) => take(shared, &packet, &mut self.touched),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Not an IP packet: nothing this host's own kernel sends.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(error) => return Err(error),
            }
            packets += 1;
        }
        self.touched.drain(..).for_each(|lane| lane.flush());
        if packets < PACKETS_PER_ROUND {
            self.pace.note(packets, self.waited);
        }
        Ok(packets)
    }
}

/// Blocks until `fd` is readable or the plane is stopped; `false` when neither is after `timeout`.
fn wait(fd: BorrowedFd<'_>, shared: &Shared, timeout: Option<&Timespec>) -> io::Result<bool> {
    let mut fds = [
        PollFd::from_borrowed_fd(fd, PollFlags::IN),
        PollFd::from_borrowed_fd(shared.stop.as_fd(), PollFlags::IN),
    ];
    match poll(&mut fds, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Hands a packet to the lane of its slot.
fn take(shared: &Shared, packet: &Packet<'_>, touched: &mut Vec<Arc<SealedLane>>) {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = (packet.source(), packet.destination())
    else {
        return;
    };
    let (Some((_, from)), Some((peer, to))) = (Block::split(source), Block::split(destination))
    else {
        return;
    };
    let (role, slot) = match (from, to) {
        (slot @ 1.., 0) => (Role::Client, slot),
        (0, slot @ 1..) => (Role::Server, slot),
        _ => return,
    };
    let binding = (read(&shared.sessions).get(&(peer, role))).and_then(|table| table.carrier(slot));
    // Without a path the packet is lost, and TCP sends it again.
    let (Some(binding), Some(tcp)) = (binding, packet.tcp()) else {
        return;
    };
    let Binding { epoch, lane } = &*binding;
    let bound = SlotEpoch {
        slot,
        epoch: *epoch,
        ecn: packet.ecn(),
    };
    lane.push_tcp(bound, &tcp);
    if touched.iter().all(|known| known.key != lane.key) {
        touched.push(Arc::clone(lane));
    }
}

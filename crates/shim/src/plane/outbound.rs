//! From the TUN queue to lanes.

use std::io;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hawser_kernel::pace::{NAP, Pace};
use hawser_tun::{Packet, Queue, READ_BUFFER};
use rustix::event::{PollFd, PollFlags, poll};

use super::shared::{Shared, read};
use crate::address::Block;
use crate::plane::lane::SealedLane;
use crate::plane::table::Binding;
use crate::protocol::{Role, SlotEpoch};

/// Packets that are read before all lanes are flushed: an acknowledgement must not wait for long.
const PACKETS_PER_ROUND: usize = 16;

/// Carries packets until the plane is stopped.
///
/// # Errors
/// When the device fails.
pub(super) fn run(shared: &Shared) -> io::Result<()> {
    // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
    let Some(tun) = &shared.queue else {
        return Ok(());
    };
    let mut buffer = vec![0; READ_BUFFER];
    let mut touched: Vec<Arc<SealedLane>> = Vec::new();
    let mut pace = Pace::default();
    let mut waited = Duration::MAX;
    loop {
        let mut packets = 0;
        while packets < PACKETS_PER_ROUND {
            match tun.try_read(&mut buffer) {
                Ok(packet) => take(shared, &packet, &mut touched),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Not an IP packet: nothing this host's own kernel sends.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(error) => return Err(error),
            }
            packets += 1;
        }
        touched.drain(..).for_each(|lane| lane.flush());
        if packets == PACKETS_PER_ROUND {
            continue;
        }
        pace.note(packets, waited);
        let began = Instant::now();
        if pace.naps() {
            thread::sleep(NAP);
        } else {
            wait(tun, shared)?;
            if shared.is_stopped() {
                return Ok(());
            }
        }
        waited = began.elapsed();
    }
}

/// Blocks until there is a packet, or the plane is stopped.
fn wait(tun: &Queue, shared: &Shared) -> io::Result<()> {
    let mut fds = [
        PollFd::from_borrowed_fd(tun.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(shared.stop.as_fd(), PollFlags::IN),
    ];
    match poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
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

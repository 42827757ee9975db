//! The sending and the receiving host, in threads of this process.

use std::fs::File;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use std::{array, thread};

use hawser_kernel::socket::set_option;
use noq_udp::{RecvMeta, UdpSocketState};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use crate::links;
use crate::process::thread_time;

/// Maximum number of bytes, and of packets, of one send.
const BATCH_BYTES: usize = 65507;
pub const BATCH_PACKETS: usize = 64;
/// Distance between batches in the file.
const BATCH_PITCH: u64 = 1 << 16;
/// How long a host sleeps when there is nothing to do.
const NAP: Duration = Duration::from_micros(20);
/// How long the sending host sleeps if devices count the packets: reading their statistics is slow.
const LONG_NAP: Duration = Duration::from_micros(600);
/// Number of packets after which routers have started. Devices count a few of the system as well.
const STARTED: u64 = 1000;
/// Longest wait for them.
const START: Duration = Duration::from_secs(10);
/// Packets that have not arrived after this time without arrivals are lost.
const LOSS: Duration = Duration::from_millis(20);
/// Size of the socket buffers in bytes.
const BUFFER: usize = 8 << 20;

/// Where the packets end.
pub enum End {
    /// At a host that receives them.
    Receive(UdpSocket),
    /// At a device that drops them, which the statistics of devices in this file count.
    Drop(File),
}

/// Counts of both hosts.
#[derive(Default)]
pub struct Progress {
    arrived: AtomicU64,
    lost: AtomicU64,
    /// CPU time of the sending and of the receiving host, in nanoseconds.
    cpu: [AtomicU64; 2],
    stop: AtomicBool,
    /// The statistics of the devices at the end, if they drop the packets.
    devices: Option<File>,
}

impl Progress {
    pub fn arrived(&self) -> u64 {
        match &self.devices {
            Some(devices) => links::received(devices),
            None => self.arrived.load(Relaxed),
        }
    }

    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// CPU time of the sending and of the receiving host, in seconds.
    pub fn cpu_times(&self) -> [f64; 2] {
        array::from_fn(|host| self.cpu[host].load(Relaxed) as f64 / 1e9)
    }

    /// Waits until routers have started; returns whether they have.
    pub fn wait_for_start(&self) -> bool {
        let start = Instant::now();
        while self.arrived() < STARTED {
            if start.elapsed() > START {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn note_cpu(&self, host: usize) {
        self.cpu[host].store((thread_time() * 1e9) as u64, Relaxed);
    }
}

/// How the sending host sends.
pub struct Source {
    pub socket: UdpSocket,
    /// The router it sends to.
    pub router: SocketAddr,
    /// Number of bytes in flight.
    pub window: u64,
    /// Maximum number of packets of one send.
    pub batch: usize,
    /// How many times the kernel delivers each batch.
    pub copies: usize,
}

/// Sends copies of `packets` from one host to the other while `job` runs.
pub fn exchange<T>(
    source: Source,
    end: End,
    packets: Vec<Vec<u8>>,
    job: impl FnOnce(&Progress) -> T,
) -> T {
    let mut progress = Progress::default();
    let to = match end {
        End::Receive(to) => Some(to),
        End::Drop(devices) => {
            progress.devices = Some(devices);
            None
        }
    };
    thread::scope(|scope| {
        if let Some(to) = &to {
            scope.spawn(|| receive(to, &progress));
        }
        scope.spawn(|| send(&source, &packets, &progress));
        let _stop = Stop(&progress);
        job(&progress)
    })
}

/// Stops both hosts when dropped, so that a failure elsewhere does not leave them running.
struct Stop<'a>(&'a Progress);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

/// Sends batches in turn, each of packets of one flow.
fn send(source: &Source, packets: &[Vec<u8>], progress: &Progress) {
    let socket = &source.socket;
    set_current_timer_slack(Some(NonZeroU64::MIN)).unwrap();
    let state = UdpSocketState::new(socket.into()).unwrap();
    state.set_send_buffer_size(socket.into(), BUFFER).unwrap();
    let length = packets[0].len();
    let count = (BATCH_BYTES / length).min(source.batch);
    // Batches are sent from a file in memory: the kernel does not copy them.
    let batches = File::from(memfd_create("batches", MemfdFlags::CLOEXEC).unwrap());
    for (number, packet) in packets.iter().enumerate() {
        let batch = packet.repeat(count);
        batches
            .write_all_at(&batch, number as u64 * BATCH_PITCH)
            .unwrap();
    }
    socket.connect(source.router).unwrap();
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, length as i32).unwrap();
    let nap = progress.devices.as_ref().map_or(NAP, |_| LONG_NAP);
    let delivered = (count * source.copies) as u64;
    let window = (source.window / length as u64).max(delivered);
    let mut sent = 0;
    // The number of packets that had arrived, and when that was seen first.
    let mut last = (0, Instant::now());
    let mut number = 0;
    while !progress.stop.load(Relaxed) {
        if number % 64 == 0 {
            progress.note_cpu(0);
        }
        while sent + delivered > last.0 + progress.lost() + window {
            let arrived = progress.arrived();
            if progress.stop.load(Relaxed) {
                return;
            } else if arrived != last.0 {
                last = (arrived, Instant::now());
                continue;
            } else if last.1.elapsed() > LOSS {
                progress.lost.store(sent.saturating_sub(arrived), Relaxed);
            }
            thread::sleep(nap);
        }
        let mut offset = (number % packets.len()) as u64 * BATCH_PITCH;
        match sendfile(socket, &batches, Some(&mut offset), count * length) {
            Ok(_) => sent += delivered,
            // The buffer is full, or the router does not receive yet.
            Err(Errno::AGAIN | Errno::CONNREFUSED) => thread::sleep(nap),
            Err(error) => panic!("cannot send: {error}"),
        }
        number += 1;
    }
}

fn receive(socket: &UdpSocket, progress: &Progress) {
    set_current_timer_slack(Some(NonZeroU64::MIN)).unwrap();
    let state = UdpSocketState::new(socket.into()).unwrap();
    state.set_recv_buffer_size(socket.into(), BUFFER).unwrap();
    let mut buffers = vec![[0u8; 1 << 16]; 16];
    let mut meta = [RecvMeta::default(); 16];
    let mut number = 0u64;
    while !progress.stop.load(Relaxed) {
        let mut slices = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
        let mut slices: [IoSliceMut<'_>; 16] = array::from_fn(|_| slices.next().unwrap());
        match state.recv(socket.into(), &mut slices, &mut meta) {
            Ok(filled) => {
                let packets = |meta: &RecvMeta| meta.len.div_ceil(meta.stride.max(1)) as u64;
                let packets = meta[..filled].iter().map(packets).sum();
                progress.arrived.fetch_add(packets, Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(NAP),
            Err(error) => panic!("cannot receive: {error}"),
        }
        number += 1;
        if number.is_multiple_of(64) {
            progress.note_cpu(1);
        }
    }
}

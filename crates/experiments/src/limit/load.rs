//! Traffic between the two namespaces: threads that send and receive until they are dropped.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_kernel::namespace::NetNs;
use hawser_kernel::socket::{set_option, set_receive_buffer, set_send_buffer};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use super::bed::{Namespaces, ends};
use super::names::{IpVersion, Way};
use crate::error::{During, ExperimentError};

/// Longest wait of a thread before it looks whether it is to end.
const TURN: Duration = Duration::from_millis(50);
/// Buffers of UDP sockets, in bytes: the receiving program loses nothing.
const BUFFER: usize = 8 << 20;
/// `SOL_UDP` and `UDP_SEGMENT` of udp(7), and the segments that are handed over at once.
const SOL_UDP: i32 = 17;
const UDP_SEGMENT: i32 = 103;
const SEGMENTS: usize = 44;

/// What is sent, by what.
#[derive(Debug, Clone, Copy)]
pub enum LoadKind {
    /// Datagrams of `length` bytes, at `rate` bit/s of payload, or as fast as it goes.
    Udp { length: usize, rate: Option<u64> },
    /// The same, several at once, as fast as it goes.
    UdpSegmented { length: usize },
    /// As fast as it goes.
    Tcp,
}

/// What has been sent and received.
#[derive(Debug, Default)]
pub struct Tally {
    /// Datagrams sent.
    pub sent: AtomicU64,
    /// Payload received, in bytes.
    pub bytes: AtomicU64,
    /// Datagrams received.
    pub datagrams: AtomicU64,
    /// Longest time from sending to receipt, and between two receipts, in nanoseconds.
    pub delay: AtomicU64,
    /// See `delay`.
    pub gap: AtomicU64,
}

/// Threads that send and receive; dropping it ends them.
pub struct Load {
    stop: [Arc<AtomicBool>; 2],
    threads: [Vec<JoinHandle<()>>; 2],
    /// What they have sent and received.
    pub tally: Arc<Tally>,
}

impl Load {
    /// Starts to send to or from the user's address with the number `link`.
    pub fn start(
        bed: &Namespaces,
        way: Way,
        ip: IpVersion,
        link: u8,
        kind: LoadKind,
    ) -> Result<Self, ExperimentError> {
        let (from, to) = bed.sides(way);
        let (source, target) = ends(ip, way, link);
        let (source, target) = (SocketAddr::new(source, 0), SocketAddr::new(target, 0));
        let step = "opening a socket of the load";
        let tally = Arc::new(Tally::default());
        let stop = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [end, last] = stop.clone();
        let (sent, received) = (Arc::clone(&tally), Arc::clone(&tally));
        let (sender, receiver) = match kind {
            LoadKind::Tcp => {
                let listener = inside(to, || TcpListener::bind(target)).during(step)?;
                let target = listener.local_addr().during(step)?;
                let output = inside(from, || connect(source, target)).during(step)?;
                let (input, _) = listener.accept().during(step)?;
                output.set_write_timeout(Some(TURN)).during(step)?;
                input.set_read_timeout(Some(TURN)).during(step)?;
                (
                    thread::spawn(move || send_stream(&output, &end)),
                    thread::spawn(move || receive_stream(&input, &last, &received)),
                )
            }
            LoadKind::Udp { length, .. } | LoadKind::UdpSegmented { length } => {
                let input = inside(to, || UdpSocket::bind(target)).during(step)?;
                let target = input.local_addr().during(step)?;
                let output = inside(from, || {
                    let socket = UdpSocket::bind(source)?;
                    socket.connect(target)?;
                    Ok(socket)
                });
                let output = output.during(step)?;
                output.set_write_timeout(Some(TURN)).during(step)?;
                input.set_read_timeout(Some(TURN)).during(step)?;
                inside(to, || set_receive_buffer(&input, BUFFER)).during(step)?;
                let (bytes, rate) = match kind {
                    LoadKind::Udp { rate, .. } => {
                        if way == Way::Ingress && rate.is_some() {
                            // Between namespaces packets that wait are still charged to the socket
                            // that sent them, and it would wait, too. From another machine nothing
                            // holds it back.
                            let done = inside(from, || set_send_buffer(&output, BUFFER));
                            done.during(step)?;
                        }
                        (length, rate)
                    }
                    _ => {
                        set_option(&output, SOL_UDP, UDP_SEGMENT, length as i32).during(step)?;
                        (SEGMENTS * length, None)
                    }
                };
                let epoch = Instant::now();
                let pace = rate
                    .map(|rate| Duration::from_secs_f64((8 * bytes) as f64 / rate.max(1) as f64));
                (
                    thread::spawn(move || send_datagrams(&output, bytes, pace, epoch, &end, &sent)),
                    thread::spawn(move || receive_datagrams(&input, epoch, &last, &received)),
                )
            }
        };
        Ok(Self {
            stop,
            threads: [vec![sender], vec![receiver]],
            tally,
        })
    }

    /// Payload received so far, in bytes.
    pub fn received(&self) -> u64 {
        self.tally.bytes.load(Ordering::Relaxed)
    }

    /// Ends the sender, and the receiver when nothing has arrived for a while; returns datagrams sent
    /// and received.
    pub fn finish(mut self) -> (u64, u64) {
        self.end(0);
        let mut seen = u64::MAX;
        loop {
            let now = self.tally.datagrams.load(Ordering::Relaxed);
            if now == seen {
                break;
            }
            seen = now;
            thread::sleep(4 * TURN);
        }
        self.end(1);
        (self.tally.sent.load(Ordering::Relaxed), seen)
    }

    fn end(&mut self, side: usize) {
        self.stop[side].store(true, Ordering::Relaxed);
        for thread in self.threads[side].drain(..) {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end(0);
        self.end(1);
    }
}

fn inside<T: Send>(namespace: &NetNs, job: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    namespace.run(job)?
}

/// Connects from the link's own address: by itself the kernel takes any of the user's, whose limit is
/// another's.
fn connect(source: SocketAddr, target: SocketAddr) -> io::Result<TcpStream> {
    let family = match source {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &source)?;
    rustix::net::connect(&socket, &target)?;
    Ok(socket.into())
}

fn send_stream(mut output: &TcpStream, stop: &AtomicBool) {
    let block = vec![0; 128 << 10];
    while !stop.load(Ordering::Relaxed) {
        match output.write(&block) {
            Ok(_) => {}
            Err(error) if is_late(&error) => {}
            Err(_) => return,
        }
    }
}

fn receive_stream(mut input: &TcpStream, stop: &AtomicBool, tally: &Tally) {
    let mut buffer = vec![0; 256 << 10];
    while !stop.load(Ordering::Relaxed) {
        match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => _ = tally.bytes.fetch_add(length as u64, Ordering::Relaxed),
            Err(error) if is_late(&error) => {}
            Err(_) => return,
        }
    }
}

/// Sends datagrams that begin with the time of sending, in nanoseconds since `epoch`.
fn send_datagrams(
    output: &UdpSocket,
    bytes: usize,
    pace: Option<Duration>,
    epoch: Instant,
    stop: &AtomicBool,
    tally: &Tally,
) {
    let mut buffer = vec![0; bytes];
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if let Some(pace) = pace {
            let now = Instant::now();
            if next > now {
                thread::sleep(next - now);
            }
            next += pace;
            // What a full buffer held back is not made up for.
            next = next.max(now.checked_sub(TURN).unwrap_or(now));
        }
        let now = epoch.elapsed().as_nanos() as u64;
        buffer[..8].copy_from_slice(&now.to_ne_bytes());
        match output.send(&buffer) {
            Ok(_) => _ = tally.sent.fetch_add(1, Ordering::Relaxed),
            // A full buffer, or a full queue.
            Err(error) if is_late(&error) => {}
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) =>
            {
                tally.sent.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => return,
        }
    }
}

fn receive_datagrams(input: &UdpSocket, epoch: Instant, stop: &AtomicBool, tally: &Tally) {
    let mut buffer = vec![0; 64 << 10];
    let mut before: Option<u64> = None;
    while !stop.load(Ordering::Relaxed) {
        let length = match input.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if is_late(&error) => continue,
            Err(_) => return,
        };
        let now = epoch.elapsed().as_nanos() as u64;
        tally.bytes.fetch_add(length as u64, Ordering::Relaxed);
        tally.datagrams.fetch_add(1, Ordering::Relaxed);
        if let Some((sent, _)) = buffer[..length].split_first_chunk() {
            let delay = now.saturating_sub(u64::from_ne_bytes(*sent));
            tally.delay.fetch_max(delay, Ordering::Relaxed);
        }
        if let Some(before) = before.replace(now) {
            tally.gap.fetch_max(now - before, Ordering::Relaxed);
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

//! Measures packets per second from host to host through two routers over loopback, and plain UDP
//! forwarding over the same number of hops for comparison in the same run.
//!
//! `cargo run --release -p hawser-router --example chain [SECONDS]`
//!
//! The sender keeps a fixed window of packets in flight, so that it does not overload the routers:
//! only packets that arrive are counted. CPU time is that of the forwarding threads.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use noq_udp::{RecvMeta, Transmit, UdpSocketState};

use self::common::net::{Net, burst};
use self::common::{DST_PORT, SRC_PORT};

/// Number of packets in flight.
const WINDOW: u64 = 512;

fn main() {
    let seconds = std::env::args().nth(1).map_or(3.0, |text| {
        text.parse()
            .expect("the first argument is a number of seconds")
    });
    let time = Duration::from_secs_f64(seconds);
    println!(
        "{:44} {:>12} {:>9} {:>26}",
        "", "packets/s", "Mbit/s", "CPU/packet and hop (user)"
    );
    for (batch, size) in [(1, 1200), (40, 1200), (40, 400)] {
        let how = if batch == 1 {
            "one by one"
        } else {
            "GSO of 40"
        };
        println!("{size} bytes of payload, sent {how}");
        routers(batch, size, time);
        forwarders(
            "  plain UDP, GRO and GSO",
            forward_merged,
            batch,
            size,
            time,
        );
        forwarders(
            "  plain UDP, a call per packet",
            forward_single,
            batch,
            size,
            time,
        );
    }
}

fn routers(batch: usize, size: usize, time: Duration) {
    let net = Net::up();
    let (from, to) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let packets: Vec<_> = (0..batch)
        .map(|i| net.packet(i as u16, DST_PORT, size))
        .collect();
    let names = ["router-1", "router-2"];
    measure(
        "  hawser-router",
        &from,
        net.router(1),
        to,
        &packets,
        &names,
        time,
    );
}

/// Runs two threads that forward every packet to a fixed address.
fn forwarders(
    name: &str,
    forward: fn(&UdpSocket, SocketAddr, &AtomicBool),
    batch: usize,
    size: usize,
    time: Duration,
) {
    let net = Net::new();
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (from, first, second, to) = (bind(), bind(), bind(), bind());
    let packets: Vec<_> = (0..batch)
        .map(|i| net.packet(i as u16, DST_PORT, size))
        .collect();
    let start = first.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let hops = [
        ("plain-1", first, second.local_addr().unwrap()),
        ("plain-2", second, to.local_addr().unwrap()),
    ];
    let threads: Vec<_> = hops
        .into_iter()
        .map(|(name, socket, to)| {
            let stop = stop.clone();
            socket
                .set_read_timeout(Some(Duration::from_millis(100)))
                .unwrap();
            thread::Builder::new()
                .name(name.into())
                .spawn(move || forward(&socket, to, &stop))
                .unwrap()
        })
        .collect();
    measure(
        name,
        &from,
        start,
        to,
        &packets,
        &["plain-1", "plain-2"],
        time,
    );
    stop.store(true, Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
}

fn forward_single(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) {
    let mut buffer = vec![0; 65536];
    while !stop.load(Relaxed) {
        if let Ok(length) = socket.recv(&mut buffer) {
            socket.send_to(&buffer[..length], to).unwrap();
        }
    }
}

fn forward_merged(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    socket.set_nonblocking(false).unwrap();
    let mut buffer = vec![0; 65536];
    let mut meta = [RecvMeta::default()];
    while !stop.load(Relaxed) {
        let slices = &mut [IoSliceMut::new(&mut buffer)];
        if state.recv(socket.into(), slices, &mut meta).is_ok() {
            let transmit = Transmit {
                destination: to,
                ecn: None,
                contents: &buffer[..meta[0].len],
                segment_size: Some(meta[0].stride),
                src_ip: None,
            };
            state.try_send(socket.into(), &transmit).unwrap();
        }
    }
}

fn measure(
    name: &str,
    from: &UdpSocket,
    start: SocketAddr,
    to: UdpSocket,
    packets: &[Vec<u8>],
    hops: &[&str],
    time: Duration,
) {
    let arrived = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let sink = {
        let (arrived, stop) = (arrived.clone(), stop.clone());
        thread::spawn(move || receive(&to, &arrived, &stop))
    };
    let (begin, [user, all]) = (Instant::now(), cpu_of(hops));
    let mut sent = 0;
    let mut last = (0, begin);
    while begin.elapsed() < time {
        let now = arrived.load(Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        } else if last.1.elapsed() > Duration::from_millis(50) {
            // The rest was lost: start a new window.
            sent = now;
        }
        if sent + packets.len() as u64 > now + WINDOW {
            thread::sleep(Duration::from_micros(20));
            continue;
        }
        if packets.len() == 1 {
            from.send_to(&packets[0], start).unwrap();
        } else {
            burst(from, start, packets);
        }
        sent += packets.len() as u64;
    }
    let (seconds, [user_after, all_after]) = (begin.elapsed().as_secs_f64(), cpu_of(hops));
    let count = arrived.load(Relaxed) as f64;
    let rate = count / seconds;
    println!(
        "{name:44} {rate:12.0} {:9.0} {:15.0} ns ({:.0})",
        rate * packets[0].len() as f64 * 8.0 / 1e6,
        (all_after - all) * 1e9 / count / hops.len() as f64,
        (user_after - user) * 1e9 / count / hops.len() as f64,
    );
    stop.store(true, Relaxed);
    sink.join().unwrap();
}

fn receive(socket: &UdpSocket, arrived: &AtomicU64, stop: &AtomicBool) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    socket.set_nonblocking(false).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut buffer = vec![0; 65536];
    let mut meta = [RecvMeta::default()];
    while !stop.load(Relaxed) {
        let slices = &mut [IoSliceMut::new(&mut buffer)];
        if state.recv(socket.into(), slices, &mut meta).is_ok() {
            let packets = meta[0].len.div_ceil(meta[0].stride.max(1));
            arrived.fetch_add(packets as u64, Relaxed);
        }
    }
}

/// CPU time in seconds that this process's threads with these names have used so far: in user mode,
/// and in total.
fn cpu_of(names: &[&str]) -> [f64; 2] {
    let mut time = [0.0; 2];
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
        let (start, rest) = stat.rsplit_once(')').unwrap();
        if names.iter().any(|name| start.ends_with(name)) {
            // proc(5): fields 14 and 15 of stat, in hundredths of a second.
            let field = |number: usize| -> f64 {
                rest.split(' ').nth(number - 2).unwrap().parse().unwrap()
            };
            time[0] += field(14) / 100.0;
            time[1] += (field(14) + field(15)) / 100.0;
        }
    }
    time
}

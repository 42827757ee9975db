//! Measures the throughput of one connection without a network: two endpoints of one AS on
//! loopback.
//!
//! `cargo bench -p hawser-quic [-- MTU SECONDS]`; the MTU counts the SCION packet.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "../../endhost/tests/toy/mod.rs"]
mod toy;

use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_quic::{Config, Connection, Endpoint};

use self::toy::{Answers, ToyDaemon, isd_as, own_ip};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut numbers = std::env::args().filter_map(|arg| arg.parse::<u32>().ok());
    let mtus = numbers
        .next()
        .map_or(vec![1472, 4096, 8192], |mtu| vec![mtu]);
    let time = Duration::from_secs(numbers.next().unwrap_or(3).into());
    for mtu in mtus {
        run(mtu, time).await;
    }
}

async fn run(mtu: u32, time: Duration) {
    let daemon = ToyDaemon::start(Answers {
        isd_as: isd_as("1-ff00:0:110").to_u64(),
        mtu,
        ports: (31000, 32767),
        ..Answers::default()
    })
    .await;
    let host = daemon.endhost().await;
    let bind = |last| {
        Endpoint::bind(
            host.clone(),
            Some((own_ip(last), 0).into()),
            Config::default(),
        )
    };
    let (client, server) = (bind(1).unwrap(), bind(2).unwrap());
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (there, here) = tokio::join!(client.connect(server.local_addr(), path), server.accept());
    let (there, here) = (there.unwrap(), here.unwrap());
    let receiver = tokio::spawn(receive(here));
    let (began, cpu) = (Instant::now(), cpu_time());
    let (mut stream, _keep) = there.open_bi().await.unwrap();
    let chunk = Bytes::from(vec![5; 256 << 10]);
    while began.elapsed() < time {
        stream.write_chunk(chunk.clone()).await.unwrap();
    }
    stream.finish().unwrap();
    let bytes = receiver.await.unwrap();
    let seconds = began.elapsed().as_secs_f64();
    let stats = there.stats();
    println!(
        "MTU {mtu}: {:.2} Gbit/s, {:.0}% CPU, {} of {} packets lost, rtt {:?}, cwnd {}",
        bytes as f64 * 8.0 / seconds / 1e9,
        (cpu_time() - cpu) / seconds * 100.0,
        stats.lost,
        stats.packets_sent,
        stats.rtt,
        stats.cwnd,
    );
}

async fn receive(connection: Connection) -> u64 {
    let (_keep, mut stream) = connection.accept_bi().await.unwrap();
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(1 << 20).await.unwrap() {
        bytes += chunk.len() as u64;
    }
    bytes
}

/// Processor time of this process so far, in seconds.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    // User and system time, in hundredths of a second (proc(5); USER_HZ is 100 on Linux).
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

//! Measures the throughput of one connection without routers: two hosts of one AS on loopback,
//! beside the protocol library's own driver (`noq`) over plain UDP, in turn in the same run.
//!
//! `cargo bench -p hawser-quic --bench throughput [-- MTU SECONDS ROUNDS]`; the MTU counts the IP
//! packet (1500), each run takes some seconds (2), and medians of all rounds (5) are printed. Both
//! have the same cipher, and packets that fill the MTU.
#![allow(clippy::unwrap_used, reason = "a benchmark may fail anywhere")]

#[path = "throughput/plain.rs"]
mod plain;
#[path = "throughput/socket.rs"]
mod socket;
#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;

use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_quic::{Config, Connection, Endpoint};

use self::toy::{Answers, ToyDaemon, isd_as, own_ip};

/// IPv4 and UDP headers, which SCION's MTU and the size of QUIC packets do not count.
const UNDERLAY: u16 = 20 + 8;
/// Bytes handed to a stream at once, and taken from it at most.
const CHUNK: usize = 256 << 10;

/// The result of one run.
struct Run {
    bytes: u64,
    seconds: f64,
    /// Processor time of this process, which has both ends, in seconds.
    cpu: f64,
}

impl Run {
    fn gbit(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }

    fn cpu_per_gb(&self) -> f64 {
        self.cpu * 1e9 / self.bytes as f64
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut numbers = std::env::args().filter_map(|arg| arg.parse::<u16>().ok());
    let mtu = numbers.next().unwrap_or(1500);
    let time = Duration::from_secs(numbers.next().unwrap_or(2).into());
    let rounds = numbers.next().unwrap_or(5);
    let (mut plain, mut scion) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(plain::run(mtu, time).await);
        scion.push(run(mtu, time).await);
    }
    println!("MTU {mtu}, {rounds} rounds of {time:?}; processor time is that of both ends");
    let base = show("noq over plain UDP", &plain);
    let ours = show("QUIC over one SCION path", &scion);
    println!("ratio of medians: {:.2}", ours / base);
}

/// Prints the median and the spread of runs; returns the median in Gbit/s.
fn show(name: &str, runs: &[Run]) -> f64 {
    let sorted = |of: fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (gbit, cpu) = (sorted(Run::gbit), sorted(Run::cpu_per_gb));
    let middle = runs.len() / 2;
    println!(
        "{name:<25} {:>6.2} Gbit/s ({:.2} to {:.2}), {:>5.2} CPU s/GB ({:.2} to {:.2})",
        gbit[middle],
        gbit[0],
        gbit[gbit.len() - 1],
        cpu[middle],
        cpu[0],
        cpu[cpu.len() - 1],
    );
    gbit[middle]
}

/// Sends over one path inside an AS.
async fn run(mtu: u16, time: Duration) -> Run {
    let daemon = ToyDaemon::start(Answers {
        isd_as: isd_as("1-ff00:0:110").to_u64(),
        mtu: (mtu - UNDERLAY).into(),
        ports: (31000, 32767),
        ..Answers::default()
    })
    .await;
    let host = daemon.endhost().await;
    let bind = |last| {
        let listen = Some((own_ip(last), 0).into());
        Endpoint::bind(host.clone(), listen, Config::default()).unwrap()
    };
    let (client, server) = (bind(1), bind(2));
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (there, here) = tokio::join!(client.connect(server.local_addr(), path), server.accept());
    let (there, here) = (there.unwrap(), here.unwrap());
    let receiver = tokio::spawn(receive(here));
    let (began, cpu) = (Instant::now(), cpu_time());
    let (mut stream, _keep) = there.open_bi().await.unwrap();
    let chunk = Bytes::from(vec![5; CHUNK]);
    while began.elapsed() < time {
        stream.write_chunk(chunk.clone()).await.unwrap();
    }
    stream.finish().unwrap();
    let bytes = receiver.await.unwrap();
    let run = Run {
        bytes,
        seconds: began.elapsed().as_secs_f64(),
        cpu: cpu_time() - cpu,
    };
    tokio::join!(client.close(), server.close());
    run
}

async fn receive(connection: Connection) -> u64 {
    connection.expect_data();
    let (_keep, mut stream) = connection.accept_bi().await.unwrap();
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(CHUNK).await.unwrap() {
        bytes += chunk.len() as u64;
    }
    bytes
}

/// Processor time of this process so far, in seconds.
fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap().as_secs_f64()
}

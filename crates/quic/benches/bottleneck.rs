//! Measures how much of a slow link one or several connections fill, over a toy link of a given
//! rate with a queue of 50 ms. Compares the payload with the rate less headers.
//!
//! `cargo bench -p hawser-quic --bench bottleneck [-- MBIT CONNECTIONS SECONDS]`
#![allow(clippy::unwrap_used, reason = "a bench may fail anywhere")]

#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_quic::{Config, Connection, Endpoint};

use self::toy::{MTU, ToyNet, own_ip};

/// Bytes that QUIC adds to a full packet of one stream: short header, tag and stream frame.
const QUIC_OVERHEAD: u64 = 36;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut numbers = std::env::args().filter_map(|arg| arg.parse::<u64>().ok());
    let rate = numbers.next().unwrap_or(10) * 1_000_000 / 8;
    let connections = numbers.next().unwrap_or(1);
    let seconds = numbers.next().unwrap_or(15);
    let net = ToyNet::start().await;
    net.conduct.rate.store(rate, Ordering::SeqCst);
    net.conduct.queue.store(rate / 20, Ordering::SeqCst);
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let bind = |host, last| Endpoint::bind(host, Some((own_ip(last), 0).into()), Config::default());
    let (client, server) = (bind(a.clone(), 1).unwrap(), bind(b, 2).unwrap());
    let received = Arc::new(AtomicU64::new(0));
    let mut senders = Vec::new();
    for _ in 0..connections {
        let path = a.paths(net.b_as).await.unwrap().remove(0);
        let (there, here) =
            tokio::join!(client.connect(server.local_addr(), path), server.accept());
        tokio::spawn(receive(here.unwrap(), Arc::clone(&received)));
        senders.push(there.unwrap());
    }
    let sending: Vec<_> = senders
        .iter()
        .map(|connection| tokio::spawn(send(connection.clone())))
        .collect();
    let began = Instant::now();
    let (mut last, mut last_at) = (0, began);
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (now, at) = (received.load(Ordering::SeqCst), Instant::now());
        let stats = senders[0].stats();
        println!(
            "{:6.2} Mbit/s, rtt {:?}, cwnd {}, lost {}",
            (now - last) as f64 * 8.0 / (at - last_at).as_secs_f64() / 1e6,
            stats.rtt,
            stats.cwnd,
            stats.lost,
        );
        (last, last_at) = (now, at);
    }
    let goodput = last as f64 / (last_at - began).as_secs_f64();
    let frame = u64::from(MTU) + 42;
    let payload = u64::from(senders[0].stats().mtu) - QUIC_OVERHEAD;
    let ceiling = rate as f64 * payload as f64 / frame as f64;
    let (lost, sent) = senders
        .iter()
        .map(Connection::stats)
        .fold((0, 0), |(lost, sent), stats| {
            (lost + stats.lost, sent + stats.packets_sent)
        });
    println!(
        "{connections} connections: {:.2} Mbit/s, {:.1} % of the ceiling of {:.2}, {lost} of {sent} packets lost",
        goodput * 8.0 / 1e6,
        goodput / ceiling * 100.0,
        ceiling * 8.0 / 1e6,
    );
    sending.iter().for_each(tokio::task::JoinHandle::abort);
}

async fn send(connection: Connection) {
    let (mut stream, _keep) = connection.open_bi().await.unwrap();
    let chunk = Bytes::from(vec![5; 64 << 10]);
    while stream.write_chunk(chunk.clone()).await.is_ok() {}
}

async fn receive(connection: Connection, received: Arc<AtomicU64>) {
    connection.expect_data();
    let (_keep, mut stream) = connection.accept_bi().await.unwrap();
    while let Ok(Some(chunk)) = stream.read_chunk(1 << 20).await {
        received.fetch_add(chunk.len() as u64, Ordering::SeqCst);
    }
}

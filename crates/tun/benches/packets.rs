//! CPU time per large packet: cut into the segments of a path, and merged again.
//!
//! `cargo bench -p hawser-tun --bench packets`. No device and no encryption: each segment is copied to
//! a datagram, as for sealing, and merged from there.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use hawser_tun::{Merger, Packet};

/// Bytes of payload of a measurement, and of each large packet.
const BYTES: u64 = 8 << 30;
const PAYLOAD: usize = 65_160;
/// Bytes of the TCP header, with options of 32 bytes: timestamps and MPTCP's data sequence mapping.
const HEADER: usize = 52;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

fn main() {
    for max in [1280, 1380, 8800] {
        for connections in [1, 8] {
            measure(max, connections);
        }
    }
}

/// Cuts a packet of each connection and merges their segments, which come in turn.
fn measure(max: usize, connections: usize) {
    let mut packets: Vec<_> = (0..connections).map(|port| packet(port as u16)).collect();
    let mut merger = Merger::new();
    let (mut cutting, mut merging) = (Duration::ZERO, Duration::ZERO);
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    let (mut count, mut whole) = (0, 0);
    let rounds = BYTES / (connections * PAYLOAD) as u64;
    for round in 0..rounds {
        for packet in &mut packets {
            let sequence = (round as u32).wrapping_mul(PAYLOAD as u32);
            packet[54..58].copy_from_slice(&sequence.to_be_bytes());
        }
        let start = Instant::now();
        let mut segments: Vec<_> = (packets.iter())
            .map(|packet| Packet::parse(packet).unwrap().tcp().unwrap().segments(max))
            .collect();
        let mut used = 0;
        while !segments.is_empty() {
            segments.retain_mut(|segments| {
                let Some(segment) = segments.next() else {
                    return false;
                };
                if used == datagrams.len() {
                    datagrams.push(Vec::with_capacity(max));
                }
                let datagram = &mut datagrams[used];
                datagram.clear();
                datagram.extend_from_slice(segment.header());
                datagram.extend_from_slice(segment.payload());
                used += 1;
                true
            });
        }
        let cut = Instant::now();
        for datagram in &datagrams[..used] {
            let merged = merger.push(SOURCE, DESTINATION, 0, datagram, |packet| {
                black_box(packet.bytes());
                whole += 1;
            });
            merged.unwrap();
        }
        merger.flush(|packet| {
            black_box(packet.bytes());
            whole += 1;
        });
        merging += cut.elapsed();
        cutting += cut - start;
        count += used;
    }
    // Segments of one packet always are one packet again.
    assert_eq!(whole, rounds as usize * connections);
    let name = format!("segments of {max}, {connections} connections");
    print(&format!("{name}, cut"), cutting, whole, count);
    print(&format!("{name}, merge"), merging, whole, count);
}

fn print(what: &str, took: Duration, packets: usize, segments: usize) {
    let ns = took.as_nanos() as f64;
    let gigabytes = (packets * PAYLOAD) as f64 / ns;
    println!(
        "{what}: {:.0} ns per packet, {:.1} ns per segment, {gigabytes:.1} GB/s",
        ns / packets as f64,
        ns / segments as f64,
    );
}

/// A large packet as a TUN device gives it.
fn packet(port: u16) -> Vec<u8> {
    // The vnet header: checksum to complete, TSO of IPv6, segments larger than those of the path.
    let mut packet = vec![1, 4];
    for field in [0_u16, 9000, 40, 16] {
        packet.extend(field.to_ne_bytes());
    }
    packet.extend([0x60, 0, 0, 0]);
    packet.extend(((HEADER + PAYLOAD) as u16).to_be_bytes());
    packet.extend([6, 64]);
    packet.extend(SOURCE.octets());
    packet.extend(DESTINATION.octets());
    packet.extend(port.to_be_bytes());
    packet.extend([0; 10]);
    packet.extend([(HEADER as u8 / 4) << 4, 0x10, 1, 0, 0, 0, 0, 0]);
    packet.resize(10 + 40 + HEADER, 1);
    packet.resize(10 + 40 + HEADER + PAYLOAD, 7);
    packet
}

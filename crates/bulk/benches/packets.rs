//! CPU time per packet of the protocol alone: sealing, opening, and the two state machines on
//! virtual time, without sockets and disks.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hawser_bulk::protocol::{
    Ack, DATA_OVERHEAD, Opener, Sealer, Sink, Source, SubflowKey, Transmit,
};
use hawser_congestion::RateControl;
use hawser_seal::{Cipher, SECRET};

/// Content bytes of each measurement.
const BYTES: u64 = 1 << 30;

fn main() {
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        for per_packet in [1300, 8700] {
            packets(cipher, per_packet);
        }
    }
    for lost in [0, 1000, 100] {
        machines(lost);
    }
}

fn print(what: &str, took: Duration, packets: u64, bytes: u64) {
    let ns = took.as_nanos() as f64 / packets as f64;
    let gbit = bytes as f64 * 8.0 / took.as_nanos() as f64;
    println!("{what}: {ns:.0} ns per packet, {gbit:.1} Gbit/s");
}

/// Seals batches of 64 KiB at most, and opens them.
fn packets(cipher: Cipher, per_packet: usize) {
    let secret = [7; SECRET];
    let (mut sealer, mut opener) = (Sealer::new(cipher, &secret), Opener::new(cipher, &secret));
    let content = vec![1; per_packet * (60_000 / per_packet)];
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    let (mut sealing, mut opening) = (Duration::ZERO, Duration::ZERO);
    let (mut position, mut count) = (0, 0);
    while position < BYTES {
        out.clear();
        let start = Instant::now();
        let numbers = sealer.seal_data(&mut out, position, &content, per_packet, false);
        let sealed = Instant::now();
        for packet in out.chunks(per_packet + DATA_OVERHEAD) {
            black_box(opener.open(packet, &mut scratch).unwrap());
        }
        sealing += sealed - start;
        opening += sealed.elapsed();
        position += content.len() as u64;
        count += numbers.end - numbers.start;
    }
    let name = format!("{cipher:?}, {per_packet} bytes");
    print(&format!("{name}, seal"), sealing, count, position);
    print(&format!("{name}, open"), opening, count, position);
}

/// 10 Gbit/s without limits.
#[derive(Debug)]
struct Fast;

impl RateControl for Fast {
    fn sent(&mut self, _: Instant, _: u64, _: u64) {}
    fn acked(&mut self, _: Instant, _: u64, _: Instant, _: u64) {}
    fn lost(&mut self, _: Instant, _: u64, _: Instant, _: u64) {}
    fn end(&mut self, _: Instant, _: u64, _: bool) {}
    fn timed_out(&mut self, _: Instant) {}
    fn rate(&self) -> f64 {
        1.25e9
    }
    fn window(&self) -> u64 {
        u64::MAX
    }
    fn name(&self) -> &'static str {
        "fast"
    }
}

/// A transfer over 8 subflows of 20 ms each; one of `lost` packets is lost (0: none).
fn machines(lost: u64) {
    const PER_PACKET: usize = 1300;
    const SUBFLOWS: u32 = 8;
    let delay = Duration::from_millis(10);
    let mut now = Instant::now();
    let start = Instant::now();
    let (mut source, mut sink) = (Source::new(BYTES, BYTES), Sink::new(BYTES, BYTES));
    source.want(0..BYTES);
    let keys: Vec<_> = (0..SUBFLOWS).map(SubflowKey).collect();
    for key in &keys {
        source.add_subflow(*key, PER_PACKET, Box::new(Fast), Some(2 * delay), now);
        sink.add_subflow(*key, now);
        sink.set_interval(*key, delay / 4);
    }
    let mut sent = VecDeque::new();
    let mut acks: VecDeque<(Instant, SubflowKey, Ack)> = VecDeque::new();
    let mut count = 0_u64;
    while !source.is_delivered() {
        source.timeout(now);
        for key in &keys {
            while let Transmit::Data {
                number,
                content,
                packets,
                ask,
                ..
            } = source.poll(*key, now)
            {
                sent.push_back((now + delay, *key, number, packets, content, ask));
            }
        }
        while sent.front().is_some_and(|(arrival, ..)| *arrival <= now) {
            let (_, key, number, packets, content, ask) = sent.pop_front().unwrap();
            for index in 0..packets {
                count += 1;
                if lost > 0 && count.is_multiple_of(lost) {
                    continue;
                }
                let from = content.start + index * PER_PACKET as u64;
                let range = from..content.end.min(from + PER_PACKET as u64);
                black_box(sink.on_data(range).unwrap().count());
                let ask = ask && index + 1 == packets;
                sink.on_packet(key, number + index, ask, false, now);
            }
        }
        for key in &keys {
            acks.extend(sink.poll_ack(*key, now).map(|ack| (now + delay, *key, ack)));
        }
        while acks.front().is_some_and(|(arrival, ..)| *arrival <= now) {
            let (_, key, ack) = acks.pop_front().unwrap();
            source.on_ack(key, &ack, now).unwrap();
        }
        now += Duration::from_micros(50);
    }
    let name = match lost {
        0 => "state machines".to_owned(),
        _ => format!("state machines, 1 of {lost} packets lost"),
    };
    print(&name, start.elapsed(), count, BYTES);
}

//! Datagrams of uTP, at an endpoint with a connection.

#![no_main]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_utp::{Config, Endpoint, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(packet) = Packet::parse(input) {
        assert!(input.ends_with(packet.payload));
        assert!(packet.selective.offsets().all(|offset| offset >= 2));
    }
    let mut now = Instant::now();
    let peer = SocketAddr::from(([192, 0, 2, 1], 1));
    let mut endpoint = Endpoint::new(Config::default(), Rng::with_seed(1), now);
    let handle = endpoint.connect(peer, now).expect("there is no other");
    let mut out = Vec::new();
    // The first byte of each part is its length.
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        now += Duration::from_millis(u64::from(*length));
        endpoint.receive(peer, datagram, now);
        endpoint.advance(now);
        let _ = endpoint.write(handle, datagram, now);
        let _ = endpoint.read(handle, &mut [0; 100], now);
        while endpoint.transmit(&mut out, 10, now).is_some() {
            out.clear();
        }
        while endpoint.poll().is_some() {}
        rest = behind;
    }
});

//! A node of the DHT, of which the datagrams of one host are the input: each is what follows a byte with
//! its length.

#![no_main]

use std::net::SocketAddrV4;
use std::time::Instant;

use fastrand::Rng;
use hawser_dht::{Announce, Config, Dht, Saved};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let from = SocketAddrV4::new([93, 184, 216, 34].into(), 6881);
    let now = Instant::now();
    let mut dht = Dht::new(Config::default(), Rng::with_seed(1), now);
    dht.bootstrap(now, [from]);
    let _ = dht.search(now, [9; 20], Some(Announce::Port(1)));
    let mut rest = input;
    while let Some((length, after)) = rest.split_first() {
        let (datagram, after) = after.split_at(after.len().min((*length).into()));
        dht.receive(now, from, datagram);
        while dht.poll().is_some() {}
        rest = after;
    }
    let stats = dht.stats(now);
    assert!(stats.good <= 1);
    let _ = Saved::<SocketAddrV4>::decode(input);
});

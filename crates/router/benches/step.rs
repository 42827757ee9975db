//! Time of the forwarding step, without I/O.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

#[path = "../tests/common/mod.rs"]
mod common;

use divan::{Bencher, black_box};
use hawser_packet::path::{HopField, HopKey, InfoField};
use hawser_router::PacketVerdict;

use self::common::{NOW, Stop, World, path_case, udp};

fn main() {
    divan::main();
}

/// The packet of the longest path as it reaches router number `stop`.
fn arrival(world: &World, stop: usize) -> Stop {
    let (_, src, dst, path, _) = path_case("up, core, down");
    world.send(src, udp(src, dst, path, 1200)).stops[stop].clone()
}

/// One MAC computation each when leaving the first AS and when crossing the second; two where the
/// segment changes; then the delivery in the last AS.
#[divan::bench(args = [("out of the AS", 0), ("through", 1), ("from segment to segment", 2), ("into the AS", 5)])]
fn process(bencher: Bencher, (_, stop): (&str, usize)) {
    let world = World::new();
    let Stop {
        at,
        ingress,
        packet,
    } = arrival(&world, stop);
    let router = &world.routers[&at];
    let mut buffer = packet.clone();
    bencher.bench_local(|| {
        // Restores the headers; the router never changes the payload.
        buffer[..200].copy_from_slice(&packet[..200]);
        let verdict = router.process(black_box(u64::from(NOW)), ingress, black_box(&mut buffer));
        assert!(matches!(
            verdict,
            PacketVerdict::Forward { .. } | PacketVerdict::Deliver { .. }
        ));
        verdict
    });
}

#[divan::bench]
fn mac(bencher: Bencher) {
    let key = HopKey::new(&[7; 16]);
    let info = InfoField {
        cons_dir: true,
        peer: false,
        segment_id: 1,
        timestamp: NOW,
    };
    let hop = HopField {
        flags: 0,
        exp_time: 63,
        cons_ingress: 2,
        cons_egress: 3,
        mac: [0; 6],
    };
    bencher.bench_local(|| key.mac(&black_box(&hop).mac_input(black_box(&info))));
}

/// Writing an SCMP error, the slow path, for a packet of full size.
#[divan::bench]
fn interface_down(bencher: Bencher) {
    let mut world = World::new();
    let Stop {
        at,
        ingress,
        packet,
    } = arrival(&world, 1);
    world.routers.get_mut(&at).unwrap().set_up(1, false);
    let router = &world.routers[&at];
    let PacketVerdict::Refuse { error, .. } =
        router.process(NOW.into(), ingress, &mut packet.clone())
    else {
        panic!("the interface is down")
    };
    let mut out = Vec::with_capacity(2048);
    bencher.bench_local(|| router.write_error(ingress, black_box(&packet), error, &mut out));
}

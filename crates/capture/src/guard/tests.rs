//! Tables, applied to a model of nf_tables, and in the kernel.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

use ipnet::IpNet;
use proptest::prelude::*;

use super::contents::table;
use super::{Guard, Guarded, is_there};
use crate::nftables::changes;
use crate::redirect::model::{Model, Outcome, Packet};
use crate::tests::network::{Network, PORT, captured, through};
use crate::{Redirect, Wanted};

const NAME: &str = "hawser-closed";
const MARK: u32 = 7;
/// `enum nf_inet_hooks`.
const FORWARD: u32 = 2;
const OUTPUT: u32 = 3;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn guarded() -> Guarded {
    Guarded {
        connections: vec![net("10.1.0.0/16"), net("10.2.0.0/16"), net("fd01::/16")],
        packets: vec![net("10.1.0.0/16"), net("fd01::/16")],
        ..Guarded::new(MARK)
    }
}

fn packet() -> impl Strategy<Value = Packet> {
    let destination = prop_oneof![
        Just("10.1.0.7"),
        Just("10.2.0.7"),
        Just("10.3.0.7"),
        Just("fd01::7"),
        Just("fd02::7"),
    ];
    let protocol = prop_oneof![Just(6_u8), Just(17), Just(1)];
    let flags = prop_oneof![Just(0x02_u8), Just(0x10), Just(0xc2)];
    let device = prop_oneof![Just("eth0"), Just("hawser0"), Just("hawser01")];
    let own = (6..8_u32, any::<bool>());
    (destination, protocol, flags, device, own).prop_map(
        |(destination, protocol, flags, device, (mark, local))| {
            let destination: IpAddr = destination.parse().unwrap();
            let source = if destination.is_ipv4() {
                "10.9.0.1"
            } else {
                "fd09::1"
            };
            Packet {
                source: source.parse().unwrap(),
                destination,
                protocol,
                flags,
                mark,
                user: 0,
                groups: Vec::new(),
                class: 0,
                local,
                port: 443,
                translated: false,
                device,
            }
        },
    )
}

/// What is wanted for a packet that leaves.
fn leaving(guarded: &Guarded, packet: &Packet) -> Outcome {
    let covers = |all: &[IpNet]| all.iter().any(|one| one.contains(&packet.destination));
    let is_rejected = match packet.protocol {
        6 => packet.flags & 0x17 == 0x02 && covers(&guarded.connections),
        _ => covers(&guarded.packets),
    };
    match is_rejected && Some(packet.device) != guarded.device.as_deref() {
        true => Outcome::Rejected {
            reset: packet.protocol == 6,
        },
        false => Outcome::Untouched,
    }
}

proptest! {
    #[test]
    fn exactly_what_is_guarded_is_rejected(
        device in prop::option::of(Just("hawser0".to_owned())),
        forwarded: bool,
        packets in prop::collection::vec(packet(), 1..20),
    ) {
        let guarded = Guarded { device, forwarded, ..guarded() };
        let contents = table(&guarded).unwrap();
        let model = Model::created(NAME, &changes(NAME, None, &contents));
        for packet in &packets {
            let leaving = leaving(&guarded, packet);
            let sent = match packet.mark == MARK || packet.local {
                true => Outcome::Untouched,
                false => leaving.clone(),
            };
            prop_assert_eq!(model.outcome(OUTPUT, packet), sent, "{:?}", packet);
            let passed = if forwarded { leaving } else { Outcome::Untouched };
            prop_assert_eq!(model.outcome(FORWARD, packet), passed, "{:?}", packet);
        }
    }
}

/// How sending to the server at `to` fails, by TCP and by UDP.
fn failures(network: &Network, to: &str) -> (Option<ErrorKind>, Option<ErrorKind>) {
    let to = SocketAddr::new(to.parse().unwrap(), PORT);
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let send = || {
        let tcp = TcpStream::connect(to).err().map(|error| error.kind());
        let socket = UdpSocket::bind(any).unwrap();
        let udp = socket.send_to(b"hello", to).err().map(|error| error.kind());
        (tcp, udp)
    };
    network.host.run(send).unwrap()
}

#[test]
fn what_is_guarded_does_not_leave_until_the_table_is_removed() {
    let Some(network) = Network::create() else {
        return;
    };
    let guard = || Guard::create(NAME, &guarded()).unwrap();
    let mut guard = network.host.run(guard).unwrap();
    let refused = Some(ErrorKind::ConnectionRefused);
    for to in ["10.1.0.7", "fd01::7"] {
        let (tcp, udp) = failures(&network, to);
        assert_eq!(tcp, refused, "{to}");
        assert!(udp.is_some(), "{to}");
    }
    // Its other packets may leave; so may what has the mark, and all to others.
    assert_eq!(failures(&network, "10.2.0.7"), (refused, None));
    assert_eq!(network.connect("10.1.0.7", MARK), through("10.1.0.7"));
    assert_eq!(network.connect("10.3.0.7", 0), through("10.3.0.7"));

    // A redirection comes first.
    let wanted = Wanted::new(network.port(), MARK).with_prefixes(guarded().connections);
    let redirect = || Redirect::create("hawser-shim", &wanted).unwrap();
    let redirect = network.host.run(redirect).unwrap();
    assert_eq!(network.connect("10.1.0.7", 0), captured("10.1.0.7"));
    drop(redirect);

    // It outlives what made it, and the next one takes it over.
    let fewer = Guarded {
        connections: vec![net("10.2.0.0/16")],
        ..Guarded::new(MARK)
    };
    assert!(guard.apply(&fewer).unwrap());
    drop(guard);
    assert_eq!(failures(&network, "10.2.0.7").0, refused);
    assert_eq!(network.connect("10.1.0.7", 0), through("10.1.0.7"));
    let inside = |job: fn() -> bool| network.host.run(job).unwrap();
    assert!(inside(|| is_there(NAME).unwrap()));
    let again = || Guard::create(NAME, &guarded()).unwrap();
    let again = network.host.run(again).unwrap();
    assert_eq!(failures(&network, "10.1.0.7").0, refused);
    drop(again);
    assert!(inside(|| Guard::remove_left(NAME).unwrap()));
    assert!(!inside(|| Guard::remove_left(NAME).unwrap()));
    assert_eq!(network.connect("10.2.0.7", 0), through("10.2.0.7"));
}

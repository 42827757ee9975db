use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use sciparse::address::host_addr::WireHostAddr;
use sciparse::core::view::View;
use sciparse::header::model::AddressHeader;
use sciparse::packet::view::ScionRawPacketView;

use super::*;
use crate::wire::{Malformed, Scmp, echo};

pub(crate) fn addr(text: &str) -> ScionAddr {
    text.parse().unwrap()
}

/// A path of two hops over one link.
pub(crate) fn path(src: ScionAddr, dst: ScionAddr, router: &str) -> Path {
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    raw.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 1]);
    for (ingress, egress) in [(0u16, 7u16), (8, 0)] {
        raw.extend_from_slice(&[0, 63]);
        raw.extend_from_slice(&ingress.to_be_bytes());
        raw.extend_from_slice(&egress.to_be_bytes());
        raw.extend_from_slice(b"secret");
    }
    let interface = |isd_as, id| hawser_path::Interface { isd_as, id };
    let interfaces = vec![interface(src.isd_as, 7), interface(dst.isd_as, 8)];
    let metadata = hawser_path::Metadata {
        mtu: 1472,
        ..Default::default()
    };
    let info = hawser_path::Path::new(src.isd_as, dst.isd_as, interfaces, metadata).unwrap();
    Path::new(info, raw, Some(router.parse().unwrap())).unwrap()
}

fn wire_host(addr: ScionAddr) -> WireHostAddr {
    match addr.host.ip() {
        IpAddr::V4(ip) => WireHostAddr::V4(ip),
        IpAddr::V6(ip) => WireHostAddr::V6(ip),
    }
}

fn any_addr() -> impl Strategy<Value = ScionAddr> {
    let ip = prop_oneof![
        any::<Ipv4Addr>().prop_map(IpAddr::from),
        any::<Ipv6Addr>().prop_map(IpAddr::from)
    ];
    (1u64.., ip, 1u16..)
        .prop_map(|(isd_as, ip, port)| ScionAddr::new(IsdAsn(isd_as), (ip, port).into()))
}

/// A router that `local` can send to.
fn router_of(local: ScionAddr) -> &'static str {
    if local.host.is_ipv4() {
        "10.0.0.1:30042"
    } else {
        "[fd00::1]:30042"
    }
}

#[test]
fn a_router_of_another_family_is_refused() {
    let (local, peer) = (
        addr("1-ff00:0:1,[fd00::9]:1"),
        addr("1-ff00:0:2,10.0.0.2:2"),
    );
    let error = Route::new(local, peer, &path(local, peer, "10.0.0.1:30042")).unwrap_err();
    assert!(matches!(error, RouteError::Family { .. }), "{error}");
    assert!(Route::new(local, peer, &path(local, peer, "[fd00::1]:30042")).is_ok());
}

proptest! {
    #[test]
    fn writes_what_sciparse_reads(
        local in any_addr(), peer in any_addr(),
        payload in prop::collection::vec(any::<u8>(), 0..2000), ecn in 0u8..4,
    ) {
        prop_assume!(local.isd_as != peer.isd_as);
        let path = path(local, peer, router_of(local));
        let route = Route::new(local, peer, &path).unwrap();
        let mut packet = vec![];
        route.write(&payload, ecn, &mut packet);
        prop_assert_eq!(packet.len(), route.overhead() + payload.len());

        let (view, rest) = ScionRawPacketView::try_from_slice(&packet).unwrap();
        prop_assert!(rest.is_empty());
        let header = view.header();
        prop_assert_eq!(header.dst_ia(), peer.isd_as);
        prop_assert_eq!(header.src_ia(), local.isd_as);
        prop_assert_eq!(header.traffic_class(), ecn);
        prop_assert_ne!(header.flow_id(), 0);
        prop_assert_eq!(usize::from(header.payload_len()), payload.len() + 8);
        let udp = view.try_as_udp().unwrap();
        let src = udp.src_socket_addr().unwrap().try_to_scion_sock_ip_addr().unwrap();
        let dst = udp.dst_socket_addr().unwrap().try_to_scion_sock_ip_addr().unwrap();
        prop_assert_eq!(src.socket_addr(), local.host);
        prop_assert_eq!(dst.socket_addr(), peer.host);
        prop_assert_eq!(udp.udp().payload(), &payload[..]);

        let addresses = AddressHeader {
            dst_ia: peer.isd_as,
            src_ia: local.isd_as,
            dst_host_addr: wire_host(peer),
            src_host_addr: wire_host(local),
        };
        let mut message = view.payload().to_vec();
        message[6..8].fill(0);
        let checksum = sciparse::checksum::ChecksumDigest::with_pseudoheader(&addresses, UDP, &message)
            .add_slice(&message)
            .checksum();
        let expected = if checksum == 0 { 0xffff } else { checksum };
        prop_assert_eq!(udp.udp().checksum(), expected);
    }

    #[test]
    fn what_is_written_can_be_answered(
        local in any_addr(), peer in any_addr(), payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        prop_assume!(local.isd_as != peer.isd_as);
        let route = Route::new(local, peer, &path(local, peer, router_of(local))).unwrap();
        let mut bytes = vec![];
        route.write(&payload, 0, &mut bytes);
        let path_at = bytes.len() - payload.len() - 8 - route.path().len();
        // As it arrives: at the last hop.
        bytes[path_at] = 1;
        let packet = Packet::parse(&bytes).unwrap();
        let udp = packet.udp().unwrap();
        prop_assert_eq!((udp.src_port, udp.dst_port), (local.host.port(), peer.host.port()));
        prop_assert_eq!(udp.payload, &payload[..]);
        let router = "10.0.9.1:30042".parse().unwrap();
        let back = Route::back(peer, &packet, udp.src_port, router).unwrap();
        prop_assert_eq!(back.peer(), local);
        prop_assert_eq!(back.next_hop(), router);
        prop_assert_eq!(dataplane::interface_ids(back.path()).unwrap(), [8, 7]);
        prop_assert_eq!(back.path()[0], 0);
        let mut answer = vec![];
        back.write(&payload, 0, &mut answer);
        let answer = Packet::parse(&answer).unwrap();
        prop_assert_eq!((answer.src_as(), answer.dst_as()), (peer.isd_as, local.isd_as));
        prop_assert!(answer.udp().is_ok());
    }

    #[test]
    fn a_changed_bit_is_noticed(
        payload in prop::collection::vec(any::<u8>(), 1..100), at: prop::sample::Index, bit in 0u8..8,
    ) {
        let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
        let route = Route::new(local, peer, &Path::within(local.isd_as, 1472)).unwrap();
        let mut bytes = vec![];
        route.write(&payload, 0, &mut bytes);
        // Addresses, UDP header and payload are covered; the rest of the header is not.
        let at = 12 + at.index(bytes.len() - 12);
        bytes[at] ^= 1u8 << bit;
        let read = Packet::parse(&bytes).and_then(|packet| packet.udp().map(|_| ()));
        prop_assert!(matches!(read, Err(Malformed::Checksum | Malformed::Length)));
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    /// Bytes that get past the first checks.
    #[test]
    fn any_fields_are_answered(
        kinds in prop::sample::select(vec![0u8, 3, 0x30, 0x33, 4, 0x40]), path_type in 0u8..3,
        header in 0u8..60, next in prop::sample::select(vec![17u8, 202]),
        body in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut bytes = vec![0, 0, 0, 1, next, header, 0, 0, path_type, kinds, 0, 0];
        bytes.extend_from_slice(&body);
        let payload = bytes.len().saturating_sub(usize::from(header) * 4) as u16;
        bytes[6..8].copy_from_slice(&payload.to_be_bytes());
        read_all(&bytes);
    }
}

/// Everything that can be asked about bytes from outside.
fn read_all(bytes: &[u8]) {
    let router = "10.0.9.1:30042".parse().unwrap();
    for packet in [Packet::parse(bytes), Packet::parse_quoted(bytes)]
        .into_iter()
        .flatten()
    {
        let _ = (
            packet.src_host(),
            packet.dst_host(),
            packet.route_bytes(),
            packet.ecn(),
        );
        let _ = (packet.udp(), packet.udp_quoted(), packet.checksum_holds());
        let _ = Scmp::parse(&packet);
        let _ = Route::back(addr("1-ff00:0:1,10.0.0.1:1"), &packet, 1, router);
    }
}

#[test]
fn the_header_of_one_as_is_as_short_as_can_be() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
    let route = Route::new(local, peer, &Path::within(local.isd_as, 1472)).unwrap();
    assert_eq!(route.overhead(), 12 + 16 + 8 + 8);
    assert_eq!(route.next_hop(), peer.host, "straight to the host");
}

#[test]
fn a_route_needs_a_path_between_its_ends() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:2,10.0.0.2:2"));
    let error = Route::new(local, peer, &Path::within(local.isd_as, 1472)).unwrap_err();
    assert!(matches!(error, RouteError::OtherEnds { .. }));
    let other = addr("1-ff00:0:3,10.0.0.2:2");
    let error = Route::new(local, other, &path(local, peer, "10.0.0.9:1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the path leads from 1-ff00:0:1 to 1-ff00:0:2, \
         not from 1-ff00:0:1,10.0.0.1:1 to 1-ff00:0:3,10.0.0.2:2"
    );
}

#[test]
fn scmp_packets_carry_a_checksum() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
    let route = Route::new(local, peer, &Path::within(local.isd_as, 1472)).unwrap();
    let bytes = route.scmp(&echo(false, 1, 2, b"abc"));
    let packet = Packet::parse(&bytes).unwrap();
    let expected = Scmp::Echo {
        reply: false,
        id: 1,
        sequence: 2,
        data: b"abc",
    };
    assert_eq!(Scmp::parse(&packet), Ok(expected));
    let (view, _) = ScionRawPacketView::try_from_slice(&bytes).unwrap();
    assert!(view.try_as_scmp().is_ok());
    let mut broken = bytes.clone();
    *broken.last_mut().unwrap() ^= 1;
    let packet = Packet::parse(&broken).unwrap();
    assert_eq!(Scmp::parse(&packet), Err(Malformed::Checksum));
}

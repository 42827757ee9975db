use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use sciparse::address::host_addr::WireHostAddr;
use sciparse::core::view::View;
use sciparse::header::model::AddressHeader;
use sciparse::identifier::isd_asn::IsdAsn;
use sciparse::packet::view::ScionRawPacketView;

use super::*;
use crate::malformed::Malformed;
use crate::packet::Packet;
use crate::path::interface_ids;
use crate::scmp::{Body, Scmp};
use crate::testing::{addr, raw_path};

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

proptest! {
    #[test]
    fn sciparse_reads_written_packets(
        local in any_addr(), peer in any_addr(),
        payload in prop::collection::vec(any::<u8>(), 0..2000), ecn in 0u8..4,
    ) {
        prop_assume!(local.isd_as != peer.isd_as);
        let template = Template::new(local, peer, &raw_path()).unwrap();
        let mut packet = vec![];
        template.write(&payload, ecn, &mut packet);
        prop_assert_eq!(packet.len(), template.overhead() + payload.len());

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
        let checksum = sciparse::checksum::ChecksumDigest::with_pseudoheader(&addresses, next_header::UDP, &message)
            .add_slice(&message)
            .checksum();
        let expected = if checksum == 0 { 0xffff } else { checksum };
        prop_assert_eq!(udp.udp().checksum(), expected);
    }

    #[test]
    fn written_packets_can_be_answered(
        local in any_addr(), peer in any_addr(), payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        prop_assume!(local.isd_as != peer.isd_as);
        let template = Template::new(local, peer, &raw_path()).unwrap();
        let mut bytes = vec![];
        template.write(&payload, 0, &mut bytes);
        let path_at = bytes.len() - payload.len() - 8 - template.path().len();
        // The packet arrives at the last hop.
        bytes[path_at] = 1;
        let packet = Packet::parse(&bytes).unwrap();
        let udp = packet.udp().unwrap();
        prop_assert_eq!((udp.src_port, udp.dst_port), (local.host.port(), peer.host.port()));
        prop_assert_eq!(udp.payload, &payload[..]);
        let host = packet.src_host().unwrap();
        prop_assert_eq!(ScionAddr::new(packet.header.src_as, (host, udp.src_port).into()), local);
        let path = packet.reversed_path().unwrap();
        let back = Template::new(peer, local, &path).unwrap();
        prop_assert_eq!(interface_ids(back.path()).unwrap(), [8, 7]);
        prop_assert_eq!(back.path()[0], 0);
        let mut answer = vec![];
        back.write(&payload, 0, &mut answer);
        let answer = Packet::parse(&answer).unwrap();
        prop_assert_eq!((answer.header.src_as, answer.header.dst_as), (peer.isd_as, local.isd_as));
        prop_assert!(answer.udp().is_ok());
    }

    #[test]
    fn a_changed_bit_is_detected(
        payload in prop::collection::vec(any::<u8>(), 1..100), at: prop::sample::Index, bit in 0u8..8,
    ) {
        let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
        let template = Template::new(local, peer, &[]).unwrap();
        let mut bytes = vec![];
        template.write(&payload, 0, &mut bytes);
        // Addresses, UDP header and payload are covered; the rest of the header is not.
        let at = 12 + at.index(bytes.len() - 12);
        bytes[at] ^= 1u8 << bit;
        let read = Packet::parse(&bytes).and_then(|packet| packet.udp().map(|_| ()));
        prop_assert!(matches!(read, Err(Malformed::Checksum | Malformed::Length)));
    }

    #[test]
    fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    /// These bytes pass the first checks.
    #[test]
    fn reading_any_fields_never_panics(
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

/// Reads all parts of bytes from outside.
fn read_all(bytes: &[u8]) {
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
        let _ = (
            packet.udp(),
            packet.udp_quoted(),
            packet.checksum_is_valid(),
        );
        let _ = Scmp::parse(&packet);
        if let Ok(path) = packet.reversed_path() {
            assert_eq!(path.len(), packet.path().len());
        }
    }
}

#[test]
fn the_header_within_one_as_has_minimum_length() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
    let template = Template::new(local, peer, &[]).unwrap();
    assert_eq!(template.overhead(), 12 + 16 + 8 + 8);
}

#[test]
fn a_path_too_long_for_a_header_is_refused() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:2,10.0.0.2:2"));
    let fits = MAX_HEADER - 12 - 16 - 8;
    assert!(Template::new(local, peer, &vec![0; fits]).is_ok());
    for (length, header) in [(fits + 4, MAX_HEADER + 4), (5, 41)] {
        let refused = Template::new(local, peer, &vec![0; length]);
        assert_eq!(refused, Err(HeaderLength(header)));
    }
}

#[test]
fn truncated_packets_are_refused() {
    let (local, peer) = (
        addr("1-ff00:0:1,10.0.0.1:1"),
        addr("1-ff00:0:2,[fd00::2]:2"),
    );
    let template = Template::new(local, peer, &raw_path()).unwrap();
    let mut bytes = vec![];
    template.write(&[7; 20], 0, &mut bytes);
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        assert!(Packet::parse(cut).is_err(), "{length} bytes");
        let headers = template.overhead() - UDP_HEADER;
        assert_eq!(
            Packet::parse_quoted(cut).is_ok(),
            length >= headers,
            "{length} bytes"
        );
    }
    assert!(Packet::parse(&bytes).is_ok());
}

#[test]
fn scmp_packets_carry_a_checksum() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
    let template = Template::new(local, peer, &[]).unwrap();
    let echo = Scmp::Query {
        reply: false,
        id: 1,
        sequence: 2,
        body: Body::Echo(b"abc"),
    };
    let bytes = template.scmp(&echo.to_bytes());
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(Scmp::parse(&packet), Ok(echo));
    let (view, _) = ScionRawPacketView::try_from_slice(&bytes).unwrap();
    assert!(view.try_as_scmp().is_ok());
    let mut broken = bytes.clone();
    *broken.last_mut().unwrap() ^= 1;
    let packet = Packet::parse(&broken).unwrap();
    assert_eq!(Scmp::parse(&packet), Err(Malformed::Checksum));
}

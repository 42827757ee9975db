use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_address::IsdAsn;
use proptest::prelude::*;

use super::*;
use crate::malformed::Malformed;
use crate::packet::Packet;
use crate::path::interface_ids;
use crate::scmp::{Body, Scmp};
use crate::testing::{addr, bytes as from_hex, raw_path};

fn any_addr() -> impl Strategy<Value = ScionAddr> {
    let ip = prop_oneof![
        any::<Ipv4Addr>().prop_map(IpAddr::from),
        any::<Ipv6Addr>().prop_map(IpAddr::from)
    ];
    (1u64.., ip, 1u16..)
        .prop_map(|(isd_as, ip, port)| ScionAddr::new(IsdAsn(isd_as), (ip, port).into()))
}

proptest! {
    /// Every field is where the SCION header specification has it.
    #[test]
    fn written_packets_have_every_field_at_its_place(
        local in any_addr(), peer in any_addr(),
        payload in prop::collection::vec(any::<u8>(), 0..2000), ecn in 0u8..4,
    ) {
        prop_assume!(local.isd_as != peer.isd_as);
        let path = raw_path();
        let template = Template::new(local, peer, &path).unwrap();
        let mut packet = vec![];
        template.write(&payload, ecn, &mut packet);
        prop_assert_eq!(packet.len(), template.overhead() + payload.len());

        let host = |addr: ScionAddr| match addr.host.ip() {
            IpAddr::V4(ip) => (0b0000, ip.octets().to_vec()),
            IpAddr::V6(ip) => (0b0011, ip.octets().to_vec()),
        };
        let ((dst_kind, dst), (src_kind, src)) = (host(peer), host(local));
        let addresses = [&peer.isd_as.to_be_bytes()[..], &local.isd_as.to_be_bytes(), &dst, &src];
        let addresses = addresses.concat();
        let header_len = 12 + addresses.len() + path.len();
        let udp_len = (payload.len() + 8) as u16;
        let flow = u32::from_be_bytes([0, packet[1] & 0xf, packet[2], packet[3]]);
        prop_assert_ne!(flow, 0);
        let first = u32::from(ecn) << 20 | flow;
        let ports = [local.host.port(), peer.host.port()];
        let mut expected = first.to_be_bytes().to_vec();
        expected.extend([17, (header_len / 4) as u8]);
        expected.extend(udp_len.to_be_bytes());
        expected.extend([1, dst_kind << 4 | src_kind, 0, 0]);
        expected.extend_from_slice(&addresses);
        expected.extend_from_slice(&path);
        expected.extend([ports[0], ports[1], udp_len].map(u16::to_be_bytes).concat());
        let (headers, rest) = packet.split_at(header_len + 6);
        prop_assert_eq!(headers, expected);
        prop_assert_eq!(&rest[2..], &payload[..]);
        // The checksum covers itself: the sum is all ones.
        let pseudo = [&addresses[..], &udp_len.to_be_bytes(), &[0, 17], &packet[header_len..]];
        let words = pseudo.concat();
        let sum: u32 = words.chunks(2).map(|word| {
            u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from)
        }).sum();
        prop_assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
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

/// Ends, whether there is a path between them, payload, congestion mark, and the packet without
/// its flow label, whose fields and checksum `sciparse` 0.8.6 read and found correct.
type Recorded = (
    &'static str,
    &'static str,
    bool,
    &'static [u8],
    u8,
    &'static str,
);

const RECORDED: [Recorded; 5] = [
(
"1-ff00:0:1,10.0.0.1:1",
"1-ff00:0:1,10.0.0.2:31000",
false,
b"",
0,
"0000000011090008000000000001ff00000000010001ff00000000010a0000020a00000100017918000874bc",
),
(
"1-ff00:0:110,10.0.0.1:31000",
"64-559,192.0.2.7:6881",
true,
b"a",
1,
"001000001112000901000000004000000000022f0001ff0000000110c00002070a0000010000200001000000000003e800000000000701020304050000000008000001020304050079181ae100093c5961",
),
(
"1-ff00:0:110,10.0.0.1:31000",
"2-ff00:0:210,[fd00::2]:443",
true,
b"block",
2,
"002000001115000d013000000002ff00000002100001ff0000000110fd0000000000000000000000000000020a0000010000200001000000000003e8000000000007010203040500000000080000010203040500791801bb000d4008626c6f636b",
),
(
"2-ff00:0:210,[fd00::2]:443",
"1-ff00:0:110,10.0.0.1:31000",
true,
b"of sixteen bytes",
3,
"0030000011150018010300000001ff00000001100002ff00000002100a000001fd0000000000000000000000000000020000200001000000000003e800000000000701020304050000000008000001020304050001bb79180018aa526f66207369787465656e206279746573",
),
(
"65535-ffff:ffff:ffff,[2001:db8::ff]:65535",
"1-4294967295,[fd00:0:1::fe]:1",
true,
b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
0,
"00000000111800290133000000010000fffffffffffffffffffffffffd0000000001000000000000000000fe20010db80000000000000000000000ff0000200001000000000003e8000000000007010203040500000000080000010203040500ffff00010029d3e1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
),
];

#[test]
fn packets_are_written_as_recorded() {
    for (local, peer, with_path, payload, ecn, recorded) in RECORDED {
        let path = if with_path { raw_path() } else { Vec::new() };
        let template = Template::new(addr(local), addr(peer), &path).unwrap();
        let mut packet = vec![];
        template.write(payload, ecn, &mut packet);
        packet[1] &= 0xf0;
        packet[2..4].fill(0);
        assert_eq!(packet, from_hex(recorded), "{local} to {peer}");
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
    // sciparse 0.8.6 read this packet and found its checksum correct.
    let mut recorded = from_hex(
        "00000000ca09000b000000000001ff00000000010001ff00000000010a0000020a0000018000a8bb00010002616263",
    );
    recorded[..4].copy_from_slice(&bytes[..4]);
    assert_eq!(bytes, recorded);
    let mut broken = bytes.clone();
    *broken.last_mut().unwrap() ^= 1;
    let packet = Packet::parse(&broken).unwrap();
    assert_eq!(Scmp::parse(&packet), Err(Malformed::Checksum));
}

use std::net::IpAddr;

use proptest::prelude::*;
use sciparse::address::host_addr::WireHostAddr;
use sciparse::header::model::AddressHeader;
use sciparse::payload::encode::PayloadEncode;
use sciparse::payload::scmp::model::{
    ScmpDestinationUnreachable, ScmpExternalInterfaceDown, ScmpInternalConnectivityDown,
    ScmpMessage, ScmpPacketTooBig, ScmpParameterProblem,
};
use sciparse::payload::scmp::types::{ScmpDestinationUnreachableCode, ScmpParameterProblemCode};

use super::*;
use crate::addr::ScionAddr;
use crate::template::Template;
use crate::testing::addr;

const US: &str = "1-ff00:0:1,10.0.0.1:31000";
const PEER: &str = "1-ff00:0:1,10.0.0.2:31001";

fn template(from: &str, to: &str) -> Template {
    Template::new(addr(from), addr(to), &[]).unwrap()
}

/// A packet from `US`, as a router quotes it.
fn ours() -> Vec<u8> {
    let mut packet = vec![];
    template(US, PEER).write(&[7; 500], 0, &mut packet);
    packet
}

/// Reads a message that sciparse wrote.
fn read(message: impl Into<ScmpMessage>) -> (ScmpError, Option<ScionAddr>, Option<ScionAddr>) {
    let (message, host) = (message.into(), |text| {
        let addr = addr(text);
        let IpAddr::V4(ip) = addr.host.ip() else {
            panic!("{addr}")
        };
        (addr.isd_as, WireHostAddr::V4(ip))
    });
    let ((src_ia, src_host_addr), (dst_ia, dst_host_addr)) = (host(PEER), host(US));
    let addresses = AddressHeader {
        dst_ia,
        src_ia,
        dst_host_addr,
        src_host_addr,
    };
    const HEADER: usize = 12 + 16 + 8;
    let mut theirs = vec![0; message.required_size(HEADER)];
    message.try_encode(&mut theirs, &addresses, HEADER).unwrap();
    let packet = template(PEER, US).scmp(&theirs);
    let packet = Packet::parse(&packet).unwrap();
    // The checksum of sciparse 0.8.6 does not cover the message.
    assert_eq!(packet.payload()[4..], theirs[4..]);
    match Scmp::parse(&packet).unwrap() {
        Scmp::Error { error, quote } => {
            let ends = quote.map(|quote| (quote.src, quote.dst)).unzip();
            (error, ends.0, ends.1)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_are_read_with_the_packet_they_quote() {
    let isd_as = addr(US).isd_as;
    let (src, dst) = (Some(addr(US)), Some(addr(PEER)));
    let unreachable =
        ScmpDestinationUnreachable::new(ScmpDestinationUnreachableCode::PortUnreachable, ours());
    let error = ScmpError::DestinationUnreachable { code: 4 };
    assert_eq!(read(unreachable), (error, src, dst));
    let error = ScmpError::PacketTooBig { mtu: 1300 };
    assert_eq!(read(ScmpPacketTooBig::new(1300, ours())), (error, src, dst));
    let expired = ScmpParameterProblem::new(ScmpParameterProblemCode::PathExpired, 42, ours());
    let error = ScmpError::ParameterProblem {
        code: 52,
        pointer: 42,
    };
    assert_eq!(read(expired), (error, src, dst));
    let down = ScmpExternalInterfaceDown::new(isd_as, 7, ours());
    let error = ScmpError::ExternalInterfaceDown {
        isd_as,
        interface: 7,
    };
    assert_eq!(read(down), (error, src, dst));
    let cut = ScmpInternalConnectivityDown::new(isd_as, 7, 8, ours());
    let error = ScmpError::InternalConnectivityDown {
        isd_as,
        ingress: 7,
        egress: 8,
    };
    assert_eq!(read(cut), (error, src, dst));
}

#[test]
fn a_quote_of_the_headers_is_sufficient() {
    let mut quote = ours();
    quote.truncate(12 + 16 + 8 + 8);
    let (_, src, _) = read(ScmpPacketTooBig::new(1300, quote.clone()));
    assert_eq!(src, Some(addr(US)));
    quote.pop();
    let (_, src, _) = read(ScmpPacketTooBig::new(1300, quote));
    assert_eq!(src, None);
}

#[test]
fn quoted_requests_are_recognised() {
    let echo = |reply| Scmp::Query {
        reply,
        id: 31000,
        sequence: 9,
        body: Body::Echo(&[0; 32]),
    };
    let traceroute = Scmp::Query {
        reply: false,
        id: 31000,
        sequence: 9,
        body: Body::Traceroute {
            isd_as: IsdAsn::WILDCARD,
            interface: 0,
        },
    };
    for request in [echo(false), traceroute] {
        let mut sent = template(US, PEER).scmp(&request.to_bytes());
        let quote = Quote::parse(&sent).unwrap();
        assert_eq!(
            (quote.src, quote.dst.host.ip()),
            (addr(US), addr(PEER).host.ip())
        );
        assert_eq!(quote.request, Some(9));
        // The same request to a service address.
        sent[9] |= 0x40;
        let quote = Quote::parse(&sent).unwrap();
        assert_eq!((quote.src, quote.request), (addr(US), Some(9)));
        assert!(quote.dst.host.ip().is_unspecified());
    }
    let reply = template(US, PEER).scmp(&echo(true).to_bytes());
    assert_eq!(Quote::parse(&reply), None);
}

#[test]
fn interfaces_beyond_16_bits_are_refused() {
    let mut message = vec![scmp_type::EXTERNAL_INTERFACE_DOWN, 0, 0, 0];
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&0x1_0000u64.to_be_bytes());
    let packet = template(PEER, US).scmp(&message);
    let packet = Packet::parse(&packet).unwrap();
    assert_eq!(Scmp::parse(&packet), Err(Malformed::Length));
}

fn any_error() -> impl Strategy<Value = ScmpError> {
    prop_oneof![
        any::<u8>().prop_map(|code| ScmpError::DestinationUnreachable { code }),
        any::<u16>().prop_map(|mtu| ScmpError::PacketTooBig { mtu }),
        any::<(u8, u16)>()
            .prop_map(|(code, pointer)| ScmpError::ParameterProblem { code, pointer }),
        any::<(u64, u16)>().prop_map(|(isd_as, interface)| ScmpError::ExternalInterfaceDown {
            isd_as: IsdAsn(isd_as),
            interface,
        }),
        any::<(u64, u16, u16)>().prop_map(|(isd_as, ingress, egress)| {
            ScmpError::InternalConnectivityDown {
                isd_as: IsdAsn(isd_as),
                ingress,
                egress,
            }
        }),
        (7u8..128, any::<u8>()).prop_map(|(kind, code)| ScmpError::Other { kind, code }),
    ]
}

proptest! {
    /// Written errors are read unchanged, and errors truncated before the quoted packet are
    /// refused.
    #[test]
    fn errors_are_read_as_written(error in any_error()) {
        let sent = ours();
        let quote = match error {
            ScmpError::Other { .. } => None,
            _ => Quote::parse(&sent),
        };
        let message = Scmp::Error { error, quote };
        let bytes = message.to_bytes();
        let packet = template(PEER, US).scmp(&bytes);
        let packet = Packet::parse(&packet).unwrap();
        prop_assert_eq!(Scmp::parse(&packet), Ok(message));
        for length in 4..error::quote_at(bytes[0]).unwrap_or(4) {
            let packet = template(PEER, US).scmp(&bytes[..length]);
            let cut = Scmp::parse(&Packet::parse(&packet).unwrap());
            // The truncated bytes of "destination unreachable" are unused.
            let unreachable = matches!(error, ScmpError::DestinationUnreachable { .. });
            let expected = match unreachable {
                true => Ok(Scmp::Error { error, quote: None }),
                false => Err(Malformed::Truncated),
            };
            prop_assert_eq!(cut, expected);
        }
    }

    #[test]
    fn echoes_and_traceroutes_are_read_as_written(
        reply: bool, id: u16, sequence: u16, isd_as: u64, interface: u16,
        data in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let echo = Scmp::Query { reply, id, sequence, body: Body::Echo(&data) };
        let isd_as = IsdAsn(isd_as);
        let traceroute = Scmp::Query { reply, id, sequence, body: Body::Traceroute { isd_as, interface } };
        for (message, least) in [(echo, 8), (traceroute, TRACEROUTE)] {
            let bytes = message.to_bytes();
            let packet = template(PEER, US).scmp(&bytes);
            prop_assert_eq!(Scmp::parse(&Packet::parse(&packet).unwrap()), Ok(message));
            for length in 4..least {
                let packet = template(PEER, US).scmp(&bytes[..length]);
                let cut = Scmp::parse(&Packet::parse(&packet).unwrap());
                prop_assert_eq!(cut, Err(Malformed::Truncated));
            }
        }
    }

    #[test]
    fn reading_any_message_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 4..200)) {
        for kind in 0..=255 {
            bytes[0] = kind;
            let packet = template(PEER, US).scmp(&bytes);
            let _ = Scmp::parse(&Packet::parse(&packet).unwrap());
        }
    }
}

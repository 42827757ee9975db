use std::net::IpAddr;

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
use crate::path::Path;
use crate::wire::Route;

fn addr(text: &str) -> ScionAddr {
    text.parse().unwrap()
}

const US: &str = "1-ff00:0:1,10.0.0.1:31000";
const PEER: &str = "1-ff00:0:1,10.0.0.2:31001";

fn route(from: &str, to: &str) -> Route {
    let path = Path::within(addr(from).isd_as, 1472);
    Route::new(addr(from), addr(to), &path).unwrap()
}

/// A packet of ours, as a router quotes it.
fn ours() -> Vec<u8> {
    let mut packet = vec![];
    route(US, PEER).write(&[7; 500], 0, &mut packet);
    packet
}

/// What is read of a message another implementation wrote.
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
    let packet = route(PEER, US).scmp(&theirs);
    let packet = Packet::parse(&packet).unwrap();
    // Their checksum (sciparse 0.8.6) leaves the message out.
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
fn errors_are_read_with_the_packet_they_are_about() {
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
fn a_quote_cut_short_after_its_headers_is_enough() {
    let mut quote = ours();
    quote.truncate(12 + 16 + 8 + 8);
    let (_, src, _) = read(ScmpPacketTooBig::new(1300, quote.clone()));
    assert_eq!(src, Some(addr(US)));
    quote.pop();
    let (_, src, _) = read(ScmpPacketTooBig::new(1300, quote));
    assert_eq!(src, None);
}

#[test]
fn our_requests_are_known_again() {
    let requests = [
        echo(false, 31000, 9, &[0; 32]),
        traceroute_request(31000, 9),
    ];
    for request in requests {
        let mut sent = route(US, PEER).scmp(&request);
        let quote = Quote::parse(&sent).unwrap();
        assert_eq!(
            (quote.src, quote.dst.host.ip()),
            (addr(US), addr(PEER).host.ip())
        );
        assert_eq!(quote.request, Some(9));
        // The same to a service address.
        sent[9] |= 0x40;
        let quote = Quote::parse(&sent).unwrap();
        assert_eq!((quote.src, quote.request), (addr(US), Some(9)));
        assert!(quote.dst.host.ip().is_unspecified());
    }
    assert_eq!(
        Quote::parse(&route(US, PEER).scmp(&echo(true, 31000, 9, &[]))),
        None
    );
}

#[test]
fn interfaces_beyond_16_bits_are_refused() {
    let mut message = vec![EXTERNAL_INTERFACE_DOWN, 0, 0, 0];
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&0x1_0000u64.to_be_bytes());
    let packet = route(PEER, US).scmp(&message);
    let packet = Packet::parse(&packet).unwrap();
    assert_eq!(Scmp::parse(&packet), Err(Malformed::Length));
}

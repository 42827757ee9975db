use hawser_packet::path::{HopField, InfoField};

use super::*;

fn addr(text: &str) -> ScionAddr {
    text.parse().unwrap()
}

/// A path of two hops over one link.
fn path(src: ScionAddr, dst: ScionAddr, router: &str) -> Path {
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    let info = InfoField {
        cons_dir: true,
        peer: false,
        segment_id: 0,
        timestamp: 1,
    };
    raw.extend(info.to_bytes());
    for (cons_ingress, cons_egress) in [(0, 7), (8, 0)] {
        let hop = HopField {
            flags: 0,
            exp_time: 63,
            cons_ingress,
            cons_egress,
            mac: *b"secret",
        };
        raw.extend(hop.to_bytes());
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

#[test]
fn a_router_of_another_family_is_refused() {
    let (local, peer) = (
        addr("1-ff00:0:1,[fd00::9]:1"),
        addr("1-ff00:0:2,10.0.0.2:2"),
    );
    let error = Headers::new(local, peer, &path(local, peer, "10.0.0.1:30042")).unwrap_err();
    assert!(matches!(error, HeadersError::Family { .. }), "{error}");
    assert!(Headers::new(local, peer, &path(local, peer, "[fd00::1]:30042")).is_ok());
}

#[test]
fn a_packet_can_be_answered() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:2,10.0.0.2:2"));
    let headers = Headers::new(local, peer, &path(local, peer, "10.0.0.9:30042")).unwrap();
    let mut bytes = vec![];
    headers.write(b"question", 0, &mut bytes);
    let path_at = headers.overhead() - 8 - headers.path().len();
    let router = "10.0.9.1:30042".parse().unwrap();
    // As the packet arrives: at the last hop.
    bytes[path_at] = 1;
    let packet = Packet::parse(&bytes).unwrap();
    let back = Headers::reply(peer, &packet, 1, router).unwrap();
    assert_eq!((back.remote, back.next_hop), (local, router));
    let mut answer = vec![];
    back.write(b"answer", 0, &mut answer);
    let answer = Packet::parse(&answer).unwrap();
    assert_eq!(
        (answer.header.src_as, answer.header.dst_as),
        (peer.isd_as, local.isd_as)
    );
    assert_eq!(answer.udp().unwrap().payload, b"answer");
    // At no hop of the path.
    bytes[path_at] = 2;
    let error = Headers::reply(peer, &Packet::parse(&bytes).unwrap(), 1, router).unwrap_err();
    assert!(matches!(error, HeadersError::NoReply { .. }), "{error}");
}

#[test]
fn remote_and_path_of_a_quote_are_compared() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:2,10.0.0.2:2"));
    let other = addr("1-ff00:0:2,10.0.0.2:3");
    let path = path(local, peer, "10.0.0.9:30042");
    let headers = |peer| Headers::new(local, peer, &path).unwrap();
    let mut sent = vec![];
    headers(peer).write(&[3; 100], 2, &mut sent);
    let quoted = |headers: Headers, sent: &[u8]| headers.quoted_by(&Quote::parse(sent).unwrap());
    assert!(quoted(headers(peer), &sent));
    assert!(!quoted(headers(other), &sent));
    // Another MAC: an older or newer path.
    let last = headers(peer).overhead() - 9;
    sent[last] ^= 1;
    assert!(!quoted(headers(peer), &sent));
}

#[test]
fn within_one_as_packets_go_directly_to_the_host() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:1,10.0.0.2:2"));
    let headers = Headers::new(local, peer, &Path::within(local.isd_as, 1472)).unwrap();
    assert_eq!(headers.next_hop, peer.host);
}

#[test]
fn the_path_leads_from_here_to_the_remote() {
    let (local, peer) = (addr("1-ff00:0:1,10.0.0.1:1"), addr("1-ff00:0:2,10.0.0.2:2"));
    let error = Headers::new(local, peer, &Path::within(local.isd_as, 1472)).unwrap_err();
    assert!(matches!(error, HeadersError::OtherEnds { .. }));
    let other = addr("1-ff00:0:3,10.0.0.2:2");
    let error = Headers::new(local, other, &path(local, peer, "10.0.0.9:1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the path leads from 1-ff00:0:1 to 1-ff00:0:2, \
         not from 1-ff00:0:1,10.0.0.1:1 to 1-ff00:0:3,10.0.0.2:2"
    );
}

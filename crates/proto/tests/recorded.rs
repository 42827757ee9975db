//! Compares the messages with those of another implementation.
//!
//! The files in `recorded/` are messages that `scion-protobuf` 0.8.6 and `endhost-api-protobuf` 0.8.6 have
//! encoded, each with all fields of their definitions, also those that hawser does not use (EPIC, hidden
//! paths, SNAPs, metadata of signatures): these are skipped.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use hawser_fuzz::fuzz;
use hawser_proto::Message;
use hawser_proto::control_plane::{self as cp, SegmentType};
use hawser_proto::crypto::{self, SignatureAlgorithm};
use hawser_proto::daemon::{self, LinkType};
use hawser_proto::endhost;
use hawser_proto::well_known::{Duration, Timestamp};

fn recorded(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    fs::read(folder.join(name).with_extension("bin")).unwrap()
}

/// Checks that a recorded message is read as `expected`, that this is written so that it is read again,
/// and that nothing read panics.
fn check<M: Message + Default + PartialEq + Debug>(name: &str, expected: &M) {
    let bytes = recorded(name);
    assert_eq!(&M::decode(bytes.as_slice()).unwrap(), expected, "{name}");
    let again = expected.encode_to_vec();
    assert_eq!(&M::decode(again.as_slice()).unwrap(), expected, "{name}");
    // A field of another number, of each wire type that there is.
    for unknown in [
        &b"\xa8\x7f\x05"[..],
        b"\xa9\x7f12345678",
        b"\xaa\x7f\x02hi",
        b"\xad\x7f1234",
    ] {
        let more = [&bytes, unknown].concat();
        assert_eq!(&M::decode(more.as_slice()).unwrap(), expected, "{name}");
    }
    fuzz(&[bytes, again], |input| {
        if let Ok(read) = M::decode(input) {
            let _ = M::decode(read.encode_to_vec().as_slice()).unwrap();
        }
    });
}

/// Like [`check`], for messages without other fields: they are written as they were recorded.
fn check_same<M: Message + Default + PartialEq + Debug>(name: &str, expected: &M) {
    check(name, expected);
    assert_eq!(expected.encode_to_vec(), recorded(name), "{name}");
}

fn time(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

fn router(address: &str) -> daemon::Interface {
    daemon::Interface {
        address: Some(daemon::Underlay {
            address: address.into(),
        }),
    }
}

#[test]
fn paths_are_those_of_the_daemon() {
    let interface = |isd_as, id| daemon::PathInterface { isd_as, id };
    let whole = daemon::Path {
        raw: vec![0, 255, 7],
        interface: Some(router("10.0.0.1:2")),
        interfaces: vec![interface(1 << 48, 65535), interface(2, 0)],
        mtu: 1472,
        expiration: Some(Timestamp {
            seconds: 2_000_000_000,
            nanos: 5,
        }),
        latency: [(1, 2), (0, -1)]
            .map(|(seconds, nanos)| Duration { seconds, nanos })
            .into(),
        bandwidth: vec![0, u64::MAX],
        geo: vec![
            daemon::GeoCoordinates {
                latitude: 47.5,
                longitude: -8.25,
                address: "Zürich".into(),
            },
            daemon::GeoCoordinates::default(),
        ],
        link_type: vec![LinkType::OpenNet.into(), 77, -1],
        internal_hops: vec![0, 3],
        notes: vec![String::new(), "a note".into()],
        discovery_information: [(
            9,
            daemon::DiscoveryInformation {
                control_service_addresses: vec!["a".into()],
                discovery_service_addresses: vec!["b".into(), "c".into()],
            },
        )]
        .into(),
    };
    let paths = vec![whole, daemon::Path::default()];
    check("paths", &daemon::PathsResponse { paths });
    let request = daemon::PathsRequest {
        source_isd_as: 1,
        destination_isd_as: u64::MAX,
        refresh: true,
        hidden: true,
    };
    check_same("paths-request", &request);
}

#[test]
fn the_other_messages_of_the_daemon_are_read() {
    let local = daemon::ASResponse {
        isd_as: 3,
        core: true,
        mtu: 9000,
    };
    check_same("as", &local);
    let interfaces = [
        (0, daemon::Interface::default()),
        (7, router("[fd00::1]:1")),
    ];
    let interfaces = interfaces.into();
    check("interfaces", &daemon::InterfacesResponse { interfaces });
    let uri = "10.0.0.1:1".to_owned();
    let services = vec![daemon::Service { uri }];
    let services = [("control".to_owned(), daemon::ListService { services })].into();
    check_same("services", &daemon::ServicesResponse { services });
    let down = daemon::NotifyInterfaceDownRequest { isd_as: 4, id: 5 };
    check_same("interface-down", &down);
    let ports = daemon::PortRangeResponse {
        dispatched_port_start: 31000,
        dispatched_port_end: 32767,
    };
    check_same("port-range", &ports);
}

#[test]
fn bodies_of_entries_are_read() {
    let hop_field = |egress| {
        Some(cp::HopField {
            ingress: 1,
            egress,
            exp_time: 255,
            mac: b"secret".to_vec(),
        })
    };
    let info = cp::StaticInfoExtension {
        latency: Some(cp::LatencyInfo {
            intra: [(1, 2), (3, 0)].into(),
            inter: [(u64::MAX, u32::MAX)].into(),
        }),
        bandwidth: Some(cp::BandwidthInfo {
            intra: [(1, u64::MAX)].into(),
            inter: [(0, 1)].into(),
        }),
        geo: [(
            1,
            cp::GeoCoordinates {
                latitude: 1.5,
                longitude: 2.0,
                address: "x".into(),
            },
        )]
        .into(),
        link_type: [(1, LinkType::MultiHop.into()), (2, 0), (3, 9)].into(),
        internal_hops: [(1, 2)].into(),
        note: "one".into(),
    };
    let body = cp::ASEntrySignedBody {
        isd_as: 1,
        next_isd_as: 2,
        hop_entry: Some(cp::HopEntry {
            hop_field: hop_field(3),
            ingress_mtu: 1400,
        }),
        peer_entries: vec![
            cp::PeerEntry {
                peer_isd_as: 4,
                peer_interface: 5,
                peer_mtu: 6,
                hop_field: hop_field(7),
            },
            cp::PeerEntry::default(),
        ],
        mtu: 1472,
        extensions: Some(cp::PathSegmentExtensions {
            static_info: Some(info),
            discovery: None,
        }),
    };
    check("body", &body);
}

#[test]
fn services_are_announced_as_by_the_reference() {
    // Protobuf's own encoding of `{3: {1: 1, 2: "10.0.0.1:1", 3: "[fd00::1]:2"}}`.
    let bytes = b"\x1a\x1b\x08\x01\x12\x0a10.0.0.1:1\x1a\x0b[fd00::1]:2";
    let extensions = cp::PathSegmentExtensions {
        static_info: None,
        discovery: Some(cp::DiscoveryExtension {
            version: 1,
            control_service_addresses: vec![b"10.0.0.1:1".to_vec()],
            discovery_service_addresses: vec![b"[fd00::1]:2".to_vec()],
        }),
    };
    assert_eq!(extensions.encode_to_vec(), bytes);
    assert_eq!(
        cp::PathSegmentExtensions::decode(&bytes[..]),
        Ok(extensions)
    );
}

/// A segment whose parts are signed or kept as they were received.
fn segment() -> cp::PathSegment {
    let info = cp::SegmentInformation {
        timestamp: -1,
        segment_id: 65535,
    };
    let parts = crypto::HeaderAndBodyInternal {
        header: vec![1],
        body: vec![2, 3],
    };
    let entry = cp::ASEntry {
        signed: Some(crypto::SignedMessage {
            header_and_body: parts.encode_to_vec(),
            signature: vec![4],
        }),
        // EPIC's authenticators, as they were encoded.
        unsigned: b"\xc2\x3e\x08\x0a\x01\x05\x12\x01\x06\x12\0".to_vec(),
    };
    cp::PathSegment {
        segment_info: info.encode_to_vec(),
        as_entries: vec![entry, cp::ASEntry::default()],
    }
}

#[test]
fn segments_stay_as_they_were_received() {
    let segments = vec![segment()];
    let segments = [
        (SegmentType::Core.into(), cp::Segments { segments }),
        (-1, cp::Segments::default()),
    ];
    let answer = cp::SegmentsResponse {
        segments: segments.into(),
    };
    check("segments", &answer);
    let listed = endhost::ListSegmentsResponse {
        up_segments: vec![segment()],
        down_segments: vec![cp::PathSegment::default()],
        core_segments: vec![cp::PathSegment::default(); 2],
        next_page_token: "1-2".into(),
    };
    check_same("list", &listed);
}

#[test]
fn signatures_and_certificates_are_read() {
    let key = cp::VerificationKeyID {
        isd_as: 1,
        subject_key_id: vec![2],
        trc_base: 3,
        trc_serial: 4,
    };
    let header = crypto::Header {
        signature_algorithm: SignatureAlgorithm::EcdsaWithSha384.into(),
        verification_key_id: key.encode_to_vec(),
        timestamp: time(5),
        associated_data_length: 7,
    };
    check("header", &header);
    let request = cp::ChainsRequest {
        isd_as: 1,
        subject_key_id: vec![2],
        at_least_valid_until: time(3),
        at_least_valid_since: time(4),
    };
    check_same("chains-request", &request);
    let chain = cp::Chain {
        as_cert: vec![1],
        ca_cert: vec![2],
    };
    let chains = vec![chain];
    check_same("chains", &cp::ChainsResponse { chains });
    let request = cp::TRCRequest {
        isd: 1,
        base: 2,
        serial: 3,
    };
    check_same("trc-request", &request);
    check_same("trc", &cp::TRCResponse { trc: vec![1, 2] });
}

#[test]
fn messages_of_the_endhost_api_are_read() {
    let any = endhost::ListUnderlaysRequest { isd_as: Some(0) };
    check_same("underlays-request", &any);
    let router = endhost::Router {
        isd_as: 1,
        address: "10.0.0.1:3".into(),
        interfaces: vec![4, 300],
    };
    let routers = vec![router];
    let underlays = endhost::ListUnderlaysResponse {
        udp: Some(endhost::UdpUnderlay { routers }),
    };
    check("underlays", &underlays);
    let request = endhost::ListSegmentsRequest {
        src_isd_as: 1,
        dst_isd_as: 2,
        page_size: -3,
        page_token: "4-5".into(),
    };
    check_same("list-request", &request);
}

use hawser_proto::Message;
use hawser_proto::well_known::{Duration as PbDuration, Timestamp};
use proptest::prelude::*;

use super::*;

fn ends() -> (IsdAsn, IsdAsn) {
    (
        "1-ff00:0:110".parse().unwrap(),
        "1-ff00:0:111".parse().unwrap(),
    )
}

fn router_at(address: &str) -> pb::Interface {
    pb::Interface {
        address: Some(pb::Underlay {
            address: address.into(),
        }),
    }
}

/// A path over one link, as a daemon would offer it.
fn offered() -> pb::Path {
    let (src, dst) = ends();
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    raw.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0x10, 0]);
    for (ingress, egress) in [(0u16, 7u16), (8, 0)] {
        raw.extend_from_slice(&[0, 255]);
        raw.extend_from_slice(&ingress.to_be_bytes());
        raw.extend_from_slice(&egress.to_be_bytes());
        raw.extend_from_slice(b"secret");
    }
    let end = |isd_as: IsdAsn, id| pb::PathInterface {
        isd_as: isd_as.to_u64(),
        id,
    };
    pb::Path {
        raw,
        interface: Some(router_at("10.0.1.254:30042")),
        interfaces: vec![end(src, 7), end(dst, 8)],
        mtu: 1472,
        expiration: Some(Timestamp {
            seconds: 5000,
            ..Default::default()
        }),
        latency: vec![PbDuration {
            nanos: 5_000_000,
            ..Default::default()
        }],
        bandwidth: vec![10_000],
        notes: vec!["here".into(), String::new()],
        ..Default::default()
    }
}

#[test]
fn a_wildcard_stands_for_the_last_as() {
    let (src, dst) = ends();
    let to = |text: &str| path(src, text.parse().unwrap(), offered());
    assert_eq!(to("1-0").unwrap().info().dst, dst);
    assert!(to("2-0").is_err(), "the path ends in another ISD");
}

fn converted(change: impl FnOnce(&mut pb::Path)) -> Result<Path, String> {
    let (src, dst) = ends();
    let mut offered = offered();
    change(&mut offered);
    path(src, dst, offered)
}

#[test]
fn a_valid_path_is_read() {
    let path = converted(|_| ()).unwrap();
    assert_eq!(path.info().to_string(), "1-ff00:0:110 7>8 1-ff00:0:111");
    assert_eq!(path.next_hop(), Some("10.0.1.254:30042".parse().unwrap()));
    assert_eq!((path.mtu(), path.expiry()), (1472, 5000));
    let metadata = &path.info().metadata;
    assert_eq!(metadata.latency, [Some(Duration::from_millis(5))]);
    assert_eq!(metadata.bandwidth, [Some(10_000_000)]);
    assert_eq!(metadata.notes, ["here", ""]);
    assert!(metadata.geo.is_empty());
}

#[test]
fn missing_metadata_is_unknown() {
    let path = converted(|path| {
        path.latency[0].nanos = -1;
        path.bandwidth[0] = 0;
        path.geo = vec![pb::GeoCoordinates::default(); 2];
        path.geo[1].latitude = f32::NAN;
        path.link_type = vec![99];
        path.notes.pop();
    });
    let metadata = path.unwrap().info().metadata.clone();
    assert_eq!(metadata.latency, [None]);
    assert_eq!(metadata.bandwidth, [None]);
    assert_eq!(metadata.geo, [None, None]);
    assert_eq!(metadata.link_types, [LinkType::Unset]);
    assert!(metadata.notes.is_empty());
}

#[test]
fn announced_services_are_read() {
    let services = |control: &[&str]| pb::DiscoveryInformation {
        control_service_addresses: control.iter().map(|&address| address.into()).collect(),
        ..Default::default()
    };
    let path = converted(|path| {
        let (here, nonsense) = (1 << 48 | 0x110, 1 << 48 | 0x111);
        let announced = services(&["10.0.1.253:30252", "somewhere"]);
        path.discovery_information.insert(here, announced);
        path.discovery_information
            .insert(nonsense, services(&["nowhere"]));
    });
    let discovery = path.unwrap().info().metadata.discovery.clone();
    let (isd_as, services) = discovery.first_key_value().unwrap();
    assert_eq!((isd_as.to_string().as_str(), discovery.len()), ("1-272", 1));
    let expected = ["10.0.1.253:30252".parse().unwrap()];
    assert_eq!(services.control_services, expected);
    assert!(services.discovery_services.is_empty());
}

#[test]
fn the_expiry_of_the_hop_fields_counts() {
    // 4096 and 256 units of 337.5 s.
    let carried = 4096 + 86_400;
    let announced = |seconds| {
        converted(|path| {
            path.expiration = Some(Timestamp {
                seconds,
                ..Default::default()
            })
        })
    };
    assert_eq!(announced(i64::MAX).unwrap().expiry(), carried);
    assert_eq!(announced(1).unwrap().expiry(), 1);
    assert_eq!(announced(-1).unwrap_err(), "a path has no expiry");
}

#[test]
fn contradictions_are_refused() {
    type Change = fn(&mut pb::Path);
    let cases: [(Change, &str); 9] = [
        (|path| path.mtu = 0, "MTU 0"),
        (|path| path.raw.clear(), "data-plane bytes are malformed"),
        (|path| path.raw.truncate(35), "cut short"),
        (|path| path.interfaces[0].id = 9, "are not those of"),
        (
            |path| path.interfaces[0].id = 0x1_0007,
            "65543 is not an interface id",
        ),
        (|path| path.interfaces[0].isd_as = 1, "broken at"),
        (|path| path.interfaces.truncate(1), "odd number"),
        (|path| path.interface = None, "no border router"),
        (
            |path| path.interface = Some(router_at("router:1")),
            "`router:1`",
        ),
    ];
    for (change, expected) in cases {
        let fault = converted(change).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn ranges_and_routers_are_checked() {
    let ports = |start, end| {
        port_range(pb::PortRangeResponse {
            dispatched_port_start: start,
            dispatched_port_end: end,
        })
    };
    assert_eq!(ports(31000, 32767), Ok(31000..=32767));
    assert_eq!(ports(2, 1), Err("2 to 1 is not a port range".into()));
    assert_eq!(
        ports(1, 65536),
        Err("1 to 65536 is not a port range".into())
    );
    let routers = |id| {
        interfaces(pb::InterfacesResponse {
            interfaces: [(id, router_at("[fd00::1]:30042"))].into(),
        })
    };
    assert_eq!(routers(3).unwrap()[&3], "[fd00::1]:30042".parse().unwrap());
    assert_eq!(
        routers(0),
        Err("0 is not an interface id: ids are 1 to 65535".into())
    );
    assert_eq!(
        mtu(100_000),
        Ok(65535),
        "more than there can be is as much as there can be"
    );
}

proptest! {
    /// Messages that decode as a path: a valid one with some bytes changed.
    #[test]
    fn changed_messages_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        to_itself: bool,
    ) {
        let (src, dst) = ends();
        let mut bytes = offered().encode_to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(message) = pb::Path::decode(bytes.as_slice()) {
            let _ = path(src, if to_itself { src } else { dst }, message);
        }
    }

    #[test]
    fn path_headers_do_not_panic(raw: Vec<u8>, seconds: i64, nanos: i32, mtu: u32, id: u64) {
        let _ = converted(|path| {
            path.raw = raw;
            path.latency[0].seconds = seconds;
            path.latency[0].nanos = nanos;
            path.mtu = mtu;
            path.interfaces[1].id = id;
        });
    }
}

/// Answers of scionproto's daemon, see `tests/recorded/README.md`.
macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/recorded/", $name, ".bin")).as_slice()
    };
}

#[test]
fn answers_of_scionprotos_daemon_are_read() {
    let routers = pb::InterfacesResponse::decode(recorded!("fig7a-interfaces"));
    let routers = interfaces(routers.unwrap()).unwrap();
    assert_eq!(routers[&1].to_string(), "127.0.0.73:31042");
    assert_eq!(routers[&2].to_string(), "127.0.0.74:31044");
    let ports = pb::PortRangeResponse::decode(recorded!("fig7a-port-range"));
    assert_eq!(port_range(ports.unwrap()), Ok(31000..=32767));
    let local = pb::ASResponse::decode(recorded!("fig7a-as")).unwrap();
    assert_eq!(IsdAsn::from_u64(local.isd_as).to_string(), "1-ff00:0:7");
    assert_eq!((mtu(local.mtu), local.core), (Ok(1472), true));
    let routers = pb::InterfacesResponse::decode(recorded!("tiny-interfaces"));
    let routers = interfaces(routers.unwrap()).unwrap();
    assert_eq!(routers[&1].to_string(), "[fd00:f00d:cafe::7f00:9]:31012");
}

#[test]
fn the_paths_of_scionprotos_daemon_are_valid() {
    let (src, dst) = ("1-ff00:0:7".parse().unwrap(), "1-ff00:0:5".parse().unwrap());
    let answer = pb::PathsResponse::decode(recorded!("fig7a-paths")).unwrap();
    let paths = answer.paths.into_iter().map(|each| path(src, dst, each));
    let paths: Vec<Path> = paths.collect::<Result<_, _>>().unwrap();
    let mut shown: Vec<String> = paths.iter().map(|path| path.info().to_string()).collect();
    shown.sort_by_key(String::len);
    assert_eq!(
        shown,
        [
            "1-ff00:0:7 1>2 1-ff00:0:6 1>2 1-ff00:0:5",
            "1-ff00:0:7 2>3 1-ff00:0:4 1>2 1-ff00:0:2 1>1 1-ff00:0:1 2>1 1-ff00:0:5",
            "1-ff00:0:7 2>3 1-ff00:0:4 2>2 1-ff00:0:3 1>3 1-ff00:0:2 1>1 1-ff00:0:1 2>1 1-ff00:0:5",
        ]
    );
    for path in &paths {
        assert_eq!(path.mtu(), 1472);
        let metadata = &path.info().metadata;
        // The daemon announces no latency and no bandwidth there.
        assert_eq!(path.info().latency(), None);
        assert!(metadata.bandwidth.iter().all(Option::is_none));
        assert_eq!(metadata.notes.len(), path.info().hops());
    }
}

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// A file with all that scionproto allows: several routers, zones, ports without an address, keys
/// that are not used here, BFD with some values left out.
const FULL: &str = r#"{
  "timestamp": 1, "timestamp_human": "then", "isd_as": "2-ff00:0:311", "mtu": 1472,
  "dispatched_ports": "1024-65535", "attributes": ["voting", ""],
  "border_routers": {
    "br-a": { "internal_addr": "10.9.0.1:30001", "interfaces": {
      "1": { "underlay": {"local": "192.0.2.1:4000", "remote": "192.0.2.2:4001"},
             "isd_as": "2-ff00:0:312", "link_to": "PARENT", "mtu": 1400,
             "bfd": {"detect_mult": 10, "desired_min_tx_interval": "10ms"} },
      "8": { "underlay": {"provider": "udpip", "local": ":4000", "remote": "[2001:db8::2]:4001"},
             "isd_as": "2-ff00:0:313", "link_to": "peer", "mtu": 9000,
             "remote_interface_id": 7, "bfd": {"disable": true} },
      "9": { "isd_as": "2-ff00:0:314", "link_to": "Child" } } },
    "br-b": { "internal_addr": "[fe80::7%no-such-device]:30002", "interfaces": {
      "11": { "underlay": {"public": "[fe80::1%lo]:1", "remote": "[fe80::2%3]:2"},
              "isd_as": "2-ff00:0:315", "link_to": "CHILD", "mtu": 1472 } } }
  },
  "control_service": {"cs-1": {"addr": "127.0.0.67:30073"}},
  "discovery_service": {"ds-1": {"addr": "[2001:db8::3]:30074"}},
  "hidden_segment_lookup_service": {"cs-1": {"addr": "127.0.0.67:30073"}},
  "sigs": {"sig-1": {"ctrl_addr": "127.0.0.82:30100", "data_addr": "127.0.0.82:30101"}}
}"#;

fn read(text: &str) -> Result<AsTopology, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn all_formats_of_scionproto_are_read() {
    let topology = read(FULL).unwrap();
    assert!(!topology.core);
    assert_eq!(topology.dispatched_ports, (1024, 65535));
    assert_eq!(topology.control_service["cs-1"], at("127.0.0.67:30073"));
    assert_eq!(
        topology.discovery_service["ds-1"],
        at("[2001:db8::3]:30074")
    );
    let [a, b] = ["br-a", "br-b"].map(|name| &topology.border_routers[name]);
    let one = &a.interfaces[&1];
    assert_eq!((one.link_to, one.mtu), (LinkTo::Parent, 1400));
    assert_eq!(
        one.bfd,
        Bfd {
            detect_mult: 10,
            desired_min_tx: Duration::from_millis(10),
            ..Bfd::default()
        }
    );
    let eight = &a.interfaces[&8];
    assert_eq!(
        (eight.underlay.local, eight.remote_id),
        (at("[::]:4000"), 7)
    );
    assert!(eight.bfd.disable && eight.link_to == LinkTo::Peer);
    let nine = &a.interfaces[&9];
    assert_eq!(
        (nine.underlay.local, nine.underlay.remote),
        (at("0.0.0.0:0"), at("0.0.0.0:0"))
    );
    assert_eq!(nine.bfd, Bfd::default());
    assert_eq!(b.internal_addr, at("[fe80::7]:30002"));
    let eleven = &b.interfaces[&11];
    assert_eq!(eleven.underlay.remote, at("[fe80::2%3]:2"));
    // The loopback device is always the first.
    assert_eq!(eleven.underlay.local, at("[fe80::1%1]:1"));
}

#[test]
fn written_topologies_are_read_back() {
    let topology = read(FULL).unwrap();
    let text = serde_json::to_string(&topology).unwrap();
    assert_eq!(read(&text).unwrap(), topology);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let bfd = &json["border_routers"]["br-a"]["interfaces"]["1"]["bfd"];
    assert_eq!(bfd["desired_min_tx_interval"], "10ms");
    assert_eq!(bfd["detect_mult"], 10);
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    read(&format!(
        r#"{{"isd_as": "1-1", "mtu": 1400, "dispatched_ports": {text:?}}}"#
    ))
    .map(|topology| topology.dispatched_ports)
}

#[test]
fn port_ranges_are_read_like_scionproto() {
    let absent = read(r#"{"isd_as": "1-1", "mtu": 1400}"#).unwrap();
    assert_eq!(absent.dispatched_ports, (0, 0));
    assert_eq!(ports("-"), Ok((0, 0)));
    assert_eq!(ports("all"), Ok((1, 65535)));
    assert_eq!(ports("31000-32767"), Ok((31000, 32767)));
    for wrong in ["0-5", "9-8", "1-65536", "7", "some"] {
        assert!(ports(wrong).unwrap_err().contains(wrong));
    }
    for range in [(0, 0), (1, 65535), (7, 9)] {
        let topology = AsTopology {
            dispatched_ports: range,
            ..absent.clone()
        };
        let text = serde_json::to_string(&topology).unwrap();
        assert_eq!(read(&text).unwrap().dispatched_ports, range);
    }
}

#[test]
fn errors_name_the_wrong_entry() {
    for (from, to, words) in [
        ("\"11\":", "\"8\":", "interface 8 is in border router br-b"),
        (
            "PARENT",
            "UNCLE",
            "border router br-a: interface 1: link_to \"UNCLE\"",
        ),
        ("10ms", "10 ms", "\"10 ms\" is not a duration"),
        ("udpip", "carrier pigeon", "only udpip is"),
        ("127.0.0.67:30073", "127.0.0.67", "service cs-1"),
    ] {
        let error = read(&FULL.replace(from, to)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

proptest! {
    #[test]
    fn written_durations_are_read_back(nanos: u64) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(duration::parse(&duration::format(duration)), Ok(duration));
    }

    #[test]
    fn parsing_any_text_never_panics(text in "\\PC{0,30}") {
        let _ = duration::parse(&text);
        let _ = ports(&text);
        // Text without a dot or colon causes no DNS lookup.
        let _ = address::parse_local(&format!(":{text}"), at("0.0.0.0:0"));
        let _ = address::parse(&format!("[fe80::1%{text}]:1"));
    }
}

#[test]
fn wildcards_are_not_ases() {
    for (own, neighbour, wrong) in [
        ("1-0", "1-ff00:0:111", "1-0"),
        ("0-0", "1-ff00:0:111", "0-0"),
        ("1-ff00:0:110", "0-ff00:0:111", "0-ff00:0:111"),
    ] {
        let text = format!(
            r#"{{"isd_as": "{own}", "border_routers": {{"br": {{
                "internal_addr": "10.0.0.1:30042",
                "interfaces": {{"1": {{"isd_as": "{neighbour}", "link_to": "CHILD"}}}}}}}}}}"#
        );
        let error = serde_json::from_str::<AsTopology>(&text).unwrap_err();
        let expected = format!("isd_as {wrong} is not one AS");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

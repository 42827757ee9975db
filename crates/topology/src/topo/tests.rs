use std::time::Duration;

use super::*;

fn network(links: &str) -> Result<Network, String> {
    parse(&format!(
        "ASes:\n  \"1-ff00:0:110\": {{core: true}}\n  \"1-ff00:0:111\": {{cert_issuer: 1-ff00:0:110}}\nlinks:\n{links}"
    ))
}

#[test]
fn all_keys_of_a_link_are_read() {
    let network = network(
        "  - {a: \"1-ff00:0:110-A#1\", b: \"1-ff00:0:111#41\", linkAtoB: CHILD, mtu: 1400, \
         rate: 10mbit, delay: 20ms, jitter: 2ms, loss: 0.1%, queue: 30ms}\n",
    )
    .unwrap();
    let link = &network.links[0];
    assert_eq!(link.a.to_string(), "1-ff00:0:110-A#1");
    assert_eq!(link.b.id, 41);
    assert_eq!(link.mtu, 1400);
    assert_eq!(
        link.shape,
        Shape {
            rate: Some(10_000_000),
            delay: Duration::from_millis(20),
            jitter: Duration::from_millis(2),
            loss: 0.001,
            queue: Duration::from_millis(30),
        }
    );
    assert_eq!(network.ases[0].mtu, DEFAULT_MTU);
}

#[test]
fn routers_are_in_the_order_of_the_links() {
    let network = network(
        "  - {a: \"1-ff00:0:110-B#7\", b: \"1-ff00:0:111#1\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110-A#2\", b: \"1-ff00:0:111#3\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110-B#3\", b: \"1-ff00:0:111#4\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110#4\", b: \"1-ff00:0:111#5\", linkAtoB: CHILD}\n",
    )
    .unwrap();
    let routers = |isd_as: &str| network.routers(isd_as.parse().unwrap());
    assert_eq!(routers("1-ff00:0:110"), ["B", "", "A"]);
    // Ends without a router name share one router.
    assert_eq!(routers("1-ff00:0:111"), [""]);
    assert!(routers("1-ff00:0:999").is_empty());
}

#[test]
fn all_keys_of_ases_and_links_are_read() {
    let network = parse(
        r#"
defaults: {mtu: 1400, dispatched_ports: "all"}
ASes:
  "1-ff00:0:110": {core: true, voting: true, authoritative: true, issuing: true, underlay: UDP/IPv6}
  "1-ff00:0:111": {cert_issuer: 1-ff00:0:110, mtu: 1300, dispatched_ports: "-", control_servers: 2, test_dispatcher: false}
  "1-ff00:0:112": {dispatched_ports: "1024-65535", underlay: UDP/IPv4}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: child, bw: 500, underlay: UDP/IPv6}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:112#1", linkAtoB: CHILD, mtu: 1280}
"#,
    )
    .unwrap();
    let [core, first, second] = &network.ases[..] else {
        panic!("{network:?}");
    };
    assert!(core.core && core.voting && core.authoritative && core.issuing);
    assert_eq!((core.underlay, core.mtu), (Underlay::Ipv6, 1400));
    assert_eq!(core.dispatched_ports, (1, 65535));
    assert!(!first.voting && !first.authoritative && !first.issuing);
    assert_eq!(first.cert_issuer, Some(core.isd_as));
    assert_eq!((first.mtu, first.dispatched_ports), (1300, (0, 0)));
    assert_eq!(
        (second.cert_issuer, second.underlay),
        (None, Underlay::Ipv4)
    );
    assert_eq!(second.dispatched_ports, (1024, 65535));
    let [wide, narrow] = &network.links[..] else {
        panic!("{network:?}");
    };
    assert_eq!((wide.underlay, wide.mtu), (Underlay::Ipv6, 1400));
    assert_eq!(wide.kind, LinkKind::Child);
    assert_eq!(wide.shape, Shape::default());
    assert_eq!((narrow.underlay, narrow.mtu), (Underlay::Ipv4, 1280));

    let text = serde_json::to_string(&network).unwrap();
    assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
}

#[test]
fn ends_without_a_number_get_the_lowest_free_one() {
    let network = network(
        "  - {a: \"1-ff00:0:110\", b: \"1-ff00:0:111-A\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#1\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110\", b: \"1-ff00:0:111#3\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110\", b: \"1-ff00:0:111\", linkAtoB: CHILD}\n",
    )
    .unwrap();
    let numbers: Vec<_> = network.links.iter().map(|l| (l.a.id, l.b.id)).collect();
    // Numbers that occur later in the file are not assigned to earlier ends.
    assert_eq!(numbers, [(2, 2), (1, 1), (3, 3), (4, 4)]);
    assert_eq!(network.links[0].b.router, "A");
}

#[test]
fn too_many_interfaces_are_refused() {
    let mut numbers = Numbers::default();
    let end = RawEnd::parse("1-ff00:0:110").unwrap();
    for id in 1..=u16::MAX {
        assert_eq!(numbers.number(end.clone()).unwrap().id, id);
    }
    let error = numbers.number(end).unwrap_err();
    assert!(error.contains("1-ff00:0:110"), "{error}");
}

#[test]
fn errors_name_the_wrong_part() {
    let cases = [
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:999#1\", linkAtoB: CHILD}\n",
            "1-ff00:0:999",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#1\", linkAtoB: CHILD}\n  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD}\n",
            "1-ff00:0:110#1",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#1\", linkAtoB: CHILD, colour: red}\n",
            "colour",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:110#2\", linkAtoB: CORE}\n",
            "itself",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: CORE}\n",
            "core: true",
        ),
        (
            "  - {a: \"1-ff00:0:111#1\", b: \"1-ff00:0:110#2\", linkAtoB: CHILD}\n",
            "child",
        ),
        (
            "  - {a: \"1-ff00:0:110#0\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD}\n",
            "not an interface",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: UNCLE}\n",
            "UNCLE",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD, underlay: UDP/IPv5}\n",
            "UDP/IPv5",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD, rate: fast}\n",
            "\"fast\" is not a rate",
        ),
        (
            "  - {a: \"1-ff00:0:110#1\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD, mtu: 100}\n",
            "too small",
        ),
    ];
    for (links, expected) in cases {
        let error = network(links).unwrap_err();
        assert!(error.contains(expected), "{links}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn unknown_keys_are_refused_everywhere() {
    for text in [
        "ASes: {\"1-ff00:0:110\": {colour: red}}\n",
        "ASes: {\"1-ff00:0:110\": {core: true}}\ncolours: []\n",
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains("colour"), "{error}");
    }
    assert_eq!(parse("ASes: {}\n"), Err("it lists no ASes".to_owned()));
    assert!(parse("\u{0}: [").is_err());
    assert!(parse("ASes: {\"1-0\": {}}\n").is_err());
}

#[test]
fn invalid_keys_of_ases_are_refused() {
    for (key, expected) in [
        ("cert_issuer: 1-ff00:0:999", "1-ff00:0:999"),
        // This AS exists, but belongs to another ISD.
        ("cert_issuer: 2-ff00:0:210", "of its ISD"),
        ("cert_issuer: someone", "\"someone\" is not an ISD-AS"),
        ("underlay: carrier pigeon", "UDP/IPv6"),
        ("dispatched_ports: \"2-1\"", "\"2-1\""),
        ("dispatched_ports: \"0-7\"", "\"0-7\""),
        ("dispatched_ports: \"some\"", "31000-32767"),
    ] {
        let text = format!(
            "ASes: {{\"1-ff00:0:111\": {{{key}}}, \"1-ff00:0:112\": {{}}, \"2-ff00:0:210\": {{issuing: true}}}}\n"
        );
        let error = parse(&text).unwrap_err();
        assert!(error.contains(expected), "{key}: {error}");
    }
}

#[test]
fn networks_are_read_back_from_json() {
    let network = Network::ready("fig7a").unwrap();
    let text = serde_json::to_string(&network).unwrap();
    assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
}

proptest::proptest! {
    #[test]
    fn parsing_any_text_never_panics(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn parsing_any_end_never_panics(text in "[0-9a-fA-F:#-]{0,30}") {
        if let Ok(end) = RawEnd::parse(&text) {
            proptest::prop_assert!(end.id != Some(0));
        }
    }
}

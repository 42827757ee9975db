use super::*;
use std::time::Duration;

fn network(links: &str) -> Result<Network, TopologyError> {
    parse(&format!(
        "ASes:\n  \"1-ff00:0:110\": {{core: true}}\n  \"1-ff00:0:111\": {{cert_issuer: 1-ff00:0:110}}\nlinks:\n{links}"
    ))
}

#[test]
fn a_link_with_everything() {
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
fn border_routers_are_told_apart() {
    let spread = network(
        "  - {a: \"1-ff00:0:110-A#1\", b: \"1-ff00:0:111-A#1\", linkAtoB: CHILD}\n  \
         - {a: \"1-ff00:0:110-B#2\", b: \"1-ff00:0:111-A#2\", linkAtoB: CHILD}\n",
    )
    .unwrap();
    let several: Vec<_> = spread.with_several_routers().collect();
    assert_eq!(several, ["1-ff00:0:110".parse().unwrap()]);
}

#[test]
fn each_fault_names_the_thing() {
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
            "  - {a: \"1-ff00:0:110\", b: \"1-ff00:0:111#2\", linkAtoB: CHILD}\n",
            "not an interface",
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
        let error = network(links).unwrap_err().to_string();
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
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("colour"), "{error}");
    }
    assert!(matches!(parse("ASes: {}\n"), Err(TopologyError::Empty)));
    assert!(parse("\u{0}: [").is_err());
    assert!(parse("ASes: {\"1-0\": {}}\n").is_err());
}

#[test]
fn json_keeps_the_network() {
    let network = Network::ready("fig7a").unwrap();
    let text = serde_json::to_string(&network).unwrap();
    assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn any_end_is_read_or_refused(text in "[0-9a-fA-F:#-]{0,30}") {
        if let Ok(end) = read_end(&text) {
            proptest::prop_assert!(end.id != 0);
        }
    }
}

use proptest::prelude::*;

use super::*;

const V1: &str = "c12fe1c06bba254a9dc9f519b335aa7c1367a88a";

fn parse(text: &str) -> Magnet {
    text.parse().unwrap()
}

fn link(parameters: &str) -> Magnet {
    parse(&format!("magnet:?xt=urn:btih:{V1}&{parameters}"))
}

#[test]
fn info_hashes_are_read_in_all_forms() {
    let expected = link("").info_hashes;
    assert_eq!(expected.v1.map(|v1| HEXLOWER.encode(&v1)).unwrap(), V1);
    let base32 = BASE32.encode(&expected.v1.unwrap());
    for text in [
        format!("magnet:?xt=urn:btih:{}", V1.to_ascii_uppercase()),
        format!("MAGNET:?XT=URN:BTIH:{base32}"),
        format!("magnet:?xt=urn:btih:{}", base32.to_ascii_lowercase()),
        format!(" magnet:?dn=a&xt.1=urn%3Abtih%3A{V1}\n"),
        format!("magnet:?xt=urn:ed2k:31d6cfe0d16ae931b73c59d7e0c089c0&amp;xt=urn:btih:{V1}"),
        format!("magnet:?xt=urn:btih:{V1}&xt=urn:btih:{base32}"),
    ] {
        assert_eq!(parse(&text).info_hashes, expected, "{text}");
    }
    let v2 = "caf1e1c30e81cb361b9ee167c4aa64228a7fa4fa9f6105232b28ad099f3a302e";
    let hybrid = link(&format!("xt=urn:btmh:1220{v2}")).info_hashes;
    assert_eq!(hybrid.v1, expected.v1);
    assert_eq!(hybrid.v2.map(|hash| HEXLOWER.encode(&hash)).unwrap(), v2);
    let only = parse(&format!("magnet:?xt=urn:btmh:1220{v2}")).info_hashes;
    assert_eq!((only.v1, only.v2), (None, hybrid.v2));
}

#[test]
fn parameters_are_read() {
    let magnet = link(
        "dn=a+file%2B%0A%c3%bc&tr.1=udp%3A%2F%2Fone%3A1&tr=http://two/announce&tr=&tr=%ff\
         &tr.22=http://two/announce&ws=http://seed/&xs=http://a/b.torrent&xl=5&x.pe=10.0.0.1:6881\
         &x.pe=1-ff00%3A0%3A110%2C10.0.0.1%3A6881&x.pe=[::1]:7&x.pe=peer.example:9&x.pe=10.0.0.1\
         &x.pe=1.2.3.4.5:9&x.pe=a:0&x.pe=a%20b:1&so=1,3&so=2&novalue&=",
    );
    assert_eq!(magnet.name.as_deref(), Some("a file+ü"));
    assert_eq!(magnet.trackers, ["udp://one:1", "http://two/announce"]);
    assert_eq!(magnet.web_seeds, ["http://seed/"]);
    assert_eq!(magnet.exact_sources, ["http://a/b.torrent"]);
    let peers: Vec<_> = magnet.peers.iter().map(MagnetPeer::to_string).collect();
    let expected = [
        "10.0.0.1:6881",
        "1-ff00:0:110,10.0.0.1:6881",
        "[::1]:7",
        "peer.example:9",
    ];
    assert_eq!(peers, expected);
    assert!(matches!(magnet.peers[3], MagnetPeer::Name(_)));
    assert_eq!(magnet.files.ranges(), [1..=3]);
    assert_eq!(parse(&magnet.to_string()), magnet);
}

#[test]
fn it_prints_what_other_programs_read() {
    let magnet = Magnet {
        name: Some("two words & more".into()),
        trackers: vec!["udp://tracker:80/a?b=c".into()],
        peers: vec![MagnetPeer::Addr(
            "1-ff00:0:110,10.0.0.1:6881".parse().unwrap(),
        )],
        ..link("so=4-6")
    };
    let expected = format!(
        "magnet:?xt=urn:btih:{V1}&dn=two%20words%20%26%20more\
         &tr=udp%3A%2F%2Ftracker%3A80%2Fa%3Fb%3Dc&x.pe=1-ff00:0:110,10.0.0.1:6881&so=4-6"
    );
    assert_eq!(magnet.to_string(), expected);
}

#[test]
fn errors_name_the_fault_in_one_line() {
    let two = V1.replace('c', "d");
    for (text, hint) in [
        ("http://example", "`http://example` is not a magnet link"),
        ("", "`` is not a magnet link"),
        ("magnet:?dn=a", "names no torrent"),
        ("magnet:?xt=urn:btih:", "`urn:btih:` is not an info-hash"),
        ("magnet:?xt=urn:btih:0%0a1", "names no torrent"),
        ("magnet:?xt=urn:btmh:1120abcd", "urn:btmh:1220 has 64"),
        ("magnet:?xt=urn:btmh:1220abcd", "`urn:btmh:1220abcd` is not"),
        (
            &format!("magnet:?xt=urn:btih:{V1}&xt=urn:btih:{two}"),
            "two torrents",
        ),
        (
            &format!("magnet:?xt=urn:btih:{V1}&x.pe=1-0,10.0.0.1:1"),
            "`1-0,10.0.0.1:1` is not a SCION peer",
        ),
        (
            &format!("magnet:?xt=urn:btih:{V1}&so=2-1"),
            "`2-1` does not select files",
        ),
        ("\u{1b}\n\u{7}magnet", r"`\u{1b}\n\u{7}magnet`"),
        (&"x".repeat(100), "x…` is not"),
        (
            &format!("magnet:?{}", "x".repeat(MAX_LINK_BYTES)),
            "65544 bytes",
        ),
    ] {
        let error = text.parse::<Magnet>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_link_with_very_many_trackers_keeps_some() {
    let trackers: Vec<_> = (0..1000).map(|n| format!("tr=udp://t{n}:1")).collect();
    let magnet = link(&trackers.join("&"));
    assert_eq!(magnet.trackers.len(), MAX_EACH);
    assert_eq!(magnet.trackers[0], "udp://t0:1");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "(magnet:\\?xt=urn:btih:)?\\PC*") {
        let _ = text.parse::<Magnet>();
    }

    #[test]
    fn it_parses_what_it_prints(
        v1: Option<[u8; 20]>,
        v2: [u8; 32],
        name in prop::option::of("\\PC{1,20}"),
        urls in prop::collection::btree_set("\\PC{1,30}", 0..5),
        hosts in prop::collection::btree_set("[a-z][a-z0-9.-]{0,9}:[1-9][0-9]{0,3}", 0..3),
        ip: [u8; 16],
        files in prop::collection::vec((0..1000u32, 0..1000u32), 0..5),
    ) {
        let urls: Vec<_> = urls.into_iter().filter(|url| !url.contains(char::is_control)).collect();
        let name = name.filter(|name| !name.contains(char::is_control));
        let mut peers: Vec<_> = hosts.into_iter().map(MagnetPeer::Name).collect();
        let addr = PeerAddr::from(std::net::SocketAddr::new(ip.into(), 6881));
        let is_reachable = addr.to_string().parse::<PeerAddr>().is_ok();
        peers.extend(is_reachable.then_some(MagnetPeer::Addr(addr)));
        let magnet = Magnet {
            info_hashes: InfoHashes { v1, v2: Some(v2) },
            name,
            trackers: urls.clone(),
            web_seeds: urls.iter().rev().cloned().collect(),
            exact_sources: urls,
            peers,
            files: files.iter().map(|(first, more)| *first..=first + more).collect(),
        };
        prop_assert_eq!(magnet.to_string().parse(), Ok(magnet));
    }
}

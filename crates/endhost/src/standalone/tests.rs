use hawser_proto::Message;
use hawser_proto::control_plane::SegmentsResponse;
use hawser_proto::daemon::PathsResponse;
use proptest::prelude::*;

use super::*;

fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

fn asked(src: &str, core: bool, dst: &str) -> Vec<String> {
    questions(isd_as(src), core, isd_as(dst))
        .iter()
        .map(|Question { src, dst }| format!("{src} {dst}"))
        .collect()
}

#[test]
fn all_kinds_of_segments_are_requested() {
    assert_eq!(
        asked("1-ff00:0:111", false, "2-ff00:0:222"),
        [
            "1-ff00:0:111 1-0",
            "1-0 2-0",
            "1-0 2-ff00:0:222",
            "2-0 2-ff00:0:222"
        ]
    );
    assert_eq!(
        asked("1-ff00:0:110", true, "2-ff00:0:222"),
        [
            "1-ff00:0:110 2-ff00:0:222",
            "1-ff00:0:110 2-0",
            "2-0 2-ff00:0:222"
        ]
    );
}

#[test]
fn no_request_is_repeated() {
    assert_eq!(
        asked("1-ff00:0:111", false, "1-ff00:0:112"),
        ["1-ff00:0:111 1-0", "1-0 1-0", "1-0 1-ff00:0:112"]
    );
}

#[test]
fn other_errors_have_precedence_over_refusals() {
    let service = || crate::service::Service::Control("127.0.0.1:1".into());
    let refused = SourceError::Refused {
        service: service(),
        question: "Segments",
        message: "no".into(),
    };
    let unreachable = SourceError::Unreachable(service());
    assert_eq!(more_telling(None, refused.clone()), refused);
    assert_eq!(
        more_telling(Some(refused.clone()), unreachable.clone()),
        unreachable
    );
    assert_eq!(
        more_telling(Some(unreachable.clone()), refused),
        unreachable
    );
}

#[test]
fn errors_name_the_missing_file_or_service() {
    let folder = std::env::temp_dir().join(format!("hawser-standalone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let error = || Standalone::open(&folder).err().unwrap().to_string();
    let missing = error();
    assert!(missing.contains("topology.json"), "{missing}");
    let file = folder.join("topology.json");
    std::fs::write(&file, r#"{"isd_as": "1-ff00:0:110", "mtu": 1472}"#).unwrap();
    let lonely = error();
    assert!(lonely.ends_with("add one to `control_service`"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// When the answers in `tests/recorded` were recorded, in seconds since the Unix epoch.
const RECORDED: u64 = 1_795_255_945;

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/recorded/", $name, ".bin")).as_slice()
    };
}

/// The paths made from the segments of scionproto's control service, and those of its daemon.
fn both(topology: &str, segments: &[&[u8]], dst: &str, daemon: &[u8]) -> (Vec<Path>, Vec<Path>) {
    let dst = isd_as(dst);
    let topology: AsTopology = serde_json::from_str(topology).unwrap();
    let src = topology.isd_as;
    let standalone = Standalone {
        topology: local_topology(&topology),
        control: ControlServices::new(&["127.0.0.1:1".parse().unwrap()], None)
            .unwrap()
            .into(),
        segments: SegmentCache::default(),
    };
    let mut questions = Vec::new();
    for (at, bytes) in segments.iter().enumerate() {
        let answer = SegmentsResponse::decode(*bytes).unwrap();
        // The request does not matter here.
        let question = Question {
            src: IsdAsn::from_u64(at as u64),
            dst,
        };
        standalone
            .segments
            .put(question, control::read(answer, |_, _| Ok(())).unwrap());
        questions.push(question);
    }
    let segments = standalone.segments.unexpired(&questions, RECORDED);
    let made = standalone.make(&segments, dst, RECORDED);
    let answer = PathsResponse::decode(daemon).unwrap();
    let offered = answer.paths.into_iter();
    let offered = offered.map(|path| crate::daemon::convert::path(src, dst, path).unwrap());
    let mut offered: Vec<Path> = offered.collect();
    // The daemon orders paths only by hops.
    offered.sort_by_key(|path| (path.info().hops(), path.fingerprint()));
    let mut made = made;
    made.sort_by_key(|path| (path.info().hops(), path.fingerprint()));
    (made, offered)
}

/// A `topology.json` with these routers: internal address, interface, neighbour.
fn topology(isd_as: &str, core: &str, routers: &[(&str, u16, &str)]) -> String {
    let routers: Vec<String> = routers
        .iter()
        .enumerate()
        .map(|(at, (internal, id, to))| {
            format!(
                r#""br{at}": {{"internal_addr": "{internal}", "interfaces": {{"{id}": {{
                    "underlay": {{"local": "127.0.0.1:50000", "remote": "127.0.0.2:50000"}},
                    "isd_as": "{to}", "link_to": "{core}", "mtu": 1472}}}}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"isd_as": "{isd_as}", "mtu": 1472, "border_routers": {{{}}}}}"#,
        routers.join(",")
    )
}

#[test]
fn core_segments_make_the_paths_of_scionprotos_daemon() {
    let routers = [
        ("127.0.0.73:31042", 1, "1-ff00:0:6"),
        ("127.0.0.74:31044", 2, "1-ff00:0:4"),
    ];
    let (made, offered) = both(
        &topology("1-ff00:0:7", "CORE", &routers),
        &[recorded!("fig7a-segments-0")],
        "1-ff00:0:5",
        recorded!("fig7a-paths"),
    );
    assert_eq!(made.len(), 3);
    assert_eq!(made, offered);
    assert_ne!(made[0].next_hop(), made[1].next_hop(), "two routers");
}

#[test]
fn up_and_down_segments_make_the_paths_of_scionprotos_daemon() {
    let routers = [("[fd00:f00d:cafe::7f00:9]:31012", 1, "1-ff00:0:110")];
    let (made, offered) = both(
        &topology("1-ff00:0:112", "PARENT", &routers),
        &[recorded!("tiny-segments-0"), recorded!("tiny-segments-1")],
        "1-ff00:0:111",
        recorded!("tiny-paths"),
    );
    assert_eq!(made.len(), 1);
    assert_eq!(made, offered);
    assert_eq!(made[0].mtu(), 1280);
}

#[test]
fn expired_segments_are_told_from_valid_ones() {
    let cache = SegmentCache::default();
    let question = Question {
        src: isd_as("1-0"),
        dst: isd_as("1-ff00:0:111"),
    };
    let answer = SegmentsResponse::decode(recorded!("tiny-segments-1")).unwrap();
    cache.put(question, control::read(answer, |_, _| Ok(())).unwrap());
    assert_eq!(cache.unexpired(&[question], RECORDED).down.len(), 1);
    assert_eq!(
        cache.unexpired(&[question, question], RECORDED).down.len(),
        1
    );
    let later = RECORDED + 24 * 3600;
    assert!(cache.unexpired(&[question], later).down.is_empty());
    assert_eq!(cache.all(&[question, question]).down.len(), 1);
    assert!(cache.has_any(&[question]));
}

proptest! {
    /// Reads the valid segments of any answer, without a panic.
    #[test]
    fn changed_answers_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = recorded!("fig7a-segments-0").to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(answer) = SegmentsResponse::decode(bytes.as_slice())
            && let Ok(found) = control::read(answer, |_, _| Ok(()))
        {
            let paths = combine(&found, isd_as("1-ff00:0:7"), isd_as("1-ff00:0:5"), MAX_PATHS);
            prop_assert!(paths.len() <= MAX_PATHS);
        }
    }
}

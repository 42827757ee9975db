use std::collections::BTreeMap;
use std::net::SocketAddr;

use proptest::prelude::*;
use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::access::Actor;
use crate::coordinator::{Coordinator, NewAttachmentPoint, NewCoreLink, NewLink, NewUserAs};
use crate::limits::Limits;

const POINTS: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
const USERS: [&str; 2] = ["1-ff00:0:1", "1-ff00:0:2"];

fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

/// Two attachment points with a link between them, and two user ASes with a link to each of them.
struct Bed {
    _folder: TempDir,
    coordinator: Coordinator,
}

impl Bed {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let bed = Self {
            _folder: folder,
            coordinator,
        };
        let program = Actor::program();
        for (at, point) in POINTS.into_iter().enumerate() {
            let new = point_with(point, &[&format!("10.0.0.{}", at + 1)]);
            bed.coordinator.add_attachment_point(&program, new).unwrap();
        }
        for (at, user) in USERS.into_iter().enumerate() {
            let new = user_with(user, &[&format!("10.0.1.{}", at + 1)]);
            bed.coordinator.add_user_as(&program, new).unwrap();
            for point in POINTS {
                bed.link(user, point, None).unwrap();
            }
        }
        let ends = POINTS.map(isd_as);
        let new = NewCoreLink::new(ends);
        bed.coordinator.add_core_link(&program, &new).unwrap();
        bed
    }

    fn link(&self, user: &str, point: &str, ip: Option<IpAddr>) -> Result<(), ChangeError> {
        let new = NewLink {
            attachment_point: isd_as(point),
            user_as: isd_as(user),
            ip,
            port: None,
            device: None,
            queue_us: None,
            delay_us: 0,
            jitter_us: 0,
            loss: 0.0,
            maximum: Limits::both(Some(10_000_000)),
            limit: Limits::default(),
        };
        let added = self.coordinator.add_link(&Actor::program(), new);
        added.map(drop)
    }

    fn move_user(&self, user: &str, addresses: &[&str]) -> Result<(), ChangeError> {
        let new = user_with(user, addresses);
        let changed = self.coordinator.change_user_as(&Actor::program(), new);
        changed.map(drop)
    }

    fn move_point(&self, point: &str, addresses: &[&str]) -> Result<(), ChangeError> {
        let new = point_with(point, addresses);
        let program = Actor::program();
        let changed = self.coordinator.change_attachment_point(&program, new);
        changed.map(drop)
    }

    /// All ends of links: the AS and its interface, and where it is.
    fn ends(&self) -> BTreeMap<(IsdAsn, u16), SocketAddr> {
        let state = self.coordinator.state();
        let links = state.links.values();
        let ends = links.flat_map(|link| [link.attachment_point, link.user_as]);
        let core = state.core_links.values().flat_map(|link| link.ends);
        ends.chain(core)
            .map(|end| {
                (
                    (end.isd_as, end.interface.unwrap()),
                    end.underlay().unwrap(),
                )
            })
            .collect()
    }

    fn versions(&self) -> BTreeMap<IsdAsn, u64> {
        let state = self.coordinator.state();
        let all = POINTS.into_iter().chain(USERS).map(isd_as);
        all.map(|one| (one, state.host(one).unwrap().version))
            .collect()
    }
}

fn point_with(point: &str, addresses: &[&str]) -> NewAttachmentPoint {
    let new = json!({"isd_as": point, "label": point, "addresses": addresses});
    serde_json::from_value(new).unwrap()
}

fn user_with(user: &str, addresses: &[&str]) -> NewUserAs {
    let new = json!({"isd_as": user, "label": user, "addresses": addresses});
    serde_json::from_value(new).unwrap()
}

#[test]
fn links_follow_a_user_as_and_only_its_neighbours_get_a_version() {
    let bed = Bed::new();
    let (ends, versions) = (bed.ends(), bed.versions());
    bed.move_user(USERS[0], &["10.0.1.9"]).unwrap();
    for (end, at) in bed.ends() {
        let before = ends[&end];
        let expected = match end.0 == isd_as(USERS[0]) {
            true => SocketAddr::new("10.0.1.9".parse().unwrap(), before.port()),
            false => before,
        };
        assert_eq!(at, expected, "{end:?}");
    }
    for (one, version) in bed.versions() {
        let stays = one == isd_as(USERS[1]);
        assert_eq!(version == versions[&one], stays, "{one}");
    }
}

#[test]
fn links_follow_an_attachment_point_also_those_to_others() {
    let bed = Bed::new();
    bed.move_point(POINTS[0], &["10.0.0.9", "fd00::1"]).unwrap();
    let ends = bed.ends();
    let own = ends.iter().filter(|(end, _)| end.0 == isd_as(POINTS[0]));
    let at: Vec<String> = own.map(|(_, at)| at.to_string()).collect();
    assert_eq!(at, ["10.0.0.9:50000", "10.0.0.9:50001", "10.0.0.9:50002"]);
}

#[test]
fn links_need_an_address_of_their_family() {
    let bed = Bed::new();
    let before = (bed.ends(), bed.versions());
    for addresses in [&[][..], &["fd00::1"]] {
        let error = bed.move_user(USERS[0], addresses).unwrap_err();
        assert!(matches!(error, ChangeError::Conflict(_)), "{error}");
        assert!(
            error.to_string().contains("another IPv4 address"),
            "{error}"
        );
    }
    assert_eq!((bed.ends(), bed.versions()), before);
}

#[test]
fn links_that_would_look_alike_are_refused_and_nothing_changes() {
    let bed = Bed::new();
    let before = (bed.ends(), bed.versions());
    // The other user AS is there, with the same UDP ports.
    let error = bed.move_user(USERS[0], &["10.0.1.2"]).unwrap_err();
    assert!(error.to_string().contains("would both have"), "{error}");
    // A link at an address of its own, with the first port.
    bed.link(USERS[0], POINTS[0], Some("10.0.1.8".parse().unwrap()))
        .unwrap();
    let error = bed.move_user(USERS[0], &["10.0.1.8"]).unwrap_err();
    assert!(error.to_string().contains("two links at"), "{error}");
    let ends = bed.ends();
    assert!(before.0.iter().all(|(end, at)| ends[end] == *at));
    // That link stays where it is when the AS moves elsewhere.
    bed.move_user(USERS[0], &["10.0.1.7"]).unwrap();
    let moved: Vec<SocketAddr> = bed.ends().into_values().collect();
    assert!(moved.contains(&"10.0.1.8:50000".parse().unwrap()));
    assert!(moved.contains(&"10.0.1.7:50000".parse().unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever moves where, ends keep their interfaces and ports, and no two ends are at one place.
    #[test]
    fn ends_are_always_told_apart(
        moves in prop::collection::vec((0_usize..4, 1_u8..6, any::<bool>()), 1..12)
    ) {
        let bed = Bed::new();
        let ports = |bed: &Bed| -> BTreeMap<(IsdAsn, u16), u16> {
            bed.ends().into_iter().map(|(end, at)| (end, at.port())).collect()
        };
        let before = ports(&bed);
        for (which, to, both) in moves {
            let v4 = format!("10.0.2.{to}");
            let addresses = match both {
                true => vec![v4.as_str(), "fd00::1"],
                false => vec![v4.as_str()],
            };
            let old = bed.ends();
            let moved = match which {
                0 | 1 => bed.move_point(POINTS[which], &addresses),
                _ => bed.move_user(USERS[which - 2], &addresses),
            };
            match moved {
                Err(ChangeError::Conflict(_)) => prop_assert_eq!(bed.ends(), old),
                moved => moved.unwrap(),
            }
            prop_assert_eq!(&ports(&bed), &before);
            let state = bed.coordinator.state();
            for link in state.links.values() {
                let same = state.links.values().filter(|other| {
                    other.attachment_point.isd_as == link.attachment_point.isd_as
                        && other.user_as.underlay() == link.user_as.underlay()
                });
                prop_assert_eq!(same.count(), 1);
            }
        }
    }
}

#[test]
fn a_machine_that_has_another_address_takes_its_links_with_it() {
    let bed = Bed::new();
    let (user, ip) = (USERS[0], |text: &str| -> IpAddr { text.parse().unwrap() });
    let report = |from: &str, to: &str| {
        let reported = bed
            .coordinator
            .report_address(isd_as(user), ip(from), ip(to));
        reported.map_err(|error| error.to_string())
    };
    let before = bed.ends();
    report("10.0.1.1", "10.0.7.7").unwrap();
    let after = bed.ends();
    for (end, at) in &after {
        match end.0 == isd_as(user) {
            true => assert_eq!((at.ip(), at.port()), (ip("10.0.7.7"), before[end].port())),
            false => assert_eq!(Some(at), before.get(end)),
        }
    }
    // The same again, as when the answer was lost, changes nothing.
    let state = bed.coordinator.state();
    report("10.0.1.1", "10.0.7.7").unwrap();
    assert_eq!(bed.coordinator.state().next.change, state.next.change);
    for (from, to, reason) in [
        (
            "10.0.1.1",
            "10.0.8.8",
            "is not an address of 1-ff00:0:1 but of a link alone",
        ),
        ("10.0.7.7", "fd00::1", "of another family"),
        ("10.0.7.7", "0.0.0.0", "is not the address of a router"),
    ] {
        let error = report(from, to).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(bed.ends(), after);
    // An attachment point, too.
    let point = isd_as(POINTS[0]);
    bed.coordinator
        .report_address(point, ip("10.0.0.1"), ip("10.0.9.9"))
        .unwrap();
    let of_point = bed.ends().into_iter().filter(|(end, _)| end.0 == point);
    for (end, at) in of_point {
        assert_eq!(at.ip(), ip("10.0.9.9"), "{end:?}");
    }
}

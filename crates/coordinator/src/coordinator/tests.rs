//! Changes of the state, by whom they may be made, and what of them survives.

use hawser_http::{Token, TokenHash};
use hawser_limit::{Direction, LinkCounters};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::limits::{LimitError, Limits};
use crate::link::Link;
use crate::user::{Role, User, UserId};

const MBIT: u64 = 1_000_000;

pub(crate) fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

pub(crate) fn attachment_point() -> IsdAsn {
    isd_as("1-ff00:0:110")
}

/// An attachment point and a user AS with a link of at most 10 Mbit/s.
pub(crate) fn network(coordinator: &Coordinator) -> LinkId {
    let program = Actor::program();
    let new = serde_json::json!({
        "isd_as": "1-ff00:0:110", "label": "Zurich", "addresses": ["10.0.0.1", "fd00::1"],
    });
    let new = serde_json::from_value(new).unwrap();
    coordinator.add_attachment_point(&program, new).unwrap();
    let new = serde_json::json!({
        "isd_as": "1-ff00:0:111", "label": "Lab", "addresses": ["10.0.0.2"],
    });
    let new = serde_json::from_value(new).unwrap();
    coordinator.add_user_as(&program, new).unwrap();
    add_link(coordinator, "1-ff00:0:111").unwrap().id
}

fn add_link(coordinator: &Coordinator, user_as: &str) -> Result<Link, ChangeError> {
    let new = NewLink {
        attachment_point: attachment_point(),
        user_as: isd_as(user_as),
        ip: None,
        port: None,
        device: None,
        queue_us: None,
        delay_us: 0,
        jitter_us: 0,
        loss: 0.0,
        maximum: Limits::both(Some(10 * MBIT)),
        limit: Limits::default(),
    };
    coordinator.add_link(&Actor::program(), new)
}

struct Bed {
    _folder: TempDir,
    coordinator: Coordinator,
    link: LinkId,
}

impl Bed {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let link = network(&coordinator);
        Self {
            _folder: folder,
            coordinator,
            link,
        }
    }

    fn user(&self, name: &str, role: Role) -> User {
        let added = self.coordinator.add_user(&Actor::program(), name, role);
        added.unwrap().0
    }

    /// Gives the AS at the far end of the link to a user.
    fn give_to(&self, owner: UserId) {
        let state = self.coordinator.state();
        let one = &state.user_ases[&isd_as("1-ff00:0:111")];
        let new = NewUserAs {
            isd_as: one.isd_as,
            owner: Some(owner),
            label: one.label.clone(),
            place: None,
            addresses: one.addresses.clone(),
            first_port: one.first_port,
        };
        self.coordinator
            .change_user_as(&Actor::program(), new)
            .unwrap();
    }

    fn set(&self, actor: &Actor, egress: Option<u64>) -> Result<Link, ChangeError> {
        self.coordinator
            .set_limit(actor, self.link, &[(Direction::Egress, egress)])
    }
}

#[test]
fn queues_of_links_are_kept_and_bounded() {
    let bed = Bed::new();
    let add = |queue_us: u64| {
        let new = serde_json::json!({
            "attachment_point": "1-ff00:0:110", "user_as": "1-ff00:0:111", "queue_us": queue_us,
        });
        let new = serde_json::from_value(new).unwrap();
        bed.coordinator.add_link(&Actor::program(), new)
    };
    let link = add(7_000).unwrap();
    let enforced = bed.coordinator.state().enforced(attachment_point());
    let queue = |id| {
        let of_it = enforced.iter().find(|one| one.link == id);
        of_it.unwrap().queue
    };
    assert_eq!(queue(link.id), Some(std::time::Duration::from_millis(7)));
    assert_eq!(queue(bed.link), None);
    let refused = add(3_600_000_001).unwrap_err().to_string();
    assert!(refused.contains("at most 3600000000"), "{refused}");
}

#[test]
fn a_user_sets_limits_of_the_own_links_up_to_the_maximum() {
    let bed = Bed::new();
    let (alice, bob) = (bed.user("alice", Role::User), bed.user("bob", Role::User));
    let eve = bed.user("eve", Role::Reader);
    bed.give_to(alice.id);
    let alice = Actor::of(&alice);
    assert_eq!(
        bed.set(&alice, Some(2 * MBIT)).unwrap().limit.egress,
        Some(2 * MBIT)
    );
    assert_eq!(bed.set(&alice, Some(0)).unwrap().wanted().egress, Some(0));
    let above = LimitError::AboveMaximum {
        direction: Direction::Egress,
        wanted: 11 * MBIT,
        maximum: 10 * MBIT,
    };
    assert_eq!(bed.set(&alice, Some(11 * MBIT)), Err(above.into()));
    let out = LimitError::OutOfBounds(7_999);
    assert_eq!(bed.set(&alice, Some(7_999)), Err(out.into()));
    assert_eq!(
        bed.set(&Actor::of(&bob), Some(MBIT)),
        Err(Denied::NotYourLink.into())
    );
    assert_eq!(
        bed.set(&Actor::of(&eve), Some(MBIT)),
        Err(Denied::OnlyReads.into())
    );
    // No own limit is as much as the maximum allows.
    assert_eq!(
        bed.set(&alice, None).unwrap().wanted().egress,
        Some(10 * MBIT)
    );
    let raised = [(Direction::Egress, Some(100 * MBIT))];
    let refused = bed.coordinator.set_maximum(&alice, bed.link, &raised);
    assert_eq!(refused, Err(Denied::NotAdmin.into()));
    let unknown = bed.coordinator.set_limit(&alice, LinkId(99), &[]);
    assert_eq!(unknown, Err(ChangeError::Unknown("link 99".into())));
}

#[test]
fn a_lowered_maximum_lowers_the_limit_and_both_are_recorded() {
    let bed = Bed::new();
    let program = Actor::program();
    bed.set(&program, Some(8 * MBIT)).unwrap();
    let lower = [
        (Direction::Egress, Some(5 * MBIT)),
        (Direction::Ingress, None),
    ];
    let link = bed
        .coordinator
        .set_maximum(&program, bed.link, &lower)
        .unwrap();
    assert_eq!(link.limit.egress, Some(5 * MBIT));
    assert_eq!(link.wanted().ingress, None);
    let page = bed.coordinator.changes(&program, None, 3, Some(bed.link));
    let page = page.unwrap();
    let what: Vec<_> = page
        .changes
        .iter()
        .map(|change| change.kind.clone())
        .collect();
    let (link, direction) = (bed.link, Direction::Egress);
    let (from, to) = (Some(8 * MBIT), Some(5 * MBIT));
    assert_eq!(
        what[0],
        ChangeKind::Limit {
            link,
            direction,
            from,
            to
        }
    );
    let (direction, from, to) = (Direction::Ingress, Some(10 * MBIT), None);
    assert_eq!(
        what[1],
        ChangeKind::Maximum {
            link,
            direction,
            from,
            to
        }
    );
    assert_eq!(page.changes[0].who, "hawser");
    let older = bed
        .coordinator
        .changes(&program, page.next, 100, Some(bed.link));
    let older = older.unwrap();
    assert_eq!(older.next, None);
    let newest = older.changes.first().unwrap().number;
    assert!(newest < page.changes.last().unwrap().number);
}

#[test]
fn changes_of_users_are_for_administrators() {
    let bed = Bed::new();
    let reader = Actor::of(&bed.user("eve", Role::Reader));
    let all = bed
        .coordinator
        .changes(&Actor::program(), None, 100, None)
        .unwrap();
    let seen = bed.coordinator.changes(&reader, None, 100, None).unwrap();
    assert_eq!(all.changes.len(), seen.changes.len() + 1);
    assert!(
        !seen
            .changes
            .iter()
            .any(|change| change.kind.is_about_users())
    );
}

#[test]
fn tokens_are_stored_hashed_replaced_and_revoked() {
    let folder = tempdir().unwrap();
    let program = Actor::program();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    network(&coordinator);
    let (admin, first) = coordinator.add_user(&program, "root", Role::Admin).unwrap();
    let second = coordinator
        .replace_token(&Actor::of(&admin), admin.id)
        .unwrap();
    let secret = Token::random().unwrap();
    let point = attachment_point();
    let since = coordinator.state().host(point).unwrap().trusted_since;
    coordinator
        .set_secret(&program, point, secret.hash(), since)
        .unwrap();
    assert_eq!(coordinator.user_of(first.reveal()), None);
    assert_eq!(coordinator.user_of(second.reveal()).unwrap().name, "root");
    assert!(coordinator.is_host(attachment_point(), secret.reveal()));
    assert!(!coordinator.is_host(attachment_point(), second.reveal()));
    assert!(
        coordinator
            .deployment(attachment_point())
            .last_seen
            .is_some()
    );
    drop(coordinator);
    let bytes = std::fs::read(store::file(folder.path())).unwrap();
    for token in [&first, &second, &secret] {
        let raw = token.reveal().as_bytes();
        assert!(!bytes.windows(raw.len()).any(|some| some == raw));
        let binary = TokenHash(token.reveal().parse::<TokenHash>().unwrap().0).0;
        assert!(!bytes.windows(32).any(|some| some == binary));
    }
    // The test looks in the right place: hashes are there.
    let hash = second.hash().to_string();
    assert!(bytes.windows(64).any(|some| some == hash.as_bytes()));

    let coordinator = Coordinator::open(folder.path()).unwrap();
    let refused = coordinator.revoke_token(&program, admin.id).unwrap_err();
    assert!(
        refused.to_string().contains("the last administrator"),
        "{refused}"
    );
    let (other, token) = coordinator
        .add_user(&program, "other", Role::Admin)
        .unwrap();
    coordinator.revoke_token(&program, other.id).unwrap();
    assert_eq!(coordinator.user_of(token.reveal()), None);
    coordinator.remove_user(&program, other.id).unwrap();
    let gone = coordinator.add_user(&Actor::of(&other), "more", Role::User);
    assert_eq!(gone.unwrap_err(), Denied::Removed.into());
}

#[test]
fn a_link_is_removed_as_what_it_is_only() {
    let bed = Bed::new();
    let program = Actor::program();
    let new = serde_json::json!({
        "isd_as": "1-ff00:0:120", "label": "Bern", "addresses": ["10.0.0.3"],
    });
    let new = serde_json::from_value(new).unwrap();
    bed.coordinator.add_attachment_point(&program, new).unwrap();
    let ends = [attachment_point(), isd_as("1-ff00:0:120")];
    let new = NewCoreLink::new(ends);
    let core = bed.coordinator.add_core_link(&program, &new).unwrap().id;
    let is_unknown = |result| matches!(result, Err(ChangeError::Unknown(_)));
    assert!(is_unknown(
        bed.coordinator.remove_core_link(&program, bed.link)
    ));
    assert!(is_unknown(bed.coordinator.remove_link(&program, core)));
    let state = bed.coordinator.state();
    assert!(state.links.contains_key(&bed.link) && state.core_links.contains_key(&core));
    bed.coordinator.remove_link(&program, bed.link).unwrap();
    bed.coordinator.remove_core_link(&program, core).unwrap();
    let state = bed.coordinator.state();
    assert!(state.links.is_empty() && state.core_links.is_empty());
}

#[test]
fn names_are_unique_and_readable() {
    let bed = Bed::new();
    bed.user("alice", Role::User);
    let long = "a".repeat(65);
    for name in [
        "alice",
        "Alice",
        "а1ice",
        "hawser",
        "Hawser",
        "",
        " a",
        "a\nb",
        "a\u{200b}b",
        &long,
    ] {
        let added = bed
            .coordinator
            .add_user(&Actor::program(), name, Role::User);
        assert!(added.is_err(), "{name:?}");
    }
}

#[test]
fn ends_of_links_are_chosen_and_told_apart() {
    let bed = Bed::new();
    let state = bed.coordinator.state();
    let link = &state.links[&bed.link];
    // IPv6 is only at one end.
    assert_eq!(
        link.attachment_point.underlay(),
        Some("10.0.0.1:50000".parse().unwrap())
    );
    assert_eq!(
        link.user_as.underlay(),
        Some("10.0.0.2:50000".parse().unwrap())
    );
    let second = add_link(&bed.coordinator, "1-ff00:0:111").unwrap();
    assert_eq!(second.attachment_point.interface, Some(2));
    assert_eq!(second.user_as.port, Some(50_001));

    let state = bed.coordinator.state();
    let enforced = state.enforced(attachment_point());
    assert_eq!(enforced.len(), 2);
    assert_eq!(enforced[1].port, Some(50_001));
    assert_eq!(enforced[1].limits, Limits::both(Some(10 * MBIT)));

    let new = serde_json::json!({
        "isd_as": "1-ff00:0:112", "label": "Far", "addresses": ["10.0.0.2"],
    });
    let new = serde_json::from_value(new).unwrap();
    bed.coordinator.add_user_as(&Actor::program(), new).unwrap();
    let refused = add_link(&bed.coordinator, "1-ff00:0:112").unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("link 1 has the address 10.0.0.2 too"),
        "{refused}"
    );
}

#[test]
fn links_by_address_alone_need_no_configured_ases() {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let program = Actor::program();
    let here = serde_json::json!({ "isd_as": "0-0", "label": "this machine" });
    let here = serde_json::from_value(here).unwrap();
    let there = serde_json::json!({ "isd_as": "0-1", "label": "AS 1" });
    let there = serde_json::from_value(there).unwrap();
    coordinator
        .add_all(&program, here, vec![there], Vec::new())
        .unwrap();
    let new = serde_json::json!({
        "attachment_point": "0-0", "user_as": "0-1", "ip": "fe80::1", "limit": { "egress": 500_000 },
    });
    coordinator
        .add_link(&program, serde_json::from_value(new.clone()).unwrap())
        .unwrap();
    let enforced = coordinator.state().enforced(IsdAsn::WILDCARD);
    assert_eq!(enforced[0].port, None);
    assert_eq!(
        enforced[0].limits,
        Limits {
            egress: Some(500_000),
            ingress: None
        }
    );
    assert!(
        coordinator
            .add_link(&program, serde_json::from_value(new).unwrap())
            .is_err()
    );
}

#[test]
fn thousands_of_links_are_added_at_once_or_not_at_all() {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let here = serde_json::json!({ "isd_as": "0-0", "label": "this machine" });
    let here: NewAttachmentPoint = serde_json::from_value(here).unwrap();
    let numbers = 1..=4000_u64;
    let far = |number: u64| serde_json::json!({ "isd_as": format!("0-{number}"), "label": "far" });
    let ases = numbers
        .clone()
        .map(|number| serde_json::from_value(far(number)).unwrap());
    let ases: Vec<NewUserAs> = ases.collect();
    let link = |number: u64| {
        let ip = format!("10.0.{}.{}", number / 200, number % 200 + 1);
        let link = serde_json::json!({
            "attachment_point": "0-0", "user_as": format!("0-{number}"), "ip": ip,
        });
        serde_json::from_value::<NewLink>(link).unwrap()
    };
    let mut links: Vec<NewLink> = numbers.map(link).collect();
    let program = Actor::program();
    links.push(link(1));
    let refused = coordinator.add_all(&program, here.clone(), ases.clone(), links.clone());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("link 1 has the address 10.0.0.2 too")
    );
    assert!(coordinator.state().attachment_points.is_empty());
    links.pop();
    coordinator.add_all(&program, here, ases, links).unwrap();
    let enforced = coordinator.state().enforced(IsdAsn::WILDCARD);
    assert_eq!(enforced.len(), 4000);
}

#[test]
fn versions_grow_where_the_configuration_differs() {
    let bed = Bed::new();
    let versions = || {
        let state = bed.coordinator.state();
        let of = |text| state.host(isd_as(text)).unwrap().version;
        (of("1-ff00:0:110"), of("1-ff00:0:111"))
    };
    let before = versions();
    bed.set(&Actor::program(), Some(MBIT)).unwrap();
    let limited = versions();
    assert!(
        limited.0 > before.0 && limited.1 == before.1,
        "{before:?} {limited:?}"
    );
    add_link(&bed.coordinator, "1-ff00:0:111").unwrap();
    let linked = versions();
    assert!(linked.0 > limited.0 && linked.1 > limited.1);
    bed.coordinator
        .report_deployed(attachment_point(), linked.0)
        .unwrap();
    bed.user("alice", Role::User);
    assert_eq!(versions(), linked);
    bed.coordinator
        .remove_attachment_point(&Actor::program(), attachment_point())
        .unwrap();
    let state = bed.coordinator.state();
    assert!(state.links.is_empty());
    assert!(state.host(isd_as("1-ff00:0:111")).unwrap().version > linked.1);
}

#[test]
fn what_machines_report_is_checked() {
    let bed = Bed::new();
    let of = |link| LinkUsage {
        link,
        egress: Some(LinkCounters::default()),
        ingress: None,
    };
    bed.coordinator
        .report_usage(attachment_point(), vec![of(bed.link), of(LinkId(99))]);
    bed.coordinator
        .report_usage(isd_as("1-ff00:0:111"), vec![of(bed.link)]);
    let usage = bed.coordinator.usage();
    assert_eq!(usage[&attachment_point()].1, [of(bed.link)]);
    assert!(usage[&isd_as("1-ff00:0:111")].1.is_empty());
    let ahead = bed.coordinator.report_deployed(attachment_point(), 1_000);
    assert!(
        ahead
            .unwrap_err()
            .to_string()
            .contains("has no version 1000 yet")
    );
}

#[tokio::test]
async fn waiters_get_the_next_version() {
    let bed = Bed::new();
    let known = bed
        .coordinator
        .state()
        .host(attachment_point())
        .unwrap()
        .version;
    let waiting = bed.coordinator.version_after(attachment_point(), known);
    let changing = async { bed.set(&Actor::program(), Some(MBIT)).unwrap() };
    let (version, _) = tokio::join!(waiting, changing);
    assert!(version.unwrap() > known);
    let version = bed
        .coordinator
        .version_after(attachment_point(), known)
        .await
        .unwrap();
    let coordinator = bed.coordinator.clone();
    let deployed = bed.coordinator.deployed(attachment_point(), version);
    let reporting = async move {
        coordinator.report_failure(attachment_point(), version - 1, "older");
        coordinator.report_failure(attachment_point(), version, "no permission");
    };
    let (result, ()) = tokio::join!(deployed, reporting);
    assert_eq!(result, Err("no permission".to_owned()));
    bed.coordinator
        .report_deployed(attachment_point(), version)
        .unwrap();
    assert_eq!(
        bed.coordinator.deployed(attachment_point(), version).await,
        Ok(())
    );
    assert_eq!(bed.coordinator.version_after(isd_as("1-1"), 0).await, None);
}

#[test]
fn wildcards_are_not_ases() {
    let bed = Bed::new();
    for wildcard in ["0-0", "0-ff00:0:112", "65530-0"] {
        let new = serde_json::json!({ "isd_as": wildcard, "label": "all" });
        let refused = |result: Result<(), ChangeError>| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("stands for many ASes"), "{error}");
        };
        let (program, one) = (Actor::program(), new.clone());
        let point = serde_json::from_value(one).unwrap();
        refused((bed.coordinator.add_attachment_point(&program, point)).map(drop));
        let user = serde_json::from_value(new).unwrap();
        refused(bed.coordinator.add_user_as(&program, user).map(drop));
    }
    let state = bed.coordinator.state();
    let number = (state.attachment_points.len(), state.user_ases.len());
    assert_eq!(number, (1, 1));
}

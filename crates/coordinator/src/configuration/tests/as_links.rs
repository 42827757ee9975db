//! Peering links, and links between user ASes.

use hawser_topology::LinkKind::{Child, Core, Peer};

use super::*;
use crate::coordinator::NewAsLink;

const CHILD: &str = "1-ff00:0:3";

/// A network in which the first user AS has a child, which is a peer of the second one.
fn bed() -> Bed {
    let bed = Bed::new();
    let program = Actor::program();
    let new = serde_json::json!({
        "isd_as": CHILD, "label": "child", "addresses": ["198.51.100.9"],
    });
    let new: NewUserAs = serde_json::from_value(new).unwrap();
    bed.coordinator().add_user_as(&program, new).unwrap();
    for (kind, ends) in [("child", [USER[0], CHILD]), ("peer", [CHILD, USER[1]])] {
        let new = serde_json::json!({
            "kind": kind, "ends": ends, "limit": {"egress": 3_000_000}, "queue_us": 7000,
            "delay_us": 5000,
        });
        let new: NewAsLink = serde_json::from_value(new).unwrap();
        bed.coordinator().add_as_link(&program, &new).unwrap();
    }
    bed
}

#[test]
fn archives_have_both_ends_and_what_each_end_limits() {
    let bed = bed();
    let links_of = |isd_as: &str| {
        let bundle = bed.bundle(isd_as);
        let (_, topology) = bundle.check().unwrap();
        let links = interfaces(&topology).into_iter();
        let links = links.map(|(_, link)| (link.isd_as.to_string(), link.link_to));
        links.collect::<Vec<_>>()
    };
    let link = |isd_as: &str, link_to| (isd_as.to_owned(), link_to);
    assert_eq!(
        links_of(CHILD),
        [link(USER[0], LinkTo::Parent), link(USER[1], LinkTo::Peer)]
    );
    assert_eq!(
        links_of(USER[0]),
        [link(AP[0], LinkTo::Parent), link(CHILD, LinkTo::Child)]
    );
    assert_eq!(
        links_of(USER[1]),
        [link(AP[1], LinkTo::Parent), link(CHILD, LinkTo::Peer)]
    );

    let limits = |isd_as: &str| bed.bundle(isd_as).link_info().unwrap().0;
    for (isd_as, far) in [(USER[0], CHILD), (CHILD, USER[1])] {
        let limits = limits(isd_as);
        let limit = limits.values().next().unwrap();
        assert_eq!(limits.len(), 1);
        assert_eq!(limit.as_id, ia(far).asn().to_u64());
        assert_eq!((limit.egress, limit.ingress), (Some(3000), None));
        assert_eq!(limit.queue, Some(Duration::from_millis(7)));
    }
    // Nothing is limited in the other direction.
    assert!(bed.bundle(USER[1]).get("link_info.json").is_none());
    let states = bed.bundle(CHILD).link_states().unwrap();
    assert_eq!(states.len(), 2);
    assert!(
        states
            .values()
            .all(|state| state.shape.delay == Duration::from_millis(5))
    );
}

#[test]
fn segments_lead_through_user_ases() {
    let bed = bed();
    let published = bed.configurations.segments().unwrap();
    let read = Publication::from_json(&published.bytes).unwrap();
    let kinds: Vec<_> = read.network().links.iter().map(|link| link.kind).collect();
    assert_eq!(kinds, [Core, Child, Child, Child, Peer]);
    // To the child, beside those that are there without it.
    let without = Bed::new().configurations.segments().unwrap();
    let without = Publication::from_json(&without.bytes).unwrap();
    assert_eq!(read.len(), without.len() + 1);
}

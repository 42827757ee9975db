//! Bandwidth groups: which there are, and which torrents are in them.

use super::*;
use crate::groups::{
    BandwidthPriority, GroupChanges, GroupLimits, MAX_GROUP_BYTES, MAX_GROUPS, OuterChange,
};
use crate::settings::{RateChange, RateChanges};

fn to(group: &str) -> OuterChange {
    OuterChange {
        group: Some(group.to_owned()),
        ..OuterChange::default()
    }
}

fn limited(rate: u64) -> GroupChanges {
    GroupChanges {
        rates: RateChanges {
            download: RateChange::to(Some(rate)),
            ..RateChanges::default()
        },
        is_exempt: None,
    }
}

#[test]
fn groups_are_made_when_they_are_named_and_kept_over_restarts() {
    let (mut torrents, mut host) = running(Bounds::default(), 2);
    torrents.change_outer(hash(0), to("slow")).unwrap();
    host.obey(&mut torrents);
    host.check(&torrents, &[hash(0), hash(1)]);
    assert_eq!(host.groups["slow"], GroupLimits::default());
    torrents.change_group("slow", limited(80)).unwrap();
    host.obey(&mut torrents);
    assert_eq!(host.groups["slow"].rates.download.in_force(), Some(80));
    let exempt = OuterChange {
        group: None,
        is_exempt: Some(true),
        priority: Some(BandwidthPriority::High),
    };
    torrents.change_outer(hash(1), exempt).unwrap();
    host.obey(&mut torrents);
    host.check(&torrents, &[hash(0), hash(1)]);
    let obeyed = &host.obeyed[&hash(1)];
    assert!(obeyed.is_exempt && obeyed.priority == BandwidthPriority::High);
    let bounds = |all: Option<AllLimits>| Bounds {
        all: all.unwrap_or_default(),
        ..Bounds::default()
    };
    let kept = host.limits_on_disk.clone();
    let again = Torrents::new(bounds(kept), host.disk.values().cloned());
    assert_eq!(again.all_limits(), torrents.all_limits());
    assert_eq!(again.record(hash(0)).unwrap().settings.group, "slow");
    // The limits are lost: the group is there all the same.
    let again = Torrents::new(bounds(None), host.disk.values().cloned());
    assert!(again.all_limits().groups.contains_key("slow"));
}

#[test]
fn groups_that_limit_nothing_give_way_to_others() {
    let (mut torrents, _) = running(Bounds::default(), 1);
    torrents.change_outer(hash(0), to("used")).unwrap();
    torrents
        .change_group("empty", GroupChanges::default())
        .unwrap();
    for number in 2..MAX_GROUPS {
        torrents
            .change_group(&number.to_string(), limited(8))
            .unwrap();
    }
    torrents.change_group("last", limited(8)).unwrap();
    let groups = &torrents.all_limits().groups;
    assert!(!groups.contains_key("empty") && groups.contains_key("used"));
    let before = torrents.all_limits().clone();
    let long = "x".repeat(MAX_GROUP_BYTES + 1);
    for refused in ["more", "", "a\nb", &long] {
        assert!(
            torrents.change_group(refused, limited(8)).is_err(),
            "{refused:?}"
        );
    }
    assert!(torrents.change_outer(hash(0), to("more")).is_err());
    assert!(torrents.change_outer(hash(7), to("used")).is_err());
    assert_eq!(*torrents.all_limits(), before);
    assert_eq!(torrents.record(hash(0)).unwrap().settings.group, "used");
    torrents.change_outer(hash(0), to("")).unwrap();
    torrents.change_group("more", limited(8)).unwrap();
}

//! Limits of the rate that hold at times.

use super::*;
use crate::alternative::{AlternativeChanges, ScheduleChanges};

#[test]
fn alternative_limits_follow_their_schedule_and_users_between() {
    let (mut torrents, mut host) = running(Bounds::default(), 1);
    let change = |torrents: &mut Torrents, holds, schedule| {
        let changes = AlternativeChanges {
            download: Some(80),
            holds,
            schedule,
            ..AlternativeChanges::default()
        };
        torrents.change_alternative(changes)
    };
    let same = ScheduleChanges::default();
    let (usual, slow) = (RateLimits::default(), Some(80));
    let rate = |host: &Host| host.rates_in_force.unwrap().download.in_force();
    // By hand, without a schedule.
    change(&mut torrents, Some(true), same).unwrap();
    host.obey(&mut torrents);
    assert_eq!(rate(&host), slow);
    assert_eq!(host.limits_on_disk.as_ref().unwrap().rates, usual);
    // From the first minute of each Sunday to its second one: time begins with such a day.
    let sunday = ScheduleChanges {
        is_on: Some(true),
        begin: Some(1),
        end: Some(2),
        days: Some(1),
    };
    change(&mut torrents, None, sunday).unwrap();
    host.obey(&mut torrents);
    assert_eq!(rate(&host), None, "a new schedule decides at once");
    let mut seen = Vec::new();
    for minute in 0..3 {
        host.now = minute * 60;
        host.obey(&mut torrents);
        host.check(&torrents, &[hash(0)]);
        seen.push(rate(&host));
    }
    assert_eq!(seen, [None, slow, None]);
    // Users switch until the schedule does.
    change(&mut torrents, Some(true), same).unwrap();
    host.now += 60;
    host.obey(&mut torrents);
    assert_eq!(rate(&host), slow);
    host.now = 7 * 24 * 3600 + 60;
    host.obey(&mut torrents);
    assert_eq!(rate(&host), slow);
    host.now += 60;
    host.obey(&mut torrents);
    assert_eq!(rate(&host), None);
    // One that was switched off switches nothing.
    let off = ScheduleChanges {
        is_on: Some(false),
        ..same
    };
    change(&mut torrents, None, off).unwrap();
    host.now = 14 * 24 * 3600 + 60;
    host.obey(&mut torrents);
    assert_eq!(rate(&host), None);
    let before = torrents.all_limits().clone();
    let wrong = ScheduleChanges {
        begin: Some(1440),
        ..same
    };
    assert!(change(&mut torrents, Some(true), wrong).is_err());
    assert_eq!(*torrents.all_limits(), before);
}

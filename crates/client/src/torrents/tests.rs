//! The cases that matter most, one by one; random ones are in [`random`].

mod alternative;
mod changes;
mod groups;
mod host;
mod incomplete;
mod random;

use self::host::Host;
use super::*;
use crate::choice::{Choice, SeedChoice};
use crate::files::{FileChange, FileChanges, Files};
use crate::record::{Dates, SeedLimit, Totals};
use crate::settings::{
    AllLimits, Limit, LimitChange, QueueChanges, QueueLimits, RateLimits, Settings,
};

fn hash(number: u8) -> InfoHash {
    InfoHash([number; 20])
}

fn record(number: u8) -> Record {
    Record {
        info_hash: hash(number),
        name: format!("torrent {number}"),
        origin: Origin::Metainfo,
        size: Some(1000),
        folder: "/downloads".into(),
        started: true,
        outcome: None,
        labels: Vec::new(),
        settings: Settings::default(),
        rank: 0,
        peers: Vec::new(),
        dates: Dates::default(),
        totals: Totals::default(),
        pending: None,
        rechecks: false,
        announcement: Announcement::None,
    }
}

fn traffic(uploaded: u64, downloaded: u64) -> Traffic {
    let verified = Some(downloaded);
    Traffic {
        uploaded,
        downloaded,
        verified,
    }
}

/// Bounds with these limits of the queue.
fn bounds(queue: QueueLimits) -> Bounds {
    Bounds {
        all: AllLimits {
            queue,
            ..AllLimits::default()
        },
        ..Bounds::default()
    }
}

/// Torrents that all run, with their host.
fn running(bounds: Bounds, count: u8) -> (Torrents, Host) {
    let mut torrents = Torrents::new(bounds, []);
    let mut host = Host::default();
    for number in 0..count {
        torrents.add(record(number)).unwrap();
    }
    host.obey(&mut torrents);
    (torrents, host)
}

#[test]
fn the_first_of_the_queue_download_and_the_next_follows() {
    let bounds = bounds(QueueLimits {
        downloads: Limit::to(2),
        ..QueueLimits::default()
    });
    let (mut torrents, mut host) = running(bounds, 3);
    let status = |torrents: &Torrents| [0, 1, 2].map(|one| torrents.status(hash(one)).unwrap());
    assert_eq!(
        status(&torrents),
        [Status::Checking, Status::Checking, Status::Queued]
    );
    torrents.on_checked(hash(0), false, host.now());
    torrents.on_checked(hash(1), false, host.now());
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    assert_eq!(
        status(&torrents),
        [Status::Seeding, Status::Downloading, Status::Checking]
    );
}

#[test]
fn the_times_of_downloading_and_seeding_are_counted_over_all_runs() {
    let (mut torrents, mut host) = running(Bounds::default(), 1);
    let times = |torrents: &Torrents| {
        let record = torrents.record(hash(0)).unwrap();
        let totals = record.totals;
        (record.dates.started, totals.downloading, totals.seeded)
    };
    let first = host.now().unix;
    torrents.on_checked(hash(0), false, host.now());
    host.now += 40;
    host.obey(&mut torrents);
    assert_eq!(times(&torrents), (Some(first), 40, 0));
    torrents.stop(hash(0)).unwrap();
    host.obey(&mut torrents);
    torrents.on_ended(hash(0), Ok(()), host.now());
    // Nothing counts while it is stopped, or is verified.
    host.now += 500;
    let second = host.now().unix;
    torrents.start(hash(0)).unwrap();
    host.tasks.clear();
    host.obey(&mut torrents);
    host.now += 7;
    torrents.on_checked(hash(0), false, host.now());
    host.now += 10;
    torrents.on_completed(hash(0), host.now());
    host.now += 20;
    host.obey(&mut torrents);
    assert_eq!(times(&torrents), (Some(second), 50, 20));
}

#[test]
fn seeding_ends_at_its_limits_and_goes_on_when_started() {
    let bounds = bounds(QueueLimits {
        ratio: Limit::to(1.5),
        time: Limit::to(60),
        ..QueueLimits::default()
    });
    let (mut torrents, mut host) = running(bounds, 2);
    for one in [0, 1] {
        torrents.on_checked(hash(one), true, host.now());
    }
    torrents.on_traffic(hash(0), traffic(1499, 0), host.now());
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Seeding));
    torrents.on_traffic(hash(0), traffic(1500, 0), host.now());
    host.obey(&mut torrents);
    assert!(host.log.contains(&Order::Halt(hash(0))));
    torrents.on_ended(hash(0), Ok(()), host.now());
    assert_eq!(torrents.status(hash(0)), Some(Status::Finished));
    let ended = Outcome::Finished(SeedLimit::Ratio);
    assert_eq!(torrents.record(hash(0)).unwrap().outcome, Some(ended));

    assert_eq!(torrents.next_due(), Some(Duration::from_secs(60)));
    host.now = 60;
    host.obey(&mut torrents);
    torrents.on_ended(hash(1), Ok(()), host.now());
    let ended = Outcome::Finished(SeedLimit::Time);
    assert_eq!(torrents.record(hash(1)).unwrap().outcome, Some(ended));
    assert_eq!(torrents.record(hash(1)).unwrap().totals.seeded, 60);

    torrents.start(hash(1)).unwrap();
    host.tasks.clear();
    host.obey(&mut torrents);
    torrents.on_checked(hash(1), true, host.now());
    host.now = 10_000;
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(1)), Some(Status::Seeding));
}

#[test]
fn a_complete_torrent_runs_again_when_more_files_are_wanted() {
    let (mut torrents, mut host) = running(Bounds::default(), 1);
    let set = |torrents: &mut Torrents, file, is_wanted| {
        let change = FileChange {
            files: Files::These(vec![file]),
            is_wanted: Some(is_wanted),
            priority: None,
        };
        let changes = FileChanges {
            each: vec![change],
            is_sequential: None,
        };
        torrents.change_files(hash(0), &changes).unwrap();
    };
    // While it downloads, its task is told.
    set(&mut torrents, 0, false);
    host.obey(&mut torrents);
    assert_eq!(host.log.last(), Some(&Order::Apply(hash(0))));
    torrents.on_checked(hash(0), false, host.now());
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    // What is there stays, whatever is wanted no longer.
    set(&mut torrents, 1, false);
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Seeding));
    set(&mut torrents, 0, true);
    host.obey(&mut torrents);
    assert_eq!(host.log.last(), Some(&Order::Halt(hash(0))));
    assert_eq!(torrents.record(hash(0)).unwrap().dates.completed, None);
    host.tasks.clear();
    torrents.on_ended(hash(0), Ok(()), host.now());
    host.obey(&mut torrents);
    assert_eq!(host.log.last(), Some(&Order::Run(hash(0))));
    // One that could not be told runs again, too; one that has ended does not.
    torrents.on_unselected(hash(0));
    host.obey(&mut torrents);
    assert_eq!(host.log.last(), Some(&Order::Halt(hash(0))));
    torrents.stop(hash(0)).unwrap();
    host.tasks.clear();
    torrents.on_ended(hash(0), Ok(()), host.now());
    torrents.on_unselected(hash(0));
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Stopped));
}

#[test]
fn a_failure_stays_that_of_one_torrent_until_it_is_started() {
    let (mut torrents, mut host) = running(Bounds::default(), 2);
    host.tasks.remove(&hash(0));
    torrents.on_ended(hash(0), Err("the disk is full".into()), host.now());
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Failed));
    assert_eq!(torrents.status(hash(1)), Some(Status::Checking));
    let failed = Outcome::Failed("the disk is full".into());
    assert_eq!(host.disk[&hash(0)].outcome, Some(failed));
    torrents.start(hash(0)).unwrap();
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Checking));
}

#[test]
fn the_queue_is_changed_while_torrents_run() {
    let (mut torrents, mut host) = running(Bounds::default(), 3);
    for one in 0..2 {
        torrents.on_checked(hash(one), false, host.now());
    }
    host.obey(&mut torrents);
    torrents.on_checked(hash(2), false, host.now());
    let downloads = |change| QueueChanges {
        downloads: change,
        ..QueueChanges::default()
    };
    torrents
        .change_queue(downloads(LimitChange::to(Some(1))))
        .unwrap();
    host.obey(&mut torrents);
    let runs = |torrents: &Torrents| {
        (0..3)
            .filter(|one| torrents.entries[&hash(*one)].runs())
            .count()
    };
    assert_eq!(runs(&torrents), 1);
    assert!(
        torrents
            .change_queue(downloads(LimitChange::to(Some(0))))
            .is_err()
    );
    assert_eq!(torrents.all_limits().queue.downloads, Limit::to(1));
    torrents
        .change_queue(downloads(LimitChange::to(None)))
        .unwrap();
    host.obey(&mut torrents);
    assert_eq!(
        host.limits_on_disk.unwrap().queue.downloads,
        Limit::unset(1)
    );
}

#[test]
fn a_torrent_that_sends_nothing_for_long_enough_stops_seeding() {
    let idle = bounds(QueueLimits {
        idle: Limit::to(60),
        ..QueueLimits::default()
    });
    let (mut torrents, mut host) = running(idle, 2);
    for one in 0..2 {
        torrents.on_checked(hash(one), true, host.now());
    }
    let own = SeedChoice {
        idle: Choice::Unlimited,
        ..SeedChoice::default()
    };
    torrents.set_limits(hash(1), own).unwrap();
    host.obey(&mut torrents);
    assert_eq!(torrents.next_due(), Some(Duration::from_secs(60)));
    host.now = 59;
    torrents.on_traffic(hash(0), traffic(1, 0), host.now());
    host.obey(&mut torrents);
    host.now = 118;
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Seeding));
    host.now = 119;
    host.obey(&mut torrents);
    let outcome = &torrents.record(hash(0)).unwrap().outcome;
    assert_eq!(*outcome, Some(Outcome::Finished(SeedLimit::Idle)));
    assert_eq!(torrents.status(hash(1)), Some(Status::Seeding));
    // It is not idle from the start when it runs again.
    host.tasks.remove(&hash(0));
    torrents.on_ended(hash(0), Ok(()), host.now());
    torrents.set_limits(hash(0), SeedChoice::default()).unwrap();
    host.obey(&mut torrents);
    torrents.on_checked(hash(0), true, host.now());
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Seeding));
}

#[test]
fn wrong_values_and_unknown_torrents_are_refused() {
    let (mut torrents, _) = running(Bounds::default(), 1);
    assert_eq!(torrents.start(hash(9)), Err(CommandError::Unknown(hash(9))));
    assert_eq!(
        torrents.add(record(0)),
        Err(CommandError::Duplicate(hash(0)))
    );
    for label in ["", "a,b", "a\nb", &"x".repeat(101)] {
        let set = torrents.set_labels(hash(0), vec![label.to_owned()]);
        assert!(matches!(set, Err(CommandError::Value(_))), "{label:?}");
    }
    for ratio in [-1.0, f64::NAN, f64::INFINITY] {
        let limits = SeedChoice {
            ratio: Choice::Own(ratio),
            ..SeedChoice::default()
        };
        assert!(torrents.set_limits(hash(0), limits).is_err(), "{ratio}");
    }
    let relative = torrents.relocate(hash(0), "downloads".into(), true);
    assert!(matches!(relative, Err(CommandError::Value(_))));
    torrents.remove(hash(0), false).unwrap();
    assert_eq!(torrents.stop(hash(0)), Err(CommandError::Busy(hash(0))));
}

#[test]
fn a_completion_is_announced_once_also_across_crashes() {
    let (mut torrents, mut host) = running(Bounds::default(), 2);
    // The content of the second is there from the beginning.
    torrents.on_checked(hash(0), false, host.now());
    torrents.on_checked(hash(1), true, host.now());
    host.obey(&mut torrents);
    assert_eq!(host.announcing, []);
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    host.obey(&mut torrents);
    assert_eq!(host.announcing, [hash(0)]);

    // A crash before the program is begun, and one after.
    for expected in [&[hash(0)][..], &[]] {
        let mut again = Torrents::new(Bounds::default(), host.disk.values().cloned());
        host.announcing.clear();
        host.tasks.clear();
        host.obey(&mut again);
        assert_eq!(host.announcing, expected);
        again.on_checked(hash(0), true, host.now());
        again.on_announced(hash(0));
        host.obey(&mut again);
    }
    // What is lost and fetched again completes anew.
    let mut again = Torrents::new(Bounds::default(), host.disk.values().cloned());
    host.tasks.clear();
    host.obey(&mut again);
    again.on_checked(hash(0), false, host.now());
    again.on_completed(hash(0), host.now());
    host.obey(&mut again);
    assert_eq!(host.announcing, [hash(0)]);
}

#[test]
fn a_torrent_is_started_beside_the_queue() {
    let (mut torrents, mut host) = running(
        bounds(QueueLimits {
            downloads: Limit::to(1),
            ..QueueLimits::default()
        }),
        4,
    );
    let status = |torrents: &Torrents| [0, 1, 2, 3].map(|one| torrents.status(hash(one)).unwrap());
    let (queued, runs) = (Status::Queued, Status::Checking);
    assert_eq!(status(&torrents), [runs, queued, queued, queued]);
    torrents.start_now(hash(2)).unwrap();
    host.obey(&mut torrents);
    // It takes no place, and none ends for it.
    assert_eq!(status(&torrents), [runs, queued, runs, queued]);
    torrents.stop(hash(0)).unwrap();
    host.obey(&mut torrents);
    host.tasks.clear();
    torrents.on_ended(hash(0), Ok(()), host.now());
    host.obey(&mut torrents);
    assert_eq!(status(&torrents), [Status::Stopped, runs, runs, queued]);
    // Once it was stopped it waits as others do.
    torrents.stop(hash(2)).unwrap();
    host.tasks.clear();
    torrents.on_ended(hash(2), Ok(()), host.now());
    torrents.start(hash(2)).unwrap();
    host.obey(&mut torrents);
    assert_eq!(status(&torrents), [Status::Stopped, runs, queued, queued]);
}

#[test]
fn what_runs_is_announced_when_that_is_asked() {
    let (mut torrents, mut host) = running(
        bounds(QueueLimits {
            downloads: Limit::to(1),
            ..QueueLimits::default()
        }),
        2,
    );
    for number in [0, 1, 9] {
        assert_eq!(torrents.reannounce(hash(number)).is_ok(), number < 9);
    }
    host.log.clear();
    host.obey(&mut torrents);
    assert_eq!(host.log, [Order::Reannounce(hash(0))]);
    // Once.
    torrents.set_labels(hash(0), vec!["a".into()]).unwrap();
    host.log.clear();
    host.obey(&mut torrents);
    assert_eq!(host.log, [Order::Save(hash(0))]);
}

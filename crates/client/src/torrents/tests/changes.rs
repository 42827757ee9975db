//! What users change of a torrent while it runs or not.

use super::*;
use crate::renames::Rename;
use crate::trackers::TrackerChange;

#[test]
fn other_trackers_are_kept_and_obeyed() {
    let (mut torrents, mut host) = running(Bounds::default(), 1);
    let named = [vec!["udp://a:1".to_owned()]];
    let add = |url: &str| [TrackerChange::Add(vec![url.to_owned()])];
    let change = |torrents: &mut Torrents, changes: &[TrackerChange]| {
        torrents.change_trackers(hash(0), &named, changes)
    };
    host.log.clear();
    let same = Err(CommandError::SameTrackers(hash(0)));
    assert_eq!(change(&mut torrents, &add("udp://a:1")), same);
    let set = [TrackerChange::Set(named.to_vec())];
    assert_eq!(change(&mut torrents, &set), Ok(()));
    let wrong = change(&mut torrents, &add("ftp://b/"));
    assert!(matches!(&wrong, Err(CommandError::Value(text)) if text.contains("ftp://b/")));
    host.obey(&mut torrents);
    assert_eq!(host.log, []);
    change(&mut torrents, &add("udp://b:1")).unwrap();
    change(&mut torrents, &add("udp://c:1")).unwrap();
    host.obey(&mut torrents);
    assert_eq!(host.log, [Order::Save(hash(0)), Order::Apply(hash(0))]);
    let kept = host.disk[&hash(0)].settings.trackers.clone().unwrap();
    assert_eq!(kept.concat(), ["udp://a:1", "udp://b:1", "udp://c:1"]);
}

fn rename(path: &str, name: &str) -> Rename {
    Rename {
        path: path.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn what_runs_gives_files_other_names_and_goes_on() {
    let (mut torrents, mut host) = running(Bounds::default(), 1);
    let begin = |torrents: &mut Torrents, known: &[Rename]| {
        torrents.rename(hash(0), rename("torrent 0", "x"), known)
    };
    let checks = begin(&mut torrents, &[]);
    assert!(matches!(&checks, Err(CommandError::Value(text)) if text.contains("verified")));
    torrents.on_checked(hash(0), false, host.now());
    host.obey(&mut torrents);
    // Another one was given meanwhile.
    let busy = Err(CommandError::Busy(hash(0)));
    assert_eq!(begin(&mut torrents, &[rename("a", "b")]), busy);
    host.log.clear();
    begin(&mut torrents, &[]).unwrap();
    host.obey(&mut torrents);
    assert_eq!(host.log, [Order::Save(hash(0)), Order::Rename(hash(0))]);
    assert_eq!(torrents.status(hash(0)), Some(Status::Downloading));
    assert_eq!(torrents.stop(hash(0)), busy);
    assert_eq!(begin(&mut torrents, &[]), busy);
    torrents.on_renamed(hash(0), true);
    host.obey(&mut torrents);
    let kept = &host.disk[&hash(0)];
    assert_eq!((&*kept.name, &kept.pending), ("x", &None));
    assert_eq!(kept.settings.renames, [rename("torrent 0", "x")]);
    // What the system refuses leaves it as it was.
    let known = kept.settings.renames.clone();
    torrents
        .rename(hash(0), rename("x/a", "b"), &known)
        .unwrap();
    host.obey(&mut torrents);
    torrents.on_renamed(hash(0), false);
    host.obey(&mut torrents);
    assert_eq!(host.disk[&hash(0)].settings.renames, known);
    assert_eq!(torrents.status(hash(0)), Some(Status::Downloading));
}

#[test]
fn a_name_that_a_task_has_not_given_is_given_without_it() {
    let (mut torrents, mut host) = running(Bounds::default(), 1);
    torrents.on_checked(hash(0), false, host.now());
    torrents
        .rename(hash(0), rename("torrent 0", "x"), &[])
        .unwrap();
    host.obey(&mut torrents);
    let failed = Err("the disk is full".to_owned());
    host.tasks.clear();
    torrents.on_ended(hash(0), failed, host.now());
    host.log.clear();
    host.obey(&mut torrents);
    assert_eq!(host.log, [Order::Save(hash(0)), Order::Rename(hash(0))]);
    torrents.on_renamed(hash(0), true);
    assert_eq!(torrents.status(hash(0)), Some(Status::Failed));
    // One that is not to run is renamed, too.
    torrents.stop(hash(0)).unwrap();
    let known = [rename("torrent 0", "x")];
    torrents
        .rename(hash(0), rename("x/a", "b"), &known)
        .unwrap();
    host.log.clear();
    host.obey(&mut torrents);
    assert_eq!(host.log, [Order::Save(hash(0)), Order::Rename(hash(0))]);
}

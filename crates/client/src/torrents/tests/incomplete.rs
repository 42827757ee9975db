//! Content that is in another folder until it is complete.

use super::*;
use crate::settings::{IncompleteChange, IncompleteFolder};

/// A torrent that downloads to a folder for unfinished content.
fn downloading() -> (Torrents, Host) {
    let mut torrents = Torrents::new(Bounds::default(), []);
    let mut host = Host::default();
    let mut record = record(0);
    record.begin_in(Some("/incomplete".as_ref()));
    torrents.add(record).unwrap();
    host.obey(&mut torrents);
    torrents.on_checked(hash(0), false, host.now());
    host.obey(&mut torrents);
    (torrents, host)
}

fn places(torrents: &Torrents) -> (String, Option<String>) {
    let record = torrents.record(hash(0)).unwrap();
    let text = |path: &std::path::Path| path.display().to_string();
    let destination = record.settings.destination.as_deref();
    (text(&record.folder), destination.map(text))
}

/// The task of the torrent ends, as it was ordered to.
fn end(torrents: &mut Torrents, host: &mut Host) {
    assert!(host.tasks.remove(&hash(0)).unwrap().halts);
    torrents.on_ended(hash(0), Ok(()), host.now());
    host.obey(torrents);
}

fn unfinished() -> (String, Option<String>) {
    ("/incomplete".into(), Some("/downloads".into()))
}

fn finished() -> (String, Option<String>) {
    ("/downloads".into(), None)
}

#[test]
fn complete_content_is_moved_before_it_is_announced_and_seeds_then() {
    let (mut torrents, mut host) = downloading();
    assert_eq!((places(&torrents), host.moves.len()), (unfinished(), 0));
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    end(&mut torrents, &mut host);
    assert_eq!(torrents.status(hash(0)), Some(Status::Moving));
    assert_eq!(
        (&host.moves[..], host.announcing.len()),
        (&[hash(0)][..], 0)
    );
    host.check(&torrents, &[hash(0)]);
    // It is killed, also between the completion and the order.
    for has_pending in [true, false] {
        let mut kept = host.disk[&hash(0)].clone();
        kept.pending = kept.pending.filter(|_| has_pending);
        let mut again = Torrents::new(Bounds::default(), [kept.clone()]);
        let mut other = Host::default();
        other.disk.insert(hash(0), kept);
        other.obey(&mut again);
        assert_eq!((places(&again), other.moves), (unfinished(), vec![hash(0)]));
    }
    host.moves.clear();
    torrents.on_moved(hash(0), Ok(()));
    host.obey(&mut torrents);
    assert_eq!(places(&torrents), finished());
    assert_eq!(host.announcing, [hash(0)]);
    torrents.on_checked(hash(0), true, host.now());
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Seeding));
    host.check(&torrents, &[hash(0)]);
}

#[test]
fn a_move_that_fails_is_tried_again_at_a_start() {
    let (mut torrents, mut host) = downloading();
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    end(&mut torrents, &mut host);
    host.moves.clear();
    torrents.on_moved(hash(0), Err("the disk is full".into()));
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Failed));
    assert_eq!((places(&torrents), host.moves.len()), (unfinished(), 0));
    torrents.start(hash(0)).unwrap();
    host.obey(&mut torrents);
    assert_eq!(host.moves, [hash(0)]);
}

#[test]
fn another_folder_holds_from_then_on() {
    // Moved while it is not complete: it stays there.
    let (mut torrents, mut host) = downloading();
    torrents.relocate(hash(0), "/other".into(), true).unwrap();
    host.obey(&mut torrents);
    end(&mut torrents, &mut host);
    host.moves.clear();
    torrents.on_moved(hash(0), Ok(()));
    host.obey(&mut torrents);
    assert_eq!(places(&torrents), ("/other".into(), None));
    torrents.on_checked(hash(0), false, host.now());
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    assert_eq!(host.moves, []);
    host.check(&torrents, &[hash(0)]);
    // To the folder where it is.
    let (mut torrents, mut host) = downloading();
    let here = "/incomplete".into();
    torrents.relocate(hash(0), here, true).unwrap();
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    assert_eq!(host.moves, []);
    assert_eq!(places(&torrents), ("/incomplete".into(), None));
    host.check(&torrents, &[hash(0)]);
    // What is at the destination is used there.
    let (mut torrents, _) = downloading();
    torrents.on_found_at_destination(hash(0));
    assert_eq!(places(&torrents), finished());
}

#[test]
fn the_folder_for_unfinished_content_is_named_before_it_is_used() {
    let mut torrents = Torrents::new(Bounds::default(), []);
    let on = IncompleteChange {
        folder: None,
        is_on: Some(true),
    };
    torrents.change_incomplete(on.clone()).unwrap_err();
    let relative = IncompleteChange::to(Some("x".into()));
    torrents.change_incomplete(relative).unwrap_err();
    assert_eq!(
        torrents.all_limits().incomplete,
        IncompleteFolder::default()
    );
    let named = IncompleteChange {
        folder: Some("/incomplete".into()),
        is_on: None,
    };
    torrents.change_incomplete(named).unwrap();
    assert_eq!(torrents.all_limits().incomplete.in_force(), None);
    torrents.change_incomplete(on).unwrap();
    let incomplete = |torrents: &Torrents| torrents.all_limits().incomplete.clone();
    let folder = Some("/incomplete".as_ref());
    assert_eq!(incomplete(&torrents).in_force(), folder);
    torrents
        .change_incomplete(IncompleteChange::to(None))
        .unwrap();
    assert_eq!(incomplete(&torrents).in_force(), None);
}

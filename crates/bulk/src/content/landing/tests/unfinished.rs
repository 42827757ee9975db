//! Where a transfer continues that was interrupted.

use super::*;

/// The source folder `from/data` has `d/a`, `d/b` and `f`, of several ranges each.
fn hosts() -> Hosts {
    let hosts = Hosts::new();
    fs::create_dir(hosts.from("d")).unwrap();
    for (seed, name) in ["d/a", "d/b", "f"].into_iter().enumerate() {
        fs::write(hosts.from(name), bytes(5 * RANGE / 2, seed as u64)).unwrap();
    }
    hosts
}

fn options(path: &str, sender: &str) -> LandingOptions {
    LandingOptions {
        path: path.into(),
        sender: sender.to_owned(),
        sync: false,
        ..LandingOptions::default()
    }
}

/// A landing of what is called `name` at the source.
fn land(hosts: &Hosts, name: &str, path: &str, sender: &str) -> (Source, Landing) {
    let scan = scan(&[hosts.from(name)], ScanOptions::default()).unwrap();
    let source = Source::open(scan);
    let manifest = Arc::clone(source.manifest());
    let landing = Landing::prepare(manifest, &hosts.to(""), options(path, sender)).unwrap();
    (source, landing)
}

/// Writes some of what is missing; returns how much was.
fn write(source: &Source, landing: &Landing, most: usize) -> usize {
    let missing = keep(source, landing);
    let count = missing.len();
    send(source, landing, missing.into_iter().take(most).collect());
    count
}

/// All files below the destination folder.
fn files(hosts: &Hosts) -> Vec<PathBuf> {
    let found = list(&hosts.to("")).into_iter();
    let paths = found.map(|(path, ..)| path);
    paths
        .filter(|path| hosts.to("").join(path).is_file())
        .collect()
}

/// Interrupted twice and completed; with the paths that `send DST/PATH`, `send DST`, `fetch -o DIR`
/// and the transfer service have.
#[test]
fn a_transfer_continues_where_it_began() {
    for (name, path, at) in [
        ("d", "np", &["np/a", "np/b"][..]),
        ("d", "x/y/np", &["x/y/np/a", "x/y/np/b"]),
        ("d", "", &["d/a", "d/b"]),
        ("d", "runs/", &["runs/d/a", "runs/d/b"]),
        ("f", "np", &["np"]),
        ("f", "", &["f"]),
        ("f", "runs/", &["runs/f"]),
    ] {
        let hosts = hosts();
        let mut left = usize::MAX;
        for _ in 0..2 {
            let (source, landing) = land(&hosts, name, path, "me");
            let missing = write(&source, &landing, 1);
            assert!(missing < left, "{name} to {path:?}: {missing} of {left}");
            left = missing;
        }
        let (source, landing) = land(&hosts, name, path, "me");
        assert!(write(&source, &landing, usize::MAX) < left);
        landing.complete().unwrap();
        // The source has not heard of it, and tries again.
        let (source, landing) = land(&hosts, name, path, "me");
        assert_eq!(write(&source, &landing, 0), 0, "{name} to {path:?}");
        landing.complete().unwrap();
        landing.settle();
        assert_eq!(
            files(&hosts),
            at.iter().map(PathBuf::from).collect::<Vec<_>>()
        );
    }
}

/// Sent once more after its end, a directory goes into the one that is there, as with `scp`.
#[test]
fn what_is_finished_is_not_continued() {
    let hosts = hosts();
    for at in [&["np/a", "np/b"][..], &["np/a", "np/b", "np/d/a", "np/d/b"]] {
        let (source, landing) = land(&hosts, "d", "np", "me");
        write(&source, &landing, usize::MAX);
        landing.complete().unwrap();
        landing.settle();
        assert_eq!(
            files(&hosts),
            at.iter().map(PathBuf::from).collect::<Vec<_>>()
        );
    }
}

/// What another host, or another directory, has begun is a directory that was there.
#[test]
fn what_others_began_is_not_continued() {
    let hosts = hosts();
    fs::create_dir(hosts.from("e")).unwrap();
    fs::write(hosts.from("e/a"), "e").unwrap();
    let (source, landing) = land(&hosts, "d", "np", "me");
    write(&source, &landing, 1);
    drop(landing);
    for (name, sender) in [("d", "another"), ("e", "me")] {
        let (source, landing) = land(&hosts, name, "np", sender);
        write(&source, &landing, usize::MAX);
        landing.complete().unwrap();
        landing.settle();
        assert!(
            hosts.to(&format!("np/{name}/a")).exists(),
            "{name} of {sender}"
        );
    }
    // It still is the first one's.
    let (source, landing) = land(&hosts, "d", "np", "me");
    write(&source, &landing, usize::MAX);
    landing.complete().unwrap();
    assert!(hosts.to("np/b").exists());
}

/// A mark whose directory was removed by hand says nothing about a new one.
#[test]
fn a_mark_alone_says_nothing() {
    let hosts = hosts();
    let (source, landing) = land(&hosts, "d", "np", "another");
    write(&source, &landing, 1);
    drop(landing);
    fs::remove_dir_all(hosts.to("np")).unwrap();
    let (source, landing) = land(&hosts, "d", "np", "me");
    write(&source, &landing, 1);
    drop(landing);
    let (source, landing) = land(&hosts, "d", "np", "me");
    write(&source, &landing, usize::MAX);
    landing.complete().unwrap();
    landing.settle();
    assert_eq!(files(&hosts), [PathBuf::from("np/a"), "np/b".into()]);
}

/// A mark that is damaged anywhere is refused, and nothing begins anew beside what is there.
#[test]
fn a_damaged_mark_is_refused() {
    let hosts = hosts();
    let (source, landing) = land(&hosts, "d", "np", "me");
    write(&source, &landing, 1);
    drop(landing);
    let mut names = fs::read_dir(hosts.to("")).unwrap();
    let mark = names
        .find_map(|entry| Some(entry.unwrap().path()).filter(|path| path.is_file()))
        .unwrap();
    let whole = fs::read(&mark).unwrap();
    let changed = (0..whole.len()).map(|at| {
        let mut changed = whole.clone();
        changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
        changed
    });
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    for damaged in cut.chain(changed) {
        fs::write(&mark, &damaged).unwrap();
        let scan = scan(&[hosts.from("d")], ScanOptions::default()).unwrap();
        let manifest = Arc::clone(Source::open(scan).manifest());
        // What an older version wrote has no check: it is whole.
        if damaged.len() == "hawser landing \n".len() + 64 && damaged.ends_with(b"\n") {
            continue;
        }
        let refused = Landing::prepare(manifest, &hosts.to(""), options("np", "me"));
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(mark.to_str().unwrap()), "{error}");
        assert!(error.contains("remove") && !error.contains('\n'), "{error}");
    }
    assert!(!hosts.to("np/d").exists());
    fs::write(&mark, &whole).unwrap();
    let (source, landing) = land(&hosts, "d", "np", "me");
    write(&source, &landing, usize::MAX);
    landing.complete().unwrap();
    assert!(hosts.to("np/b").exists());
}

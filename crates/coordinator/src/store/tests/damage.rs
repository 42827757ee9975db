//! Files that are damaged, empty or gone, and disks that are full.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend};

use super::*;
use crate::user::Role;

/// A folder with the state of a network, closed.
fn closed() -> (tempfile::TempDir, State) {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    network(&coordinator);
    let state = (*coordinator.state()).clone();
    (folder, state)
}

fn reason(folder: &Path) -> String {
    Coordinator::open(folder).unwrap_err().to_string()
}

/// The same for three attachment points and twenty user ASes.
fn large() -> (tempfile::TempDir, State) {
    let (folder, _) = closed();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let program = Actor::program();
    for number in 0..2 {
        let new = serde_json::json!({
            "isd_as": format!("1-ff00:1:{number}"), "label": "more", "addresses": ["10.1.0.1"],
        });
        let new = serde_json::from_value(new).unwrap();
        coordinator.add_attachment_point(&program, new).unwrap();
    }
    let points: Vec<_> = coordinator
        .state()
        .attachment_points
        .keys()
        .copied()
        .collect();
    for number in coordinator.state().user_ases.len()..20 {
        let isd_as = format!("1-ff00:2:{number}");
        let (owner, _) = coordinator.add_user(&program, &isd_as, Role::User).unwrap();
        let new = serde_json::json!({
            "isd_as": isd_as, "label": isd_as, "owner": owner.id,
            "addresses": [format!("10.2.0.{}", number + 1)],
        });
        let new = serde_json::from_value(new).unwrap();
        coordinator.add_user_as(&program, new).unwrap();
        let link = serde_json::json!({
            "attachment_point": points[number % 3], "user_as": isd_as,
            "limit": {"egress": 1_000_000},
        });
        let link = serde_json::from_value(link).unwrap();
        coordinator.add_link(&program, link).unwrap();
    }
    let state = (*coordinator.state()).clone();
    assert_eq!(
        (state.attachment_points.len(), state.user_ases.len()),
        (3, 20)
    );
    (folder, state)
}

#[test]
fn a_file_damaged_anywhere_is_refused_or_whole() {
    let (folder, state) = large();
    let path = file(folder.path());
    let whole = fs::read(&path).unwrap();
    let mut runner = TestRunner::new(Config::with_cases(100));
    let damage = (
        any::<prop::sample::Index>(),
        prop::collection::vec(any::<u8>(), 1..64),
    );
    let refused = std::cell::Cell::new(0);
    runner
        .run(&damage, |(at, bytes)| {
            fs::write(&path, &whole).unwrap();
            let written = fs::OpenOptions::new().write(true).open(&path).unwrap();
            // Most of a file is free pages: half of the places are those with something in them.
            let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
            let at = match bytes.len() % 2 {
                0 => at.index(whole.len()),
                _ => used[at.index(used.len())],
            };
            written.write_at(&bytes, at as u64).unwrap();
            match Store::open(&path, &folder.path().join("ases")) {
                Ok((_, found)) => prop_assert_eq!(format!("{found:?}"), format!("{state:?}")),
                Err(error) => {
                    let error = error.to_string();
                    prop_assert!(error.contains("from a backup"), "{}", error);
                    refused.set(refused.get() + 1);
                }
            }
            Ok(())
        })
        .unwrap();
    println!(
        "{} of 100 damaged files were refused, the others were whole",
        refused.get()
    );
    assert!(refused.get() > 0);
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let (folder, _) = closed();
    let path = file(folder.path());
    let whole = fs::read(&path).unwrap();
    for part in 0..20 {
        fs::write(&path, &whole[..whole.len() * part / 20]).unwrap();
        let error = reason(folder.path());
        assert!(
            error.contains("restore the file from a backup"),
            "{part}: {error}"
        );
    }
}

#[test]
fn keys_without_a_state_are_no_new_network() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("ases")).unwrap();
    // An empty folder of keys is none.
    drop(Coordinator::open(folder.path()).unwrap());
    fs::write(folder.path().join("ases/key"), "").unwrap();
    drop(Coordinator::open(folder.path()).unwrap());
    fs::remove_file(file(folder.path())).unwrap();
    let error = reason(folder.path());
    assert!(error.contains("has the keys of a network"), "{error}");
    assert!(!file(folder.path()).exists());
    // Nothing else is left behind.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Whether the disk of [`Disk`] is full.
static FULL: AtomicBool = AtomicBool::new(false);

/// A file on a disk that can be full.
#[derive(Debug)]
struct Disk(FileBackend);

fn has_room() -> std::io::Result<()> {
    match FULL.load(Ordering::Relaxed) {
        true => Err(std::io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        has_room()?;
        self.0.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        has_room()?;
        self.0.write(offset, data)
    }

    fn close(&self) -> std::io::Result<()> {
        self.0.close()
    }
}

fn on_disk(path: &Path) -> Result<Database, DatabaseError> {
    let opened = fs::OpenOptions::new().read(true).write(true).open(path);
    let backend = FileBackend::new(opened.unwrap())?;
    super::super::file::checked().create_with_backend(Disk(backend))
}

#[test]
fn a_full_disk_refuses_changes_only_while_it_is_full() {
    let (folder, _) = closed();
    let path = file(folder.path());
    let opened = DatabaseFile::with_opener(&path, on_disk);
    let coordinator = Coordinator::on_file(opened).unwrap();
    let link = *coordinator.state().links.keys().next().unwrap();
    let set = |rate| {
        let limit = [(Direction::Egress, Some(rate))];
        coordinator
            .set_limit(&Actor::program(), link, &limit)
            .map(drop)
    };
    set(1_000_000).unwrap();
    for _ in 0..3 {
        FULL.store(true, Ordering::Relaxed);
        let error = set(2_000_000).unwrap_err().to_string();
        assert!(error.starts_with("the change cannot be stored"), "{error}");
        assert!(set(2_000_000).is_err());
        let limit = |coordinator: &Coordinator| coordinator.state().links[&link].limit.egress;
        assert_eq!(limit(&coordinator), Some(1_000_000));
        FULL.store(false, Ordering::Relaxed);
        set(3_000_000).unwrap();
        assert_eq!(limit(&coordinator), Some(3_000_000));
        assert!(
            coordinator
                .changes(&Actor::program(), None, 10, None)
                .is_ok()
        );
        set(1_000_000).unwrap();
    }
    drop(coordinator);
    let coordinator = Coordinator::open(folder.path()).unwrap();
    assert_eq!(
        coordinator.state().links[&link].limit.egress,
        Some(1_000_000)
    );
}

//! Stores of other versions, and those that cannot be opened.

mod damage;

use hawser_limit::Direction;
use tempfile::tempdir;

use super::*;
use crate::access::Actor;
use crate::change::ChangeKind;
use crate::coordinator::Coordinator;
use crate::coordinator::tests::network;

/// Changes the tables of a closed store.
fn edit(folder: &Path, change: impl FnOnce(&WriteTransaction)) {
    let database = Database::open(file(folder)).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}

#[test]
fn a_store_of_the_format_before_is_migrated() {
    let folder = tempdir().unwrap();
    let limit = [(Direction::Egress, Some(1_000_000))];
    let link = {
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let link = network(&coordinator);
        coordinator
            .set_limit(&Actor::program(), link, &limit)
            .unwrap();
        link
    };
    // Format 1 did not have these tables, and nothing else was different.
    edit(folder.path(), |transaction| {
        assert!(transaction.delete_table(CHANGES_BY_LINK).unwrap());
        let mut meta = transaction.open_table(META).unwrap();
        assert!(transaction.delete_table(AS_LINKS).unwrap());
        meta.insert("schema", 1).unwrap();
    });
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let page = coordinator.changes(&Actor::program(), None, 10, Some(link));
    let kinds: Vec<_> = page
        .unwrap()
        .changes
        .into_iter()
        .map(|one| one.kind)
        .collect();
    assert!(matches!(kinds[0], ChangeKind::Limit { .. }), "{kinds:?}");
    assert!(
        matches!(kinds.last(), Some(ChangeKind::LinkAdded { .. })),
        "{kinds:?}"
    );
    assert_eq!(
        coordinator.state().links[&link].limit.egress,
        Some(1_000_000)
    );
}

#[test]
fn a_store_without_links_between_user_ases_has_none() {
    let folder = tempdir().unwrap();
    let link = network(&Coordinator::open(folder.path()).unwrap());
    edit(folder.path(), |transaction| {
        assert!(transaction.delete_table(AS_LINKS).unwrap());
        let mut meta = transaction.open_table(META).unwrap();
        meta.insert("schema", 2).unwrap();
    });
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let state = coordinator.state();
    assert!(state.as_links.is_empty() && state.links.contains_key(&link));
}

#[test]
fn links_of_before_delays_have_none() {
    let folder = tempdir().unwrap();
    let link = network(&Coordinator::open(folder.path()).unwrap());
    edit(folder.path(), |transaction| {
        let mut links = transaction.open_table(LINKS).unwrap();
        let stored = links.get(link.0).unwrap().unwrap().value().to_vec();
        let mut stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        for name in ["delay_us", "jitter_us", "loss"] {
            assert!(stored.as_object_mut().unwrap().remove(name).is_some());
        }
        let stored = serde_json::to_vec(&stored).unwrap();
        links.insert(link.0, stored.as_slice()).unwrap();
    });
    let coordinator = Coordinator::open(folder.path()).unwrap();
    assert!(coordinator.state().links[&link].emulation.is_none());
}

#[test]
fn a_newer_store_is_refused() {
    let folder = tempdir().unwrap();
    drop(Coordinator::open(folder.path()).unwrap());
    edit(folder.path(), |transaction| {
        let mut meta = transaction.open_table(META).unwrap();
        meta.insert("schema", SCHEMA + 1).unwrap();
    });
    let error = Coordinator::open(folder.path()).unwrap_err().to_string();
    let expected = format!(
        "has format {}, and this hawser reads up to {SCHEMA}",
        SCHEMA + 1
    );
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let folder = tempdir().unwrap();
    let first = Coordinator::open(folder.path()).unwrap();
    let error = Coordinator::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is in use by another hawser"), "{error}");
    drop(first);
    edit(folder.path(), |transaction| {
        let mut links = transaction.open_table(LINKS).unwrap();
        links.insert(7, b"{}".as_slice()).unwrap();
    });
    let error = Coordinator::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("entry 7 of links: missing field"), "{error}");

    std::fs::write(file(folder.path()), "not a database").unwrap();
    let error = Coordinator::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("state.redb"), "{error}");

    let below = file(folder.path()).join("below");
    for path in [Path::new("/dev/null"), &below] {
        let error = Coordinator::open(path).unwrap_err().to_string();
        let text = format!("cannot use the folder {}: it is a file", path.display());
        assert!(
            error.starts_with(&text) && error.contains("--state"),
            "{error}"
        );
    }
}

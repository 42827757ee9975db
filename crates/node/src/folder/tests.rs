use std::os::unix::fs::PermissionsExt;

use hawser_bundle::Role;

use super::*;
use crate::run::testing::bundle;

fn place() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("as");
    (parent, path)
}

/// The names in the folder of versions.
fn versions(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path().join(VERSIONS)).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn a_new_folder_gets_the_configuration_and_is_closed_to_others() {
    let (_keep, path) = place();
    let (folder, installed) = Folder::join(&path, &bundle(1, "a")).unwrap();
    assert_eq!(installed, Installed::New);
    assert_eq!(folder.current().unwrap().unwrap(), bundle(1, "a"));
    let mode = path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert!(path.join("current/topology.json").exists());
}

#[test]
fn the_newer_version_stays() {
    let (_keep, path) = place();
    let join = |bundle: &Bundle| Folder::join(&path, bundle).map(|(_, installed)| installed);
    assert_eq!(join(&bundle(1, "a")).unwrap(), Installed::New);
    assert_eq!(join(&bundle(1, "a")).unwrap(), Installed::Same);
    let replaced = Installed::Replaced { before: 1 };
    assert_eq!(join(&bundle(3, "b")).unwrap(), replaced);
    let newer = Installed::Newer { version: 3 };
    assert_eq!(join(&bundle(2, "c")).unwrap(), newer);
    let folder = Folder::open(&path).unwrap();
    assert_eq!(folder.current().unwrap().unwrap(), bundle(3, "b"));
    assert_eq!(versions(&folder).len(), 1);
}

#[test]
fn folders_of_others_are_not_touched() {
    let (_keep, path) = place();
    drop(Folder::join(&path, &bundle(1, "a")).unwrap());
    let mut other = bundle(1, "a");
    let isd_as = "1-ff00:0:999".parse().unwrap();
    let topology = hawser_topology::AsTopology {
        isd_as,
        ..other.topology().unwrap()
    };
    other.set_topology(&topology);
    other.set_manifest(&Manifest::new(isd_as, Role::User, 9));
    let error = Folder::join(&path, &other).unwrap_err().to_string();
    assert!(error.contains("1-ff00:0:111, not 1-ff00:0:999"), "{error}");

    let (_keep, path) = place();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.txt"), "x").unwrap();
    let error = Folder::join(&path, &other).unwrap_err().to_string();
    assert!(error.contains("neither empty nor"), "{error}");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    let error = Folder::open(&path.join("nowhere")).unwrap_err();
    assert!(matches!(error, InstallError::NotAnAs(_)), "{error}");
}

#[test]
fn one_process_runs_an_as() {
    let (_keep, path) = place();
    let (folder, _) = Folder::join(&path, &bundle(1, "a")).unwrap();
    let error = Folder::join(&path, &bundle(2, "a")).unwrap_err();
    assert!(matches!(error, InstallError::Runs(_)), "{error}");
    drop(folder);
    Folder::join(&path, &bundle(2, "a")).unwrap();
}

#[test]
fn paths_too_long_for_sockets_are_refused() {
    let (_keep, path) = place();
    let error = Folder::join(&path.join("x".repeat(70)), &bundle(1, "a")).unwrap_err();
    assert!(matches!(error, InstallError::TooLong { .. }), "{error}");
    assert!(!path.exists());
}

/// Whatever a crash leaves, the current version is the old one or the new one, and the next start
/// works.
#[test]
fn a_crash_at_any_moment_leaves_a_whole_version() {
    let (old, new) = (bundle(1, "a"), bundle(2, "b"));
    type Left = fn(&Path, &Bundle);
    let left: [Left; 4] = [
        // In the middle of writing the files.
        |path, _| fs::create_dir_all(path.join("versions/.2-00000000.new/keys")).unwrap(),
        // All files are written, the link is the old one.
        |path, new| new.write(&path.join("versions/2-00000000")).unwrap(),
        // The new link is not in place yet.
        |path, _| symlink("versions/2-00000000", path.join(".current.new")).unwrap(),
        // In the middle of writing the segments.
        |path, _| fs::write(path.join(".segments.new"), "{").unwrap(),
    ];
    for crash in left {
        let (_keep, path) = place();
        drop(Folder::join(&path, &old).unwrap());
        crash(&path, &new);
        let (folder, installed) = Folder::join(&path, &old).unwrap();
        assert_eq!(installed, Installed::Same);
        assert_eq!(folder.current().unwrap().unwrap(), old);
        assert_eq!(versions(&folder).len(), 1);
        folder.install(&new).unwrap();
        assert_eq!(folder.current().unwrap().unwrap(), new);
        folder.forget_others(&[]).unwrap();
        assert_eq!(versions(&folder).len(), 1);
    }
    // At the very first start, before there is a version.
    let (_keep, path) = place();
    fs::create_dir_all(path.join("versions/.1-00000000.new")).unwrap();
    fs::write(path.join("lock"), "").unwrap();
    let (folder, installed) = Folder::join(&path, &old).unwrap();
    assert_eq!(installed, Installed::New);
    assert_eq!(folder.current().unwrap().unwrap(), old);
}

#[test]
fn versions_that_services_run_from_stay() {
    let (_keep, path) = place();
    let (folder, _) = Folder::join(&path, &bundle(1, "a")).unwrap();
    let first = folder.current_path().unwrap().unwrap();
    folder.install(&bundle(2, "b")).unwrap();
    folder.install(&bundle(3, "c")).unwrap();
    folder.forget_others(&[&first]).unwrap();
    assert_eq!(versions(&folder).len(), 2);
    assert!(first.exists());
    // Back to the first, as a coordinator may do.
    assert_eq!(folder.install(&bundle(1, "a")).unwrap(), first);
    assert_eq!(folder.current().unwrap().unwrap(), bundle(1, "a"));
}

#[test]
fn segments_are_replaced_whole() {
    let (_keep, path) = place();
    let (folder, _) = Folder::join(&path, &bundle(1, "a")).unwrap();
    for text in ["one", "two"] {
        folder.write_segments(text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(folder.segments()).unwrap(), text);
    }
    assert!(!path.join(".segments.new").exists());
}

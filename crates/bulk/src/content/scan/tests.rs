use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::content::manifest::{EntryKind, PART_SUFFIX};
use crate::content::{Source, SourceError};

/// A folder with files, a link, and a directory.
fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("data/b/c")).unwrap();
    fs::write(at("data/z"), "zz").unwrap();
    fs::write(at("data/b/c/x"), "xxx").unwrap();
    fs::write(at("data/a"), "a").unwrap();
    fs::write(at("single"), "s").unwrap();
    symlink("../a", at("data/b/l")).unwrap();
    dir
}

fn paths(scan: &Scan) -> Vec<&str> {
    let entries = scan.manifest.entries().iter();
    entries.map(|entry| entry.path.to_str().unwrap()).collect()
}

fn scan_of(paths: &[PathBuf]) -> Scan {
    scan(paths, ScanOptions::default()).unwrap()
}

/// All content, read through a source.
fn content(scan: Scan) -> Vec<u8> {
    let source = Source::open(scan);
    let mut bytes = vec![0; source.manifest().length() as usize];
    source.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn directories_are_named_as_scp_and_rsync_do() {
    let dir = tree();
    let below = ["a", "b", "b/c", "b/c/x", "b/l", "z"];
    let named: Vec<String> = below.iter().map(|path| format!("data/{path}")).collect();
    let mut named: Vec<&str> = named.iter().map(String::as_str).collect();
    named.insert(0, "data");

    let scan = scan_of(&[dir.path().join("data")]);
    assert_eq!(paths(&scan), named);
    assert!(scan.warnings.is_empty());
    assert_eq!(content(scan), b"axxxzz");

    for contents in ["data/", "data/.", "data/b/.."] {
        let scan = scan_of(&[dir.path().join(contents)]);
        assert_eq!(paths(&scan), below, "{contents}");
        assert_eq!(content(scan), b"axxxzz");
    }

    let scan = scan_of(&[dir.path().join("single"), dir.path().join("data/b")]);
    assert_eq!(paths(&scan), ["single", "b", "b/c", "b/c/x", "b/l"]);
    assert_eq!(content(scan), b"sxxx");
}

#[test]
fn two_of_the_same_name_are_refused() {
    let dir = tree();
    fs::write(dir.path().join("data/single"), "other").unwrap();
    let both = [dir.path().join("single"), dir.path().join("data/single")];
    let error = scan(&both, ScanOptions::default()).unwrap_err();
    assert!(matches!(error, ScanError::Repeated(_)), "{error}");
}

#[test]
fn named_links_are_followed_and_others_stay() {
    let dir = tree();
    symlink(dir.path().join("data"), dir.path().join("to-data")).unwrap();
    symlink(dir.path().join("data/z"), dir.path().join("to-z")).unwrap();
    let scan = scan_of(&["to-data", "to-z"].map(|name| dir.path().join(name)));
    assert_eq!(paths(&scan)[..2], ["to-data", "to-data/a"]);
    assert_eq!(paths(&scan).last(), Some(&"to-z"));
    let target = EntryKind::Link {
        target: "../a".into(),
    };
    assert!(
        scan.manifest
            .entries()
            .iter()
            .any(|entry| entry.kind == target)
    );
    assert_eq!(content(scan), b"axxxzzzz");
}

#[test]
fn what_cannot_be_sent_is_left_out_with_a_warning() {
    let dir = tree();
    let data = dir.path().join("data");
    symlink("/etc/passwd", data.join("absolute")).unwrap();
    symlink("../../single", data.join("outside")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        data.join("fifo"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let mut part = std::ffi::OsString::from(".x");
    part.push(std::str::from_utf8(PART_SUFFIX).unwrap());
    fs::write(data.join(part), "x").unwrap();
    let scan = scan_of(&[data]);
    assert_eq!(paths(&scan).len(), 7);
    let warnings: BTreeSet<String> = scan.warnings.iter().map(Warning::to_string).collect();
    let expected = [
        "/.x.hawser-part is left",
        "/absolute is left",
        "/fifo is left",
        "/outside is left",
    ];
    assert_eq!(warnings.len(), expected.len());
    for expected in expected {
        assert!(
            warnings.iter().any(|warning| warning.contains(expected)),
            "{expected}: {warnings:?}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_reported_by_name() {
    let dir = tree();
    let data = dir.path().join("data");
    let name = "n".repeat(200);
    // Deeper than a path can be; the folders above keep it within reach.
    let mut folder = Folder::existing(&data).unwrap();
    for _ in 0..21 {
        folder.create_folder_at(name.as_ref(), 0o700).unwrap();
        folder = folder.folder(name.as_ref()).unwrap();
    }
    // Root reads everything.
    let is_root = rustix::process::geteuid().is_root();
    fs::set_permissions(data.join("z"), fs::Permissions::from_mode(0o0)).unwrap();
    let strict = ScanOptions {
        strict: true,
        ..ScanOptions::default()
    };
    let error = scan(std::slice::from_ref(&data), strict).unwrap_err();
    let ScanError::Unreadable(Unreadable(errors)) = &error else {
        panic!("{error}");
    };
    assert_eq!(errors.len(), if is_root { 1 } else { 2 });
    assert!(error.to_string().contains(&name), "{error}");
    let scan = scan_of(&[data]);
    assert_eq!(scan.unlisted.len(), 1);
    let unreadable = scan.unreadable.iter().map(|(entry, _)| *entry);
    let unreadable: Vec<_> = unreadable.map(|entry| paths(&scan)[entry]).collect();
    assert_eq!(unreadable, if is_root { &[][..] } else { &["data/z"] });
    assert!(paths(&scan).contains(&"data/b/c/x"));
}

/// Whether the file system of a folder has ACLs; sets that of a file.
fn set_acl(path: &Path, acl: &str) -> bool {
    let set = std::process::Command::new("setfacl")
        .args(["-m", acl])
        .arg(path)
        .output();
    set.is_ok_and(|output| output.status.success())
}

/// With an ACL the group bits of a mode are the most that it gives to anybody.
#[test]
fn rights_of_an_acl_are_not_given_to_the_group() {
    let dir = tree();
    let (file, folder) = (dir.path().join("data/z"), dir.path().join("data/b"));
    for (path, mode) in [(&file, 0o600), (&folder, 0o750)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    if !set_acl(&file, "u:12345:rw") || !set_acl(&folder, "u:12345:rwx") {
        eprintln!("skipped: there is no setfacl, or the file system has no ACLs");
        return;
    }
    let shown = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((shown(&file), shown(&folder)), (0o660, 0o770));
    let scan = scan_of(&[dir.path().join("data")]);
    let mode = |path: &str| {
        let mut entries = scan.manifest.entries().iter();
        entries
            .find(|entry| entry.path == Path::new(path))
            .unwrap()
            .mode
    };
    assert_eq!((mode("data/z"), mode("data/b")), (0o600, 0o750));
    let missing = scan.warnings.iter().map(Warning::to_string);
    let missing: Vec<_> = missing.collect();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(
        missing[0].starts_with("the ACLs of 2 files or folders"),
        "{missing:?}"
    );
}

#[test]
fn what_is_not_carried_is_named_once() {
    let dir = tree();
    let at = |name: &str| dir.path().join("data").join(name);
    fs::hard_link(at("z"), at("z2")).unwrap();
    fs::set_permissions(at("a"), fs::Permissions::from_mode(0o4755)).unwrap();
    let scan = scan_of(&[dir.path().join("data")]);
    let warnings: Vec<_> = scan.warnings.iter().map(Warning::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with("set-uid and set-gid of 1 files"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].starts_with("the hard links of 2 files"),
        "{warnings:?}"
    );
    // Of each folder the last name is found first.
    assert!(warnings[1].ends_with("data/z2"), "{warnings:?}");
}

#[test]
fn nothing_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let inside = [dir.path().join("")];
    let error = scan(&inside, ScanOptions::default()).unwrap_err();
    assert!(matches!(error, ScanError::Nothing), "{error}");
    let absent = [dir.path().join("absent")];
    let error = scan(&absent, ScanOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("absent"), "{error}");
}

#[test]
fn only_what_is_shared_is_listed() {
    let dir = tree();
    let shared = dir.path().join("data");
    symlink("..", shared.join("up")).unwrap();
    symlink("../single", shared.join("out")).unwrap();
    let list = |wanted: &str| scan_shared(&shared, Path::new(wanted), ScanOptions::default());
    assert_eq!(
        paths(&list("").unwrap()),
        ["a", "b", "b/c", "b/c/x", "b/l", "z"]
    );
    assert_eq!(paths(&list("b/").unwrap()), ["c", "c/x"]);
    assert_eq!(paths(&list("b/c").unwrap()), ["c", "c/x"]);
    assert_eq!(paths(&list("./z").unwrap()), ["z"]);
    assert_eq!(content(list("b/c/x").unwrap()), b"xxx");
    for wanted in ["..", "../single", "/etc", "b/../../single"] {
        let error = list(wanted).unwrap_err();
        assert!(matches!(error, ScanError::Outside(_)), "{wanted}: {error}");
    }
    for wanted in ["up/single", "up/data/a"] {
        let error = list(wanted).unwrap_err();
        assert!(
            matches!(error, ScanError::Store(StoreError::Link(_))),
            "{wanted}: {error}"
        );
    }
    for wanted in ["up", "out"] {
        let error = list(wanted).unwrap_err();
        assert!(matches!(error, ScanError::Nothing), "{wanted}: {error}");
    }
    assert!(list("absent").unwrap_err().to_string().contains("absent"));
    // Under another name.
    let list = |wanted: &str| {
        scan_shared_as(
            &shared,
            Path::new(wanted),
            "new".as_ref(),
            ScanOptions::default(),
        )
    };
    assert_eq!(paths(&list("z").unwrap()), ["new"]);
    assert_eq!(content(list("b/c/x").unwrap()), b"xxx");
    assert_eq!(paths(&list("b/c").unwrap()), ["new", "new/x"]);
    assert_eq!(content(list("b/c").unwrap()), b"xxx");
    // Links that lead out of what is listed, but not out of the folder that it lands in.
    let all = [
        "new",
        "new/a",
        "new/b",
        "new/b/c",
        "new/b/c/x",
        "new/b/l",
        "new/out",
        "new/up",
        "new/z",
    ];
    assert_eq!(paths(&list("").unwrap()), all);
    assert!(matches!(list("../single"), Err(ScanError::Outside(_))));
}

#[test]
fn holes_are_not_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse");
    let file = fs::File::create(&path).unwrap();
    file.set_len(10 << 20).unwrap();
    file.write_all_at(&[1; 100], 3 << 20).unwrap();
    file.write_all_at(&[2; 5000], 7 << 20).unwrap();
    let scan = scan_of(&[path]);
    let EntryKind::File { size, extents } = &scan.manifest.entries()[0].kind else {
        panic!("it is a file");
    };
    assert_eq!(*size, 10 << 20);
    // The file system decides how large its holes are, but it has some.
    assert!(scan.manifest.length() < 2 << 20, "{extents:?}");
    let found = |at: u64| {
        extents
            .iter()
            .any(|extent| extent.offset <= at && at < extent.end())
    };
    assert!(found(3 << 20) && found((7 << 20) + 4999) && !found(0) && !found((10 << 20) - 1));
}

#[test]
fn files_that_change_are_detected() {
    let dir = tree();
    let path = dir.path().join("data/z");
    let read = |change: &dyn Fn()| {
        fs::write(&path, "zz").unwrap();
        let options = ScanOptions {
            strict: true,
            ..ScanOptions::default()
        };
        let source = Source::open(scan(&[dir.path().join("data")], options).unwrap());
        let mut bytes = [0; 6];
        source.read_at(0, &mut bytes).unwrap();
        change();
        // The others can still be read.
        source.read_at(0, &mut bytes[..4]).unwrap();
        source.read_at(4, &mut bytes[4..])
    };
    let touch = || {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
    };
    assert!(read(&|| ()).is_ok());
    let changes: [&dyn Fn(); 3] = [
        &|| fs::write(&path, "z").unwrap(),
        &|| fs::write(&path, "zzz").unwrap(),
        &touch,
    ];
    for change in changes {
        match read(change) {
            Err(SourceError::Changed(changed)) => assert_eq!(changed, path),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn zeros_are_on_no_disk() {
    let source = Source::zeros(3_000_000).unwrap();
    let mut bytes = [1; 1000];
    source.read_at(2_999_000, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 1000]);
    assert_eq!(source.manifest().length(), 3_000_000);
    assert_eq!(Source::zeros(0).unwrap().manifest().length(), 0);
    assert!(Source::zeros(u64::MAX).is_err());
}

#[test]
fn a_file_of_proc_is_not_sent_as_an_empty_one() {
    let scan = scan(&["/proc/self/status".into()], ScanOptions::default()).unwrap();
    let (0, error) = &scan.unreadable[0] else {
        panic!("{:?}", scan.unreadable);
    };
    let error = error.to_string();
    assert!(error.contains("/status: it has content"), "{error}");
    assert!(error.contains("copy it, and send the copy"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("empty"), "").unwrap();
    let scan = scan_of(&[dir.path().join("empty")]);
    assert_eq!(scan.manifest.entries()[0].size(), 0);
}

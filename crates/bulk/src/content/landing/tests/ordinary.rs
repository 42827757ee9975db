//! Content that an ordinary user may not read or write in part.

use std::process::{Command, Stdio};

use super::*;

/// The folder of the hosts of [`lands_as_an_ordinary_user`].
const FOLDER: &str = "HAWSER_TEST_ORDINARY_FOLDER";
/// An ordinary user.
const NOBODY: u32 = 65534;

/// Modes without rights of the owner, of a directory and of the file in it.
const MODES: [(&str, u32); 8] = [
    ("w/file", 0o200),
    ("w/part", 0o000),
    ("w/empty", 0o000),
    ("w/x/file", 0o400),
    ("w/x", 0o100),
    ("w/none/file", 0o600),
    ("w/none", 0o000),
    ("w", 0o300),
];

/// Run by [`what_the_owner_may_not_read_is_received_again`] in a process of another user.
#[test]
#[ignore = "it is one part of another test"]
fn lands_as_an_ordinary_user() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    // The source is not this user's: only its names and modes are needed.
    let entries = [
        ("w", 0o300),
        ("w/empty", 0o000),
        ("w/file", 0o200),
        ("w/none", 0o000),
        ("w/none/file", 0o600),
        ("w/part", 0o000),
        ("w/x", 0o100),
        ("w/x/file", 0o400),
    ];
    let content = |name: &str| (!name.ends_with("empty")).then_some(5);
    let entries = entries.map(|(name, mode)| {
        let is_file = ["file", "part", "empty"]
            .iter()
            .any(|end| name.ends_with(end));
        let extents = content(name).map(|length| crate::content::Extent { offset: 0, length });
        crate::content::Entry {
            path: name.into(),
            mode,
            modified: crate::content::Modified::default(),
            attributes: None,
            kind: match is_file {
                true => EntryKind::File {
                    size: content(name).unwrap_or(0),
                    extents: extents.into_iter().collect(),
                },
                false => EntryKind::Directory,
            },
        }
    });
    let manifest = Arc::new(Manifest::new(entries).unwrap());
    let options = LandingOptions {
        sync: false,
        strict: true,
        ..LandingOptions::default()
    };
    let landing = Landing::prepare(manifest, &folder.join("to"), options).unwrap();
    landing.existing(|_, _| true).unwrap();
    landing.write_range(0, &[b'x'; 20]).unwrap();
    landing.complete().unwrap();
}

/// Three times: into a new folder, into the same again, and where part files have their last modes.
#[test]
fn what_the_owner_may_not_read_is_received_again() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root becomes another user");
        return;
    }
    let hosts = Hosts::new();
    let to = hosts.to("");
    fs::create_dir_all(&to).unwrap();
    fs::set_permissions(hosts.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&to, Some(NOBODY), Some(NOBODY)).unwrap();
    // The test program may be in a folder that is closed to others.
    let program = hosts.0.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for round in 0..3 {
        if round == 2 {
            let part = hosts.to("w/.part.hawser-part");
            fs::rename(hosts.to("w/part"), &part).unwrap();
        }
        let output = std::os::unix::process::CommandExt::gid(
            std::os::unix::process::CommandExt::uid(&mut Command::new(&program), NOBODY),
            NOBODY,
        )
        .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .arg("content::landing::tests::ordinary::lands_as_an_ordinary_user")
        .env(FOLDER, hosts.0.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap();
        assert!(output.status.success(), "round {round}: {output:?}");
        for (name, mode) in MODES {
            let found = hosts.to(name).metadata().unwrap().mode() & 0o7777;
            assert_eq!(found, mode, "{name}");
        }
        assert_eq!(fs::read(hosts.to("w/none/file")).unwrap(), b"xxxxx");
    }
}

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Component;

use hawser_fuzz::{fuzz, samples};
use proptest::prelude::*;

use super::*;
use crate::protocol::MAX_MESSAGE;

fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry {
        path: path.into(),
        mode: 0o644,
        modified: Modified::default(),
        attributes: None,
        kind,
    }
}

fn file(path: &str, extents: &[(u64, u64)]) -> Entry {
    let extents: Vec<Extent> = extents
        .iter()
        .map(|(offset, length)| Extent {
            offset: *offset,
            length: *length,
        })
        .collect();
    let size = extents.last().map_or(0, |last| last.end());
    entry(path, EntryKind::File { size, extents })
}

fn directory(path: &str) -> Entry {
    entry(path, EntryKind::Directory)
}

fn link(path: &str, target: &str) -> Entry {
    let target = target.into();
    entry(path, EntryKind::Link { target })
}

/// Attributes that are carried.
fn any_attributes() -> impl Strategy<Value = Option<Box<Attributes>>> {
    let number = || prop::option::of(0..u32::MAX);
    let name = prop_oneof![
        Just(ACCESS_ACL.to_vec()),
        Just(DEFAULT_ACL.to_vec()),
        "user\\.[a-z]{1,20}".prop_map(String::into_bytes),
    ];
    let extended = prop::collection::vec((name, prop::collection::vec(any::<u8>(), 0..50)), 0..4);
    (number(), number(), number(), extended).prop_map(|(user, group, hard_link, extended)| {
        let attributes = Attributes {
            user,
            group,
            hard_link,
            extended,
        };
        (attributes != Attributes::default()).then(|| Box::new(attributes))
    })
}

#[test]
fn hard_links_are_further_names_of_files_before() {
    let link = |path: &str, of: u32| {
        let attributes = Attributes {
            hard_link: Some(of),
            ..Attributes::default()
        };
        Entry {
            attributes: Some(Box::new(attributes)),
            ..file(path, &[])
        }
    };
    let before = || [directory("d"), file("d/a", &[(0, 3)]), link("d/b", 1)];
    assert!(Manifest::new(before()).is_ok());
    for of in [0, 2, 3, 4] {
        let error = Manifest::new(before().into_iter().chain([link("d/c", of)]));
        assert_eq!(error, Err(ManifestError::HardLink("d/c".into())), "{of}");
    }
    let with_content = Entry {
        attributes: link("d/c", 1).attributes,
        ..file("d/c", &[(0, 3)])
    };
    let error = Manifest::new(before().into_iter().chain([with_content]));
    assert_eq!(error, Err(ManifestError::HardLink("d/c".into())));
}

#[test]
fn attributes_that_are_not_carried_are_refused() {
    let named = |name: &[u8]| Attributes {
        extended: vec![(name.to_vec(), b"x".to_vec())],
        ..Attributes::default()
    };
    let nobody = Attributes {
        user: Some(u32::MAX),
        ..Attributes::default()
    };
    let names: [&[u8]; 4] = [b"security.capability", b"trusted.x", b"user.", b"user.\0"];
    for attributes in names.map(named).into_iter().chain([nobody]) {
        let entry = Entry {
            attributes: Some(Box::new(attributes)),
            ..directory("f")
        };
        let error = ManifestBuilder::default().push(&encoded(&entry));
        assert_eq!(error, Err(ManifestError::Attributes("f".into())));
    }
}

fn encoded(entry: &Entry) -> Vec<u8> {
    let mut fields = Vec::new();
    entry.encode(&mut fields);
    fields
}

/// The manifest of entries that were sent, and the end that the source sends.
fn received(entries: &[Entry]) -> Result<Manifest, ManifestError> {
    let mut builder = ManifestBuilder::default();
    let mut hasher = blake3::Hasher::new();
    let mut length = 0;
    for entry in entries {
        hasher.update(&encoded(entry));
        builder.push(&encoded(entry))?;
        if let EntryKind::File { extents, .. } = &entry.kind {
            length += extents.iter().map(|extent| extent.length).sum::<u64>();
        }
    }
    builder.finish(entries.len() as u64, length, hasher.finalize().into())
}

fn any_path() -> impl Strategy<Value = PathBuf> {
    let path = proptest::collection::vec(any::<u8>(), 0..40);
    path.prop_map(|bytes| OsString::from_vec(bytes).into())
}

/// Entries that can be encoded, valid or not.
fn any_entry() -> impl Strategy<Value = Entry> {
    let extents = proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40), 0..6);
    let extents = extents.prop_map(|runs| {
        let mut at = 0;
        let place = |(hole, length): (u64, u64)| {
            let offset = at + hole;
            at = offset + length;
            Extent { offset, length }
        };
        runs.into_iter().map(place).collect()
    });
    let kind = prop_oneof![
        (0u64..1 << 62, extents).prop_map(|(size, extents)| EntryKind::File { size, extents }),
        Just(EntryKind::Directory),
        any_path().prop_map(|target| EntryKind::Link { target }),
    ];
    let modified = (any::<i64>(), any::<u32>());
    (any_path(), any::<u32>(), modified, any_attributes(), kind).prop_map(
        |(path, mode, (seconds, nanoseconds), attributes, kind)| Entry {
            path,
            mode,
            modified: Modified {
                seconds,
                nanoseconds,
            },
            attributes,
            kind,
        },
    )
}

proptest! {
    #[test]
    fn entries_survive_encoding(entry in any_entry()) {
        prop_assert_eq!(Entry::decode(&encoded(&entry)), Ok(entry));
    }

    /// Also with a byte changed, removed or appended: what decodes encodes to something equal.
    #[test]
    fn any_bytes_are_an_entry_or_an_error(
        entry in any_entry(),
        at: prop::sample::Index,
        byte: u8,
        tail in proptest::collection::vec(any::<u8>(), 0..4),
        kept: prop::sample::Index,
    ) {
        let mut fields = encoded(&entry);
        let at = at.index(fields.len());
        fields[at] = byte;
        fields.extend(tail);
        fields.truncate(kept.index(fields.len() + 1));
        if let Ok(entry) = Entry::decode(&fields) {
            prop_assert_eq!(Entry::decode(&encoded(&entry)), Ok(entry));
        }
        // Either is fine; it must not panic.
        let _ = ManifestBuilder::default().push(&fields);
    }

    /// Whatever a builder accepts stays below the folder.
    #[test]
    fn accepted_paths_are_plain(path in any_path(), parts in proptest::collection::vec("[./a]{0,3}", 1..4)) {
        for path in [path, parts.join("/").into()] {
            let entry = Entry { path: path.clone(), ..directory("x") };
            if ManifestBuilder::default().push(&encoded(&entry)).is_ok() {
                let components: Vec<_> = path.components().collect();
                let is_plain = matches!(components[..], [Component::Normal(_)]);
                prop_assert!(is_plain, "{path:?}");
                prop_assert_eq!(components[0].as_os_str(), path.as_os_str());
            }
        }
    }

    #[test]
    fn pieces_tile_the_content(
        files in proptest::collection::vec(proptest::collection::vec((1u64..9, 1u64..9), 0..4), 0..8),
        start in 0u64..200,
        length in 0u64..200,
    ) {
        let entries: Vec<Entry> = files.iter().enumerate().map(|(index, runs)| {
            let mut at = 0;
            let place = |(hole, length): &(u64, u64)| {
                let extent = (at + hole, *length);
                at += hole + length;
                extent
            };
            let extents: Vec<_> = runs.iter().map(place).collect();
            file(&format!("f{index}"), &extents)
        }).collect();
        let manifest = Manifest::new(entries).unwrap();
        let mut at = start.min(manifest.length());
        for piece in manifest.pieces(start..start + length) {
            prop_assert_eq!(piece.position, at);
            prop_assert!(piece.length > 0);
            let EntryKind::File { extents, .. } = &manifest.entries()[piece.entry].kind else {
                panic!("{piece:?} is in no file");
            };
            let holds = |extent: &Extent| extent.offset <= piece.offset && piece.end() <= extent.end();
            prop_assert!(extents.iter().any(holds));
            let content = manifest.content_of(piece.entry);
            prop_assert!(content.start <= at && at + piece.length <= content.end);
            at += piece.length;
        }
        prop_assert_eq!(at, (start + length).min(manifest.length()));
    }
}

#[test]
fn any_bytes_are_accepted_or_refused() {
    let valid = samples(any_entry());
    let mut valid: Vec<_> = valid.iter().map(encoded).collect();
    valid.extend(
        [
            file("a", &[(0, 5), (10, 7)]),
            link("b", "a"),
            directory("c"),
        ]
        .iter()
        .map(encoded),
    );
    fuzz(&valid, |fields| {
        let mut builder = ManifestBuilder::default();
        if builder.push(fields).is_ok() {
            // What is accepted once is in the way of the same path.
            let again = builder.push(fields).and_then(|()| builder.build());
            assert!(again.is_err(), "{fields:?}");
        }
    });
}

#[test]
fn a_manifest_arrives_as_it_was_sent() {
    let entries = [
        directory("a"),
        file("a/b", &[(0, 5), (10, 7)]),
        directory("a/c"),
        link("a/c/d", "../b"),
        file("e", &[]),
    ];
    let manifest = received(&entries).unwrap();
    assert_eq!(manifest, Manifest::new(entries.clone()).unwrap());
    assert_eq!(manifest.entries(), entries);
    assert_eq!(manifest.length(), 12);
    let parents: Vec<_> = (0..5).map(|entry| manifest.parent(entry)).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(2), None]);
}

#[test]
fn hostile_paths_are_refused() {
    let long = format!("{}/{}", "a".repeat(255), "b".repeat(256));
    let deep = "d/".repeat(2048) + "d";
    let paths = [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a//b",
        "a/",
        ".",
        "./a",
        "a/.",
        "a/\0",
        &long,
        &deep,
    ];
    for path in paths {
        let refused = received(&[directory("a"), file(path, &[])]);
        assert_eq!(refused, Err(ManifestError::Path(path.into())), "{path:?}");
    }
    let part = ".x.hawser-part";
    let refused = received(&[file(part, &[])]);
    assert_eq!(refused, Err(ManifestError::Reserved(part.into())));
}

#[test]
fn links_out_of_the_folder_are_refused() {
    let targets = [
        ("/etc/passwd", false),
        ("", false),
        ("..", true),
        ("../..", false),
        ("../../x", false),
        ("./../../x", false),
        ("x/../../../..", false),
        ("x/..", false),
        ("../x", true),
        ("x/y/z", true),
        ("./x", true),
        ("..x", true),
        ("x\0", false),
    ];
    for (target, is_fine) in targets {
        let result = received(&[directory("a"), link("a/l", target)]);
        assert_eq!(result.is_ok(), is_fine, "{target:?}: {result:?}");
    }
    let top = received(&[link("l", "..")]);
    assert!(
        matches!(top, Err(ManifestError::LeadsOut { .. })),
        "{top:?}"
    );
}

#[test]
fn entries_need_their_directory_before_them() {
    let missing = |path: &str| Err(ManifestError::NoDirectory(path.into()));
    assert_eq!(received(&[file("a/b", &[])]), missing("a/b"));
    assert_eq!(
        received(&[file("a/b", &[]), directory("a")]),
        missing("a/b")
    );
    assert_eq!(
        received(&[file("a", &[]), file("a/b", &[])]),
        missing("a/b")
    );
    assert_eq!(
        received(&[link("a", "x"), file("a/b", &[])]),
        missing("a/b")
    );
}

#[test]
fn a_path_is_there_once() {
    let repeated = Err(ManifestError::Repeated("a".into()));
    assert_eq!(
        received(&[directory("a"), file("b", &[]), directory("a")]),
        repeated
    );
    assert_eq!(received(&[directory("a"), link("a", "b")]), repeated);
}

#[test]
fn sizes_extents_modes_and_times_are_checked() {
    let sized = |size, extents: &[(u64, u64)]| match file("f", extents).kind {
        EntryKind::File { extents, .. } => entry("f", EntryKind::File { size, extents }),
        _ => unreachable!(),
    };
    let refused = |entry: Entry| received(&[entry]).unwrap_err();
    let path = PathBuf::from("f");
    assert_eq!(
        refused(sized(4, &[(0, 5)])),
        ManifestError::Extents(path.clone())
    );
    assert_eq!(
        refused(sized(4, &[(0, 0)])),
        ManifestError::Extents(path.clone())
    );
    let most = (1 << 62) - 1;
    assert!(received(&[sized(most, &[])]).is_ok());
    let mut both = [sized(most, &[]), sized(1, &[])];
    both[1].path = "g".into();
    assert_eq!(received(&both), Err(ManifestError::Size("g".into())));

    let runs: Vec<_> = (0..=MAX_EXTENTS as u64)
        .map(|index| (2 * index, 1))
        .collect();
    assert_eq!(
        refused(file("f", &runs)),
        ManifestError::Extents(path.clone())
    );
    assert!(received(&[file("f", &runs[1..])]).is_ok());

    let mode = Entry {
        mode: 0o10000,
        ..directory("f")
    };
    assert!(matches!(
        refused(mode),
        ManifestError::Mode { mode: 0o10000, .. }
    ));
    let modified = Modified {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    };
    let late = Entry {
        modified,
        ..directory("f")
    };
    assert_eq!(refused(late), ManifestError::Modified(path));
}

#[test]
fn the_largest_entry_fits_a_message() {
    let hole = 1 << 31;
    let runs: Vec<_> = (1..=MAX_EXTENTS as u64)
        .map(|index| (2 * hole * index, hole))
        .collect();
    let path = "d/".repeat(2047) + "ff";
    let largest = encoded(&file(&path, &runs));
    // And the type of the message, its length, and its number.
    assert!(largest.len() + 32 < MAX_MESSAGE, "{} bytes", largest.len());
    assert!(largest.len() > MAX_PATH + 16 * MAX_EXTENTS);
    let target = "t".repeat(MAX_PATH);
    assert!(encoded(&link(&path, &target)).len() < MAX_MESSAGE);
}

#[test]
fn extents_that_overflow_are_refused() {
    // A file "f" with two extents whose ends are beyond 2^64.
    let mut fields = encoded(&file("f", &[]));
    // Without the numbers of extents and of attributes, and the size.
    fields.truncate(fields.len() - 3);
    fields.extend([0xff; 8]);
    fields.push(5);
    fields.extend([0xff; 80]);
    assert_eq!(
        Entry::decode(&fields),
        Err(ManifestError::Extents("f".into()))
    );
}

#[test]
fn the_end_has_to_match() {
    let entries = [file("a", &[(0, 3)])];
    let hash = blake3::hash(&encoded(&entries[0])).into();
    let finish = |count, length, hash| {
        let mut builder = ManifestBuilder::default();
        builder.push(&encoded(&entries[0])).unwrap();
        builder.finish(count, length, hash)
    };
    assert!(finish(1, 3, hash).is_ok());
    assert!(matches!(
        finish(2, 3, hash),
        Err(ManifestError::Count {
            what: "entries",
            ..
        })
    ));
    assert!(matches!(
        finish(1, 4, hash),
        Err(ManifestError::Count { what: "bytes", .. })
    ));
    assert_eq!(finish(1, 3, [0; 32]), Err(ManifestError::Hash));
}

/// Names come from another host: a message must not carry its control characters to a terminal.
#[test]
fn messages_quote_names() {
    let error = received(&[file("a/\u{1b}[2J", &[])])
        .unwrap_err()
        .to_string();
    assert!(!error.as_bytes().contains(&0x1b), "{error}");
    let name = OsString::from_vec(vec![b'a', b'/', 0xff]);
    assert_eq!(name.as_bytes().len(), 3);
    let entry = Entry {
        path: name.into(),
        ..directory("x")
    };
    assert!(
        received(&[entry])
            .unwrap_err()
            .to_string()
            .contains("\\xFF")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any links that are accepted, in any directories: following them never leaves the folder.
    #[test]
    fn accepted_links_stay_within(
        links in proptest::collection::vec(("(d|d/d|d/d/d)", "[a-c]", "((\\.\\.|\\.|d|a|b|c)/){0,4}(\\.\\.|d|a|b|c)"), 1..6),
    ) {
        let mut entries = ["d", "d/d", "d/d/d"].map(directory).to_vec();
        for (folder, name, target) in &links {
            let next = link(&format!("{folder}/{name}"), target);
            let mut with = entries.clone();
            with.push(next);
            if received(&with).is_ok() {
                entries = with;
            }
        }
        // Makes them really, and follows them.
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("1/2/3/root");
        std::fs::create_dir_all(root.join("d/d/d")).unwrap();
        for entry in &entries {
            if let EntryKind::Link { target } = &entry.kind {
                std::os::unix::fs::symlink(target, root.join(&entry.path)).unwrap();
            }
        }
        let root = root.canonicalize().unwrap();
        for entry in &entries {
            if let Ok(real) = root.join(&entry.path).canonicalize() {
                prop_assert!(real.starts_with(&root), "{:?} is {real:?}", entry.path);
            }
        }
    }
}

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use hawser_bencode::Value;
use proptest::prelude::*;

use super::*;

mod hybrid;
mod two;
mod world;

/// A torrent to be broken in one place.
struct Torrent {
    name: Vec<u8>,
    piece_length: i64,
    hashes: usize,
    length: Option<i64>,
    files: Vec<(Vec<Vec<u8>>, i64, &'static str)>,
}

impl Torrent {
    fn single() -> Self {
        Self {
            name: b"file".to_vec(),
            piece_length: 16384,
            hashes: 3,
            length: Some(40_000),
            files: Vec::new(),
        }
    }

    fn several(paths: &[&[&str]]) -> Self {
        let files = paths.iter().map(|path| {
            let path = path.iter().map(|part| part.as_bytes().to_vec()).collect();
            (path, 20_000, "")
        });
        Self {
            length: None,
            hashes: (20_000 * paths.len()).div_ceil(16384),
            files: files.collect(),
            ..Self::single()
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let hashes = vec![7; self.hashes * 20];
        let files = self.files.iter().map(|(path, length, attr)| {
            Value::dict([
                ("attr", (!attr.is_empty()).then(|| Value::text(attr))),
                ("length", Some(Value::Int(*length))),
                ("path", Some(Value::texts(path))),
            ])
        });
        let files = Value::List(files.collect());
        let info = Value::dict([
            ("files", (!self.files.is_empty()).then_some(files)),
            ("length", self.length.map(Value::Int)),
            ("name", Some(Value::Bytes(&self.name))),
            ("piece length", Some(Value::Int(self.piece_length))),
            ("pieces", Some(Value::Bytes(&hashes))),
        ]);
        let top = Value::dict([
            ("comment", Some(Value::text("made by hand"))),
            ("info", Some(info)),
        ]);
        top.encode()
    }

    fn parse(&self) -> Result<Metainfo, MetainfoError> {
        Metainfo::parse(&self.bytes())
    }
}

#[test]
fn a_single_file_is_read() {
    let metainfo = Torrent::single().parse().unwrap();
    assert_eq!(metainfo.pieces.count(), 3);
    assert_eq!(metainfo.pieces.size(2), 40_000 - 2 * 16384);
    assert_eq!(metainfo.piece_hash(2), Some([7; 20]));
    assert_eq!(metainfo.piece_hash(3), None);
    assert_eq!(metainfo.provenance.comment.as_deref(), Some("made by hand"));
    assert_eq!(metainfo.files[0].path, Path::new("file"));
}

#[test]
fn the_info_hash_is_over_the_bytes_as_they_stand() {
    // SHA-1 of `d6:lengthi1e4:name1:a12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaae`,
    // worked out with sha1sum.
    let text =
        b"d4:infod6:lengthi1e4:name1:a12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
    let metainfo = Metainfo::parse(text).unwrap();
    assert_eq!(
        metainfo.info_hash.to_string(),
        "4de9b0e9855b349178fb7a42f37dc0f2fac3018d"
    );
}

#[test]
fn lengths_and_counts_must_agree() {
    let with = |change: fn(&mut Torrent)| {
        let mut torrent = Torrent::single();
        change(&mut torrent);
        torrent.parse().unwrap_err()
    };
    for absurd in [
        0,
        -1,
        1023,
        i64::from(MAX_PIECE_LENGTH) + 1,
        i64::MAX,
        i64::MIN,
    ] {
        let torrent = Torrent {
            piece_length: absurd,
            ..Torrent::single()
        };
        assert_eq!(torrent.parse(), Err(MetainfoError::PieceLength(absurd)));
    }
    assert!(matches!(
        with(|t| t.hashes = 2),
        MetainfoError::PieceCount { .. }
    ));
    assert!(matches!(
        with(|t| t.hashes = 4),
        MetainfoError::PieceCount { .. }
    ));
    assert!(matches!(
        with(|t| t.length = Some(-1)),
        MetainfoError::FileLength { .. }
    ));
    assert!(matches!(with(|t| t.length = Some(0)), MetainfoError::Empty));
    assert!(matches!(with(|t| t.length = None), MetainfoError::NoFiles));
    let mut huge = Torrent::several(&[&["a"], &["b"]]);
    huge.files[0].1 = i64::MAX;
    assert!(matches!(
        huge.parse(),
        Err(MetainfoError::FileLength { .. })
    ));
}

#[test]
fn a_file_cut_short_is_told_so() {
    let whole = Torrent::several(&[&["a"], &["b"]]).bytes();
    for cut in 0..whole.len() {
        let error = Metainfo::parse(&whole[..cut]).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1);
        assert!(
            matches!(error, MetainfoError::Bencode(BencodeError::CutShort(_))),
            "{error}"
        );
    }
    let mut hashes_cut = Torrent::single().bytes();
    let at = hashes_cut
        .windows(9)
        .position(|w| w == b"6:pieces6")
        .unwrap();
    hashes_cut.splice(at + 8..at + 10, *b"59");
    let last = hashes_cut.len() - 3;
    hashes_cut.remove(last);
    assert_eq!(
        Metainfo::parse(&hashes_cut),
        Err(MetainfoError::PiecesCut(59))
    );
}

proptest! {
    #[test]
    fn parsing_a_damaged_torrent_never_panics(
        at in any::<prop::sample::Index>(),
        with in proptest::collection::vec(any::<u8>(), 0..8),
        remove in 0usize..8,
    ) {
        let mut bytes = Torrent::several(&[&["a"], &["b", "c"]]).bytes();
        let at = at.index(bytes.len());
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, with);
        if let Ok(metainfo) = Metainfo::parse(&bytes) {
            let sum: u64 = (0..metainfo.pieces.count()).map(|p| u64::from(metainfo.pieces.size(p))).sum();
            prop_assert_eq!(sum, metainfo.pieces.total);
            for file in &metainfo.files {
                let plain = file.path.components().all(|c| matches!(c, std::path::Component::Normal(_)));
                prop_assert!(plain);
            }
            prop_assert!(metainfo.links.is_empty());
        }
    }

    #[test]
    fn what_is_made_is_read_back(
        lengths in proptest::collection::vec(0u64..60_000, 1..8),
        power in 14u32..18,
        tiers in proptest::collection::vec(proptest::collection::vec("[a-z]{1,9}", 1..3), 0..4),
        web_seeds in proptest::collection::vec("[a-z]{1,9}", 0..3),
        private in any::<bool>(),
        comment in proptest::option::of(".{0,30}"),
        source in proptest::option::of(".{0,30}"),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("content");
        fs::create_dir_all(root.join("sub")).unwrap();
        for (i, length) in lengths.iter().enumerate() {
            let path = if i % 2 == 0 { root.join(format!("f{i}")) } else { root.join(format!("sub/f{i}")) };
            fs::write(path, vec![i as u8; *length as usize]).unwrap();
        }
        let total: u64 = lengths.iter().sum();
        let options = CreateOptions {
            piece_length: Some(1 << power),
            comment: comment.clone(),
            trackers: tiers.clone(),
            web_seeds: web_seeds.clone(),
            private,
            source: source.clone(),
            ..CreateOptions::default()
        };
        let mut last = 0;
        let made = create(&root, &options, |done, of| {
            assert_eq!(of, total);
            last = done;
        });
        if total == 0 {
            let empty = matches!(made, Err(CreateError::Empty { .. }));
            prop_assert!(empty);
            return Ok(());
        }
        prop_assert_eq!(last, total);
        let made = made.unwrap();
        prop_assert!(hawser_bencode::parse(&made).is_ok(), "not canonical");
        let metainfo = Metainfo::parse(&made).unwrap();
        prop_assert_eq!(metainfo.sources.trackers, tiers);
        prop_assert_eq!(metainfo.sources.web_seeds, web_seeds);
        prop_assert_eq!(metainfo.private, private);
        prop_assert_eq!(metainfo.provenance.comment, comment);
        prop_assert_eq!(metainfo.provenance.source, source);
        prop_assert_eq!(metainfo.pieces.total, total);
        prop_assert_eq!(metainfo.files.len(), lengths.len());
        prop_assert!(metainfo.files.is_sorted_by(|a, b| a.path < b.path));
        for file in &metainfo.files {
            let on_disk = fs::metadata(dir.path().join(&file.path)).unwrap().len();
            prop_assert_eq!(on_disk, file.length);
        }
    }
}

#[test]
fn one_file_makes_a_single_file_torrent_with_the_right_hashes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.bin");
    fs::write(&path, b"abc").unwrap();
    let metainfo =
        Metainfo::parse(&create(&path, &CreateOptions::default(), |_, _| {}).unwrap()).unwrap();
    assert!(!metainfo.multi_file);
    assert_eq!(metainfo.name, "one.bin");
    assert_eq!(metainfo.pieces.length, 16384);
    let sha1_of_abc = [
        0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e, 0x25, 0x71, 0x78, 0x50, 0xc2,
        0x6c, 0x9c, 0xd0, 0xd8, 0x9d,
    ];
    assert_eq!(metainfo.piece_hash(0), Some(sha1_of_abc));
}

#[test]
fn names_are_taken_from_disk_byte_by_byte() {
    let dir = tempfile::tempdir().unwrap();
    let names = [
        (&b"back\\slash"[..], "backslash", "back\\slash"),
        (b"caf\xe9", "caf_", "caf\\xe9"),
        (
            "exe\u{202e}gpj.exe".as_bytes(),
            "exegpj.exe",
            "exe\u{202e}gpj.exe",
        ),
        (b"line\nfeed", "line_feed", "line\nfeed"),
    ];
    let root = dir.path().join(OsStr::from_bytes(b"set\n\xff"));
    fs::create_dir(&root).unwrap();
    for (name, _, _) in names {
        fs::write(root.join(OsStr::from_bytes(name)), name).unwrap();
    }
    let made = create(&root, &CreateOptions::default(), |_, _| {}).unwrap();
    let metainfo = Metainfo::parse(&made).unwrap();
    assert_eq!(metainfo.name, "set__");
    let literal = metainfo.literal_name.as_deref();
    assert_eq!(literal, Some(OsStr::from_bytes(b"set\n\xff")));
    for (file, (name, safe, shown)) in metainfo.files.iter().zip(names) {
        assert_eq!(file.path, Path::new("set__").join(safe));
        assert_eq!(file.original.as_deref(), Some(shown));
        let literal = file.literal.as_deref().map(Path::as_os_str);
        assert_eq!(literal, Some(OsStr::from_bytes(name)));
        let text = [format!("{}:", name.len()).as_bytes(), name].concat();
        assert!(
            made.windows(text.len()).any(|bytes| bytes == text),
            "{shown}"
        );
    }
    // So is the name of a single file.
    let file = root.join(OsStr::from_bytes(b"caf\xe9"));
    let made = create(&file, &CreateOptions::default(), |_, _| {}).unwrap();
    let metainfo = Metainfo::parse(&made).unwrap();
    assert_eq!(metainfo.name, "caf_");
    assert_eq!(metainfo.literal_name.as_deref(), file.file_name());
}

#[test]
fn sockets_and_links_to_elsewhere_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("content");
    fs::create_dir_all(root.join("empty")).unwrap();
    fs::write(root.join("a"), b"abc").unwrap();
    fs::write(dir.path().join("outside"), b"abc").unwrap();
    let link = root.join("link");
    let absolute = dir.path().join("outside").display().to_string();
    for target in ["../outside", &absolute, "nothing", "link", ".", "empty"] {
        symlink(target, &link).unwrap();
        let error = create(&root, &CreateOptions::default(), |_, _| {}).unwrap_err();
        assert!(
            matches!(&error, CreateError::Symlink(path) if path.ends_with("content/link")),
            "{target}: {error}"
        );
        fs::remove_file(&link).unwrap();
    }
    let socket = root.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = create(&root, &CreateOptions::default(), |_, _| {}).unwrap_err();
    assert!(matches!(error, CreateError::Special { .. }), "{error}");
}

#[test]
fn links_to_what_is_in_the_folder_stay_links() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("content");
    fs::create_dir_all(root.join("Versions/A/deep")).unwrap();
    fs::write(root.join("Versions/A/lib"), vec![1; 40_000]).unwrap();
    fs::write(root.join("Versions/A/deep/file"), b"abc").unwrap();
    let absolute = root.canonicalize().unwrap().join("Versions/A/lib");
    for (link, target) in [
        ("Versions/Current", "A"),
        ("lib", "Versions/Current/lib"),
        ("absolute", absolute.to_str().unwrap()),
        ("Versions/A/deep/up", "../lib"),
        ("Versions/A/deep/here", "file"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let made = create(&root, &CreateOptions::default(), |_, _| {}).unwrap();
    let metainfo = Metainfo::parse(&made).unwrap();
    let links: Vec<_> = metainfo
        .links
        .iter()
        .map(|link| {
            let target = link.target.as_ref().map(|target| target.to_str().unwrap());
            (link.path.to_str().unwrap(), target)
        })
        .collect();
    assert_eq!(
        links,
        [
            ("content/Versions/A/deep/here", Some("file")),
            ("content/Versions/A/deep/up", Some("../lib")),
            ("content/Versions/Current", Some("A")),
            ("content/absolute", Some("Versions/A/lib")),
            ("content/lib", Some("Versions/Current/lib")),
        ]
    );
    assert_eq!(metainfo.pieces.total, 40_003);
}

#[test]
fn the_piece_length_grows_with_the_content() {
    for (total, expected) in [
        (1u64, 16 << 10),
        (30 << 20, 16 << 10),
        (100_000_000, 64 << 10),
        (4 << 30, 4 << 20),
        (1 << 40, 16 << 20),
    ] {
        assert_eq!(create::auto_length(total), expected, "{total}");
    }
}

//! Torrents of version 2 alone, and hybrids, that are made here (BEP 52).

use hawser_merkle::{HashRange, HashRequest, MerkleHasher};
use hawser_store::{Ranges, check};

use super::*;
use crate::layout;

const PIECE: usize = 32 << 10;

/// Random content: a file that ends within a piece, one that is shorter than a piece, an empty one, one
/// of whole pieces, and a link.
fn content(dir: &Path) {
    let mut random = fastrand::Rng::with_seed(2);
    fs::create_dir_all(dir.join("d")).unwrap();
    for (name, length) in [
        ("a", 3 * PIECE + 1000),
        ("d/b", 20_000),
        ("d/empty", 0),
        ("e", 2 * PIECE),
        ("f", 5),
    ] {
        let mut bytes = vec![0; length];
        random.fill(&mut bytes);
        fs::write(dir.join(name), bytes).unwrap();
    }
    symlink("b", dir.join("d/link")).unwrap();
}

fn made(path: &Path, version: Version) -> Vec<u8> {
    let options = CreateOptions {
        piece_length: Some(PIECE as u32),
        version,
        ..CreateOptions::default()
    };
    create(path, &options, |_, _| {}).unwrap()
}

/// Which pieces of the content at `path` have their hashes.
fn right(metainfo: &Metainfo, path: &Path) -> Vec<bool> {
    let (root, layout) = layout::at_content(metainfo, path);
    let files = hawser_store::Files::read_only(root, layout);
    let mut right = vec![false; metainfo.pieces.count() as usize];
    check(
        &files,
        metainfo,
        |_| true,
        |piece, is_right| {
            right[piece as usize] = is_right;
            true
        },
    )
    .unwrap();
    right
}

#[test]
fn a_torrent_of_each_version_describes_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    content(&path);
    for version in [Version::One, Version::Two, Version::Hybrid] {
        let metainfo = Metainfo::parse(&made(&path, version)).unwrap();
        assert_eq!(metainfo.version(), version);
        let files = metainfo.files.iter().filter(|file| !file.padding);
        let files: Vec<_> = files
            .map(|it| (it.path.to_str().unwrap(), it.length))
            .collect();
        let expected = [
            ("set/a", 3 * PIECE as u64 + 1000),
            ("set/d/b", 20_000),
            ("set/d/empty", 0),
            ("set/e", 2 * PIECE as u64),
            ("set/f", 5),
        ];
        assert_eq!(files, expected);
        let [link] = &metainfo.links[..] else {
            panic!("{:?}", metainfo.links)
        };
        assert_eq!(link.target.as_deref(), Some(Path::new("b")));
        let right = right(&metainfo, &path);
        assert!(
            right.iter().all(|is_right| *is_right),
            "{version:?}: {right:?}"
        );
        let pieces = if version == Version::One { 6 } else { 8 };
        assert_eq!(right.len(), pieces);
        let hashes = metainfo.info_hashes();
        assert_eq!(hashes.v1.is_some(), version != Version::Two);
        assert_eq!(hashes.v2.is_some(), version != Version::One);
        let named = metainfo.wire_hashes().len();
        assert_eq!(named, if version == Version::Hybrid { 2 } else { 1 });
    }
}

#[test]
fn a_change_is_found_in_its_piece_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    content(&path);
    let metainfo = Metainfo::parse(&made(&path, Version::Two)).unwrap();
    for (file, at, piece) in [
        ("a", PIECE, 1),
        ("a", 3 * PIECE + 999, 3),
        ("d/b", 19_999, 4),
        ("e", 2 * PIECE - 1, 6),
        ("f", 0, 7),
    ] {
        let mut bytes = fs::read(path.join(file)).unwrap();
        bytes[at] ^= 1;
        fs::write(path.join(file), &bytes).unwrap();
        let wrong: Vec<usize> = right(&metainfo, &path)
            .iter()
            .enumerate()
            .filter(|(_, is_right)| !**is_right)
            .map(|(piece, _)| piece)
            .collect();
        assert_eq!(wrong, [piece], "{file} at {at}");
        bytes[at] ^= 1;
        fs::write(path.join(file), &bytes).unwrap();
    }
}

#[test]
fn files_of_zeros_are_right_as_holes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    fs::create_dir(&path).unwrap();
    for (name, length) in [("a", 3 * PIECE + 1000), ("b", 20_000), ("c", 5 * PIECE)] {
        let file = fs::File::create(path.join(name)).unwrap();
        file.set_len(length as u64).unwrap();
    }
    let metainfo = Metainfo::parse(&made(&path, Version::Two)).unwrap();
    let right = right(&metainfo, &path);
    assert!(right.iter().all(|is_right| *is_right), "{right:?}");
    for piece in 0..metainfo.pieces.count() {
        assert_eq!(metainfo.zeros(piece), metainfo.expected(piece));
    }
}

#[test]
fn a_single_file_stays_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, vec![7; 2 * PIECE + 5]).unwrap();
    for version in [Version::Two, Version::Hybrid] {
        let metainfo = Metainfo::parse(&made(&path, version)).unwrap();
        assert!(!metainfo.multi_file);
        assert_eq!(metainfo.files.len(), 1);
        assert_eq!(metainfo.pieces.total, 2 * PIECE as u64 + 5);
        assert!(right(&metainfo, &path).iter().all(|it| *it));
    }
}

/// The torrent with its `piece layers` changed.
fn with_layers(bytes: &[u8], change: impl FnOnce(&mut Vec<(Vec<u8>, Vec<u8>)>)) -> Vec<u8> {
    let metainfo = Metainfo::parse(bytes).unwrap();
    let encoded = metainfo.piece_layers().unwrap();
    let parsed = hawser_bencode::parse(&encoded).unwrap();
    let entries = parsed.as_dict().unwrap().entries.iter();
    let entries = entries.map(|(root, nodes)| (root.to_vec(), nodes.as_bytes().unwrap().to_vec()));
    let mut layers: Vec<_> = entries.collect();
    change(&mut layers);
    let layers = layers.iter();
    let layers = Value::dict(layers.map(|(root, nodes)| (root, Some(Value::Bytes(nodes)))));
    let layers = layers.encode();
    [
        b"d4:info",
        &metainfo.info()[..],
        b"12:piece layers",
        &layers,
        b"e",
    ]
    .concat()
}

#[test]
fn missing_and_wrong_layers_are_refused_and_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    content(&path);
    for version in [Version::Two, Version::Hybrid] {
        let bytes = made(&path, version);
        let whole = with_layers(&bytes, |_| {});
        assert_eq!(
            Metainfo::parse(&whole).map(|it| it.info_hash),
            Metainfo::parse(&bytes).map(|it| it.info_hash)
        );
        // Only `a` and `e` have more than a piece.
        let root_of = |file: &str| {
            let bytes = fs::read(path.join(file)).unwrap();
            let height = hawser_merkle::height(bytes.len() as u64);
            let mut hasher = MerkleHasher::new(bytes.len() as u64, height);
            hasher.update(&bytes);
            hasher.finalize().to_vec()
        };
        for file in ["a", "e"] {
            let root = root_of(file);
            let is_its = |layer: &(Vec<u8>, Vec<u8>)| layer.0 == root;
            let missing = with_layers(&bytes, |layers| layers.retain(|it| !is_its(it)));
            assert_eq!(
                Metainfo::parse(&missing).unwrap_err(),
                MetainfoError::NoLayer(format!("{file:?}"))
            );
            let wrong = MetainfoError::WrongLayer(format!("{file:?}"));
            let changed = with_layers(&bytes, |layers| {
                layers.iter_mut().find(|it| is_its(it)).unwrap().1[40] ^= 1;
            });
            assert_eq!(Metainfo::parse(&changed).unwrap_err(), wrong);
            let cut = with_layers(&bytes, |layers| {
                layers.iter_mut().find(|it| is_its(it)).unwrap().1.pop();
            });
            assert_eq!(Metainfo::parse(&cut).unwrap_err(), wrong);
        }
    }
}

#[test]
fn the_info_dictionary_says_which_layers_it_lacks_and_they_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    content(&path);
    let metainfo = Metainfo::parse(&made(&path, Version::Two)).unwrap();
    let error = Metainfo::from_info(metainfo.info()).unwrap_err();
    assert_eq!(error, MetainfoError::NoLayer("\"a\"".to_owned()));
    let missing = Metainfo::missing_layers(metainfo.info()).unwrap();
    let counts: Vec<u32> = missing.iter().map(|shape| shape.count).collect();
    assert_eq!(counts.iter().sum::<u32>(), 4 + 2);
    let mut found = std::collections::BTreeMap::new();
    for shape in missing {
        let length = shape.count.next_power_of_two();
        let range = HashRange::proven(shape.base, 0, length, shape.height);
        let root = shape.root;
        let served = metainfo
            .layers()
            .unwrap()
            .hashes(&HashRequest { root, range });
        let hashes = served.unwrap();
        assert_eq!(range.root(&hashes), Some(root));
        found.insert(root, hashes[..shape.count as usize].to_vec());
    }
    let whole = Metainfo::from_parts(metainfo.info(), &found).unwrap();
    assert_eq!(whole.layers(), metainfo.layers());
    // Version 1 lacks nothing.
    let hybrid = Metainfo::parse(&made(&path, Version::Hybrid)).unwrap();
    assert_eq!(Metainfo::missing_layers(hybrid.info()), Ok(Vec::new()));
    assert!(Metainfo::from_info(hybrid.info()).is_ok());
}

#[test]
fn lengths_that_no_disk_has_are_refused_before_memory_is_taken() {
    for length in [i64::MAX, 1 << 50, 1 << 40] {
        let root = "r".repeat(32);
        let info = format!(
            "d9:file treed1:xd0:d6:lengthi{length}e11:pieces root32:{root}eee12:meta versioni2e\
             4:name1:x12:piece lengthi16384ee"
        );
        let error = Metainfo::missing_layers(info.as_bytes()).unwrap_err();
        assert!(matches!(error, MetainfoError::TooLarge(_)), "{error}");
        let error = Metainfo::from_info(info.as_bytes()).unwrap_err();
        assert_eq!(error, MetainfoError::NoLayer("\"x\"".to_owned()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_made_of_any_files_is_read_and_right(
        lengths in prop::collection::vec(0usize..100_000, 1..6),
        is_hybrid: bool,
    ) {
        prop_assume!(lengths.iter().any(|length| *length > 0));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set");
        fs::create_dir(&path).unwrap();
        for (number, length) in lengths.iter().enumerate() {
            let mut bytes = vec![0; *length];
            fastrand::Rng::with_seed(number as u64).fill(&mut bytes);
            fs::write(path.join(number.to_string()), bytes).unwrap();
        }
        let version = if is_hybrid { Version::Hybrid } else { Version::Two };
        let metainfo = Metainfo::parse(&made(&path, version)).unwrap();
        prop_assert!(right(&metainfo, &path).iter().all(|it| *it));
        let mut begin = 0;
        for file in &metainfo.files {
            prop_assert!(file.padding || file.length == 0 || begin % PIECE as u64 == 0);
            begin += file.length;
        }
    }

    #[test]
    fn damaged_torrents_of_version_two_never_panic(
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 0..4),
        remove in 0usize..4,
    ) {
        let root = "r".repeat(32);
        let mut bytes = format!(
            "d4:infod9:file treed1:ad1:bd0:d6:lengthi40000e11:pieces root32:{root}eee1:cd0:d6:lengthi5e\
             11:pieces root32:{root}eee12:meta versioni2e4:name1:x12:piece lengthi16384ee\
             12:piece layersd32:{root}96:{root}{root}{root}ee"
        )
        .into_bytes();
        let at = at.index(bytes.len());
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, with);
        let _ = Metainfo::parse(&bytes);
        if bytes.len() > 8 {
            let _ = Metainfo::missing_layers(&bytes[7..]);
        }
    }
}

#[test]
fn hashes_of_blocks_lead_to_the_root_of_their_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    content(&path);
    for piece_length in [PIECE as u32, 4 * PIECE as u32] {
        let options = CreateOptions {
            piece_length: Some(piece_length),
            version: Version::Two,
            ..CreateOptions::default()
        };
        let metainfo = Metainfo::parse(&create(&path, &options, |_, _| {}).unwrap()).unwrap();
        let layers = metainfo.layers().unwrap();
        let mut first = 0;
        let mut proven = 0;
        for file in metainfo
            .files
            .iter()
            .filter(|file| !file.padding && file.length > 0)
        {
            let bytes = fs::read(dir.path().join(&file.path)).unwrap();
            let height = hawser_merkle::height(file.length);
            let root = {
                let mut hasher = MerkleHasher::new(file.length, height);
                hasher.update(&bytes);
                hasher.finalize()
            };
            let blocks_of = |piece: u32| {
                let start = (piece - first) as usize * piece_length as usize;
                let content = &bytes[start..bytes.len().min(start + piece_length as usize)];
                assert_eq!(content.len() as u64, layers.content_bytes(piece));
                let blocks = content.chunks(16384).map(|block| {
                    let mut hasher = MerkleHasher::new(block.len() as u64, 0);
                    hasher.update(block);
                    hasher.finalize()
                });
                blocks.collect::<Vec<_>>()
            };
            for base in 0..height {
                for size in 1..=height - base {
                    for index in 0..1 << (height - base - size) {
                        let range = HashRange::proven(base, index << size, 1 << size, height);
                        let wanted = HashRequest { root, range };
                        let Some(piece) = layers.piece_of(&wanted) else {
                            continue;
                        };
                        assert!(layers.hashes(&wanted).is_none());
                        let hashes = layers.block_hashes(&wanted, blocks_of(piece)).unwrap();
                        assert_eq!(range.root(&hashes), Some(root), "{range:?}");
                        let mut wrong = blocks_of(piece);
                        wrong[0][0] ^= 1;
                        assert_eq!(layers.block_hashes(&wanted, wrong), None);
                        proven += 1;
                    }
                }
            }
            let pieces = file.length.div_ceil(piece_length.into()) as u32;
            for piece in first..first + pieces {
                let Some((requests, expected)) = layers.block_requests(piece) else {
                    assert!(layers.content_bytes(piece) <= 16384 || pieces == 0);
                    continue;
                };
                assert_eq!(requests.len(), 1);
                let hashes = layers.block_hashes(&requests[0], blocks_of(piece)).unwrap();
                assert_eq!(requests[0].range.root(&hashes), Some(expected));
                assert_eq!(layers.piece_of(&requests[0]), Some(piece));
            }
            first += pieces;
        }
        assert!(proven > 5, "{proven}");
    }
}

#[test]
fn hashes_of_the_blocks_of_a_large_piece_are_requested_in_parts() {
    const MIB: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    fs::create_dir(&path).unwrap();
    let mut bytes = vec![0; 25 * MIB + 5];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    // Two pieces of the first file, of which one has five bytes, and one of the other, of 9 MiB.
    let pieces = [
        &bytes[..16 * MIB],
        &bytes[16 * MIB..16 * MIB + 5],
        &bytes[16 * MIB..],
    ];
    fs::write(path.join("a"), &bytes[..16 * MIB + 5]).unwrap();
    fs::write(path.join("b"), pieces[2]).unwrap();
    let options = CreateOptions {
        piece_length: Some(16 * MIB as u32),
        version: Version::Two,
        ..CreateOptions::default()
    };
    let metainfo = Metainfo::parse(&create(&path, &options, |_, _| {}).unwrap()).unwrap();
    let layers = metainfo.layers().unwrap();
    for ((piece, content), count) in (0..).zip(pieces).zip([2, 1, 2]) {
        let blocks = content.chunks(16384).map(|block| {
            let mut hasher = MerkleHasher::new(block.len() as u64, 0);
            hasher.update(block);
            hasher.finalize()
        });
        let blocks: Vec<_> = blocks.collect();
        let (requests, expected) = layers.block_requests(piece).unwrap();
        assert_eq!(requests.len(), count);
        let mut hashes = Vec::new();
        for wanted in requests {
            assert_eq!(layers.piece_of(&wanted), Some(piece));
            let answer = layers.block_hashes(&wanted, blocks.clone()).unwrap();
            assert_eq!(wanted.range.root(&answer), Some(expected));
            hashes.extend_from_slice(&answer[..512]);
        }
        // What is more is padding.
        let (known, padding) = hashes.split_at(blocks.len());
        assert_eq!(known, blocks);
        assert!(padding.iter().all(|hash| *hash == [0; 32]));
    }
}

proptest! {
    #[test]
    fn no_request_for_hashes_of_blocks_panics(base: u32, index: u32, length: u32, proof: u32, small: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set");
        content(&path);
        let metainfo = Metainfo::parse(&made(&path, Version::Two)).unwrap();
        let layers = metainfo.layers().unwrap();
        let range = match small {
            true => HashRange { base: base % 4, index: index % 16, length: length % 16, proof: proof % 8 },
            false => HashRange { base, index, length, proof },
        };
        for (root, _) in layers.by_root() {
            let wanted = HashRequest { root, range };
            if let Some(piece) = layers.piece_of(&wanted) {
                prop_assert!(piece < metainfo.pieces.count());
                prop_assert!(layers.block_hashes(&wanted, vec![[0; 32]; 2]).is_none());
            }
        }
    }
}

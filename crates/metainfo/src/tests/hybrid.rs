//! Hybrid torrents (BEP 52), whose two parts must say the same.

use super::*;

const PIECE: i64 = 16384;

/// A hybrid torrent to be broken in one place.
#[derive(Clone)]
struct Hybrid {
    version: Option<i64>,
    piece_length: i64,
    /// Version 1: path, length, attributes.
    one: Vec<(Vec<&'static str>, i64, &'static str)>,
    /// Version 2: the same, but for padding, and the `pieces root`.
    two: Vec<(Vec<&'static str>, i64, Vec<u8>)>,
    unsorted: bool,
}

impl Hybrid {
    fn new() -> Self {
        Self {
            version: Some(2),
            piece_length: PIECE,
            one: vec![
                (vec!["a"], 20_000, ""),
                (vec![".pad", "12768"], 12_768, "p"),
                (vec!["b"], 5, ""),
                (vec![".pad", "16379"], PIECE - 5, "p"),
                (vec!["d", "c"], 16_384, ""),
                (vec!["d", "empty"], 0, ""),
            ],
            two: vec![
                (vec!["a"], 20_000, vec![1; 32]),
                (vec!["b"], 5, vec![2; 32]),
                (vec!["d", "c"], 16_384, vec![3; 32]),
                (vec!["d", "empty"], 0, vec![]),
            ],
            unsorted: false,
        }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    fn bytes(&self) -> Vec<u8> {
        let total: i64 = self.one.iter().map(|file| file.1).sum();
        let pieces = total
            .unsigned_abs()
            .div_ceil(self.piece_length.unsigned_abs()) as usize;
        let hashes = vec![7; pieces * 20];
        let tree: Vec<_> = self.two.iter().map(|it| (&it.0[..], it.1, &it.2)).collect();
        let files = self.one.iter().map(|(path, length, attr)| {
            Value::dict([
                ("attr", (!attr.is_empty()).then(|| Value::text(attr))),
                ("length", Some(Value::Int(*length))),
                ("path", Some(Value::texts(path.iter().copied()))),
            ])
        });
        let mut named = [
            ("name", Some(Value::text("set"))),
            ("piece length", Some(Value::Int(self.piece_length))),
        ];
        if self.unsorted {
            named.reverse();
        }
        let [first, second] = named;
        let info = Value::dict([
            ("file tree", (!tree.is_empty()).then(|| folder(&tree))),
            ("files", Some(Value::List(files.collect()))),
            ("meta version", self.version.map(Value::Int)),
            first,
            second,
            ("pieces", Some(Value::Bytes(&hashes))),
        ]);
        Value::dict([("info", Some(info))]).encode()
    }

    fn parse(&self) -> Result<Metainfo, MetainfoError> {
        Metainfo::parse(&self.bytes())
    }
}

/// A folder of the file tree; its entries are sorted by path.
fn folder<'a>(entries: &[(&[&'a str], i64, &'a Vec<u8>)]) -> Value<'a> {
    let named = entries.chunk_by(|a, b| a.0[0] == b.0[0]).map(|same| {
        let (path, length, root) = same[0];
        if path.len() > 1 {
            let inner: Vec<_> = same.iter().map(|it| (&it.0[1..], it.1, it.2)).collect();
            return (path[0], Some(folder(&inner)));
        }
        let file = Value::dict([
            ("length", Some(Value::Int(length))),
            (
                "pieces root",
                (!root.is_empty()).then_some(Value::Bytes(root)),
            ),
        ]);
        (path[0], Some(Value::dict([("", Some(file))])))
    });
    Value::dict(named)
}

#[test]
fn a_hybrid_whose_parts_agree_is_read() {
    let whole = Hybrid::new();
    let metainfo = whole.parse().unwrap();
    assert!(metainfo.info_hash_v2.is_some());
    let files = metainfo.files.iter().filter(|file| !file.padding);
    assert_eq!(files.count(), 4);
    // Padding behind the last file is there or not.
    whole
        .with(|it| it.one.insert(4, (vec!["e"], 3, "")))
        .with(|it| it.one.swap(4, 5))
        .with(|it| it.two.push((vec!["e"], 3, vec![4; 32])))
        .with(|it| it.one.push((vec![".pad", "x"], PIECE - 3, "p")))
        .parse()
        .unwrap();
    // Empty files need not be in both.
    whole.with(|it| drop(it.one.pop())).parse().unwrap();
    whole.with(|it| drop(it.two.pop())).parse().unwrap();
}

#[test]
fn a_single_file_agrees_with_the_only_one_of_the_tree() {
    let torrent = |tree: &str| {
        let pieces = "a".repeat(20);
        let text = format!(
            "d4:infod9:file treed{tree}e6:lengthi5e12:meta versioni2e4:name1:x12:piece lengthi16384e\
             6:pieces20:{pieces}ee"
        );
        Metainfo::parse(text.as_bytes())
    };
    let file = |name: &str, length: i64| {
        let root = "b".repeat(32);
        format!("1:{name}d0:d6:lengthi{length}e11:pieces root32:{root}ee")
    };
    torrent(&file("x", 5)).unwrap();
    for tree in [
        file("y", 5),
        file("x", 6),
        file("x", 5) + &file("y", 5),
        file("x", 5).replace("d6:length", "d4:attr1:p6:length"),
        String::new(),
    ] {
        let error = torrent(&tree).unwrap_err();
        assert!(
            matches!(
                error,
                MetainfoError::Hybrid { .. } | MetainfoError::VersionTwo { .. }
            ),
            "{tree}: {error}"
        );
    }
}

#[test]
fn a_hybrid_whose_parts_contradict_each_other_is_refused() {
    let whole = Hybrid::new();
    for (what, broken) in [
        ("a name", whole.with(|it| it.two[0].0 = vec!["A"])),
        ("a length", whole.with(|it| it.two[0].1 = 20_001)),
        ("a folder", whole.with(|it| it.two[2].0 = vec!["e", "c"])),
        ("one less", whole.with(|it| drop(it.two.remove(1)))),
        (
            "one more",
            whole.with(|it| it.two.push((vec!["e"], 1, vec![4; 32]))),
        ),
        (
            "a root cut short",
            whole.with(|it| it.two[0].2.truncate(31)),
        ),
        (
            "a root of zeros",
            whole.with(|it| it.two[0].2 = vec![0; 32]),
        ),
        ("no root", whole.with(|it| it.two[0].2.clear())),
        ("a negative length", whole.with(|it| it.two[0].1 = -1)),
        ("no padding", whole.with(|it| drop(it.one.remove(1)))),
        ("more padding", whole.with(|it| it.one[1].1 += PIECE)),
        (
            "padding at the end",
            whole.with(|it| it.one.push((vec!["p"], 7, "p"))),
        ),
        ("other order", whole.with(|it| it.one.swap(0, 2))),
        ("no tree", whole.with(|it| it.two.clear())),
        ("no version", whole.with(|it| it.version = None)),
        ("a piece length", whole.with(|it| it.piece_length = 20_000)),
        ("unsorted keys", whole.with(|it| it.unsorted = true)),
    ] {
        let error = match broken.parse() {
            Ok(_) => panic!("{what}: accepted"),
            Err(error) => error,
        };
        let named = matches!(
            error,
            MetainfoError::Hybrid { .. }
                | MetainfoError::VersionTwo { .. }
                | MetainfoError::FileLength { .. }
                | MetainfoError::Field {
                    key: "info.file tree",
                    ..
                }
        );
        assert!(named, "{what}: {error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    let error = whole.with(|it| it.version = Some(3)).parse().unwrap_err();
    assert_eq!(error, MetainfoError::Version(3));
}

proptest! {
    #[test]
    fn a_damaged_hybrid_never_panics_and_is_never_half_believed(
        at in any::<prop::sample::Index>(),
        with in proptest::collection::vec(any::<u8>(), 0..4),
        remove in 0usize..4,
    ) {
        let mut bytes = Hybrid::new().bytes();
        let at = at.index(bytes.len());
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, with);
        if let Ok(metainfo) = Metainfo::parse(&bytes)
            && metainfo.info_hash_v2.is_some()
        {
            // Every file with bytes begins with a piece, as version 2 has it.
            let mut begin = 0;
            for file in &metainfo.files {
                let aligned = begin % u64::from(metainfo.pieces.length) == 0;
                prop_assert!(file.padding || file.length == 0 || aligned);
                begin += file.length;
            }
        }
    }
}

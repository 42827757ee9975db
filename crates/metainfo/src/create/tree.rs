//! The parts of a `.torrent` file that version 2 adds (BEP 52).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hawser_bencode::Value;

use super::{Content, parts};
use hawser_merkle::Hash;

/// A file or link, with its path from the torrent's folder on, and its root if it has bytes.
struct Placed<'a> {
    names: Vec<&'a OsStr>,
    length: u64,
    root: Option<&'a Hash>,
    target: Option<&'a std::path::Path>,
}

/// The `file tree` of content whose files with bytes have these roots, in order.
pub(super) fn file_tree<'a>(content: &'a Content, two: &'a [(Hash, Vec<Hash>)]) -> Value<'a> {
    let mut roots = two.iter().map(|(root, _)| root);
    let placed = content.files.iter().map(|file| Placed {
        names: file.path.iter().collect(),
        length: file.length,
        root: (file.length > 0).then(|| roots.next()).flatten(),
        target: file.target.as_deref(),
    });
    let placed: Vec<Placed<'_>> = placed.collect();
    folder(&placed, 0)
}

/// A folder with these files, which are sorted, and whose paths have `depth` names above it.
fn folder<'a>(files: &[Placed<'a>], depth: usize) -> Value<'a> {
    let named = files.chunk_by(|a, b| a.names.get(depth) == b.names.get(depth));
    let named = named.filter_map(|same| {
        let first = same.first()?;
        let name = first.names.get(depth)?.as_bytes();
        let inner = match first.names.len() - depth {
            1 => Value::dict([("", Some(leaf(first)))]),
            _ => folder(same, depth + 1),
        };
        Some((name, Some(inner)))
    });
    Value::dict(named)
}

fn leaf<'a>(file: &Placed<'a>) -> Value<'a> {
    let root = file.root.map(|root| Value::Bytes(root));
    Value::dict([
        ("attr", file.target.map(|_| Value::text("l"))),
        ("length", Some(Value::Int(file.length as i64))),
        ("pieces root", root),
        ("symlink path", file.target.map(parts)),
    ])
}

/// The nodes over the pieces of all files with several, by their roots.
pub(super) fn piece_layers(two: &[(Hash, Vec<Hash>)]) -> Value<'_> {
    let layers = two.iter().filter(|(_, nodes)| !nodes.is_empty());
    let layers: BTreeMap<&Hash, &[u8]> = layers
        .map(|(root, nodes)| (root, nodes.as_flattened()))
        .collect();
    let layers = layers.into_iter();
    Value::dict(layers.map(|(root, nodes)| (root, Some(Value::Bytes(nodes)))))
}

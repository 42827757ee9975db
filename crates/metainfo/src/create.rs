//! Making a `.torrent` file of content on disk.

mod hashes;
mod tree;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use hawser_bencode::Value;
use hawser_store::{Files, StoreError};
use thiserror::Error;

use self::hashes::{PieceHashes, Plan};
use super::bounds::{MAX_CREATED_BYTES, MAX_PIECE_LENGTH};
use super::torrent::Version;

/// Piece lengths chosen by themselves lie between these.
const AUTO: std::ops::RangeInclusive<u32> = 16 << 10..=16 << 20;

/// Most pieces wanted: enough to share out, few enough for a small `.torrent`.
const MAX_PIECES: u64 = 2000;

/// How to make a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// How the content is hashed (BEP 52).
    pub version: Version,
    /// Bytes per piece, a power of two from 16 KiB to 128 MiB; by itself such that there are 1000
    /// to 2000 pieces, within 16 KiB to 16 MiB.
    pub piece_length: Option<u32>,
    /// Free text.
    pub comment: Option<String>,
    /// URLs of trackers in tiers (BEP 12), each to be tried after those before it; empty tiers are
    /// left out.
    pub trackers: Vec<Vec<String>>,
    /// Nodes of the DHT to begin with, each a host, by name or address, and a UDP port (BEP 5).
    pub nodes: Vec<(String, u16)>,
    /// URLs of web servers that have the content (BEP 19).
    pub web_seeds: Vec<String>,
    /// Whether peers may come from the trackers alone (BEP 27).
    pub private: bool,
    /// A text that gives the same content another info-hash.
    pub source: Option<String>,
}

/// Why no torrent could be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The piece length asked for cannot be used.
    #[error("piece length {0}: it must be a power of two from 16384 to {MAX_PIECE_LENGTH}")]
    PieceLength(u32),
    /// There is nothing to share at this path.
    #[error("{0} is empty: there is nothing to share")]
    Empty(PathBuf),
    /// A symbolic link at this path does not work on other hosts.
    #[error(
        "{0} is a symbolic link that leads out of the folder or to nothing: put the file itself there, or leave it out"
    )]
    Symlink(PathBuf),
    /// A device, socket or pipe is at this path.
    #[error("{0} is neither a file nor a folder: leave it out")]
    Special(PathBuf),
    /// The folder at this path has no name.
    #[error("{0} has no name that the torrent could have: choose a folder in it")]
    NoName(PathBuf),
    /// So many pieces or files that readers refuse the torrent, which would have this many bytes.
    #[error(
        "the torrent would have {0} bytes, more than {MAX_CREATED_BYTES}: choose a larger piece length or fewer files"
    )]
    TooLarge(usize),
    /// Reading failed, or a file changed while it was read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes the bytes of a `.torrent` file for the file or folder at `path`, hashing on all cores.
/// Files of a folder are ordered by path, hidden ones included; empty folders are left out, and
/// symbolic links to what is in the folder stay links (BEP 47). Names are written byte by byte,
/// whatever they are, as other programs do; [`File::original`](super::File::original) tells which
/// of them a download changes. `progress` is called with bytes hashed and bytes in all.
///
/// # Errors
/// [`CreateError`] when something cannot be read or cannot be in a torrent.
pub fn create(
    path: &Path,
    options: &CreateOptions,
    mut progress: impl FnMut(u64, u64),
) -> Result<Vec<u8>, CreateError> {
    if let Some(length) = options.piece_length
        && !(length.is_power_of_two() && (*AUTO.start()..=MAX_PIECE_LENGTH).contains(&length))
    {
        return Err(CreateError::PieceLength(length));
    }
    // Resolves `.`, `..` and a link given on purpose, so that there is a name.
    let path = fs::canonicalize(path).map_err(|e| StoreError::io("find", path, e))?;
    let content = Content::gather(&path)?;
    let total: u64 = content.files.iter().map(|file| file.length).sum();
    if total == 0 {
        return Err(CreateError::Empty(path));
    }
    let piece_length = options.piece_length.unwrap_or_else(|| auto_length(total));
    let plan = Plan::new(&content.files, options.version, piece_length);
    let bytes = plan.hash_bytes();
    if bytes > MAX_CREATED_BYTES {
        return Err(CreateError::TooLarge(bytes));
    }
    let files = Files::read_only(content.root.clone(), plan.layout.clone());
    let all = plan.pieces.total;
    let hashes = plan.hash(&files, |done| progress(done, all))?;
    // A file that grew while it was hashed would make a torrent of a mixture.
    files.complete()?;

    let torrent = content.encode(options, &plan, &hashes);
    match torrent.len() {
        bytes if bytes > MAX_CREATED_BYTES => Err(CreateError::TooLarge(bytes)),
        _ => Ok(torrent),
    }
}

/// The smallest power of two that makes no more than [`MAX_PIECES`] pieces, within bounds.
pub(super) fn auto_length(total: u64) -> u32 {
    let least = total
        .div_ceil(MAX_PIECES)
        .clamp((*AUTO.start()).into(), (*AUTO.end()).into());
    // The bounds are powers of two that fit.
    least.next_power_of_two() as u32
}

/// What is to be shared, as it was when it was listed.
struct Content {
    name: OsString,
    folder: bool,
    /// Where the files' paths begin.
    root: PathBuf,
    files: Vec<Listed>,
}

struct Listed {
    /// Relative to the root.
    path: PathBuf,
    length: u64,
    /// Where a symbolic link leads, relative to the root; `None` for a file.
    target: Option<PathBuf>,
}

impl Content {
    fn gather(path: &Path) -> Result<Self, CreateError> {
        let name = path.file_name();
        let name = name.ok_or_else(|| CreateError::NoName(path.into()))?;
        let name = name.to_owned();
        let folder = path.is_dir();
        let (root, inner) = match folder {
            true => (path, Path::new("")),
            false => (path.parent().unwrap_or(path), Path::new(&name)),
        };
        let mut files = Vec::new();
        list(root, inner, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        refuse_links_to_what_is_not_listed(root, &files)?;
        Ok(Self {
            root: root.to_owned(),
            name,
            folder,
            files,
        })
    }

    fn encode(&self, options: &CreateOptions, plan: &Plan, hashes: &PieceHashes) -> Vec<u8> {
        let (has_one, has_two) = match options.version {
            Version::One => (true, false),
            Version::Two => (false, true),
            Version::Hybrid => (true, true),
        };
        let tiers = options.trackers.iter().filter(|tier| !tier.is_empty());
        let mut trackers = tiers.clone().flatten();
        let first = trackers.next();
        // One tracker needs no list (BEP 12).
        let several = trackers.next().is_some();
        let total: u64 = self.files.iter().map(|file| file.length).sum();
        let length = Value::Int(total as i64);
        let paddings: Vec<String> = plan.gaps.iter().map(u64::to_string).collect();
        let files = || {
            let files = self.files.iter().zip(plan.gaps.iter().zip(&paddings));
            let files = files.flat_map(|(file, (gap, name))| {
                let padding = (*gap > 0).then(|| padding(*gap, name));
                padding.into_iter().chain([file.value()])
            });
            Value::List(files.collect())
        };
        let info = Value::dict([
            (
                "file tree",
                has_two.then(|| tree::file_tree(self, &hashes.two)),
            ),
            ("files", (has_one && self.folder).then(files)),
            ("length", (has_one && !self.folder).then_some(length)),
            ("meta version", has_two.then_some(Value::Int(2))),
            ("name", Some(Value::Bytes(self.name.as_bytes()))),
            ("piece length", Some(Value::Int(plan.pieces.length.into()))),
            ("pieces", has_one.then_some(Value::Bytes(&hashes.one))),
            ("private", options.private.then_some(Value::Int(1))),
            ("source", options.source.as_deref().map(Value::text)),
        ]);
        let web_seeds = Value::texts(&options.web_seeds);
        let nodes = options.nodes.iter();
        let nodes = nodes
            .map(|(host, port)| Value::List(vec![Value::text(host), Value::Int((*port).into())]));
        let top = Value::dict([
            ("announce", first.map(|url| Value::text(url))),
            (
                "announce-list",
                several.then(|| Value::List(tiers.map(Value::texts).collect())),
            ),
            ("comment", options.comment.as_deref().map(Value::text)),
            (
                "created by",
                Some(Value::text(concat!("hawser/", env!("CARGO_PKG_VERSION")))),
            ),
            ("info", Some(info)),
            (
                "nodes",
                (!options.nodes.is_empty()).then(|| Value::List(nodes.collect())),
            ),
            (
                "piece layers",
                has_two.then(|| tree::piece_layers(&hashes.two)),
            ),
            (
                "url-list",
                (!options.web_seeds.is_empty()).then_some(web_seeds),
            ),
        ]);
        top.encode()
    }
}

impl Listed {
    fn value(&self) -> Value<'_> {
        Value::dict([
            ("attr", self.target.as_ref().map(|_| Value::text("l"))),
            ("length", Some(Value::Int(self.length as i64))),
            ("path", Some(parts(&self.path))),
            ("symlink path", self.target.as_deref().map(parts)),
        ])
    }
}

/// Padding of `length` bytes (BEP 47), whose name is its length.
fn padding(length: u64, name: &str) -> Value<'_> {
    Value::dict([
        ("attr", Some(Value::text("p"))),
        ("length", Some(Value::Int(length as i64))),
        ("path", Some(Value::texts([".pad", name]))),
    ])
}

/// The components of a path.
fn parts(path: &Path) -> Value<'_> {
    let parts = path.components().map(|part| part.as_os_str());
    Value::texts(parts.map(OsStr::as_bytes))
}

/// Lists the file `root`/`inner`, or the files below it.
fn list(root: &Path, inner: &Path, files: &mut Vec<Listed>) -> Result<(), CreateError> {
    let path = root.join(inner);
    // Does not follow links.
    let metadata = fs::symlink_metadata(&path).map_err(|e| StoreError::io("look at", &path, e))?;
    if metadata.is_dir() {
        let failed = |e| StoreError::io("list", &path, e);
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            list(root, &inner.join(entry.file_name()), files)?;
        }
        return Ok(());
    }
    let target = match metadata.is_symlink() {
        true => Some(link_target(root, inner, &path).ok_or(CreateError::Symlink(path))?),
        false if metadata.is_file() => None,
        false => return Err(CreateError::Special(path)),
    };
    files.push(Listed {
        path: inner.to_owned(),
        length: if target.is_some() { 0 } else { metadata.len() },
        target,
    });
    Ok(())
}

/// Where the link `inner` below `root`, at `path`, leads, relative to `root`; `None` when that is
/// outside, nothing, or `root` itself.
fn link_target(root: &Path, inner: &Path, path: &Path) -> Option<PathBuf> {
    let text = fs::read_link(path).ok()?;
    let from_root = match text.strip_prefix(root) {
        Ok(below) => below.to_owned(),
        Err(_) if text.is_absolute() => return None,
        Err(_) => inner.parent()?.join(text),
    };
    let mut target = PathBuf::new();
    for part in from_root.components() {
        match part {
            Component::Normal(name) => target.push(name),
            Component::CurDir => {}
            Component::ParentDir if target.pop() => {}
            _ => return None,
        }
    }
    // If it passes other links, `..` may have meant another folder.
    let same = root.join(&target).canonicalize().ok()? == path.canonicalize().ok()?;
    (same && target != Path::new("")).then_some(target)
}

/// A link to an empty folder, which a torrent does not have, would lead nowhere.
fn refuse_links_to_what_is_not_listed(root: &Path, files: &[Listed]) -> Result<(), CreateError> {
    let listed = files.iter().map(|file| file.path.as_path());
    let listed: HashSet<&Path> = listed.flat_map(Path::ancestors).collect();
    for file in files {
        let Some(target) = &file.target else {
            continue;
        };
        // Through other links it leads to what is listed by another path.
        let found = root.join(target).canonicalize();
        let inside = found.as_deref().map(|found| found.strip_prefix(root));
        if !matches!(inside, Ok(Ok(inside)) if listed.contains(inside)) {
            return Err(CreateError::Symlink(root.join(&file.path)));
        }
    }
    Ok(())
}

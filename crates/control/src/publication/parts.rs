//! Publications in several files, where one file is bounded.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use hawser_topology::{FileError, Network};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FORMAT, Publication, PublicationError, Published, PublishedChain, parse, refuse};
use crate::error::ControlError;

/// The first bytes of what gzip compressed (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Largest file without compression, in bytes, as for what a coordinator sends.
const MAX_FILE: u64 = 64 << 20;
/// Largest number of files in a folder: with [`MAX_READ`] it bounds what a folder can cost.
const MAX_PARTS: usize = 1024;
/// Most bytes that the files of a folder may have as they are stored.
const MAX_READ: u64 = 256 << 20;
/// How many bytes of content are first tried for each byte of a part: as much as segments of one network,
/// which have much in common, are usually compressed.
const RATIO: usize = 2;

/// A part, as it is written: a [`Publication`], whose network only the first part has.
#[derive(Serialize)]
struct Part<'a> {
    format: u32,
    made: u64,
    expiry: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a Network>,
    network_id: &'a str,
    segments: &'a [Published],
    chains: &'a [PublishedChain],
}

/// A part, as it is read, or a whole publication.
#[derive(Deserialize)]
struct ReadPart {
    made: u64,
    expiry: u64,
    network: Option<Network>,
    /// What tells its network from others; `None` in a whole publication.
    network_id: Option<String>,
    segments: Vec<Published>,
    chains: Vec<PublishedChain>,
}

/// What the parts have one after the other.
enum Item {
    Chain(usize),
    Segment(usize),
}

/// What is common to all parts.
struct Split<'a> {
    whole: &'a Publication,
    network_id: String,
    /// Largest part, in bytes.
    limit: usize,
}

/// Some of the segments and chains of a publication.
struct Share {
    segments: Range<usize>,
    chains: Range<usize>,
}

impl Share {
    /// Whether it is the one with the network.
    fn is_first(&self) -> bool {
        self.segments.start == 0 && self.chains.start == 0
    }
}

/// Splits a publication, see [`Publication::to_parts`].
pub(super) fn split(whole: &Publication, limit: usize) -> Vec<Vec<u8>> {
    // Plain data with text keys can always be written as JSON.
    let network = serde_json::to_vec(&whole.network).unwrap_or_default();
    let hash = Sha256::digest(&network);
    let split = Split {
        whole,
        network_id: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        limit,
    };
    let nothing = Share {
        segments: 0..0,
        chains: 0..0,
    };
    let taken = split.encode(&nothing).len();
    let mut room = (limit.saturating_sub(taken) * RATIO).max(1);
    let chain = |one: &PublishedChain| one.r#as.0.len() + one.ca.0.len();
    let chains = whole.chains.iter().map(chain);
    let segments = whole.segments.iter().map(|one| one.message.0.len());
    let items = chains
        .enumerate()
        .map(|(at, size)| (Item::Chain(at), size))
        .chain(segments.enumerate().map(|(at, s)| (Item::Segment(at), s)));
    let mut shares = Vec::new();
    let (mut begin, mut end, mut filled) = ((0, 0), (0, 0), 0);
    let share = |begin: (usize, usize), end: (usize, usize)| Share {
        chains: begin.0..end.0,
        segments: begin.1..end.1,
    };
    for (item, size) in items {
        if filled > 0 && filled + size > room {
            shares.push(share(begin, end));
            (begin, filled) = (end, 0);
            room = (limit * RATIO).max(1);
        }
        filled += size;
        match item {
            Item::Chain(at) => end.0 = at + 1,
            Item::Segment(at) => end.1 = at + 1,
        }
    }
    shares.push(share(begin, end));
    let encoded = hawser_parallel::map(&shares, |share| split.encode_within(share));
    encoded.into_iter().flatten().collect()
}

impl Split<'_> {
    /// A share as a part, or as several if one would be above the limit.
    fn encode_within(&self, share: &Share) -> Vec<Vec<u8>> {
        let part = self.encode(share);
        let Share { segments, chains } = share;
        if part.len() <= self.limit || segments.len() + chains.len() <= 1 {
            return vec![part];
        }
        // One of each is not in the same half.
        let segment = segments.start + segments.len().div_ceil(2);
        let chain = chains.start + chains.len() / 2;
        let halves = [
            Share {
                segments: segments.start..segment,
                chains: chains.start..chain,
            },
            Share {
                segments: segment..segments.end,
                chains: chain..chains.end,
            },
        ];
        let parts = halves.iter().flat_map(|half| self.encode_within(half));
        parts.collect()
    }

    fn encode(&self, share: &Share) -> Vec<u8> {
        let whole = self.whole;
        let part = Part {
            format: FORMAT,
            made: whole.made,
            expiry: whole.expiry,
            network: share.is_first().then_some(&whole.network),
            network_id: &self.network_id,
            segments: &whole.segments[share.segments.clone()],
            chains: &whole.chains[share.chains.clone()],
        };
        // Plain data with text keys can always be written as JSON, and writing to memory does not fail.
        let json = serde_json::to_vec(&part).unwrap_or_default();
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::default());
        let written = gzip.write_all(&json);
        written.and_then(|()| gzip.finish()).unwrap_or_default()
    }
}

/// A file without its compression, if it has any.
pub(super) fn decompressed(bytes: &[u8]) -> Result<Cow<'_, [u8]>, PublicationError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut content = Vec::new();
    let read = GzDecoder::new(bytes)
        .take(MAX_FILE + 1)
        .read_to_end(&mut content);
    let invalid = |reason: String| PublicationError::Invalid(reason);
    read.map_err(|error| invalid(error.to_string()))?;
    match content.len() as u64 > MAX_FILE {
        true => Err(invalid(format!(
            "it has more than {} MiB without compression",
            MAX_FILE >> 20
        ))),
        false => Ok(Cow::Owned(content)),
    }
}

/// Reads a publication: a file, or a folder of parts. Files of other names than `*.json` and
/// `*.json.gz` in a folder are left out.
pub(super) fn read(path: &Path) -> Result<Publication, ControlError> {
    let mut files = vec![path.to_owned()];
    if fs::metadata(path).map_err(FileError::at(path))?.is_dir() {
        files = parts_in(path).map_err(FileError::at(path))?;
    }
    let mut left = MAX_READ;
    let mut parts = Vec::new();
    for file in files {
        let at = FileError::at(&file);
        let mut bytes = Vec::new();
        // One more byte shows that there are too many.
        let opened = File::open(&file).map(|opened| opened.take(left + 1));
        match opened.and_then(|mut opened| opened.read_to_end(&mut bytes)) {
            Err(error) => return Err(at(error).into()),
            Ok(_) => match left.checked_sub(bytes.len() as u64) {
                Some(rest) => left = rest,
                None => return Err(at(io::ErrorKind::FileTooLarge.into()).into()),
            },
        }
        parts.push(read_part(&bytes).map_err(|e| at(io::Error::other(e)))?);
    }
    if parts.is_empty() {
        let none = io::Error::new(io::ErrorKind::NotFound, "no file of segments is in it");
        return Err(FileError::at(path)(none).into());
    }
    let joined = join(parts).map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason));
    Ok(joined.map_err(FileError::at(path))?)
}

/// Reads a part, or a whole publication.
fn read_part(bytes: &[u8]) -> Result<ReadPart, PublicationError> {
    let part: ReadPart = parse(&decompressed(bytes)?)?;
    match part.made < part.expiry {
        true => Ok(part),
        false => Err(PublicationError::ended_before()),
    }
}

/// The files of a folder that may be parts, in the order of their names.
fn parts_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_part = name.ends_with(".json") || name.ends_with(".json.gz");
        if is_part && !name.starts_with('.') {
            files.push(path);
        }
        if files.len() > MAX_PARTS {
            return Err(io::Error::other(format!(
                "it has more than {MAX_PARTS} files of segments"
            )));
        }
    }
    files.sort();
    Ok(files)
}

/// The whole of several parts: those of the network that the newest of them with one has. While a folder is
/// replaced file by file, some parts may be older than others: their segments are as valid. The whole expires
/// with the first of its parts.
fn join(mut parts: Vec<ReadPart>) -> Result<Publication, &'static str> {
    let with_network = parts.iter().enumerate();
    let with_network = with_network.filter(|(_, part)| part.network.is_some());
    let newest = with_network.max_by_key(|(_, part)| part.made);
    let none = "no file in it has the network: copy all files of segments";
    let at = newest.map(|(at, _)| at).ok_or(none)?;
    let first = parts.swap_remove(at);
    let mut whole = Publication {
        format: FORMAT,
        made: first.made,
        expiry: first.expiry,
        network: first.network.ok_or(none)?,
        segments: first.segments,
        chains: first.chains,
    };
    for part in parts {
        let is_same = match (&part.network_id, &first.network_id) {
            (Some(id), Some(other)) => id == other,
            _ => part.network.as_ref() == Some(&whole.network),
        };
        if !is_same {
            refuse("a file has those of another network");
            continue;
        }
        whole.made = whole.made.min(part.made);
        whole.expiry = whole.expiry.min(part.expiry);
        whole.segments.extend(part.segments);
        whole.chains.extend(part.chains);
    }
    match whole.made < whole.expiry {
        true => Ok(whole),
        false => Err("the newest of its files begins after another ends"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hawser_fuzz::fuzz;
    use hawser_path::Discovery;

    use super::*;
    use crate::shared::now;
    use crate::testing::Lab;

    fn publication(made: u64) -> Publication {
        let lab = Lab::two_isds();
        let (network, folder) = (lab.network.clone(), lab.folder.path());
        let lifetime = Duration::from_secs(3600);
        let services = |_| Discovery::default();
        Publication::make(network, folder, services, lifetime, made).unwrap()
    }

    /// What it has, in an order that does not depend on how it was split.
    fn content(one: &Publication) -> (u64, u64, Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut segments: Vec<_> = one.segments.iter().map(|s| s.message.0.clone()).collect();
        let mut chains: Vec<_> = one.chains.iter().map(|c| c.r#as.0.clone()).collect();
        segments.sort();
        chains.sort();
        (one.made, one.expiry, segments, chains)
    }

    #[test]
    fn a_folder_of_parts_is_read_as_the_whole() {
        let whole = publication(now());
        let [few, many] = [1 << 20, 6000].map(|limit| whole.to_parts(limit));
        assert_eq!(few.len(), 1);
        assert!(many.len() > 2, "{}", many.len());
        assert!(many.iter().all(|part| part.len() <= 6000));
        for parts in [few, many] {
            let folder = tempfile::tempdir().unwrap();
            for (at, part) in parts.iter().enumerate() {
                let name = format!("{at:03}.json.gz");
                fs::write(folder.path().join(name), part).unwrap();
            }
            fs::write(folder.path().join("README"), "not a part").unwrap();
            let read = read(folder.path()).unwrap();
            assert_eq!(content(&read), content(&whole));
            assert_eq!(read.network, whole.network);
        }
    }

    #[test]
    fn a_limit_that_nothing_fits_into_gives_a_part_for_each() {
        let whole = publication(now());
        let parts = whole.to_parts(1);
        assert_eq!(parts.len(), whole.segments.len() + whole.chains.len());
    }

    #[test]
    fn what_cannot_be_read_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: &Path| read(path).map(drop).unwrap_err().to_string();
        assert!(error(folder.path()).contains("no file of segments"));
        let file = folder.path().join("0.json.gz");
        let mut part = publication(now()).to_parts(1 << 20).remove(0);
        part.truncate(part.len() / 2);
        fs::write(&file, part).unwrap();
        assert!(error(folder.path()).contains("0.json.gz"));
        assert!(error(&folder.path().join("missing")).contains("missing"));
    }

    #[test]
    fn what_grows_too_large_is_refused() {
        let mut gzip = GzBuilder::new().write(Vec::new(), Compression::fast());
        gzip.write_all(&vec![b' '; MAX_FILE as usize + 1]).unwrap();
        let bomb = gzip.finish().unwrap();
        let error = Publication::from_json(&bomb).unwrap_err().to_string();
        assert!(error.contains("64 MiB"), "{error}");
    }

    #[test]
    fn parts_of_two_times_are_joined_and_other_networks_left_out() {
        let (then, now) = (now(), now() + 100);
        let parts = |one: &Publication, limit: usize| -> Vec<ReadPart> {
            let parts = one.to_parts(limit);
            parts.iter().map(|part| read_part(part).unwrap()).collect()
        };
        let of = |ones: [&Publication; 2]| {
            let limits = ones.into_iter().zip([6000, 4000]);
            limits.flat_map(|(one, limit)| parts(one, limit)).collect()
        };
        let [old, new] = [then, now].map(publication);
        let count = new.segments.len();
        let both = join(of([&old, &new])).unwrap();
        assert_eq!((both.made, both.expiry), (then, then + 3600));
        assert_eq!(both.segments.len(), 2 * count);
        let mut other = publication(then);
        other.network.links.pop();
        let joined = join(of([&other, &new])).unwrap();
        assert_eq!((joined.made, joined.segments.len()), (now, count));
        // A whole publication is a part too.
        let whole = read_part(&new.to_json()).unwrap();
        let joined = join(vec![read_part(&other.to_json()).unwrap(), whole]).unwrap();
        assert_eq!(joined.segments.len(), count);
    }

    #[test]
    fn only_the_first_part_has_the_network() {
        let parts = publication(now()).to_parts(4000);
        let mut read: Vec<_> = parts.iter().map(|one| read_part(one).unwrap()).collect();
        assert!(read.len() > 2);
        assert!(read.remove(0).network.is_some());
        assert!(read.iter().all(|part| part.network.is_none()));
        assert!(
            read.iter()
                .all(|part| part.network_id == read[0].network_id)
        );
        let error = join(read).map(drop).unwrap_err();
        assert!(error.contains("copy all files"), "{error}");
        let alone = Publication::from_json(&parts[1]).unwrap_err().to_string();
        assert!(alone.contains("network"), "{alone}");
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        let part = publication(now()).to_parts(1 << 20).remove(0);
        fuzz(&[part], |bytes| {
            drop(read_part(bytes).map(|part| join(vec![part])))
        });
    }
}

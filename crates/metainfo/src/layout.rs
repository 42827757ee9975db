//! A torrent as the store sees it: files to lay out, pieces to verify.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hawser_store::{Hash, Layout, Ranges};

use crate::piece_hasher::{self, PieceHasher};
use crate::{File, Metainfo, Version};

impl Ranges for Metainfo {
    type Hasher = PieceHasher;

    fn count(&self) -> u32 {
        self.pieces.count()
    }

    fn range(&self, piece: u32) -> Range<u64> {
        self.pieces.range(piece)
    }

    fn hasher(&self, piece: u32) -> PieceHasher {
        match self.layers().filter(|_| self.version() == Version::Two) {
            Some(layers) => PieceHasher::two(layers.hasher(piece)),
            None => PieceHasher::one(),
        }
    }

    fn zeros(&self, piece: u32) -> Option<Hash<Self>> {
        let layers = self.layers().filter(|_| self.version() == Version::Two)?;
        Some(layers.hasher(piece).zeros().into())
    }

    fn expected(&self, piece: u32) -> Option<Hash<Self>> {
        match self.layers().filter(|_| self.version() == Version::Two) {
            Some(layers) => layers.piece_hash(piece).map(Into::into),
            None => self
                .piece_hash(piece)
                .map(|hash| piece_hasher::widened(hash).into()),
        }
    }
}

/// The layout below a download folder.
pub fn in_folder(metainfo: &Metainfo) -> Layout {
    let files = metainfo.files.iter();
    let files = files.map(|file| (file.path.clone(), file.length, file.padding));
    let mut layout = Layout::new(files.chain(last_padding(metainfo)));
    let links = metainfo.links.iter();
    let links = links.filter_map(|link| Some((link.path.clone(), link.target.clone()?)));
    layout.links.extend(links);
    layout
}

/// The name of the part file in a download folder, with the bytes of pieces that are in files which are not
/// downloaded: hidden, and with the info-hash, so that no file of
/// a torrent has it. libtorrent names its own so.
pub fn part_file(metainfo: &Metainfo) -> PathBuf {
    format!(".{}.parts", metainfo.info_hash).into()
}

/// The layout of content on this disk, under any name: `path` is the single file, or the folder of
/// several. The files in it have the names in the torrent byte by byte, or those that a download
/// gives them. Also returns the folder that the layout is relative to.
pub fn at_content(metainfo: &Metainfo, path: &Path) -> (PathBuf, Layout) {
    if !metainfo.multi_file {
        let root = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        let file = (name, metainfo.pieces.total, false);
        let files = [file].into_iter().chain(last_padding(metainfo));
        return (root, Layout::new(files));
    }
    let literal = has_literal_names(metainfo, path);
    let files = metainfo.files.iter().map(|file| {
        let inner = match &file.literal {
            Some(name) if literal => name.clone(),
            _ => inner(file),
        };
        (inner, file.length, file.padding)
    });
    (
        path.to_owned(),
        Layout::new(files.chain(last_padding(metainfo))),
    )
}

/// The padding behind the last file of version 2 alone: libtorrent requests the last block of each file, also
/// of the last one, with as much padding as makes it 16 KiB.
fn last_padding(metainfo: &Metainfo) -> Option<(PathBuf, u64, bool)> {
    let pieces = metainfo.pieces;
    let gap = pieces.total.next_multiple_of(pieces.length.into()) - pieces.total;
    let is_padded = metainfo.version() == Version::Two && gap > 0;
    is_padded.then(|| (PathBuf::new(), gap, true))
}

/// The path of a file in the torrent's folder, as a download names it.
fn inner(file: &File) -> PathBuf {
    // `Metainfo` prefixes every path with the name.
    file.path.components().skip(1).collect()
}

/// Whether the folder at `path` has a file whose name a download would have changed.
fn has_literal_names(metainfo: &Metainfo, path: &Path) -> bool {
    if metainfo.files.iter().all(|file| file.literal.is_none()) {
        return false;
    }
    // The second of two files `a` is downloaded as `a.1`, and its literal name is that of the first.
    let downloaded: HashSet<PathBuf> = metainfo.files.iter().map(inner).collect();
    let mut literal = metainfo
        .files
        .iter()
        .filter_map(|file| file.literal.as_ref());
    literal.any(|name| !downloaded.contains(name) && path.join(name).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_into_the_torrent_are_laid_out() {
        let text = "d4:infod5:filesl\
            d6:lengthi5e4:pathl1:d4:fileee\
            d4:attr1:l4:pathl4:linke12:symlink pathl1:d4:fileee\
            d4:attr1:l4:pathl1:d4:evile12:symlink pathl3:etc6:passwdeee\
            4:name3:set12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
        let metainfo = Metainfo::parse(text.as_bytes()).unwrap();
        let layout = in_folder(&metainfo);
        let link = ("set/link".into(), "d/file".into());
        assert_eq!(layout.links, [link]);
        let [file] = &layout.entries[..] else {
            panic!("{layout:?}")
        };
        assert_eq!((&*file.path, file.length), (Path::new("set/d/file"), 5));
        assert!(!file.padding);
    }

    #[test]
    fn content_is_found_under_literal_names_and_under_those_of_a_download() {
        let text = "d4:infod5:filesl\
            d6:lengthi1e4:pathl3:a\nbee\
            d6:lengthi2e4:pathl3:a_bee\
            d6:lengthi3e4:pathl3:a_bee\
            e4:name3:set12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
        let metainfo = Metainfo::parse(text.as_bytes()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let (_, layout) = at_content(&metainfo, folder.path());
            let names = layout.entries.iter();
            names
                .map(|file| file.path.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let downloaded = ["a_b", "a_b.1", "a_b.2"];
        for name in downloaded {
            std::fs::write(folder.path().join(name), "").unwrap();
            assert_eq!(names(), downloaded);
        }
        std::fs::write(folder.path().join("a\nb"), "").unwrap();
        assert_eq!(names(), ["a\nb", "a_b", "a_b"]);
    }
}

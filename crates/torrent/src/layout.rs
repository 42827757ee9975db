//! A torrent as the store sees it: files to lay out, pieces to verify.

use std::ops::Range;
use std::path::{Path, PathBuf};

use hawser_store::{Hash, Layout, Ranges};
use sha1::Sha1;

use crate::metainfo::Metainfo;

impl Ranges for Metainfo {
    type Hasher = Sha1;

    fn count(&self) -> u32 {
        self.pieces.count()
    }

    fn range(&self, piece: u32) -> Range<u64> {
        self.pieces.range(piece)
    }

    fn expected(&self, piece: u32) -> Option<Hash<Self>> {
        self.piece_hash(piece).map(Into::into)
    }
}

/// The layout below a download folder.
pub(crate) fn in_folder(metainfo: &Metainfo) -> Layout {
    let files = metainfo.files.iter();
    let mut layout = Layout::new(files.map(|file| (file.path.clone(), file.length, file.padding)));
    let links = metainfo.links.iter();
    let links = links.filter_map(|link| Some((link.path.clone(), link.target.clone()?)));
    layout.links.extend(links);
    layout
}

/// The layout of content on this disk, under any name: `path` is the single file, or the folder of
/// several. Also returns the folder that the layout is relative to.
pub(crate) fn at_content(metainfo: &Metainfo, path: &Path) -> (PathBuf, Layout) {
    if !metainfo.multi_file {
        let root = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        return (root, Layout::new([(name, metainfo.pieces.total, false)]));
    }
    let files = metainfo.files.iter().map(|file| {
        // `Metainfo` prefixes every path with the name.
        let inner = file.path.components().skip(1).collect();
        (inner, file.length, file.padding)
    });
    (path.to_owned(), Layout::new(files))
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
}

//! Bundles as `tar.gz`.

use std::io::{self, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, EntryType, Header};

use crate::bundle::{Bundle, ContentError};
use crate::name::{self, NameError};

/// Largest archive that is read, in bytes.
pub const LARGEST_ARCHIVE: u64 = 8 << 20;
/// Largest content of an archive, in bytes: all files and their headers.
const LARGEST_CONTENT: u64 = 32 << 20;
/// Most files.
const MOST_FILES: usize = 1024;

/// The reason why bytes are not the archive of a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// It is too long.
    #[error("it is larger than an archive of an AS can be ({LARGEST_ARCHIVE} bytes)")]
    TooLong,
    /// It is not compressed by gzip.
    #[error("it is not an archive of an AS: it is not a tar.gz")]
    NotGzip,
    /// It ends too early.
    #[error("it is cut short: fetch it again")]
    Short,
    /// It is damaged.
    #[error("it is damaged: {0}: fetch it again")]
    Damaged(String),
    /// It unpacks to more than an AS has.
    #[error(
        "it unpacks to more than an AS has: at most {LARGEST_CONTENT} bytes and {MOST_FILES} files"
    )]
    TooLarge,
    /// It has something that is neither a file nor a folder.
    #[error("it has {0:?}, which is neither a file nor a folder: it is not the archive of an AS")]
    NotAFile(String),
    /// It has two files of one name.
    #[error("it has two files {0:?}: it is not the archive of an AS")]
    Twice(String),
    /// It has a file whose name may not be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its files are not those of an AS.
    #[error(transparent)]
    Content(#[from] ContentError),
}

impl Bundle {
    /// The archive: `tar.gz`, with the files in the order of their names, and without times and
    /// owners.
    pub fn pack(&self) -> Vec<u8> {
        // Writing to memory does not fail, and all names fit into a header.
        self.try_pack().unwrap_or_default()
    }

    fn try_pack(&self) -> io::Result<Vec<u8>> {
        let gzip = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::best());
        let mut tar = Builder::new(gzip);
        for (name, bytes) in self.files() {
            let mut header = Header::new_ustar();
            header.set_path(name)?;
            header.set_size(bytes.len() as u64);
            header.set_mode(if name::is_secret(name) { 0o600 } else { 0o644 });
            header.set_mtime(0);
            header.set_entry_type(EntryType::Regular);
            header.set_cksum();
            tar.append(&header, bytes)?;
        }
        let mut gzip = tar.into_inner()?;
        gzip.flush()?;
        gzip.finish()
    }

    /// Reads an archive and checks that it is the configuration of one AS.
    ///
    /// # Errors
    /// [`UnpackError`]: when it is not a whole archive, has anything but files with plain relative
    /// names, exceeds the bounds, or is not the configuration of an AS.
    pub fn unpack(archive: &[u8]) -> Result<Self, UnpackError> {
        let bundle = Self::unpack_any(archive)?;
        bundle.check()?;
        Ok(bundle)
    }

    fn unpack_any(archive: &[u8]) -> Result<Self, UnpackError> {
        if archive.len() as u64 > LARGEST_ARCHIVE {
            return Err(UnpackError::TooLong);
        }
        if !archive.starts_with(&[0x1f, 0x8b]) {
            return Err(match archive.is_empty() {
                true => UnpackError::Short,
                false => UnpackError::NotGzip,
            });
        }
        let mut content = Vec::new();
        // The checksum is at the end of the archive: nothing is looked at before.
        let mut gzip = GzDecoder::new(archive).take(LARGEST_CONTENT + 1);
        gzip.read_to_end(&mut content).map_err(damaged)?;
        if content.len() as u64 > LARGEST_CONTENT {
            return Err(UnpackError::TooLarge);
        }
        read(&content)
    }
}

/// Reads the files of a tar archive.
fn read(content: &[u8]) -> Result<Bundle, UnpackError> {
    let mut bundle = Bundle::default();
    let mut tar = Archive::new(content);
    for (count, entry) in tar.entries().map_err(damaged)?.enumerate() {
        if count >= 2 * MOST_FILES {
            return Err(UnpackError::TooLarge);
        }
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular => {}
            _ => return Err(UnpackError::NotAFile(path.to_string_lossy().into_owned())),
        }
        let name = name::check(&path)?;
        if bundle.get(&name).is_some() {
            return Err(UnpackError::Twice(name));
        }
        if bundle.files().count() >= MOST_FILES {
            return Err(UnpackError::TooLarge);
        }
        let size = entry.size();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 != size {
            return Err(UnpackError::Short);
        }
        bundle.insert(&name, bytes)?;
    }
    Ok(bundle)
}

fn damaged(error: io::Error) -> UnpackError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => UnpackError::Short,
        _ => UnpackError::Damaged(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use hawser_fuzz::fuzz;
    use proptest::prelude::*;

    use super::*;
    use crate::bundle::tests::example;

    /// An archive made by hand.
    fn archive(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
        let gzip = GzBuilder::new().write(Vec::new(), Compression::fast());
        let mut tar = Builder::new(gzip);
        for (kind, name, bytes) in entries {
            let mut header = Header::new_ustar();
            // Written past the checks of the tar crate, which refuses some of these names.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_entry_type(*kind);
            if kind.is_symlink() || kind.is_hard_link() {
                header.set_link_name("topology.json").unwrap();
            }
            header.set_cksum();
            tar.append(&header, *bytes).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn archives_are_read_back_and_always_the_same() {
        let bundle = example();
        let packed = bundle.pack();
        assert_eq!(packed, bundle.clone().pack());
        assert_eq!(Bundle::unpack(&packed).unwrap(), bundle);
        let mut other = bundle;
        other.insert("keys/master1.key", "x").unwrap();
        assert_ne!(other.pack(), packed);
    }

    #[test]
    fn an_archive_that_is_packed_again_by_hand_is_read() {
        let bundle = example();
        let mut entries = vec![(EntryType::Directory, "./", [].as_slice())];
        entries.push((EntryType::Directory, "./keys/", &[]));
        let named: Vec<_> = bundle.files().map(|(n, b)| (format!("./{n}"), b)).collect();
        entries.extend(
            named
                .iter()
                .map(|(n, b)| (EntryType::Regular, n.as_str(), *b)),
        );
        assert_eq!(Bundle::unpack(&archive(&entries)).unwrap(), bundle);
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in ["/etc/passwd", "../x", "keys/../../x", "..", ".x"] {
            let bytes = archive(&[(EntryType::Regular, name, b"x")]);
            let error = Bundle::unpack(&bytes).unwrap_err();
            assert!(matches!(error, UnpackError::Name(_)), "{name}: {error}");
        }
    }

    #[test]
    fn links_and_devices_are_refused() {
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Char,
            EntryType::Block,
            EntryType::Fifo,
        ] {
            let error = Bundle::unpack(&archive(&[(kind, "keys", b"")])).unwrap_err();
            assert!(
                matches!(error, UnpackError::NotAFile(_)),
                "{kind:?}: {error}"
            );
        }
    }

    #[test]
    fn what_is_no_whole_archive_says_so() {
        let text = |bytes: &[u8]| Bundle::unpack(bytes).unwrap_err().to_string();
        let packed = example().pack();
        for end in [0, 2, 10, packed.len() / 2, packed.len() - 1] {
            let error = text(&packed[..end]);
            assert!(error.contains("cut short"), "{end}: {error}");
        }
        assert!(text(b"PK\x03\x04 zip").contains("not a tar.gz"));
        let mut bent = packed.clone();
        let middle = bent.len() / 2;
        bent[middle] ^= 0xff;
        assert!(Bundle::unpack(&bent).is_err());
        assert!(text(&vec![0x1f; LARGEST_ARCHIVE as usize + 1]).contains("larger than"));
        assert!(text(&archive(&[])).contains("no hawser.json"));
        let twice = [
            (EntryType::Regular, "a", b"".as_slice()),
            (EntryType::Regular, "./a", b""),
        ];
        assert!(text(&archive(&twice)).contains("two files"));
    }

    #[test]
    fn archives_that_grow_too_large_are_refused() {
        let zeros = vec![0; LARGEST_CONTENT as usize + 1];
        let bomb = archive(&[(EntryType::Regular, "topology.json", &zeros)]);
        assert!((bomb.len() as u64) < LARGEST_ARCHIVE);
        let error = Bundle::unpack(&bomb).unwrap_err();
        assert!(matches!(error, UnpackError::TooLarge), "{error}");
        let names: Vec<_> = (0..=MOST_FILES).map(|n| n.to_string()).collect();
        let many = names
            .iter()
            .map(|n| (EntryType::Regular, n.as_str(), [].as_slice()));
        let error = Bundle::unpack(&archive(&many.collect::<Vec<_>>())).unwrap_err();
        assert!(matches!(error, UnpackError::TooLarge), "{error}");
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        fuzz(&[example().pack()], |bytes| drop(Bundle::unpack(bytes)));
        // Past the checksum of gzip, so that changed tar headers are seen.
        let mut tar = Vec::new();
        let packed = example().pack();
        GzDecoder::new(packed.as_slice())
            .read_to_end(&mut tar)
            .unwrap();
        fuzz(&[tar], |bytes| drop(read(bytes)));
    }

    proptest! {
        /// Whatever the names of an archive: if it can be unpacked, every file is in the folder.
        #[test]
        fn nothing_outside_the_folder_is_written(
            names in prop::collection::vec("(\\.{0,2}/){0,3}[a-z.]{0,4}(/[a-z.]{0,3}){0,3}", 1..4)
        ) {
            let entries: Vec<_> = names
                .iter()
                .map(|name| (EntryType::Regular, name.as_str(), b"x".as_slice()))
                .collect();
            let parent = tempfile::tempdir().unwrap();
            let outer = parent.path().join("outer");
            std::fs::create_dir(&outer).unwrap();
            if let Ok(bundle) = Bundle::unpack_any(&archive(&entries)) {
                // Two names may be a file and a folder above another.
                let _ = bundle.write(&outer.join("as"));
                for (name, _) in bundle.files() {
                    let mut parts = Path::new(name).components();
                    prop_assert!(parts.all(|part| matches!(part, Component::Normal(_))));
                }
            }
            let left = std::fs::read_dir(parent.path()).unwrap().count();
            prop_assert_eq!(left, 1);
            for entry in std::fs::read_dir(&outer).unwrap() {
                prop_assert_eq!(entry.unwrap().file_name(), "as");
            }
        }
    }
}

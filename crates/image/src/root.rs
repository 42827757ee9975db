//! The files of an image, and their archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

/// Files and folders by their path, without the slash at its beginning. A folder sorts before what is in
/// it.
#[derive(Debug, Default)]
pub(crate) struct Root(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    mode: u32,
    content: Option<Content>,
}

/// The content of a file.
#[derive(Debug)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// That of a file, which is read when the archive is written.
    Of(PathBuf),
}

impl Root {
    /// Adds a folder, and those around it.
    pub fn add_folder(&mut self, path: &str, mode: u32) {
        self.add(
            path,
            Entry {
                mode,
                content: None,
            },
        );
    }

    /// Adds a file, and the folders around it.
    pub fn add_file(&mut self, path: &str, mode: u32, content: Content) {
        let content = Some(content);
        self.add(path, Entry { mode, content });
    }

    fn add(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (end, _) in path.match_indices('/') {
            let around = || Entry {
                mode: 0o755,
                content: None,
            };
            self.0.entry(path[..end].to_owned()).or_insert_with(around);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Writes the archive (ustar): entries in the order of their paths, of the owner 0, all with the time
    /// `created` in seconds of Unix time.
    ///
    /// # Errors
    /// When a file cannot be read or changes meanwhile, or `to` fails.
    pub fn write_tar(&self, created: u64, to: impl Write) -> io::Result<()> {
        let mut tar = Builder::new(to);
        for (path, entry) in &self.0 {
            let mut header = Header::new_ustar();
            header.set_mode(entry.mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(created);
            match &entry.content {
                None => {
                    header.set_path(format!("{path}/"))?;
                    header.set_entry_type(EntryType::Directory);
                    header.set_size(0);
                    header.set_cksum();
                    tar.append(&header, io::empty())?;
                }
                Some(content) => {
                    header.set_path(path)?;
                    header.set_entry_type(EntryType::Regular);
                    append(&mut tar, header, content)?;
                }
            }
        }
        tar.into_inner()?.flush()
    }
}

fn append(tar: &mut Builder<impl Write>, mut header: Header, content: &Content) -> io::Result<()> {
    match content {
        Content::Bytes(bytes) => {
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            tar.append(&header, &bytes[..])
        }
        Content::Of(path) => {
            let file = File::open(path).map_err(|error| at(path, &error))?;
            let size = file.metadata().map_err(|error| at(path, &error))?.len();
            header.set_size(size);
            header.set_cksum();
            let mut content = file.take(size);
            tar.append(&header, &mut content)?;
            // A shorter content would shift all entries after it.
            match content.limit() {
                0 => Ok(()),
                _ => Err(io::Error::other(format!(
                    "{} became shorter while it was read",
                    path.display()
                ))),
            }
        }
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

//! Making a `.torrent` file from what is on disk.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::bencode::Writer;
use super::{MAX_CREATED_BYTES, MAX_PIECE_LENGTH, name};
use crate::storage::check::{for_each_piece, hash_piece};
use crate::storage::{Files, Layout, StorageError};

/// Piece lengths chosen by themselves lie between these.
const AUTO: std::ops::RangeInclusive<u32> = 16 << 10..=16 << 20;

/// Most pieces wanted: enough to share out, few enough for a small `.torrent`.
const MOST_PIECES: u64 = 2000;

/// How to make a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Bytes per piece, a power of two from 16 KiB to 128 MiB; by itself such that there are
    /// 1000 to 2000 pieces, within 16 KiB to 16 MiB.
    pub piece_length: Option<u32>,
    /// Free text.
    pub comment: Option<String>,
}

impl CreateOptions {
    /// The defaults.
    pub fn new() -> Self {
        CreateOptions::default()
    }

    /// Bytes per piece; `None` chooses.
    pub fn with_piece_length(mut self, length: impl Into<Option<u32>>) -> Self {
        self.piece_length = length.into();
        self
    }

    /// Free text for readers.
    pub fn with_comment(mut self, comment: impl Into<Option<String>>) -> Self {
        self.comment = comment.into();
        self
    }
}

/// Why no torrent could be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The piece length asked for cannot be used.
    #[error("piece length {0}: it must be a power of two from 16384 to {MAX_PIECE_LENGTH}")]
    PieceLength(u32),
    /// There is nothing to share.
    #[error("{path} is empty: there is nothing to share")]
    Empty {
        /// The file or folder.
        path: PathBuf,
    },
    /// A symbolic link in the folder.
    #[error("{path} is a symbolic link: put the file itself there, or leave it out")]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// A device, socket or pipe.
    #[error("{path} is neither a file nor a folder: leave it out")]
    Special {
        /// What it is.
        path: PathBuf,
    },
    /// A name that other systems refuse.
    #[error("{path} cannot be in a torrent: its name is not UTF-8 or contains `\\`; rename it")]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// So many pieces or files that readers refuse the torrent.
    #[error(
        "the torrent would have {bytes} bytes, more than {MAX_CREATED_BYTES}: choose a larger piece length or fewer files"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Reading failed, or a file changed while it was read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Makes the bytes of a `.torrent` file for the file or folder at `path`, hashing on all cores.
/// Files of a folder are ordered by path, hidden ones included; empty folders are left out.
/// `progress` is called with bytes hashed and bytes in all.
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
    let path = fs::canonicalize(path).map_err(|e| StorageError::io("find", path, e))?;
    let content = Content::gather(&path)?;
    let total: u64 = content.files.iter().map(|file| file.length).sum();
    if total == 0 {
        return Err(CreateError::Empty { path });
    }
    let piece_length = options.piece_length.unwrap_or_else(|| auto_length(total));
    let bytes = (total.div_ceil(u64::from(piece_length)) * 20) as usize;
    if bytes > MAX_CREATED_BYTES {
        return Err(CreateError::TooLarge { bytes });
    }

    let layout = Layout::new(
        piece_length,
        content
            .files
            .iter()
            .map(|file| (file.path.clone(), file.length, false)),
    );
    let files = Files::read_only(content.root.clone(), layout);
    let pieces = hash_all(&files, |done| progress(done, total))?;
    content.unchanged()?;

    let torrent = content.write(options, piece_length, &pieces);
    if torrent.len() > MAX_CREATED_BYTES {
        let bytes = torrent.len();
        return Err(CreateError::TooLarge { bytes });
    }
    Ok(torrent)
}

/// The smallest power of two that makes no more than [`MOST_PIECES`] pieces, within bounds.
pub(super) fn auto_length(total: u64) -> u32 {
    let mut length = *AUTO.start();
    while length < *AUTO.end() && total.div_ceil(u64::from(length)) > MOST_PIECES {
        length *= 2;
    }
    length
}

fn hash_all(files: &Files, mut progress: impl FnMut(u64)) -> Result<Vec<u8>, StorageError> {
    let layout = files.layout();
    let mut pieces = vec![0; layout.piece_count() as usize * 20];
    let mut done = 0;
    for_each_piece(
        layout.piece_count(),
        |piece| hash_piece(files, piece),
        |piece, hash| {
            let at = piece as usize * 20;
            pieces[at..at + 20].copy_from_slice(&hash);
            done += u64::from(layout.piece_size(piece));
            progress(done);
            true
        },
    )?;
    Ok(pieces)
}

/// What is to be shared, as it was when it was listed.
struct Content {
    name: String,
    folder: bool,
    /// Where the files' paths begin.
    root: PathBuf,
    files: Vec<Listed>,
}

struct Listed {
    /// Relative to the root.
    path: PathBuf,
    length: u64,
}

impl Content {
    fn gather(path: &Path) -> Result<Content, CreateError> {
        let metadata = fs::metadata(path).map_err(|e| StorageError::io("look at", path, e))?;
        let name = path
            .file_name()
            .ok_or_else(|| CreateError::Name { path: path.into() })
            .and_then(|name| plain_name(path, name))?
            .to_owned();
        if metadata.is_file() {
            let root = path.parent().unwrap_or(path).to_owned();
            let files = vec![Listed {
                path: PathBuf::from(&name),
                length: metadata.len(),
            }];
            return Ok(Content {
                name,
                folder: false,
                root,
                files,
            });
        }
        if !metadata.is_dir() {
            return Err(CreateError::Special { path: path.into() });
        }
        let mut files = Vec::new();
        list(path, Path::new(""), &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Content {
            name,
            folder: true,
            root: path.to_owned(),
            files,
        })
    }

    /// A file that grew while it was hashed would make a torrent of a mixture.
    fn unchanged(&self) -> Result<(), StorageError> {
        for file in &self.files {
            let path = self.root.join(&file.path);
            let found = fs::metadata(&path)
                .map_err(|error| StorageError::io("look at", &path, error))?
                .len();
            if found != file.length {
                return Err(StorageError::WrongLength {
                    path,
                    found,
                    expected: file.length,
                });
            }
        }
        Ok(())
    }

    fn write(&self, options: &CreateOptions, piece_length: u32, pieces: &[u8]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.dict(|top| {
            if let Some(comment) = &options.comment {
                top.bytes(b"comment").bytes(comment.as_bytes());
            }
            top.bytes(b"created by")
                .bytes(concat!("hawser/", env!("CARGO_PKG_VERSION")).as_bytes());
            top.bytes(b"info").dict(|info| {
                if self.folder {
                    info.bytes(b"files").list(|list| {
                        for file in &self.files {
                            list.dict(|entry| file.write(entry));
                        }
                    });
                } else {
                    let length = self.files.iter().map(|file| file.length).sum::<u64>();
                    info.bytes(b"length").int(length as i64);
                }
                info.bytes(b"name").bytes(self.name.as_bytes());
                info.bytes(b"piece length").int(i64::from(piece_length));
                info.bytes(b"pieces").bytes(pieces);
            });
        });
        writer.finish()
    }
}

impl Listed {
    fn write(&self, entry: &mut Writer) {
        entry.bytes(b"length").int(self.length as i64);
        entry.bytes(b"path").list(|parts| {
            for part in self.path.components() {
                parts.bytes(part.as_os_str().as_encoded_bytes());
            }
        });
    }
}

/// Lists the files below `root`/`inner`.
fn list(root: &Path, inner: &Path, files: &mut Vec<Listed>) -> Result<(), CreateError> {
    let folder = root.join(inner);
    let entries = fs::read_dir(&folder).map_err(|e| StorageError::io("list", &folder, e))?;
    for entry in entries {
        let entry = entry.map_err(|e| StorageError::io("list", &folder, e))?;
        let path = entry.path();
        // Does not follow links.
        let metadata = entry
            .metadata()
            .map_err(|e| StorageError::io("look at", &path, e))?;
        let name = entry.file_name();
        let inner = inner.join(plain_name(&path, &name)?);
        if metadata.is_symlink() {
            return Err(CreateError::Symlink { path });
        } else if metadata.is_dir() {
            list(root, &inner, files)?;
        } else if metadata.is_file() {
            files.push(Listed {
                path: inner,
                length: metadata.len(),
            });
        } else {
            return Err(CreateError::Special { path });
        }
    }
    Ok(())
}

fn plain_name<'a>(path: &Path, file_name: &'a std::ffi::OsStr) -> Result<&'a str, CreateError> {
    name::component(file_name.as_encoded_bytes())
        .map_err(|_| CreateError::Name { path: path.into() })
}

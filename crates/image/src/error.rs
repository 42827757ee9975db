//! Errors of images.

use std::io;
use std::path::{Path, PathBuf};

use crate::elf::ElfError;

/// The reason why no image is made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The name of the image is not valid.
    #[error(
        "{0:?} is not the name of an image with a tag: write for example localhost/hawser:0.1.0"
    )]
    Name(String),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program or library is not one that can be examined.
    #[error("{path} cannot be put into an image: {reason}", path = .path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: ElfError,
    },
    /// A library is not on this machine.
    #[error(
        "{needed_by} needs the library {name}, which is in none of the folders of libraries: install it, name its folder in LD_LIBRARY_PATH, or use a program that is linked statically", needed_by = .needed_by.display()
    )]
    NoLibrary {
        /// Its name.
        name: String,
        /// What needs it.
        needed_by: PathBuf,
    },
    /// There are more libraries than programs have.
    #[error("{program} needs more than {most} libraries", program = .program.display())]
    TooManyLibraries {
        /// The program.
        program: PathBuf,
        /// Most libraries.
        most: usize,
    },
    /// The image cannot be assembled, for lack of memory or because a file changed meanwhile.
    #[error("the image cannot be assembled: {0}")]
    Assemble(#[source] io::Error),
    /// The folder for the image has something in it.
    #[error(
        "{folder} is not an empty folder: name another one, which is made if there is none", folder = .0.display()
    )]
    NotEmpty(PathBuf),
    /// A file of the image cannot be written.
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ImageError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }

    /// Whether the command was used wrongly, and nothing was done.
    #[must_use]
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Self::Name(_) | Self::NotEmpty(_))
    }
}

//! A program as an OCI image (OCI Image Format Specification 1.1) that needs no other one.
//!
//! [`Image::of_program`] takes a program and, where it is linked dynamically, its interpreter and the
//! shared libraries that the ELF headers name, found on this machine. There is nothing else in the image
//! but the few files that C libraries read: no shell, no package manager.
//!
//! The same program and libraries always give the same bytes: entries are sorted, and have the time that
//! the caller names. The compressed image is held in memory; the files themselves are read in parts.

mod elf;
mod error;
mod image;
mod layout;
mod libraries;
mod name;
mod root;

pub use self::error::ImageError;
pub use self::image::{Image, Options, Summary};
pub use self::layout::check_folder;
pub use self::name::is_image_name;

//! Reading a file of links.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::LinkFileError;
use crate::link::LinkFile;
use crate::{json, named};

/// Largest file of links, in bytes: some 100,000 links.
pub const LARGEST_FILE: u64 = 16 << 20;

impl LinkFile {
    /// Reads a file of at most [`LARGEST_FILE`] bytes. Its name says which form it has: `.toml`, `.yaml` or
    /// `.yml`, all others are JSON.
    ///
    /// # Errors
    /// When it cannot be read, or is not valid.
    pub fn read(path: &Path) -> Result<Self, LinkFileError> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            file.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
            match text.len() as u64 > LARGEST_FILE {
                false => Ok(()),
                true => Err(io::Error::other(format!(
                    "it has more than {LARGEST_FILE} bytes"
                ))),
            }
        });
        read.map_err(|source| LinkFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        let parsed = match extension {
            Some("toml") => Self::parse_toml(&text),
            Some("yaml" | "yml") => Self::parse_yaml(&text),
            _ => Self::parse_json(&text),
        };
        parsed.map_err(|reason| LinkFileError::Invalid {
            path: path.to_owned(),
            reason,
        })
    }

    /// Reads `link_info.json`.
    ///
    /// # Errors
    /// What is wrong, with the entry that it is in.
    pub fn parse_json(text: &str) -> Result<Self, String> {
        json::parse(text)
    }

    /// Reads TOML.
    ///
    /// # Errors
    /// What is wrong, with the link that it is in.
    pub fn parse_toml(text: &str) -> Result<Self, String> {
        named::parse_toml(text)
    }

    /// Reads YAML.
    ///
    /// # Errors
    /// What is wrong, with the link that it is in.
    pub fn parse_yaml(text: &str) -> Result<Self, String> {
        named::parse_yaml(text)
    }
}

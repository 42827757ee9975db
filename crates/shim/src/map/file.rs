//! The file of the map.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hawser_path::{Policies, Policy};
use thiserror::Error;

use super::destination::{Destination, HostName, Hosts};
use super::entry::Entry;
use super::lines::LineError;
use super::{shila, text};

/// Largest file, in bytes.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// Largest file with a policy, in bytes.
const MAX_POLICY_SIZE: u64 = 1 << 20;

/// The entries of the map, as its file has them. No destination is in it twice.
#[derive(Debug, Clone, Default)]
pub struct MapFile {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// Why the file of a map cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Some of its lines are wrong. Prints one line for each.
    #[error("{}", Lines(path, lines))]
    Lines {
        /// The file.
        path: PathBuf,
        /// What is wrong, in the order of the lines; at least one.
        lines: Vec<LineError>,
    },
}

impl MapFileError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

struct Lines<'a>(&'a Path, &'a [LineError]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, LineError { line, reason }) in self.1.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{line}: {reason}", self.0.display())?;
        }
        Ok(())
    }
}

impl MapFile {
    /// Reads the file at `path`: Shila's `routing.json` if its name ends in `.json`, else a map in
    /// TOML. The policies that it names must be readable.
    ///
    /// # Errors
    /// [`MapFileError`], which names the file, each wrong line, and what to write instead.
    pub fn read(path: &Path) -> Result<Self, MapFileError> {
        let file = Self::load(path)?;
        file.check_policies()?;
        Ok(file)
    }

    /// Reads the file alone.
    pub(super) fn load(path: &Path) -> Result<Self, MapFileError> {
        let text = read(path, MAX_FILE_SIZE).map_err(|source| MapFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(path, &text)
    }

    /// Checks that all policies can be read.
    pub(super) fn check_policies(&self) -> Result<(), MapFileError> {
        // Many entries may name one policy.
        let mut policies = HashMap::new();
        let mut lines = Vec::new();
        for entry in &self.entries {
            let Some(name) = &entry.policy else { continue };
            let read = policies.entry(name);
            if let Err(reason) = read.or_insert_with(|| self.policy_named(name).map(drop)) {
                lines.push(LineError {
                    line: entry.line,
                    reason: reason.clone(),
                });
            }
        }
        self.unless(lines)
    }

    /// As [`read`](Self::read), of a text that would be at `path`, without its policies.
    ///
    /// # Errors
    /// [`MapFileError::Lines`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, MapFileError> {
        let (entries, lines) = match Self::is_shila(path) {
            true => shila::parse(text),
            false => text::parse(text),
        };
        let file = Self {
            path: path.to_owned(),
            entries,
        };
        let mut lines = lines;
        lines.extend(twice(&file.entries));
        lines.sort_by_key(|error| error.line);
        file.unless(lines)?;
        Ok(file)
    }

    /// Whether the file at `path` is one of Shila, which is only read.
    pub fn is_shila(path: &Path) -> bool {
        path.extension()
            .is_some_and(|extension| extension == "json")
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entries, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The host names in the entries, each once.
    pub fn names(&self) -> Vec<HostName> {
        let names = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.destination.hosts {
                Hosts::Name(name) => Some(name.clone()),
                Hosts::Prefix(_) => None,
            });
        let mut names: Vec<HostName> = names.collect();
        names.sort();
        names.dedup();
        names
    }

    /// Reads the policy of an entry; `None` if it names none.
    ///
    /// # Errors
    /// When it cannot be read, or is invalid: [`MapFileError::Lines`] of the entry's line.
    pub fn policy(&self, entry: &Entry) -> Result<Option<Policy>, MapFileError> {
        let read = entry.policy.as_ref().map(|name| self.policy_named(name));
        read.transpose().map_err(|reason| MapFileError::Lines {
            path: self.path.clone(),
            lines: vec![LineError {
                line: entry.line,
                reason,
            }],
        })
    }

    /// The files that policies may be in, each once.
    pub(super) fn policy_files(&self) -> BTreeSet<PathBuf> {
        let names = self
            .entries
            .iter()
            .filter_map(|entry| entry.policy.as_ref());
        let both = names.flat_map(|name| {
            let file = name.rsplit_once(':').map(|(file, _)| file);
            [Some(&name[..]), file].into_iter().flatten()
        });
        both.map(|file| self.folder().join(file)).collect()
    }

    /// Reads the policy `FILE[:NAME]` of an entry.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn policy_named(&self, policy: &str) -> Result<Policy, String> {
        let (file, name) = match policy.rsplit_once(':') {
            // A file name may contain a colon.
            Some((file, name)) if !self.folder().join(policy).exists() => (file, Some(name)),
            _ => (policy, None),
        };
        let wrong = |error: &dyn fmt::Display| format!("policy `{policy}`: {error}");
        let file = self.folder().join(file);
        let text = read(&file, MAX_POLICY_SIZE)
            .map_err(|error| wrong(&format_args!("cannot read {}: {error}", file.display())))?;
        let policies = Policies::parse(&text).map_err(|error| wrong(&error))?;
        let chosen = match name {
            Some(name) => policies.policy(name),
            None => policies.only(),
        };
        Ok(chosen.map_err(|error| wrong(&error))?.clone())
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn unless(&self, lines: Vec<LineError>) -> Result<(), MapFileError> {
        match lines.is_empty() {
            true => Ok(()),
            false => Err(MapFileError::Lines {
                path: self.path.clone(),
                lines,
            }),
        }
    }
}

/// Destinations that an entry before has too.
fn twice(entries: &[Entry]) -> Vec<LineError> {
    let mut first: HashMap<&Destination, &Entry> = HashMap::new();
    let mut lines = Vec::new();
    for entry in entries {
        let before = *first.entry(&entry.destination).or_insert(entry);
        if !std::ptr::eq(before, entry) {
            lines.push(LineError {
                line: entry.line,
                reason: before.is_mapped(entry.target),
            });
        }
    }
    lines
}

/// Reads a file. Bytes that are not UTF-8 are replaced, so that they are found at their line.
fn read(path: &Path, largest: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    // One more byte shows that a file is too large, whatever size a device or a pipe reports.
    File::open(path)?
        .take(largest + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        let error = format!("it is larger than {} MiB", largest >> 20);
        return Err(io::Error::other(error));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! Files and folders that a command's arguments name.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use hawser_topology::Network;
use hawser_torrent::Metainfo;
use hawser_torrent::metainfo::MAX_METAINFO_BYTES;

use crate::failure::{Doing, Failure};

/// Most bytes of a text that is read: far more than a policy or a table has.
const MAX_BYTES: u64 = 1 << 20;

/// Checks that a file or folder exists.
///
/// # Errors
/// Wrong use, if it does not exist or cannot be read.
pub fn check_input(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Checks that a folder is the configuration of an AS.
///
/// # Errors
/// Wrong use, if it is not.
pub fn check_as_folder(path: &Path) -> Result<(), Failure> {
    let wrong = |why: &str| {
        Err(Failure::usage(format!(
            "{}: {why}: name the folder of the AS, which has its topology.json",
            path.display()
        )))
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => wrong("no such folder"),
        Err(error) => Err(unreadable(path, &error)),
        Ok(found) if !found.is_dir() => wrong("is not a folder"),
        Ok(_) => match path.join("topology.json").try_exists() {
            Ok(false) => wrong("no topology.json in it"),
            // What is there, or cannot be looked at, is reported as it is read.
            _ => Ok(()),
        },
    }
}

/// Checks that a folder that this flag names exists, or may be created.
///
/// # Errors
/// Wrong use, if something else is there, or a symbolic link to nothing.
pub fn check_output_folder(flag: &str, path: &Path) -> Result<(), Failure> {
    let wrong = |why: String| Err(Failure::usage(format!("{flag} {}: {why}", path.display())));
    // With a slash at its end, a path names what a link leads to.
    let plain: PathBuf = path.components().collect();
    match (std::fs::metadata(path), std::fs::read_link(plain)) {
        (Ok(found), _) if !found.is_dir() => {
            let hint = match flag {
                "-o" => ", the torrent names the files in it",
                _ => "",
            };
            wrong(format!("is a file: name a folder{hint}"))
        }
        (Err(error), Ok(target)) if error.kind() == ErrorKind::NotFound => wrong(format!(
            "is a symbolic link to {}, which does not exist: create that, or name another folder",
            target.display()
        )),
        _ => Ok(()),
    }
}

/// Wrong use: the named file or folder cannot be read.
fn unreadable(path: &Path, error: &Error) -> Failure {
    if path.as_os_str().is_empty() {
        return Failure::usage("the name of a file or folder is empty: name one");
    }
    let path = path.display();
    Failure::usage(match error.kind() {
        ErrorKind::NotFound => format!("{path}: no such file or folder"),
        ErrorKind::IsADirectory => format!("{path}: is a folder: name a file"),
        _ => format!("{path}: cannot be read: {error}"),
    })
}

/// Reads a text of at most 1 MiB.
///
/// # Errors
/// When it cannot be read, is longer, or is not UTF-8.
pub fn read_text(file: &Path) -> Result<String, Error> {
    let mut text = String::new();
    // One more byte shows that a file is too long, whatever size a device or a pipe reports.
    let mut limited = File::open(file)?.take(MAX_BYTES + 1);
    limited.read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(Error::new(ErrorKind::FileTooLarge, "longer than 1 MiB")),
        false => Ok(text),
    }
}

/// Reads a `.topo` file by its path, or a ready topology by its name.
///
/// # Errors
/// Wrong use, if there is neither; a failed job, if the file is invalid.
pub fn topology(topology: &str) -> Result<Network, Failure> {
    match Network::ready(topology) {
        Some(network) => Ok(network),
        None if Path::new(topology).exists() => Ok(Network::load(Path::new(topology))?),
        None => {
            let ready: Vec<_> = Network::ready_names().collect();
            Err(Failure::usage(format!(
                "{topology}: there is no such file, nor a ready topology of that name ({})",
                ready.join(", ")
            )))
        }
    }
}

/// Reads a `.torrent` file.
///
/// # Errors
/// When the file is not a usable torrent; wrong use, if it cannot be read, or a magnet link or a
/// URL is given.
pub fn metainfo(file: &Path) -> Result<Metainfo, Failure> {
    // One more byte shows that a file is too large, whatever size a device or a pipe reports.
    let limit = MAX_METAINFO_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|f| f.take(limit).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(no_torrent(file, &error));
    }
    refuse_magnet(&String::from_utf8_lossy(&bytes[..bytes.len().min(16)]))?;
    Metainfo::parse(&bytes).doing(file.display())
}

/// The error for a path that cannot be read; it may be meant as something else.
fn no_torrent(file: &Path, error: &Error) -> Failure {
    let text = file.to_string_lossy();
    if let Err(magnet) = refuse_magnet(&text) {
        return magnet;
    }
    let schemes = ["http://", "https://", "ftp://"];
    match schemes.iter().any(|scheme| begins_with(&text, scheme)) {
        true => Failure::usage(format!(
            "{text}: this takes a .torrent file: URLs, of http:// and https://, are taken by `hawser get` and \
             `hawser torrent add`, and curl -O fetches the file"
        )),
        false => unreadable(file, error),
    }
}

/// Whether a text begins like a magnet link.
pub fn is_magnet(text: &str) -> bool {
    begins_with(text.trim_start(), "magnet:?")
}

fn refuse_magnet(text: &str) -> Result<(), Failure> {
    match is_magnet(text) {
        true => Err(Failure::usage(
            "this takes a .torrent file, not a magnet link: `hawser get` takes either",
        )),
        false => Ok(()),
    }
}

/// Compares case-insensitively, as schemes require (RFC 3986, 3.1).
fn begins_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        for (more, fits) in [(0, true), (1, false)] {
            let text = "a".repeat(MAX_BYTES as usize + more);
            std::fs::write(&file, &text).unwrap();
            assert_eq!(read_text(&file).ok().as_ref(), fits.then_some(&text));
        }
        let endless = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.to_string(), "longer than 1 MiB");
    }
}

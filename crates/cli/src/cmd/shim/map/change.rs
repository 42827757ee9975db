//! `hawser shim map add` and `hawser shim map remove`.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::num::NonZeroU8;
use std::os::unix::fs::DirBuilderExt;
use std::path::{self, Path};

use hawser_shim::map::edit::{self, EditError};
use hawser_shim::map::{Entry, MapFile};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::{AddArgs, RemoveArgs};
use crate::cmd::policy::{self, PolicyArgs};
use crate::failure::{Doing, Failure};
use crate::output::Output;

/// Adds an entry.
pub fn add(args: AddArgs) -> Result<(), Failure> {
    let (path, is_named) = args.map.path()?;
    let entry = entry(args)?;
    if !is_named {
        make_folder(folder(&path))?;
    }
    change(&path, Some(edit::NEW_FILE), |text| edit::add(text, &entry))
}

/// Removes an entry.
pub fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let (path, is_named) = args.map.path()?;
    let folder = folder(&path);
    if !is_named && !folder.exists() {
        let absent = EditError::Absent(args.destination.clone());
        return Err(absent).doing(path.display());
    }
    let missing = (!is_named).then_some("");
    change(&path, missing, |text| edit::remove(text, &args.destination))
}

fn entry(args: AddArgs) -> Result<Entry, Failure> {
    let mut entry = Entry::new(args.destination, args.target);
    if let Some(paths) = args.paths.and_then(NonZeroU8::new) {
        entry = entry.with_paths(paths);
    }
    if let Some(policy) = args.policy {
        // The shim runs in another folder.
        let absolute = path::absolute(&policy).doing(format_args!("--policy {policy}"))?;
        policy::read(&PolicyArgs {
            policy: Some(policy),
            acl: Vec::new(),
            sequence: None,
        })?;
        entry = entry.with_policy(absolute.to_string_lossy());
    }
    Ok(match args.comment {
        Some(comment) => entry.with_comment(comment),
        None => entry,
    })
}

/// Writes the map anew as `edit` changes it; `missing` is its text if it does not exist, which else
/// is wrong use.
fn change(
    path: &Path,
    missing: Option<&str>,
    edit: impl Fn(&str) -> Result<String, EditError>,
) -> Result<(), Failure> {
    if MapFile::is_shila(path) {
        return Err(Failure::usage(format!(
            "{}: Shila's routing.json is only read: add its entries to a map in TOML",
            path.display()
        )));
    }
    let _lock = lock(folder(path))?;
    let text = match (fs::read_to_string(path), missing) {
        (Err(error), Some(missing)) if error.kind() == ErrorKind::NotFound => missing.to_owned(),
        (Err(error), _) if error.kind() == ErrorKind::NotFound => {
            let error = format!("{}: there is no such file", path.display());
            return Err(Failure::usage(error));
        }
        (read, _) => read.doing(path.display())?,
    };
    // This names every wrong line.
    MapFile::parse(path, &text)?;
    let text = edit(&text).doing(path.display())?;
    Output::check("--map", path, true, &[])?.write(text.as_bytes())
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    let folder = path.parent().unwrap_or(Path::new("/"));
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

/// Makes the folder of a map that was not named: for all to read below /etc, for the user alone
/// elsewhere, as keys are in it, too.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let mode = match folder.starts_with("/etc") {
        true => 0o755,
        false => 0o700,
    };
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(mode).create(folder);
    made.doing(format_args!("making the folder {}", folder.display()))
}

/// Waits until no other command changes a map in the folder. The lock belongs to the folder, because
/// the file is replaced.
fn lock(folder: &Path) -> Result<File, Failure> {
    let shown = folder.display();
    let file = File::open(folder).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::usage(format!("the folder {shown} does not exist: make it first"))
        }
        _ => Failure::job(format_args!("{shown}: {error}")),
    })?;
    match retry_on_intr(|| flock(&file, FlockOperation::LockExclusive)) {
        Ok(()) => {}
        // Some file systems have no locks, NFS none of folders.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::BADF) => {
            tracing::warn!(folder = %shown, "cannot be locked against other changes of the map");
        }
        Err(error) => return Err(error).doing(format_args!("locking {shown}")),
    }
    Ok(file)
}

//! Content that is moved to another download folder, on the same file system or on another one.
//!
//! On the same file system each file or folder is renamed. To another one it is copied:
//!
//! 1. into a folder `.HASH.moving` in the new download folder, synced;
//! 2. what was copied is put away into `.HASH.moved` in the old one;
//! 3. the copy gets its name, unless something has it already;
//! 4. what was put away is deleted.
//!
//! So at any time one of both is whole, and what was interrupted is continued by another call.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hawser_torrent::{Metainfo, part_file, part_name};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::copying::{MoveError, copy};
use super::top;

/// Gives a file or folder another name, unless something has it.
type Rename = fn(&Path, &Path) -> Result<(), Errno>;

/// Moves the content of a torrent from one download folder to another, which is made if it does not exist.
/// Does nothing if there is no content, or it was moved already. While content is copied, it is interrupted once
/// the program `is_ending`.
///
/// # Errors
/// [`MoveError`].
pub(crate) fn relocate(
    metainfo: &Metainfo,
    from: &Path,
    to: &Path,
    is_ending: &dyn Fn() -> bool,
) -> Result<(), MoveError> {
    relocate_by(metainfo, from, to, is_ending, rename)
}

fn relocate_by(
    metainfo: &Metainfo,
    from: &Path,
    to: &Path,
    is_ending: &dyn Fn() -> bool,
    rename: Rename,
) -> Result<(), MoveError> {
    let hash = metainfo.info_hash;
    let moving = Moving {
        from,
        to,
        copies: to.join(format!(".{hash}.moving")),
        copied: from.join(format!(".{hash}.moved")),
        is_ending,
        rename,
    };
    // Each is moved or not: after a crash in between, another call moves the rest.
    moving.move_one(&part_file(metainfo))?;
    if let Some(top) = top(metainfo) {
        // The only file may have the name of one that is not complete.
        let is_partial = !from.join(&top).exists() && !moving.copied.join(&top).exists();
        if let Some(partial) = part_name(&top).filter(|_| is_partial) {
            moving.move_one(&partial)?;
        }
        moving.move_one(&top)?;
    }
    for folder in [&moving.copies, &moving.copied] {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(format!("cannot delete {}: {error}", folder.display()).into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
}

/// A move of content.
struct Moving<'a> {
    from: &'a Path,
    to: &'a Path,
    /// Where copies are that have not got their names.
    copies: PathBuf,
    /// Where that is of which there is a copy.
    copied: PathBuf,
    is_ending: &'a dyn Fn() -> bool,
    /// Renames between both folders.
    rename: Rename,
}

impl Moving<'_> {
    /// Moves one file or folder, unless it does not exist.
    fn move_one(&self, name: &Path) -> Result<(), MoveError> {
        let (old, new) = (self.from.join(name), self.to.join(name));
        if exists(&self.copied.join(name)) {
            self.finish(name)?;
        }
        if !exists(&old) {
            return Ok(());
        }
        make(self.to)?;
        match (self.rename)(&old, &new) {
            Ok(()) => Ok(sync(&[self.from, self.to])?),
            Err(Errno::XDEV) if exists(&new) => Err(is_taken(&new)),
            Err(Errno::XDEV) => self.copy_one(name),
            Err(Errno::EXIST) => Err(is_taken(&new)),
            Err(errno) => Err(cannot_move(&old, &new, errno)),
        }
    }

    /// Copies one file or folder to another file system, and deletes it here.
    fn copy_one(&self, name: &Path) -> Result<(), MoveError> {
        make(&self.copies)?;
        let old = self.from.join(name);
        if let Err(error) = copy(&old, &self.copies.join(name), self.is_ending) {
            if let MoveError::Failed(_) = error {
                // It takes room that others need. What is left of it is replaced by another call.
                let _ = fs::remove_dir_all(&self.copies);
            }
            return Err(error);
        }
        sync(&[&self.copies, self.to])?;
        self.pause()?;
        make(&self.copied)?;
        let copied = self.copied.join(name);
        rename(&old, &copied).map_err(|errno| cannot_move(&old, &copied, errno))?;
        sync(&[&self.copied, self.from])?;
        self.pause()?;
        self.finish(name)
    }

    /// Gives the copy its name, if it has not got it, and deletes what was copied.
    fn finish(&self, name: &Path) -> Result<(), MoveError> {
        let (old, new) = (self.from.join(name), self.to.join(name));
        let (copy, copied) = (self.copies.join(name), self.copied.join(name));
        if exists(&copy) {
            match rename(&copy, &new) {
                Ok(()) => sync(&[&self.copies, self.to])?,
                Err(Errno::EXIST) => {
                    rename(&copied, &old).map_err(|errno| cannot_move(&copied, &old, errno))?;
                    return Err(is_taken(&new));
                }
                Err(errno) => return Err(cannot_move(&copy, &new, errno)),
            }
            self.pause()?;
        }
        let is_folder = copied.symlink_metadata().is_ok_and(|it| it.is_dir());
        let deleted = match is_folder {
            true => fs::remove_dir_all(&copied),
            false => fs::remove_file(&copied),
        };
        deleted.map_err(|error| format!("cannot delete {}: {error}", copied.display()))?;
        Ok(())
    }

    /// # Errors
    /// [`MoveError::Interrupted`], if the program is ending.
    fn pause(&self) -> Result<(), MoveError> {
        match (self.is_ending)() {
            true => Err(MoveError::Interrupted),
            false => Ok(()),
        }
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

fn is_taken(path: &Path) -> MoveError {
    let path = path.display();
    format!("{path} is there already: move it away, or choose another folder").into()
}

fn cannot_move(from: &Path, to: &Path, errno: Errno) -> MoveError {
    let (from, to) = (from.display(), to.display());
    format!("cannot move {from} to {to}: {errno}").into()
}

/// What names in these folders are is on disk when this returns.
fn sync(folders: &[&Path]) -> Result<(), String> {
    for folder in folders {
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| format!("cannot sync {}: {error}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::super::tests::torrent;
    use super::*;

    fn never() -> bool {
        false
    }

    /// As between two file systems.
    fn other_system(_: &Path, _: &Path) -> Result<(), Errno> {
        Err(Errno::XDEV)
    }

    #[test]
    fn content_is_moved_once_and_replaces_nothing() {
        for rename in [rename as Rename, other_system] {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to/new"));
            let metainfo = torrent(&from);
            let parts = part_file(&metainfo);
            fs::write(from.join(&parts), "x").unwrap();
            let relocate = || relocate_by(&metainfo, &from, &to, &never, rename);
            relocate().unwrap();
            assert!(to.join("set/inner/a").exists() && !from.join("set").exists());
            assert!(to.join(&parts).exists() && !from.join(&parts).exists());
            // After a crash it may be ordered again.
            relocate().unwrap();
            torrent(&from);
            let Err(MoveError::Failed(error)) = relocate() else {
                panic!("something was replaced");
            };
            assert!(error.contains("is there already"), "{error}");
            assert!(from.join("set/b").exists());
            // Nothing of the move stays.
            let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
            assert_eq!((names(&from), names(&to)), (1, 2));
        }
    }

    /// As unfinished downloads have one.
    const ATTRIBUTE: &str = "user.hawser.test";

    fn attribute(folder: &Path) -> Option<usize> {
        let path = folder.join("set/inner/a");
        rustix::fs::getxattr(path, ATTRIBUTE, &mut [0; 8][..]).ok()
    }

    /// A torrent with a sparse file, a link, and a file with a date of its own, and its old download folder.
    fn prepared(dir: &Path) -> (Metainfo, PathBuf) {
        let from = dir.join("from");
        let metainfo = torrent(&from);
        let sparse = fs::File::create(from.join("set/b")).unwrap();
        sparse.set_len(40 << 20).unwrap();
        let at = |offset, bytes: &[u8]| {
            std::os::unix::fs::FileExt::write_all_at(&sparse, bytes, offset).unwrap();
        };
        at(9 << 20, &[7; 3 << 20]);
        let date = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000, 7);
        sparse.set_modified(date).unwrap();
        symlink("b", from.join("set/link")).unwrap();
        // Where the file system has attributes.
        let flags = rustix::fs::XattrFlags::empty();
        let _ = rustix::fs::setxattr(from.join("set/inner/a"), ATTRIBUTE, b"mark", flags);
        (metainfo, from)
    }

    fn check(folder: &Path) {
        let sparse = fs::metadata(folder.join("set/b")).unwrap();
        assert_eq!(
            (sparse.len(), sparse.mtime(), sparse.mtime_nsec()),
            (40 << 20, 1_000_000, 7)
        );
        let bytes = fs::read(folder.join("set/b")).unwrap();
        let is_data = |at: usize| (9 << 20..12 << 20).contains(&at);
        let is_right = |(at, byte): (usize, &u8)| (*byte == 7) == is_data(at);
        assert!(bytes.iter().enumerate().all(is_right));
        assert_eq!(fs::read(folder.join("set/inner/a")).unwrap(), b"a");
        let link = fs::read_link(folder.join("set/link")).unwrap();
        assert_eq!(link, Path::new("b"));
    }

    #[test]
    fn a_copy_is_whole_at_any_time_and_is_continued_after_an_interruption() {
        // Interrupted at each step once, until it passes.
        for steps in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let (metainfo, from) = prepared(dir.path());
            let to = dir.path().join("to");
            let left = Cell::<u32>::new(steps);
            let is_ending = || left.replace(left.get().saturating_sub(1)) == 0;
            let moved = relocate_by(&metainfo, &from, &to, &is_ending, other_system);
            if moved == Err(MoveError::Interrupted) {
                let put_away = from.join(format!(".{}.moved", metainfo.info_hash));
                let whole = [&from, &to, &put_away].map(|it| it.join("set/link").is_symlink());
                assert!(whole.contains(&true), "step {steps}: {whole:?}");
                assert!(!(whole[0] && whole[1]), "step {steps}: {whole:?}");
                relocate_by(&metainfo, &from, &to, &never, other_system).unwrap();
            } else {
                assert_eq!(moved, Ok(()), "step {steps}");
            }
            check(&to);
            assert_eq!(fs::read_dir(&to).unwrap().count(), 1, "step {steps}");
            assert_eq!(fs::read_dir(&from).unwrap().count(), 0, "step {steps}");
            if moved.is_ok() {
                // Files, parts of a file, and what follows.
                assert!(steps > 5, "{steps}");
                break;
            }
        }
    }

    #[test]
    fn holes_stay_holes_and_attributes_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (metainfo, from) = prepared(dir.path());
        let blocks = |folder: &Path| fs::metadata(folder.join("set/b")).unwrap().blocks();
        let (before, marked) = (blocks(&from), attribute(&from));
        let to = dir.path().join("to");
        relocate_by(&metainfo, &from, &to, &never, other_system).unwrap();
        assert_eq!(attribute(&to), marked);
        // Where the file system has holes.
        if before < 80 << 10 {
            assert!(blocks(&to) < 80 << 10, "{before} and {}", blocks(&to));
        }
    }

    #[test]
    fn what_took_the_name_meanwhile_stays_and_so_does_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let (metainfo, from) = prepared(dir.path());
        let to = dir.path().join("to");
        // Once the content is put away.
        let is_put_away = || from.join(format!(".{}.moved", metainfo.info_hash)).exists();
        let moved = relocate_by(&metainfo, &from, &to, &is_put_away, other_system);
        assert_eq!(moved, Err(MoveError::Interrupted));
        fs::write(to.join("set"), "another's").unwrap();
        let moved = relocate_by(&metainfo, &from, &to, &never, other_system);
        assert!(matches!(moved, Err(MoveError::Failed(_))), "{moved:?}");
        check(&from);
        assert_eq!(fs::read(to.join("set")).unwrap(), b"another's");
        fs::remove_file(to.join("set")).unwrap();
        relocate_by(&metainfo, &from, &to, &never, other_system).unwrap();
        check(&to);
        assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
    }
}

//! The content of torrents on disk: moved and deleted. These calls block.

mod copying;
mod moving;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hawser_store::{Folder, StoreError};
use hawser_torrent::{Metainfo, part_file, part_name};

pub(crate) use self::copying::MoveError;
pub(crate) use self::moving::relocate;
use crate::renames::Rename;

/// Whether a folder has content of a torrent, complete or not.
pub(crate) fn is_there(metainfo: &Metainfo, folder: &Path) -> bool {
    let top = top(metainfo);
    let partial = top.as_deref().and_then(part_name);
    let mut names = top.into_iter().chain(partial).chain([part_file(metainfo)]);
    names.any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Gives a file or folder of a torrent, which has the names of before, another name in a download folder. Does nothing if it
/// does not exist, or has the name already.
///
/// # Errors
/// Why it has the name of before.
pub(crate) fn rename(metainfo: &Metainfo, folder: &Path, rename: &Rename) -> Result<(), String> {
    let root = match Folder::existing(folder) {
        Ok(root) => root,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let (from, to) = (rename.from().to_owned(), rename.to());
    let is_file = metainfo.files.iter().any(|file| file.path == from);
    let is_missing = folder.join(&from).symlink_metadata().is_err();
    let renamed = match part_name(&from).filter(|_| is_file && is_missing) {
        // Its name is that of one that is not complete. A file that has it beside a complete one is another's.
        Some(partial) => root.rename_path(&partial, &part_name(&to).unwrap_or(to)),
        None => root.rename_path(&from, &to),
    };
    renamed.map_err(|error| error.to_string())
}

/// The file or folder that has all content of a torrent, relative to the download folder.
fn top(metainfo: &Metainfo) -> Option<PathBuf> {
    let mut paths = metainfo
        .files
        .iter()
        .filter(|file| !file.padding)
        .map(|file| &file.path);
    let mut links = metainfo.links.iter().map(|link| &link.path);
    let path = paths.next().or_else(|| links.next())?;
    path.components()
        .next()
        .map(|first| PathBuf::from(first.as_os_str()))
}

/// Deletes the files and links of a torrent in a download folder, and the folders that are empty then.
/// What else is in its folders stays. Nothing outside of the download folder is touched.
///
/// # Errors
/// Why something could not be deleted, of the first such file.
pub(crate) fn delete(metainfo: &Metainfo, folder: &Path) -> Result<(), String> {
    let root = match Folder::existing(folder) {
        Ok(root) => root.without_links(),
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let files = metainfo
        .files
        .iter()
        .filter(|file| !file.padding)
        .map(|file| &file.path);
    let links = metainfo.links.iter().map(|link| &link.path);
    let (mut folders, mut failure) = (BTreeSet::new(), None);
    let parts = part_file(metainfo);
    let own: BTreeSet<&Path> = files.clone().map(|path| &**path).collect();
    for path in files.chain(links).chain([&parts]) {
        let parent = path.parent().unwrap_or(Path::new(""));
        folders.extend(
            parent
                .ancestors()
                .filter(|one| !one.as_os_str().is_empty())
                .map(Path::to_owned),
        );
        let mut remove = |path: &Path| {
            if let Err(error) = in_parent(&root, path, |folder, name| folder.remove(name)) {
                failure.get_or_insert(error);
            }
        };
        // A file beside a complete one that has the name of an incomplete one is another's.
        if let Some(partial) = part_name(path)
            && folder.join(path).symlink_metadata().is_err()
            && !own.contains(&*partial)
        {
            remove(&partial);
        }
        remove(path);
    }
    // The innermost first.
    for path in folders.iter().rev() {
        let removed = in_parent(&root, path, |folder, name| {
            folder.remove_empty_folder(name).map(drop)
        });
        if let Err(error) = removed {
            failure.get_or_insert(error);
        }
    }
    match failure {
        None => Ok(()),
        Some(error) => Err(error.to_string()),
    }
}

/// Does something in the folder of `path`, if that exists.
fn in_parent(
    root: &Folder,
    path: &Path,
    remove: impl FnOnce(&Folder, &std::ffi::OsStr) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default();
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        None => remove(root, name),
        Some(parent) => match root.folder(parent) {
            Ok(folder) => remove(&folder, name),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use hawser_torrent::{CreateOptions, create};

    use super::*;

    /// A torrent of a folder with two files, in a download folder.
    pub(super) fn torrent(dir: &Path) -> Metainfo {
        let top = dir.join("set");
        fs::create_dir_all(top.join("inner")).unwrap();
        fs::write(top.join("inner/a"), "a").unwrap();
        fs::write(top.join("b"), "b").unwrap();
        let bytes = create(&top, &CreateOptions::default(), |_, _| {}).unwrap();
        Metainfo::parse(&bytes).unwrap()
    }

    #[test]
    fn only_what_is_of_the_torrent_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("downloads");
        let metainfo = torrent(&folder);
        fs::write(folder.join("set/other"), "x").unwrap();
        fs::write(folder.join(part_file(&metainfo)), "x").unwrap();
        delete(&metainfo, &folder).unwrap();
        assert!(folder.join("set/other").exists());
        assert!(!folder.join(part_file(&metainfo)).exists());
        assert!(!folder.join("set/b").exists() && !folder.join("set/inner").exists());
        fs::remove_file(folder.join("set/other")).unwrap();
        delete(&metainfo, &folder).unwrap();
        assert!(folder.exists() && !folder.join("set").exists());
        fs::remove_dir(&folder).unwrap();
        delete(&metainfo, &folder).unwrap();
    }

    #[test]
    fn links_that_lead_out_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, outside) = (dir.path().join("downloads"), dir.path().join("outside"));
        let metainfo = torrent(&folder);
        fs::create_dir(&outside).unwrap();
        fs::rename(folder.join("set/inner"), outside.join("inner")).unwrap();
        symlink(outside.join("inner"), folder.join("set/inner")).unwrap();
        delete(&metainfo, &folder).unwrap_err();
        assert!(outside.join("inner/a").exists());
        assert!(!folder.join("set/b").exists());
    }

    #[test]
    fn files_that_are_not_complete_are_moved_and_deleted_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("one"), "content").unwrap();
        let bytes = create(&from.join("one"), &CreateOptions::default(), |_, _| {}).unwrap();
        let one = Metainfo::parse(&bytes).unwrap();
        fs::rename(from.join("one"), from.join("one.part")).unwrap();
        relocate(&one, &from, &to, &|| false).unwrap();
        assert!(to.join("one.part").exists() && !from.join("one.part").exists());
        delete(&one, &to).unwrap();
        assert!(!to.join("one.part").exists());

        let set = torrent(&from);
        fs::rename(from.join("set/b"), from.join("set/b.part")).unwrap();
        // Beside a complete file it is another's.
        fs::write(from.join("set/inner/a.part"), "x").unwrap();
        delete(&set, &from).unwrap();
        assert!(!from.join("set/b.part").exists() && from.join("set/inner/a.part").exists());
    }
}

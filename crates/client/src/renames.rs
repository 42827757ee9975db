//! Other names of files and folders of a torrent than its metainfo has.

use std::path::{Component, Path, PathBuf};

use hawser_torrent::{Metainfo, PART_SUFFIX, is_file_name, part_file, part_name};
use serde::{Deserialize, Serialize};

/// Most names of a torrent that are kept.
const MAX_RENAMES: usize = 1000;
/// Most bytes of all of them.
const MAX_BYTES: usize = 64 << 10;
/// Longest path below the download folder, in bytes: as those of metainfo.
const MAX_PATH_BYTES: usize = 3072;

/// Another name of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Its path before, below the download folder: that of the torrent's name, or one that begins with it.
    pub path: String,
    /// Its name, in the same folder.
    pub name: String,
}

impl Rename {
    /// The path before.
    pub(crate) fn from(&self) -> &Path {
        Path::new(&self.path)
    }

    /// The path then.
    pub(crate) fn to(&self) -> PathBuf {
        self.from().with_file_name(&self.name)
    }

    /// Whether it is the name of the torrent.
    pub(crate) fn is_top(&self) -> bool {
        self.from().components().count() == 1
    }

    /// The path that a file has then; `None` if it stays.
    fn renamed(&self, path: &Path) -> Option<PathBuf> {
        let inner = path.strip_prefix(self.from()).ok()?;
        match inner.as_os_str().is_empty() {
            true => Some(self.to()),
            false => Some(self.to().join(inner)),
        }
    }

    /// Whether it names a path below the download folder, and a name that files have.
    fn is_plain(&self) -> bool {
        let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_));
        let mut parts = self.from().components();
        !self.path.is_empty() && parts.all(is_normal) && is_file_name(&self.name)
    }
}

/// Gives the files of a torrent, and the torrent, the names that they got one after another. Web seeds are still asked
/// for those in the metainfo.
pub(crate) fn apply(metainfo: &mut Metainfo, renames: &[Rename]) {
    for rename in renames {
        if rename.is_top() && metainfo.name == rename.path {
            let name = std::mem::replace(&mut metainfo.name, rename.name.clone());
            metainfo.literal_name.get_or_insert_with(|| name.into());
        }
        for file in metainfo.files.iter_mut().filter(|file| !file.padding) {
            let Some(path) = rename.renamed(&file.path) else {
                continue;
            };
            if metainfo.multi_file && file.literal.is_none() && file.original.is_none() {
                file.literal = Some(file.path.components().skip(1).collect());
            }
            file.path = path;
        }
    }
}

/// Adds a name to those that a torrent has.
pub(crate) fn add(renames: &mut Vec<Rename>, rename: Rename) {
    match renames.last_mut() {
        Some(last) if last.to() == rename.from() => {
            last.name = rename.name;
            if last.to() == last.from() {
                renames.pop();
            }
        }
        _ => renames.push(rename),
    }
}

/// What is wrong with names that are kept; `None` if nothing is.
pub(crate) fn check(renames: &[Rename]) -> Option<String> {
    let bytes = |rename: &Rename| rename.path.len() + rename.name.len();
    if renames.len() > MAX_RENAMES || renames.iter().map(bytes).sum::<usize>() > MAX_BYTES {
        return Some(format!(
            "a torrent has at most {MAX_RENAMES} other names of {MAX_BYTES} bytes together"
        ));
    }
    let wrong = renames.iter().find(|rename| !rename.is_plain())?;
    Some(format!("{:?} cannot be named {:?}", wrong.path, wrong.name))
}

/// What keeps a torrent, which has these names already, from another one; `None` if nothing does.
pub(crate) fn fault(metainfo: &Metainfo, renames: &[Rename], rename: &Rename) -> Option<String> {
    let (path, name) = (&rename.path, &rename.name);
    if !is_file_name(name) || name.ends_with(PART_SUFFIX) {
        return Some(format!(
            "{name:?} is not a name: write 1 to 255 bytes without slashes and control characters, other than \
             . and .., and without {PART_SUFFIX} at the end"
        ));
    }
    if !metainfo.links.is_empty() {
        return Some("renaming in a torrent with symbolic links is not supported yet".to_owned());
    }
    let (to, mut is_there) = (rename.to(), false);
    for file in metainfo.files.iter().filter(|file| !file.padding) {
        match rename.renamed(&file.path) {
            Some(path) if path.as_os_str().len() > MAX_PATH_BYTES => {
                return Some(format!(
                    "{name:?} makes paths longer than {MAX_PATH_BYTES} bytes"
                ));
            }
            Some(_) => is_there = true,
            // A folder is not put into another, and none takes the name that another has until it is complete.
            None if file.path.starts_with(&to) || part_name(&to).as_ref() == Some(&file.path) => {
                return Some(format!(
                    "the torrent has {} already: choose another name",
                    file.path.display()
                ));
            }
            None => {}
        }
    }
    if !is_there {
        return Some(format!(
            "the torrent has no file or folder {path:?}: write a path that begins with its name"
        ));
    }
    if to == part_file(metainfo) {
        return Some(format!(
            "{name:?} is the name of another file of this torrent"
        ));
    }
    let mut after = renames.to_vec();
    add(&mut after, rename.clone());
    check(&after)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use hawser_torrent::{CreateOptions, create};
    use proptest::prelude::*;

    use super::*;

    fn rename(path: &str, name: &str) -> Rename {
        Rename {
            path: path.to_owned(),
            name: name.to_owned(),
        }
    }

    /// A torrent of a folder with these files.
    fn torrent(files: &[&str]) -> Metainfo {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join("set").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        let options = CreateOptions::default();
        let bytes = create(&dir.path().join("set"), &options, |_, _| {}).unwrap();
        Metainfo::parse(&bytes).unwrap()
    }

    fn paths(metainfo: &Metainfo) -> Vec<&str> {
        let files = metainfo.files.iter().filter(|file| !file.padding);
        files.map(|file| file.path.to_str().unwrap()).collect()
    }

    #[test]
    fn files_folders_and_torrents_have_their_names_one_after_another() {
        let mut metainfo = torrent(&["a", "in/b", "in/c"]);
        let renames = [
            rename("set/in", "out"),
            rename("set", "top"),
            rename("top/out/b", "x"),
        ];
        apply(&mut metainfo, &renames);
        assert_eq!(paths(&metainfo), ["top/a", "top/out/x", "top/out/c"]);
        assert_eq!(metainfo.name, "top");
        // Those of the metainfo, for web seeds.
        let literal: Vec<_> = metainfo
            .files
            .iter()
            .map(|file| file.literal.clone())
            .collect();
        let expected = ["a", "in/b", "in/c"].map(|path| Some(path.into()));
        assert_eq!(
            (literal, metainfo.literal_name),
            (expected.to_vec(), Some("set".into()))
        );
    }

    #[test]
    fn names_that_files_cannot_have_or_others_have_are_refused() {
        let metainfo = torrent(&["a", "in/b", "in/c", "d.x"]);
        let refused = |path: &str, name: &str| fault(&metainfo, &[], &rename(path, name));
        for (path, name) in [
            ("set/a", "b"),
            ("set", "in"),
            ("set/in", "a.y"),
            ("set/in/b", "a"),
        ] {
            assert_eq!(refused(path, name), None, "{path} {name}");
        }
        let parts = part_file(&metainfo);
        for (path, name) in [
            ("set/a", ""),
            ("set/a", ".."),
            ("set/a", "x/y"),
            ("set/a", "x\ny"),
            ("set/a", "x.part"),
            ("set/a", "in"),
            ("set/in", "a"),
            ("set/in/b", "c"),
            ("set/b", "x"),
            ("a", "x"),
            ("", "x"),
            ("../set", "x"),
            ("set", parts.to_str().unwrap()),
        ] {
            assert!(refused(path, name).is_some(), "{path} {name}");
        }
        let long = "x".repeat(255);
        assert_eq!(refused("set/a", &long), None);
        assert!(refused("set/a", &format!("{long}x")).is_some());
        // Until it is complete, `d` would have the name of another.
        let other = torrent(&["a", "d.part"]);
        assert!(fault(&other, &[], &rename("set/a", "d")).is_some());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let metainfo = torrent(&["a"]);
        let many = vec![rename("set/a", "b"); MAX_RENAMES];
        assert_eq!(check(&many), None);
        assert!(fault(&metainfo, &many, &rename("set/a", "b")).is_some());
        assert!(check(&[rename("set/../a", "b")]).is_some());
        assert!(check(&[rename("/set", "b")]).is_some());
    }

    /// Made once: that takes the disk.
    static TORRENT: LazyLock<Metainfo> = LazyLock::new(|| torrent(&["a", "in/b", "in/c"]));

    proptest! {
        /// However names are kept, they are those that were given last.
        #[test]
        fn names_that_are_kept_are_those_given(names in proptest::collection::vec((0usize..4, "[a-c]"), 0..12)) {
            let mut shown = TORRENT.clone();
            let mut kept = Vec::new();
            for (which, name) in names {
                let path = shown.files[which % 3].path.clone();
                let path = if which == 3 { path.parent().unwrap().to_owned() } else { path };
                let one = rename(path.to_str().unwrap(), &name);
                if one.to() == one.from() || fault(&shown, &kept, &one).is_some() {
                    continue;
                }
                add(&mut kept, one.clone());
                apply(&mut shown, &[one]);
                let mut again = TORRENT.clone();
                apply(&mut again, &kept);
                prop_assert_eq!(paths(&again), paths(&shown));
            }
        }
    }
}

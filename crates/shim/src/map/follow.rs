//! A map's file that is read anew when it changes.

use std::path::{Path, PathBuf};

use hawser_file::Stamp;

use super::file::{MapFile, MapFileError};

/// Reads a map's file, and again after each change of it or of a policy that it names. Without the
/// file the map is empty.
#[derive(Debug, Clone)]
pub struct Follower {
    path: PathBuf,
    /// The map's file and those of its policies, as they were before they were read last: empty
    /// before the first time.
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

impl Follower {
    /// Follows the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            seen: Vec::new(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the map if it changed since the last call; `None` if it did not. The first call reads
    /// it always.
    ///
    /// # Errors
    /// When the map cannot be used: once for each change. The former one should stay in force.
    pub fn poll(&mut self) -> Option<Result<MapFile, MapFileError>> {
        let mut seen = self.seen.iter();
        if !self.seen.is_empty() && seen.all(|(path, stamp)| Stamp::of(path) == *stamp) {
            return None;
        }
        Some(self.read())
    }

    fn read(&mut self) -> Result<MapFile, MapFileError> {
        // Each stamp is taken before its file is read: a change meanwhile is seen by the next call.
        let stamped = |path: PathBuf| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        };
        self.seen = vec![stamped(self.path.clone())];
        let file = match MapFile::load(&self.path) {
            Err(error) if error.is_missing() => MapFile::parse(&self.path, "")?,
            loaded => loaded?,
        };
        self.seen
            .extend(file.policy_files().into_iter().map(stamped));
        file.check_policies()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_change_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.toml");
        let mut follower = Follower::new(&path);
        let mut poll = || {
            let read = follower.poll()?;
            Some(
                read.map(|file| file.entries().len())
                    .map_err(|error| error.to_string()),
            )
        };
        // No file is an empty map.
        assert_eq!(poll(), Some(Ok(0)));
        assert_eq!(poll(), None);
        let write = |text: &str| {
            // As commands write files: another file of the same name.
            let new = folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(&new, &path).unwrap();
        };
        write("[destinations]\na = \"1-ff00:0:4\"\n");
        assert_eq!(poll(), Some(Ok(1)));
        assert_eq!(poll(), None);
        // Of the same length, and within the same tick of the clock.
        write("[destinations]\na = \"1-ff00:0:4'\n");
        assert!(poll().unwrap().unwrap_err().contains("map.toml:2: "));
        assert_eq!(poll(), None);
        let other = folder.path().join("other");
        fs::write(
            &other,
            "[destinations]\na = \"1-ff00:0:4\"\nb = \"1-ff00:0:4\"\n",
        )
        .unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert_eq!(poll(), Some(Ok(2)));
        fs::remove_file(&path).unwrap();
        assert_eq!(poll(), Some(Ok(0)));
        assert_eq!(poll(), None);
    }

    #[test]
    fn changes_of_policies_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, policy) = (folder.path().join("map.toml"), folder.path().join("p.yml"));
        let entry = "a = { to = \"1-ff00:0:4\", policy = \"p.yml:eu\" }";
        fs::write(&path, format!("[destinations]\n{entry}\n")).unwrap();
        let mut follower = Follower::new(&path);
        let mut poll = || Some(follower.poll()?.map_err(|error| error.to_string()));
        assert!(
            poll()
                .unwrap()
                .unwrap_err()
                .contains("map.toml:2: policy `p.yml:eu`")
        );
        assert!(poll().is_none());
        for acl in ["- 2", "- 20"] {
            fs::write(&policy, format!("eu: {{acl: ['{acl}', '+']}}")).unwrap();
            let file = poll().unwrap().unwrap();
            assert!(file.policy(&file.entries()[0]).unwrap().is_some());
            assert!(poll().is_none());
        }
    }
}

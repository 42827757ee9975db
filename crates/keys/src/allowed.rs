//! The keys that a server allows.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::file::{self, KeysFileError};
use crate::peer_key::PeerKey;

/// The keys whose holders may connect: those given, and those of a file.
///
/// The file is in the manner of OpenSSH's `authorized_keys`: one key a line, then a comment; blank
/// lines and lines that begin with `#` are skipped. It is read anew for every question, so that a
/// running server follows it.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    keys: Vec<PeerKey>,
    file: Option<Source>,
}

#[derive(Debug, Clone)]
struct Source {
    path: PathBuf,
    /// Whether it has to exist.
    required: bool,
}

impl Allowed {
    /// The name of the user's file in [`folder`](crate::folder()).
    pub const FILE: &str = "allowed_keys";

    /// Allows `keys`, and nobody else.
    pub fn new(keys: impl IntoIterator<Item = PeerKey>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            file: None,
        }
    }

    /// Allows the keys in the file `path` too, in place of an earlier file.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file cannot be used as it is now.
    pub fn with_file(self, path: impl Into<PathBuf>) -> Result<Self, KeysFileError> {
        self.with(path.into(), true)
    }

    /// Allows the keys in the file `path` too, as long as there is one.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file exists and cannot be used as it is now.
    pub fn with_file_if_any(self, path: impl Into<PathBuf>) -> Result<Self, KeysFileError> {
        self.with(path.into(), false)
    }

    fn with(mut self, path: PathBuf, required: bool) -> Result<Self, KeysFileError> {
        self.file = Some(Source { path, required });
        self.in_file()?;
        Ok(self)
    }

    /// Whether `key` is allowed now.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file has become unusable: then only the given keys are allowed.
    pub fn allows(&self, key: &PeerKey) -> Result<bool, KeysFileError> {
        Ok(self.keys.contains(key) || self.in_file()?.contains(key))
    }

    /// All keys that are allowed now.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file has become unusable.
    pub fn keys(&self) -> Result<Vec<PeerKey>, KeysFileError> {
        let mut keys = self.keys.clone();
        keys.extend(self.in_file()?);
        Ok(keys)
    }

    /// The keys whose holders may go on with what they have begun: those that are allowed now, but
    /// that a wrong line in the file does not keep the other lines from being counted. Reads the
    /// file once, and blocks meanwhile.
    ///
    /// A key that is no longer in this is to lose its sessions: see
    /// [`Revocations`](crate::Revocations).
    ///
    /// # Errors
    /// [`KeysFileError`] when the file cannot be read, or others can write it: then only the given
    /// keys count. [`Self::given`] has those.
    pub fn still(&self) -> Result<StillAllowed, KeysFileError> {
        let mut still = self.given();
        if let Some(source) = &self.file {
            match file::right_entries(&source.path, parse) {
                Ok(keys) => still.0.extend(keys),
                Err(error) if error.is_missing() && !source.required => {}
                Err(error) => return Err(error),
            }
        }
        Ok(still)
    }

    /// The keys that are allowed whatever the file says.
    pub fn given(&self) -> StillAllowed {
        StillAllowed(self.keys.iter().copied().collect())
    }

    fn in_file(&self) -> Result<Vec<PeerKey>, KeysFileError> {
        let Some(source) = &self.file else {
            return Ok(Vec::new());
        };
        match file::entries(&source.path, parse) {
            Ok(entries) => Ok(entries.into_iter().map(|(_, key)| key).collect()),
            Err(error) if error.is_missing() && !source.required => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// The keys that were allowed when [`Allowed::still`] read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StillAllowed(HashSet<PeerKey>);

impl StillAllowed {
    /// Whether `key` is one of them.
    pub fn contains(&self, key: &PeerKey) -> bool {
        self.0.contains(key)
    }
}

/// Reads the key at the beginning of a line.
pub(crate) fn parse(line: &str) -> Result<PeerKey, String> {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    match first.parse::<PeerKey>() {
        Ok(key) => Ok(key),
        Err(_) if words.any(|word| word.parse::<PeerKey>().is_ok()) => Err(format!(
            "options before the key (`{first}`) are not supported yet"
        )),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    const A: PeerKey = PeerKey([1; 32]);
    const B: PeerKey = PeerKey([2; 32]);
    const C: PeerKey = PeerKey([3; 32]);

    /// Writes a file that only its owner can write, whatever the umask.
    fn write(path: &Path, text: impl AsRef<[u8]>) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    }

    #[test]
    fn keys_are_allowed_by_argument_and_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_keys");
        write(
            &file,
            format!("# those of site B\n\n  {A} alice@b  \r\n\t{B}\n#{C}"),
        );
        let allowed = Allowed::new([C]).with_file(&file).unwrap();
        assert_eq!(allowed.keys().unwrap(), [C, A, B]);
        let other = Allowed::new([]).with_file(&file).unwrap();
        let allows = |allowed: &Allowed, key| allowed.allows(key).unwrap();
        assert!(allows(&allowed, &A) && allows(&allowed, &B) && allows(&allowed, &C));
        assert!(allows(&other, &A) && allows(&other, &B) && !allows(&other, &C));
        assert!(!allows(&Allowed::default(), &A));
    }

    #[test]
    fn a_running_server_follows_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_keys");
        let allowed = Allowed::new([C]).with_file_if_any(&file).unwrap();
        assert!(!allowed.allows(&A).unwrap());
        write(&file, format!("{A}\n"));
        assert!(allowed.allows(&A).unwrap());
        // Of the same length, and within the same tick of the clock.
        write(&file, format!("{B}\n"));
        assert!(!allowed.allows(&A).unwrap());
        assert!(allowed.allows(&B).unwrap());
        // With a wrong line in the file only the given keys are allowed.
        write(&file, format!("{B}\nwrong\n"));
        assert!(allowed.allows(&B).is_err());
        assert!(allowed.allows(&C).unwrap());
        fs::remove_file(&file).unwrap();
        assert!(!allowed.allows(&B).unwrap());
    }

    #[test]
    fn a_wrong_line_revokes_no_other_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_keys");
        write(&file, format!("{A}\n{B}\n"));
        let allowed = Allowed::new([C]).with_file(&file).unwrap();
        let still = || {
            let still = allowed.still().unwrap();
            [A, B, C].map(|key| still.contains(&key))
        };
        assert_eq!(still(), [true, true, true]);
        write(&file, format!("wrong\n{B}\n"));
        assert_eq!(still(), [false, true, true]);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(allowed.still().is_err());
        let given = [A, B, C].map(|key| allowed.given().contains(&key));
        assert_eq!(given, [false, false, true]);
        fs::remove_file(&file).unwrap();
        assert!(allowed.still().is_err());
        let optional = Allowed::new([C]).with_file_if_any(&file).unwrap();
        assert_eq!(optional.still().unwrap(), allowed.given());
    }

    #[test]
    fn a_named_file_has_to_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        let error = Allowed::new([]).with_file(&file).unwrap_err().to_string();
        assert!(error.contains("keys: No such file"), "{error}");
        write(&file, format!("{A}\n"));
        let allowed = Allowed::new([]).with_file(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(allowed.allows(&A).is_err());
    }

    #[test]
    fn errors_name_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_keys");
        let options = format!("command=\"ls -l\",pty {B}");
        for (line, reason) in [
            (
                options.as_bytes(),
                "options before the key (`command=\"ls`) are not supported yet",
            ),
            (
                b"ssh-ed25519 AAAA",
                "`ssh-ed25519` is not a key: write `SHA256:`",
            ),
            (b"SHA256:abc alice", "`SHA256:abc` is not a key"),
            (b"\xff\xfe", "is not a key"),
        ] {
            write(&file, [format!("{A}\n\n").as_bytes(), line].concat());
            let error = Allowed::new([]).with_file(&file).unwrap_err().to_string();
            let start = format!("{}:3: ", file.display());
            assert!(
                error.starts_with(&start) && error.contains(reason),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_keys");
        write(&file, format!("{A}\n"));
        for mode in [0o664, 0o646] {
            fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            let error = Allowed::new([]).with_file_if_any(&file).unwrap_err();
            let error = error.to_string();
            let expected = format!("can be written by others (mode {mode:04o})");
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn a_huge_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_keys");
        write(&file, vec![b'\n'; (1 << 20) + 1]);
        let error = Allowed::new([]).with_file(&file).unwrap_err().to_string();
        assert!(error.contains("larger than 1048576 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_panic(line in "(SHA256:)?\\PC*( SHA256:[A-Za-z0-9+/]{43})?") {
            let _ = parse(&line);
        }
    }
}

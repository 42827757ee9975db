//! This host's key, and the files of keys of others.

use hawser_keys::{Allowed, KeyFile, KeyFileError, Known};

use crate::facts::{KeyState, Keys, LineFile};

pub(super) fn gather() -> Keys {
    let own = match KeyFile::of_user() {
        Err(error) => KeyState::Unusable {
            path: None,
            reason: error.to_string(),
        },
        Ok(file) => match file.check() {
            Ok(true) => KeyState::Usable,
            Ok(false) => KeyState::Missing,
            Err(KeyFileError::Open { path, mode }) => KeyState::Open { path, mode },
            Err(error) => KeyState::Unusable {
                path: Some(file.path().to_owned()),
                reason: error.to_string(),
            },
        },
    };
    let mut unusable = Vec::new();
    if let Ok(folder) = hawser_keys::folder() {
        let known = folder.join(Known::FILE);
        if let Err(error) = Known::new(&known).check_file() {
            unusable.push(LineFile {
                path: known,
                reason: error.to_string(),
            });
        }
        let allowed = folder.join(Allowed::FILE);
        if let Err(error) = Allowed::default().with_file_if_any(&allowed) {
            unusable.push(LineFile {
                path: allowed,
                reason: error.to_string(),
            });
        }
    }
    Keys {
        own: Some(own),
        unusable,
    }
}

//! This host's key, and the files of keys of others.

use crate::code::Code;
use crate::facts::{Facts, KeyState};
use crate::finding::Finding;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    match &facts.keys.own {
        None | Some(KeyState::Missing | KeyState::Usable) => {}
        Some(KeyState::Open { path, mode }) => {
            let path = path.display();
            findings.push(Finding::error(
                Code::KeyOpen,
                format!("the key {path} is open to others (mode {mode:04o}), and is not used"),
                format!("`chmod 600 {path}`, or remove it if somebody may have read it"),
            ));
        }
        Some(KeyState::Unusable { path, reason }) => findings.push(Finding::error(
            Code::KeyUnusable,
            reason.clone(),
            match path {
                Some(path) => format!(
                    "make {0} readable for this user, or remove it: a new key is made, which other \
                     hosts must then be told",
                    path.display()
                ),
                None => "set HOME or XDG_CONFIG_HOME".to_owned(),
            },
        )),
    }
    for file in &facts.keys.unusable {
        findings.push(Finding::error(
            Code::KeysFile,
            file.reason.clone(),
            format!("correct {}", file.path.display()),
        ));
    }
}

//! Where a command runs, so that only its connections are captured.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use hawser_capture::{Group, GroupError};
use hawser_kernel::namespace::{self, NetNs};
use hawser_shim::carrier;
use hawser_shim::holder::Captured;

use crate::failure::{Doing, Failure};

/// Why the command cannot be run, and what to do. The system's error does not say what is missing: for
/// a script, it may be the program that its first line names.
pub(super) fn why(program: &OsStr, error: &io::Error) -> String {
    let path = Path::new(program);
    let is_path = path.components().count() > 1;
    match error.kind() {
        ErrorKind::NotFound if is_path && path.exists() => {
            "the program that runs it does not exist: correct its first line (`#!`), or install its \
             loader"
                .to_owned()
        }
        ErrorKind::NotFound if is_path => "no such file".to_owned(),
        ErrorKind::NotFound => "not found in any folder of $PATH".to_owned(),
        ErrorKind::PermissionDenied if path.is_dir() => "it is a directory".to_owned(),
        ErrorKind::PermissionDenied => {
            "not allowed to run it: it needs `chmod +x`, on a file system without noexec".to_owned()
        }
        _ if error.raw_os_error() == Some(ENOEXEC) => {
            "not a program of this machine, nor a script: a script begins with `#!`".to_owned()
        }
        _ => error.to_string(),
    }
}

/// `ENOEXEC`, for which there is no kind.
const ENOEXEC: i32 = 8;

/// Where a command runs.
pub(super) enum Place {
    /// In a control group.
    Group(Group),
    /// In a network namespace.
    Namespace(Arc<NetNs>),
}

impl Place {
    /// Makes a control group if this process may, or if not, or with `in_namespace`, a network
    /// namespace. Without root that is in a user namespace, into which this process moves: it must
    /// have one thread.
    pub(super) fn make(in_namespace: bool) -> Result<Self, Failure> {
        if !namespace::is_privileged() {
            namespace::become_owner_of_own().map_err(|error| {
                Failure::job(format_args!(
                    "user namespaces are not allowed here ({error}): run as root, or allow them \
                     (sysctl user.max_user_namespaces above 0, \
                     kernel.unprivileged_userns_clone=1 on Debian, \
                     kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu)"
                ))
            })?;
        } else if !in_namespace {
            Group::remove_leftovers();
            match Group::create() {
                Ok(group) => return Ok(Self::Group(group)),
                // Root of a user namespace has no control groups.
                Err(GroupError::Denied) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let namespace = NetNs::create().doing("making a network namespace for the command")?;
        Ok(Self::Namespace(Arc::new(namespace)))
    }

    /// What is to be captured.
    pub(super) fn captured(&self) -> Captured {
        match self {
            Self::Group(group) => Captured::Mapped(group.scope()),
            Self::Namespace(namespace) => Captured::Enclosed(Arc::clone(namespace)),
        }
    }

    /// Which packets that are not TCP are captured.
    pub(super) fn packets(&self) -> carrier::Captured {
        match self {
            Self::Group(_) => carrier::Captured::Others,
            Self::Namespace(_) => carrier::Captured::All,
        }
    }

    /// Starts the command. The inner error is the command's.
    pub(super) fn start(&self, command: &mut Command) -> Result<io::Result<Child>, Failure> {
        match self {
            Self::Group(group) => {
                let entry = group.entry().doing("opening the command's control group")?;
                entry.enter_by(command);
                Ok(command.spawn())
            }
            Self::Namespace(namespace) => namespace
                .run(|| command.spawn())
                .doing("entering the command's network namespace"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_command_that_cannot_be_run_has_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let why = |name: &str, text: Option<&str>, mode| {
            let path = folder.path().join(name);
            if let Some(text) = text {
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            }
            let error = Command::new(&path).spawn().unwrap_err();
            super::why(path.as_os_str(), &error)
        };
        assert_eq!(why("absent", None, 0), "no such file");
        assert!(why("plain", Some("#!/bin/sh\n"), 0o644).contains("chmod +x"));
        assert!(why("script", Some("#!/nowhere/sh\n"), 0o755).contains("first line"));
        assert_eq!(why("", None, 0), "it is a directory");
        let error = Command::new("hawser-no-such-program").spawn().unwrap_err();
        let why = super::why(OsStr::new("hawser-no-such-program"), &error);
        assert_eq!(why, "not found in any folder of $PATH");
    }
}

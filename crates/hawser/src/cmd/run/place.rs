//! Where a command runs, so that only its connections are captured.

use std::io;
use std::process::{Child, Command};
use std::sync::Arc;

use hawser_capture::{Group, GroupError};
use hawser_kernel::namespace::{self, NetNs};
use hawser_shim::carrier;
use hawser_shim::holder::Captured;

use crate::failure::{Doing, Failure};

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

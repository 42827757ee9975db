//! Whether the kernel has what this crate needs.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use thiserror::Error;

/// Where the kernel has MPTCP's settings of the calling thread's network namespace.
pub(crate) const MPTCP: &str = "/proc/sys/net/mptcp";

/// Why MPTCP cannot be used in the calling thread's network namespace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The kernel was built without MPTCP.
    #[error(
        "the kernel has no MPTCP: use one with CONFIG_MPTCP and CONFIG_MPTCP_IPV6, Linux 6.6 or later"
    )]
    NotBuilt,
    /// MPTCP is switched off.
    #[error("MPTCP is off in this network namespace: `sysctl net.mptcp.enabled=1` turns it on")]
    Disabled,
    /// The kernel has no path manager in user space.
    #[error("the kernel has no MPTCP path manager in user space: use Linux 6.6 or later")]
    NoUserspacePathManager,
    /// The kernel gives no reason.
    #[error("cannot open an MPTCP socket: {0}")]
    Socket(#[source] io::Error),
}

/// Whether the kernel has MPTCP over IPv6 with a path manager in user space, and whether MPTCP is on
/// in the network namespace of the calling thread.
///
/// # Errors
/// [`Unsupported`], whose text names the remedy.
pub fn check() -> Result<(), Unsupported> {
    let (family, kind) = (AddressFamily::INET6, SocketType::STREAM);
    match socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::MPTCP)) {
        Ok(_) => {}
        // The kernel distinguishes a protocol that it does not know, and one that is switched off.
        Err(Errno::PROTONOSUPPORT | Errno::INVAL | Errno::AFNOSUPPORT) => {
            return Err(Unsupported::NotBuilt);
        }
        Err(Errno::NOPROTOOPT) => return Err(Unsupported::Disabled),
        Err(error) => return Err(Unsupported::Socket(error.into())),
    }
    // Linux 5.19.
    match Path::new(MPTCP).join("pm_type").exists() {
        true => Ok(()),
        false => Err(Unsupported::NoUserspacePathManager),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn mptcp_that_is_off_is_reported_with_the_remedy() {
        let Some(namespace) = testing::namespace() else {
            return;
        };
        let run = |value| {
            namespace.run(move || {
                std::fs::write("/proc/sys/net/mptcp/enabled", value).unwrap();
                check()
            })
        };
        assert!(run("1").unwrap().is_ok());
        let error = run("0").unwrap().unwrap_err();
        assert!(matches!(error, Unsupported::Disabled), "{error}");
        assert!(error.to_string().contains("sysctl net.mptcp.enabled=1"));
    }
}

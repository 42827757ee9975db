//! The kinds of problems.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A kind of problem. Its text (`clock-behind`) is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All kinds, in the order in which they are reported.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its text.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The clock of this host shows a time that has passed.
    ClockBehind = "clock-behind",
    /// The clock of this host shows a time that has not come, or all paths are stale.
    ClockAhead = "clock-ahead",
    /// Neither a daemon nor a folder with `topology.json` was found.
    NoNetwork = "no-network",
    /// The daemon's address is not HOST:PORT.
    DaemonAddress = "daemon-address",
    /// The daemon's host name has no address.
    DaemonName = "daemon-name",
    /// No program answers at the address of the daemon or control service.
    DaemonUnreachable = "daemon-unreachable",
    /// The daemon or control service does not answer in time.
    DaemonTimeout = "daemon-timeout",
    /// The daemon or control service refuses a request, or its answer is invalid.
    DaemonInvalid = "daemon-invalid",
    /// No program answers at the address of the bootstrap server.
    BootstrapUnreachable = "bootstrap-unreachable",
    /// The bootstrap server does not answer in time.
    BootstrapTimeout = "bootstrap-timeout",
    /// An answer of the bootstrap server is invalid.
    BootstrapInvalid = "bootstrap-invalid",
    /// The bootstrap server has other TRCs than those that are trusted.
    BootstrapUntrusted = "bootstrap-untrusted",
    /// What bootstrap servers have cannot be kept.
    BootstrapFolder = "bootstrap-folder",
    /// The folder with `topology.json` cannot be used.
    ConfigFolder = "config-folder",
    /// The configured address of this host is not an address.
    LocalAddress = "local-address",
    /// The daemon and `topology.json` name different ASes.
    AsMismatch = "as-mismatch",
    /// The AS has no border router.
    NoRouter = "no-router",
    /// There is no route to a border router.
    NoRoute = "no-route",
    /// No program listens at the address of a border router.
    RouterRefused = "router-refused",
    /// A border router does not answer.
    RouterSilent = "router-silent",
    /// The network to a border router takes smaller packets than the AS announces.
    MtuSmall = "mtu-small",
    /// There are no paths.
    NoPaths = "no-paths",
    /// No path to the destination works.
    PathsDead = "paths-dead",
    /// The destination host does not answer echo requests.
    HostSilent = "host-silent",
    /// No key of the destination host is known.
    KeyUnknown = "key-unknown",
    /// This host has no address towards its border routers.
    NoAddress = "no-address",
    /// The configured address is not one of this host.
    AddressNotHere = "address-not-here",
    /// Another program has the port.
    PortTaken = "port-taken",
    /// All ports that routers deliver to are taken.
    NoFreePort = "no-free-port",
    /// Routers do not deliver to the port.
    PortOutside = "port-outside",
    /// This user may not use the port.
    PortForbidden = "port-forbidden",
    /// The AS delivers all packets to a dispatcher, and there is none.
    NoDispatcher = "no-dispatcher",
    /// A TRC has expired.
    TrcExpired = "trc-expired",
    /// The certificate of the AS has expired.
    CertificateExpired = "certificate-expired",
    /// The certificate of the AS expires soon.
    CertificateExpires = "certificate-expires",
    /// A file of certificates cannot be used.
    TrustFile = "trust-file",
    /// Others can read this host's key.
    KeyOpen = "key-open",
    /// This host's key cannot be used.
    KeyUnusable = "key-unusable",
    /// `known_hosts` or `allowed_keys` cannot be used.
    KeysFile = "keys-file",
    /// A disk is full.
    DiskFull = "disk-full",
    /// A file system can take no more files.
    NoInodes = "no-inodes",
    /// A folder cannot be written.
    FolderNotWritable = "folder-not-writable",
    /// The file system of a folder is read-only.
    FolderReadOnly = "folder-read-only",
    /// This user may not change devices, routes and packet filters.
    NoNetAdmin = "no-net-admin",
    /// This user may not create user namespaces.
    NoUserNamespaces = "no-user-namespaces",
    /// There is no usable TUN device.
    NoTun = "no-tun",
    /// The kernel has no nf_tables.
    NoNfTables = "no-nf-tables",
    /// The kernel has no usable MPTCP.
    NoMptcp = "no-mptcp",
    /// A check did not end in time.
    CheckTimeout = "check-timeout",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_words_and_differ() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        assert!(texts.iter().all(|text| is_word(text)));
    }
}

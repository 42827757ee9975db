//! Paths, as guests see them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_path::Fingerprint;

use crate::addr::{Interface, IsdAs, isd_as};

/// A path from this host's AS to another one, as it was when it was asked for. Cloning is cheap.
///
/// Prints as `1-ff00:0:111 1>2 1-ff00:0:110`.
///
/// ```no_run
/// # async fn example(host: hawser::Host) -> Result<(), Box<dyn std::error::Error>> {
/// for path in host.paths("1-ff00:0:110".parse()?).await? {
///     println!("{path} {:?} {} bytes {:?}", path.latency(), path.mtu(), path.status());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    inner: hawser_endhost::Path,
    status: PathStatus,
}

/// Whether a path can be used.
///
/// ```
/// assert_ne!(hawser::PathStatus::Usable, hawser::PathStatus::Down);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathStatus {
    /// Nothing is known that is against it.
    Usable,
    /// It crosses a link that a router has reported down, or that delivered nothing. It is tried again
    /// after a second, and less often while it stays down.
    Down,
    /// It has expired by this host's clock.
    Expired,
}

impl Path {
    pub(crate) fn new(inner: hawser_endhost::Path, status: PathStatus) -> Self {
        Self { inner, status }
    }

    /// The AS that it begins in: this host's.
    ///
    /// ```no_run
    /// # fn example(host: hawser::Host, path: hawser::Path) {
    /// assert_eq!(path.src(), host.isd_as());
    /// # }
    /// ```
    pub fn src(&self) -> IsdAs {
        isd_as(self.inner.info().src)
    }

    /// The AS that it ends in.
    ///
    /// ```no_run
    /// # fn example(path: hawser::Path) {
    /// println!("to {}", path.dst());
    /// # }
    /// ```
    pub fn dst(&self) -> IsdAs {
        isd_as(self.inner.info().dst)
    }

    /// The interfaces that it crosses, in order of travel: two for each link. None inside one AS.
    ///
    /// ```no_run
    /// # fn example(path: hawser::Path) {
    /// assert!(path.interfaces().len() % 2 == 0);
    /// # }
    /// ```
    pub fn interfaces(&self) -> Vec<Interface> {
        let interfaces = self.inner.info().interfaces.iter();
        let own = |one: &hawser_path::Interface| Interface {
            isd_as: isd_as(one.isd_as),
            id: one.id,
        };
        interfaces.map(own).collect()
    }

    /// Its name, which does not change when the path is refreshed: SHA-256 over its interfaces, as in
    /// other SCION programs.
    ///
    /// ```no_run
    /// # fn example(path: hawser::Path) {
    /// println!("{}", path.fingerprint().short());
    /// # }
    /// ```
    pub fn fingerprint(&self) -> Fingerprint {
        self.inner.fingerprint()
    }

    /// The announced one-way delay between its ends; `None` where an AS announces none.
    ///
    /// ```no_run
    /// # fn example(path: hawser::Path) {
    /// let milliseconds = path.latency().map(|latency| latency.as_millis());
    /// # }
    /// ```
    pub fn latency(&self) -> Option<Duration> {
        self.inner.info().latency()
    }

    /// The largest SCION packet that it takes, in bytes, headers included.
    ///
    /// ```no_run
    /// # fn example(path: hawser::Path) {
    /// assert!(path.mtu() >= 1280);
    /// # }
    /// ```
    pub fn mtu(&self) -> u16 {
        self.inner.mtu()
    }

    /// Until when routers accept it; `None` for ever, inside one AS. Connections refresh their paths
    /// before they expire.
    ///
    /// ```no_run
    /// # fn example(path: hawser::Path) {
    /// let expired = path.expiry().is_some_and(|expiry| expiry <= std::time::SystemTime::now());
    /// # }
    /// ```
    pub fn expiry(&self) -> Option<SystemTime> {
        let seconds = self.inner.expiry();
        UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    }

    /// Whether it could be used when it was asked for.
    ///
    /// ```no_run
    /// # fn example(paths: Vec<hawser::Path>) {
    /// let usable = paths.iter().filter(|path| path.status() == hawser::PathStatus::Usable);
    /// # }
    /// ```
    pub fn status(&self) -> PathStatus {
        self.status
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner.info(), f)
    }
}

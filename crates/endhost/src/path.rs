//! A path for packets: its interfaces and metadata, and its data-plane bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use hawser_address::IsdAsn;
use hawser_packet::MalformedPath;
use hawser_packet::path::interface_ids;
use hawser_path::{Fingerprint, Interface, Metadata};
use thiserror::Error;

/// A path for packets. Cloning shares it.
///
/// Equality includes the data-plane bytes: a refreshed path is a different value.
#[derive(Debug, Clone)]
pub struct Path(Arc<Inner>);

#[derive(Debug, PartialEq)]
struct Inner {
    raw: Box<[u8]>,
    next_hop: Option<SocketAddr>,
    fingerprint: Fingerprint,
    info: hawser_path::Path,
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        // Mostly it is the same one that is offered again.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

/// Why the parts of a path are not valid together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The data-plane bytes are not a standard SCION path of exactly that length.
    #[error("the path's data-plane bytes are malformed: {0}")]
    Malformed(#[from] MalformedPath),
    /// A path to another AS must have a border router as its next hop.
    #[error("the path to {0} names no border router to send to")]
    NoNextHop(IsdAsn),
    /// A path inside one AS has no bytes, interfaces or router; a path between two has all of them.
    #[error("a path from {src} to {dst} cannot {what}")]
    Ends {
        /// The AS the path begins in.
        src: IsdAsn,
        /// The AS the path ends in.
        dst: IsdAsn,
        /// The contradiction.
        what: &'static str,
    },
    /// The list of interfaces contradicts the data-plane bytes.
    #[error("the path's interfaces {listed:?} are not those of its data-plane bytes {carried:?}")]
    Interfaces {
        /// Interface ids as listed.
        listed: Vec<u16>,
        /// Interface ids in the data-plane bytes.
        carried: Vec<u16>,
    },
}

impl Path {
    /// Creates a path after checking that its parts agree.
    ///
    /// `raw` is the data-plane path header (SCION header specification, "SCION Path Type"), empty
    /// inside one AS; `next_hop` the underlay address of the border router at its first interface.
    ///
    /// # Errors
    /// [`PathError`] when the parts contradict each other.
    pub fn new(
        info: hawser_path::Path,
        raw: Vec<u8>,
        next_hop: Option<SocketAddr>,
    ) -> Result<Self, PathError> {
        let (src, dst) = (info.src, info.dst);
        let ends = |what| PathError::Ends { src, dst, what };
        if src == dst {
            if !raw.is_empty() || !info.interfaces.is_empty() {
                return Err(ends("leave the AS"));
            }
        } else {
            if raw.is_empty() {
                return Err(ends("be empty"));
            }
            if next_hop.is_none() {
                return Err(PathError::NoNextHop(dst));
            }
            let carried = interface_ids(&raw)?;
            let listed: Vec<u16> = info.interfaces.iter().map(|i| i.id).collect();
            if carried != listed {
                return Err(PathError::Interfaces { listed, carried });
            }
        }
        Ok(Self::make(info, raw, next_hop))
    }

    fn make(info: hawser_path::Path, raw: Vec<u8>, next_hop: Option<SocketAddr>) -> Self {
        Self(Arc::new(Inner {
            fingerprint: info.fingerprint(),
            info,
            raw: raw.into(),
            next_hop,
        }))
    }

    /// The path between two hosts of one AS: no bytes, no router, never expires.
    ///
    /// `mtu` counts the SCION packet, in bytes.
    pub fn within(isd_as: IsdAsn, mtu: u16) -> Self {
        let info = hawser_path::Path {
            src: isd_as,
            dst: isd_as,
            interfaces: Vec::new(),
            metadata: Metadata {
                mtu,
                expiry: u64::MAX,
                ..Metadata::default()
            },
        };
        Self::make(info, Vec::new(), None)
    }

    /// The path's ends, interfaces and metadata.
    pub fn info(&self) -> &hawser_path::Path {
        &self.0.info
    }

    /// The data-plane path header as it leaves this host; empty inside one AS.
    pub fn raw(&self) -> &[u8] {
        &self.0.raw
    }

    /// The border router that packets are sent to; `None` inside one AS.
    pub fn next_hop(&self) -> Option<SocketAddr> {
        self.0.next_hop
    }

    /// The path's identity, which does not change when the path is refreshed.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    /// The largest SCION packet the path takes, in bytes, common header included.
    pub fn mtu(&self) -> u16 {
        self.0.info.metadata.mtu
    }

    /// The time until which routers accept the path, in seconds since the Unix epoch.
    pub fn expiry(&self) -> u64 {
        self.0.info.metadata.expiry
    }
}

/// The interfaces with these `ids` on a path from `src` to `dst`, in order of travel; `between`
/// stands for the intermediate ASes, which packets do not show.
pub(crate) fn interfaces(src: IsdAsn, dst: IsdAsn, ids: &[u16], between: IsdAsn) -> Vec<Interface> {
    let last = ids.len().saturating_sub(1);
    let isd_as = |at| match at {
        0 => src,
        at if at == last => dst,
        _ => between,
    };
    let ids = ids.iter().enumerate();
    ids.map(|(at, id)| Interface {
        isd_as: isd_as(at),
        id: *id,
    })
    .collect()
}

impl AsRef<hawser_path::Path> for Path {
    fn as_ref(&self) -> &hawser_path::Path {
        &self.0.info
    }
}

//! Errors of topologies.

use std::path::PathBuf;

use crate::IsdAsn;
use crate::quantity::QuantityError;

/// Smallest accepted MTU in bytes: scionproto's routers and QUIC's 1200-byte datagrams both stop
/// working below the IPv6 minimum.
pub(crate) const MIN_MTU: u16 = 1280;

/// A topology that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The file cannot be read or written.
    #[error("cannot use topology file {path}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system or of the JSON reader.
        reason: String,
    },
    /// Not YAML, a key missing, of the wrong type, or unknown.
    #[error("topology is not valid: {0}")]
    Format(String),
    /// A key of `ASes` is not an ISD-AS.
    #[error("topology: {0:?} is not an ISD-AS: write for example 1-ff00:0:110")]
    IsdAs(String),
    /// An end of a link is not an interface.
    #[error("topology: {0:?} is not an interface: write for example 1-ff00:0:110#1")]
    End(String),
    /// More links end in an AS than there are interface numbers.
    #[error("topology: {0} has no interface number left for its next link")]
    NoNumberLeft(IsdAsn),
    /// The certificate issuer of an AS does not exist, or is in another ISD.
    #[error(
        "topology: {isd_as} names the certificate issuer {issuer}, which is not an AS of its ISD: name one that is"
    )]
    Issuer {
        /// The AS.
        isd_as: IsdAsn,
        /// Its issuer.
        issuer: IsdAsn,
    },
    /// Not an underlay.
    #[error("topology: {underlay:?} of {thing} is not an underlay: write UDP/IPv4 or UDP/IPv6")]
    Underlay {
        /// The AS or link.
        thing: String,
        /// The text in the file.
        underlay: String,
    },
    /// Not a range of ports.
    #[error(
        "topology: dispatched_ports {ports:?} of {thing} is not a range of ports: write all, a range such as 31000-32767, or - for no port"
    )]
    Ports {
        /// The AS, or `defaults`.
        thing: String,
        /// The text in the file.
        ports: String,
    },
    /// A link names an AS that `ASes` does not list.
    #[error(
        "topology: link {link} names the AS {isd_as}, which is not under ASes: add it there or correct the link"
    )]
    UnknownAs {
        /// The link, as `a - b`.
        link: String,
        /// The AS it names.
        isd_as: IsdAsn,
    },
    /// Two links use the same interface.
    #[error("topology: interface {0} is used by two links: give one of them another number")]
    InterfaceTwice(String),
    /// Both ends of a link are in one AS.
    #[error("topology: link {0} joins an AS to itself")]
    SelfLink(String),
    /// A core link touches an AS that is not core.
    #[error(
        "topology: link {link} is CORE, but {isd_as} is not a core AS: set `core: true` or make it a CHILD link"
    )]
    NotCore {
        /// The link, as `a - b`.
        link: String,
        /// The AS that is not core.
        isd_as: IsdAsn,
    },
    /// A child link leads to a core AS.
    #[error(
        "topology: link {link} makes the core AS {isd_as} a child: core ASes are joined by CORE links"
    )]
    CoreChild {
        /// The link, as `a - b`.
        link: String,
        /// The core AS.
        isd_as: IsdAsn,
    },
    /// An MTU too small for a SCION packet with a path.
    #[error("topology: mtu {mtu} of {thing} is too small: at least {MIN_MTU} bytes are needed")]
    Mtu {
        /// The AS or link.
        thing: String,
        /// The MTU.
        mtu: u16,
    },
    /// A rate, time or loss that cannot be read.
    #[error("topology: link {link}: {source}")]
    Quantity {
        /// The link, as `a - b`.
        link: String,
        /// What is wrong with it.
        source: QuantityError,
    },
    /// No ASes.
    #[error("topology: it lists no ASes")]
    Empty,
}

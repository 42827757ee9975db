//! The configuration of one AS as one archive, which brings an AS to the machine it runs on.
//!
//! A [`Bundle`] is the set of files of an AS: `topology.json`, keys, certificates and TRCs in
//! scionproto's layout (as in [`hawser_topology::AsDir`]), at an attachment point `link_info.json`
//! with the limits of its links ([`LinkInfo`]), and `hawser.json` ([`Manifest`]), which names the
//! AS, the version of the configuration, and the coordinator that knows newer ones. Where addresses
//! of neighbours are known by names only, `neighbours.json` has these ([`Neighbours`]).
//!
//! [`Bundle::pack`] makes a `tar.gz` of it: the same files always give the same bytes.
//! [`Bundle::unpack`] reads one from anywhere: it accepts regular files with plain relative names
//! only, within bounds, so nothing outside the folder is ever written. [`Bundle::write`] creates
//! the folder whole or not at all.

mod archive;
mod bundle;
mod change;
mod folder;
mod link_info;
mod manifest;
mod name;
mod neighbours;
mod remotes;

pub use self::archive::{LARGEST_ARCHIVE, UnpackError};
pub use self::bundle::{Bundle, ContentError};
pub use self::change::ServiceChange;
pub use self::folder::WriteError;
pub use self::link_info::{LimitedLink, LinkInfo};
pub use self::manifest::{Coordinator, MANIFEST, Manifest, Role};
pub use self::name::{NameError, is_secret};
pub use self::neighbours::Neighbours;

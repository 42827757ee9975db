//! A connection that belongs to a session.

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::Lane;

use crate::algorithm::Start;
use crate::control::Control;
use crate::data::{Keys, SubflowKey};

/// A connection that belongs to a session now.
#[derive(Debug)]
pub(crate) struct Joined {
    pub subflow: SubflowKey,
    pub control: Control,
    pub keys: Keys,
    /// The peer's address for datagrams.
    pub remote: ScionAddr,
    /// The lane for content, if this side dialed.
    pub lane: Option<Lane>,
    /// The largest datagram that the path takes, in bytes.
    pub datagram: usize,
    pub start: Start,
}

//! A connection that belongs to a session.

use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::Lane;

use crate::algorithm::Start;
use crate::control::Control;
use crate::data::{Keys, SubflowKey};
use crate::protocol::Message;

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
    /// The round trip, if it was measured.
    pub rtt: Option<Duration>,
    pub start: Start,
    /// What the peer is answered, once the subflow is known here.
    pub answer: Option<Message>,
    /// Messages of the session that went with the first message of the connection.
    pub sent: u64,
}

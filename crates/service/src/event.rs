//! What a service reports to the program that runs it.

use hawser_bulk::ServerEvent;
use hawser_endhost::ScionAddr;
use hawser_keys::PeerKey;

use crate::job::Job;

/// What happens in a service.
#[derive(Debug)]
pub enum ServiceEvent {
    /// Others can send to this address; the host shows this key.
    Receiving(ScionAddr, PeerKey),
    /// The configuration's file was read again after a change.
    Configured,
    /// A job is new, or has changed.
    Job(Box<Job>),
    /// Another host sends something here.
    Receive(Box<ServerEvent>),
    /// A fault that may pass, or that an administrator has to mend.
    Trouble(String),
}

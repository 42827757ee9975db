//! What a service reports to the program that runs it.

use std::net::SocketAddr;

use hawser_bulk::ServerEvent;
use hawser_endhost::ScionAddr;
use hawser_keys::PeerKey;

use crate::job::Job;

/// What happens in a service.
#[derive(Debug)]
pub enum ServiceEvent {
    /// Requests are answered.
    Ready(Addresses),
    /// The configuration's file was read again after a change.
    Configured,
    /// A job is new, or has changed.
    Job(Box<Job>),
    /// Another host sends something here.
    Receive(Box<ServerEvent>),
    /// A fault that may pass, or that an administrator has to mend.
    Trouble(String),
}

/// Where a service is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The API over plain HTTP.
    pub http: Option<SocketAddr>,
    /// The API over TLS.
    pub https: Option<SocketAddr>,
    /// What others send to.
    pub receive: Option<ScionAddr>,
    /// The key that this host shows.
    pub key: Option<PeerKey>,
}

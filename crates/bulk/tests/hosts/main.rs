//! Transfers between hosts of a toy network, in one process. One program, as the network takes longer
//! to compile than the tests.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod flights;
mod refusals;
#[path = "../../../endhost/tests/hosts/toy.rs"]
mod toy;

use std::time::Duration;

use hawser_bulk::protocol::{Choices, Wants};
use hawser_bulk::{Algorithm, Clients, Destination, PathOptions, ServerOptions, TransferOptions};
use hawser_keys::Trust;

/// A server for one session at once, of any client, that `receive`s there.
fn server_options(receive: Option<Destination>) -> ServerOptions {
    ServerOptions {
        clients: Clients::any(),
        code: None,
        receive,
        share: None,
        take: Choices::NONE,
        sessions: 1,
        algorithm: Algorithm::Auto,
        limit: None,
    }
}

/// One attempt, with any server.
fn transfer_options() -> TransferOptions {
    TransferOptions {
        paths: PathOptions::default(),
        policy: None,
        algorithm: Algorithm::Auto,
        server: Trust::Any,
        limit: None,
        wait: Duration::ZERO,
        retry: Duration::ZERO,
        wants: Wants::default(),
    }
}

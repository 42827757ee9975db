//! The holder's process, which `hawser shim up` starts.

use std::mem;

use hawser_keys::PeerKey;
use hawser_shim::choice::CarrierKind;
use hawser_shim::holder::{CaptureOptions, Holder, run_service};

use super::place::ShimName;
use crate::cmd::process;
use crate::failure::Failure;
use crate::out::outln;

/// Holds the connections of the shim with this name until it is requested to end. Captured ones arrive
/// at `port`, or at any if it is 0. Prints a line once it can be reached.
pub fn run(name: &ShimName, key: PeerKey, carrier: CarrierKind, port: u16) -> Result<(), Failure> {
    process::raise_file_limit();
    let requester = process::runtime()?.block_on(async {
        let options = CaptureOptions {
            port,
            ..CaptureOptions::default()
        };
        let holder = Holder::create(key, &options, carrier)?;
        let socket = name.holder();
        let served = run_service(&holder, &socket, || outln!("holding")).await;
        served.map_err(Failure::from)
    })?;
    // It waits for the end of the process, with which the system closes its connection.
    mem::forget(requester);
    Ok(())
}

//! The holder's process, which `hawser shim up` starts.

use hawser_keys::PeerKey;
use hawser_shim::choice::CarrierChoice;
use hawser_shim::holder::{CaptureOptions, Holder, run_service};

use super::place::ShimName;
use crate::cmd::process;
use crate::failure::Failure;
use crate::out::outln;

/// Holds the connections of the shim with this name until it is told to end. Prints a line once it
/// can be reached.
pub fn run(name: &ShimName, key: PeerKey, carrier: CarrierChoice) -> Result<(), Failure> {
    process::raise_file_limit();
    process::runtime()?.block_on(async {
        let holder = Holder::create(key, &CaptureOptions::default(), carrier)?;
        let socket = name.holder();
        Ok(run_service(&holder, &socket, || outln!("holding")).await?)
    })
}

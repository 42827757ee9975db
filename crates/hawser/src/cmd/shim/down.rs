//! `hawser shim down`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;

use hawser_capture::Group;
use hawser_kernel::rpc::RpcError;
use hawser_shim::holder;

use super::{NameArgs, place};
use crate::failure::{Doing, Failure};

#[derive(clap::Args)]
pub struct DownArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Ends the holder, with which the carrier ends. A shim that is not up is down already.
pub fn run(args: &DownArgs) -> Result<(), Failure> {
    match holder::down(&args.name.name.holder()) {
        Err(RpcError::Connect(error)) if error.source.kind() == ErrorKind::PermissionDenied => {
            return Err(place::not_allowed(&args.name.name));
        }
        Ok(()) | Err(RpcError::Connect(_)) => {}
        Err(error) => return Err(error.into()),
    }
    // What a killed carrier or holder left.
    for socket in [args.name.name.holder(), args.name.name.carrier()] {
        let refused = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
        if UnixStream::connect(&socket).is_err_and(refused) {
            match fs::remove_file(&socket) {
                // The holder that has just ended removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed.doing(format!("removing {}", socket.display()))?,
            }
        }
    }
    // What killed holders left, and killed `hawser run`.
    Group::remove_leftovers();
    Ok(holder::remove_leftovers()?)
}

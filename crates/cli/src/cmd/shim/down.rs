//! `hawser shim down`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use hawser_capture::Group;
use hawser_kernel::rpc::RpcError;
use hawser_shim::holder::{self, DownError};

use super::{NameArgs, place};
use crate::failure::{Doing, Failure};

/// Longest wait for the carrier to end, and the interval at which it is looked for.
const ENDING: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

#[derive(clap::Args)]
pub struct DownArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Ends the holder, with which the carrier ends. A shim that is not up is down already.
pub fn run(args: &DownArgs) -> Result<(), Failure> {
    match holder::down(&args.name.name.holder()) {
        Err(DownError::Rpc(RpcError::Connect(error)))
            if error.source.kind() == ErrorKind::PermissionDenied =>
        {
            return Err(place::not_allowed(&args.name.name));
        }
        Ok(()) | Err(DownError::Rpc(RpcError::Connect(_))) => {}
        Err(error) => return Err(error.into()),
    }
    // The carrier of a killed holder ends as well, and has the device as long as it lives.
    let carrier = args.name.name.carrier();
    let deadline = Instant::now() + ENDING;
    while UnixStream::connect(&carrier).is_ok() {
        if Instant::now() > deadline {
            let text = "the process that `hawser shim up` runs in does not end: end it";
            return Err(Failure::job(text));
        }
        thread::sleep(POLL);
    }
    // What a killed carrier or holder left.
    for socket in [args.name.name.holder(), carrier] {
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
    holder::remove_leftovers()?;
    holder::remove_guard()?;
    Ok(())
}

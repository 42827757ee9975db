//! `hawser shim down`.

use hawser_kernel::rpc::RpcError;
use hawser_shim::holder;

use super::NameArgs;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct DownArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Ends the holder, with which the carrier ends. A shim that is not up is down already.
pub fn run(args: &DownArgs) -> Result<(), Failure> {
    match holder::down(&args.name.name.holder()) {
        Ok(()) | Err(RpcError::Connect(_)) => {}
        Err(error) => return Err(error.into()),
    }
    // What a killed holder left.
    Ok(holder::remove_leftovers()?)
}

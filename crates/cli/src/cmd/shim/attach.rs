//! How `hawser shim up` finds the process that holds connections, or starts it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use hawser_kernel::rpc::RpcError;
use hawser_keys::PeerKey;
use hawser_shim::carrier::Attachment;
use hawser_shim::choice::CarrierKind;
use hawser_shim::holder::{self, AttachError, AttachOptions};

use super::place::ShimName;
use crate::cmd::process;
use crate::failure::{Doing, Failure};

/// Finds the holder, or starts one; returns whether it did.
pub(super) fn attach(
    name: &ShimName,
    key: PeerKey,
    carrier: CarrierKind,
    options: &AttachOptions,
) -> Result<(Attachment, bool), Failure> {
    match holder::attach(&name.holder(), key, options) {
        Err(AttachError::Rpc(RpcError::Connect(_))) => {
            let port = options.redirect_port.unwrap_or(0);
            start_holder(name, key, carrier, port)?;
            Ok((holder::attach(&name.holder(), key, options)?, true))
        }
        attached => Ok((attached?, false)),
    }
}

/// Starts a holder, which survives this process, and waits until it can be reached.
fn start_holder(
    name: &ShimName,
    key: PeerKey,
    carrier: CarrierKind,
    port: u16,
) -> Result<(), Failure> {
    let mut command = Command::new(process::program()?);
    command
        .args(["internal", "shim-holder", name.as_str()])
        .args([key.to_string(), carrier.to_string(), port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().doing("starting the shim's holder")?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let read = BufReader::new(stdout).read_line(&mut line);
        read.doing("starting the shim's holder")?;
    }
    if !line.is_empty() {
        return Ok(());
    }
    let mut error = String::new();
    if let Some(stderr) = child.stderr.take() {
        let read = BufReader::new(stderr).read_line(&mut error);
        read.doing("starting the shim's holder")?;
    }
    let error = error.trim_end();
    let error = error.strip_prefix("hawser: ").unwrap_or(error);
    Err(Failure::job(error))
}

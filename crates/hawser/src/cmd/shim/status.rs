//! `hawser shim status`.

mod text;

use std::path::Path;
use std::process::ExitCode;

use hawser_kernel::rpc::{self, RpcError, Service};
use hawser_shim::carrier::Reporter;
use hawser_shim::holder;
use serde_json::{Value, json};
use tokio::net::UnixListener;

use super::NameArgs;
use crate::cmd::print;
use crate::failure::{Doing, Failure};

/// The carrier, as its users call it.
const CARRIER: Service = Service {
    name: "shim",
    timeout: std::time::Duration::from_secs(5),
};

#[derive(clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    name: NameArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `hawser shim status`. The exit code is 1 if the shim is not up.
pub fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let name = &args.name.name;
    let held = holder::report(&name.holder())?;
    let sessions: Result<Value, RpcError> = CARRIER.call(&name.carrier(), &"status");
    let is_up = sessions.is_ok();
    let status = json!({
        "up": is_up,
        "sessions": sessions.unwrap_or_else(|_| json!([])),
        "connections": held.connections,
        "ended": held.ended,
        "failures": held.failures,
    });
    match args.json {
        true => print::json(&status)?,
        false => text::print(&status),
    }
    Ok(match is_up {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Answers at `socket` what there is to see of the carrier.
pub async fn serve(reporter: Reporter, socket: &Path) -> Result<(), Failure> {
    let what = format!("listening at {}", socket.display());
    let (listener, _file) = rpc::listen(socket).doing(&what)?;
    let listener = UnixListener::from_std(listener).doing(&what)?;
    loop {
        let (stream, _) = listener.accept().await.doing(&what)?;
        let sessions = json!(reporter.sessions().await);
        let stream = stream.into_std().doing(&what)?;
        stream.set_nonblocking(false).doing(&what)?;
        tokio::task::spawn_blocking(move || {
            let _: (Value, _) = rpc::receive(&stream)?;
            rpc::send(&stream, &sessions, &[])
        });
    }
}

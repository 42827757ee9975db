//! `hawser run`: a command whose TCP connections go over SCION.

mod explain;
mod place;
mod signals;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use hawser_keys::Allowed;
use hawser_shim::carrier::{Carrier, CarrierOptions, Trust};
use hawser_shim::choice::CarrierKind;
use hawser_shim::holder::{CaptureOptions, Holder, Served};

use self::explain::Explanation;
use self::place::Place;
use self::signals::Signals;
use super::network::HostArgs;
use super::process;
use super::shim::ClientArgs;
use crate::failure::{Doing, Failure};
use crate::out::errln;

/// Longest time in which what the command has sent is delivered after its end, as long as Linux
/// keeps connections without a program (`net.ipv4.tcp_fin_timeout`).
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// What carries the connections: after the end of the command the kernel delivers what it has sent.
const CARRIER: CarrierKind = CarrierKind::Mptcp;

#[derive(clap::Args)]
pub struct RunArgs {
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
    /// Run the command in a network namespace of its own, as is done without root: everything that it
    /// sends is captured, and what is not mapped is sent over IP from outside
    #[arg(long)]
    namespace: bool,
    /// Say on standard error where connections go and over which paths, and why; in the end what was
    /// carried
    #[arg(long, short = 'v')]
    explain: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// Runs `hawser run`. The exit code is that of the command, 128 and the number of the signal that
/// ended it, or as in a shell 127 if it does not exist, 126 if it cannot be run.
pub fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let mut words = args.command.iter();
    let program = words.next();
    let program = program.ok_or_else(|| Failure::usage("run: give a command after --"))?;
    let mut command = Command::new(program);
    command.args(words);
    let client = &args.client;
    let (identity, paths) = (client.identity()?, client.paths()?);
    client.check_map()?;
    let trust = Trust {
        servers: client.servers()?,
        clients: Some(Allowed::new(Vec::new())),
    };
    // Before there are threads.
    let place = Place::make(args.namespace)?;
    process::runtime()?.block_on(async {
        let mut signals = Signals::watch()?;
        let set_up = async {
            let host = args.host.join().await?;
            let key = identity.key();
            let options = CaptureOptions {
                table: format!("hawser-run-{}", std::process::id()),
                captured: place.captured(),
                port: 0,
            };
            let holder = Holder::create(key, &options, CARRIER)?;
            let attachment = holder.attach(key)?;
            let options = CarrierOptions {
                destinations: Some(client.destinations(&host)?),
                host,
                listen: None,
                default_port: 0,
                identity,
                trust,
                paths,
                carrier: CARRIER,
                cipher: client.cipher(),
                served: Served::default(),
                captured: place.packets(),
                forwards: false,
                plain_ip: None,
            };
            let carrier = Carrier::start(options, attachment)?;
            let explanation = Explanation::begin(&holder, carrier.reporter(), args.explain);
            let carried = tokio::spawn(carrier.run());
            holder.captured().await?;
            Ok::<_, Failure>((holder, carried, explanation))
        };
        let (holder, carried, explanation) = tokio::select! {
            done = set_up => done?,
            signal = signals.next() => return Ok(ExitCode::from(128 + signal.as_raw() as u8)),
        };
        let mut child = match place.start(&mut command)? {
            Ok(child) => child,
            Err(error) => {
                errln!(
                    "hawser: {}: {}",
                    program.to_string_lossy(),
                    place::why(program, &error)
                );
                return Ok(ExitCode::from(match error.kind() {
                    ErrorKind::NotFound => 127,
                    _ => 126,
                }));
            }
        };
        // The command was started with the limit as it was.
        process::raise_file_limit();
        let pid = rustix::process::Pid::from_child(&child);
        let mut ended = tokio::task::spawn_blocking(move || child.wait());
        let status = loop {
            tokio::select! {
                ended = &mut ended => break ended.doing("waiting")?.doing("waiting")?,
                signal = signals.next() => signals::forward(pid, signal),
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(DELIVERY_TIMEOUT, holder.delivered()) => {}
            _ = signals.next() => {}
        }
        explanation.end().await;
        holder.release().await;
        carried.abort();
        Ok(code(status))
    })
}

/// The exit code for how the command ended.
fn code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    // Both have seven bits and eight.
    ExitCode::from(code.map_or(1, |code| code as u8))
}

//! `hawser perf`: throughput to a host over one path, from memory to memory.

use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_perf::{Mode, Options, Report, Server, measure};
use hawser_topology::parse_duration;
use serde_json::json;

use super::choose::{self, ChoiceArgs};
use super::network::{HostArgs, ListenArgs, listen_address};
use super::print::{self, FormatArgs};
use super::quantity::{RateArg, rate_or_none};
use super::{headings, path_text, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};

#[derive(clap::Args)]
#[command(mut_arg("listen", |arg| arg.requires("server")))]
pub struct PerfArgs {
    /// The server, as `hawser perf --server` prints it
    #[arg(value_name = "ADDR", required_unless_present = "server")]
    address: Option<ScionAddr>,
    /// Receive what others send, until interrupted
    #[arg(long, short, conflicts_with_all = SENDER_ARGS)]
    server: bool,
    #[command(flatten)]
    listen: ListenArgs,
    /// How long to send
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Send SCION/UDP packets at this rate (their headers counted), without congestion control; none
    /// is as fast as the server answers. Without this flag a QUIC stream is sent
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    raw: Option<RateArg>,
    /// Bytes of each raw packet, SCION headers included [default: as many as the path takes]
    #[arg(long, value_name = "N", requires = "raw", help_heading = headings::RARE, hide_short_help = true)]
    packet_size: Option<u16>,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Add the progress of streams to the JSON objects, about ten times a second
    #[arg(long, requires_all = ["json", "server"], help_heading = headings::RARE, hide_short_help = true)]
    samples: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// What concerns the sending side alone, by the names in clap.
const SENDER_ARGS: [&str; 10] = [
    "address",
    "time",
    "raw",
    "packet_size",
    "sequence",
    "path",
    "interactive",
    "refresh",
    "format",
    "no_color",
];

/// Runs `hawser perf`.
pub fn run(args: PerfArgs) -> Result<(), Failure> {
    process::runtime()?.block_on(async {
        match args.address {
            Some(server) => send(args, server).await,
            None => serve(args).await,
        }
    })
}

async fn serve(args: PerfArgs) -> Result<(), Failure> {
    let host = args.host.join().await?;
    let listen = listen_address(args.listen.listen, &host)?;
    let server = Server::bind(host, listen)?;
    let address = server.local_addr();
    let interrupted = process::interrupted()?;
    let is_json = args.format.is_json();
    match is_json {
        true => print::json(&json!({"listening": address.to_string()}))?,
        false => outln!("receiving at {address}"),
    }
    let tests = server.run(|served| {
        let peer = served.peer;
        match served.received {
            Err(error) => errln!("hawser: {peer}: {error}"),
            Ok(received) if is_json => {
                let mut object = json!({"peer": peer.to_string(), "received": received});
                if args.samples {
                    object["samples"] = json!(served.samples);
                }
                outln!("{object}");
            }
            Ok(received) => {
                let mbit = received.bytes as f64 * 8e-6 / received.seconds.max(1e-9);
                outln!("{peer}: {}", format::mbit(mbit));
            }
        }
    });
    tokio::select! {
        () = tests => return Err(Failure::job("the socket of this host was closed")),
        () = interrupted => {}
    }
    server.close().await;
    Ok(())
}

async fn send(args: PerfArgs, server: ScionAddr) -> Result<(), Failure> {
    args.choice.epic.refuse()?;
    let (human, paint) = (args.format.is_human(), args.format.paint());
    let host = args.host.join().await?;
    let path = choose::path(&host, server.isd_as, &args.choice, false, paint).await?;
    let interrupted = process::interrupted()?;
    if human {
        outln!("Using path:\n  {}\n", path_text::line(&path, paint));
    }
    let options = Options {
        mode: match args.raw {
            None => Mode::Quic,
            Some(RateArg(rate)) => Mode::Raw {
                packet: args.packet_size,
                rate,
            },
        },
        time: args.time,
    };
    let report = tokio::select! {
        report = measure(&host, server, path, &options) => report?,
        () = interrupted => return Err(Failure::job("interrupted: there is no result")),
    };
    if !args.format.document(&report)? {
        print_report(&report);
    }
    Ok(())
}

fn print_report(report: &Report) {
    let goodput = format::mbit(report.goodput_mbit);
    outln!("{goodput} received in {:.2} s", report.seconds);
    if let (Some(sent), Some(received)) = (report.sent_packets, report.received_packets) {
        let lost = sent.saturating_sub(received);
        let share = 100.0 * lost as f64 / sent.max(1) as f64;
        outln!("{lost} of {sent} packets lost ({share:.2} %)");
    }
    let per_gb = |seconds: f64| seconds * 1e9 / report.received_bytes.max(1) as f64;
    outln!(
        "processor time per GB: {:.2} s here, {:.2} s there",
        per_gb(report.sender_cpu_seconds),
        per_gb(report.receiver_cpu_seconds)
    );
}

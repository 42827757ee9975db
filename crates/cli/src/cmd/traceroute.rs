//! `hawser traceroute`: the border routers on a path, and the round-trip time to each.

use std::process::ExitCode;
use std::time::Duration;

use hawser_endhost::ping::next_hop;
use hawser_endhost::requests::{RequestError, Requests};
use hawser_endhost::traceroute::Router;
use hawser_endhost::{IsdAsn, Path};
use hawser_path::show::Used;
use hawser_topology::parse_duration;
use serde::Serialize;

use super::address::{HostAddr, host_address};
use super::choose::{self, ChoiceArgs};
use super::network::HostArgs;
use super::print::FormatArgs;
use super::{path_text, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};

/// Number of probes of each router, as in `scion traceroute`.
const PROBES: usize = 3;

#[derive(clap::Args)]
pub struct TracerouteArgs {
    /// The host, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = host_address)]
    pub destination: HostAddr,
    /// How long to wait for each answer
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub timeout: Duration,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

/// The report that `hawser traceroute` prints for programs, with the field names of `scion
/// traceroute`.
#[derive(Serialize)]
struct Report {
    path: Used,
    hops: Vec<Hop>,
}

/// An interface on the path.
#[derive(Debug, PartialEq, Serialize)]
struct Hop {
    interface_id: u16,
    /// The address of the router that answered; empty if none did.
    ip: String,
    isd_as: IsdAsn,
    /// The round-trip times in milliseconds, null for a probe without an answer.
    round_trip_times: Vec<Option<f64>>,
}

/// Runs `hawser traceroute`; exit code 1 if an answer is missing.
pub fn run(args: TracerouteArgs) -> Result<ExitCode, Failure> {
    args.choice.epic.refuse()?;
    process::runtime()?.block_on(async {
        let (human, paint) = (args.format.is_human(), args.format.paint());
        let host = args.host.join().await?;
        let HostAddr { isd_as, ip } = args.destination;
        if isd_as == host.local_as() {
            return Err(Failure::job(format!(
                "{} is in this AS: there is no border router on the way",
                args.destination
            )));
        }
        let path = choose::path(&host, isd_as, &args.choice, false, paint).await?;
        let tracer = Requests::bind(&host, None, next_hop(&path, ip))?;
        let local = tracer.local_addr().host.ip();
        if human {
            if host.address().is_none() {
                outln!("Resolved local address:\n  {local}");
            }
            outln!("Using path:\n  {}\n", path_text::line(&path, paint));
        }
        let mut hops = Vec::new();
        for index in 0..path.info().interfaces.len() {
            let answers = ask(&tracer, &args, &path, index).await?;
            if human {
                outln!("{index} {}", line(&answers));
            }
            hops.push(hop(&path, index, &answers));
        }
        let lost = hops.iter().flat_map(|hop| &hop.round_trip_times);
        let lost = lost.filter(|rtt| rtt.is_none()).count();
        let path = Used::new(path.info(), local, path.next_hop());
        args.format.document(&Report { path, hops })?;
        if lost == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        errln!("hawser: {lost} packets were lost");
        Ok(ExitCode::from(1))
    })
}

/// Probes one router; `None` for each probe without an answer.
async fn ask(
    tracer: &Requests,
    args: &TracerouteArgs,
    path: &Path,
    index: usize,
) -> Result<Vec<Option<Router>>, Failure> {
    let mut answers = Vec::new();
    for _ in 0..PROBES {
        let answer = tracer.trace(args.destination.ip, path, index, args.timeout);
        answers.push(match answer.await {
            Ok(router) => Some(router),
            Err(RequestError::TimedOut(_)) => None,
            Err(error @ (RequestError::Headers(_) | RequestError::NoInterface { .. })) => {
                return Err(Failure::job(error));
            }
            Err(error) => {
                errln!("ERROR: {error}");
                None
            }
        });
    }
    Ok(answers)
}

/// `1-ff00:0:110,10.0.1.254 IfID=1 0.150ms * 0.035ms`.
fn line(answers: &[Option<Router>]) -> String {
    let router = match answers.iter().flatten().next() {
        Some(router) => format!("{},{} IfID={}", router.isd_as, router.ip, router.interface),
        None => "??".to_owned(),
    };
    let times = answers.iter().map(|answer| match answer {
        Some(router) => format::exact_millis(router.rtt),
        None => "*".to_owned(),
    });
    let times: Vec<String> = times.collect();
    format!("{router} {}", times.join(" "))
}

fn hop(path: &Path, index: usize, answers: &[Option<Router>]) -> Hop {
    let interface = path.info().interfaces[index];
    let router = answers.iter().flatten().next();
    let rtt = |answer: &Option<Router>| Some(format::rounded_millis(answer.as_ref()?.rtt));
    Hop {
        interface_id: router.map_or(interface.id, |router| router.interface),
        ip: router.map_or_else(String::new, |router| router.ip.to_string()),
        isd_as: router.map_or(interface.isd_as, |router| router.isd_as),
        round_trip_times: answers.iter().map(rtt).collect(),
    }
}

//! `hawser doctor`: what is wrong with this host in its network, and what to do about it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use hawser_bootstrap::Server;
use hawser_doctor::{Facts, Finding, Joined, NotFetched, Options, Purpose, diagnose, gather};
use hawser_topology::{IsdAsn, parse_duration};
use serde::Serialize;

use super::address::{HostAddr, Listen, host_address, listen, one_as};
use super::network::HostArgs;
use super::{print, process};
use crate::failure::Failure;
use crate::out::outln;

#[derive(clap::Args)]
pub struct DoctorArgs {
    /// An AS that should be reached, or a host in it, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = destination)]
    destination: Option<(IsdAsn, Option<IpAddr>)>,
    /// What this host is used for beside transfers: then a missing right is a problem, not a note
    #[arg(long = "for", value_name = "USE")]
    purposes: Vec<Use>,
    /// An address at which a command is to listen: look whether it can
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    listen: Option<Listen>,
    /// The state folder of a service: look whether it can be written; for root /var/lib/hawser when
    /// not given
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// When to give up what does not answer
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = timeout)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// What a host is used for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Use {
    /// Networks on this machine: lab, demo, bench
    Lab,
    /// TCP programs over SCION: shim, run
    Shim,
    /// Limits of links: limit, coordinator
    Limit,
}

impl From<Use> for Purpose {
    fn from(one: Use) -> Self {
        match one {
            Use::Lab => Self::Lab,
            Use::Shim => Self::Shim,
            Use::Limit => Self::Limit,
        }
    }
}

/// What is printed.
#[derive(Serialize)]
struct Report<'a> {
    /// Where paths come from; absent if this host is in no network.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isd_as: Option<IsdAsn>,
    /// Whether no problems were found; notes are none.
    sound: bool,
    findings: &'a [Finding],
}

/// Runs `hawser doctor`; exit code 1 if there are problems.
pub fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    let facts = process::small_runtime()?
        .block_on(async { Ok::<_, Failure>(gather(&args.options().await?).await) })?;
    let findings = diagnose(&facts);
    let problems = findings.iter().filter(|one| one.is_problem()).count();
    if args.json {
        print::pretty_json(&Report::new(&facts, &findings, problems))?;
    } else {
        show(&findings, problems);
    }
    Ok(match problems {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

impl DoctorArgs {
    async fn options(&self) -> Result<Options, Failure> {
        let listen = self.listen.map(|listen| match listen {
            Listen::Ip(address) => address,
            Listen::Scion(address) => address.host,
        });
        let fetched = tokio::time::timeout(self.timeout, self.host.fetch()).await;
        let bootstrap = match (fetched, &self.host.bootstrap) {
            (Ok(fetched), _) => fetched?.map_err(NotFetched::from),
            (Err(_), server) => {
                let server = server.as_ref().map_or_else(String::new, Server::to_string);
                Err(NotFetched::late(&server, self.timeout))
            }
        };
        Ok(Options {
            bootstrap,
            purposes: self.purposes.iter().map(|one| (*one).into()).collect(),
            destination: self.destination,
            listen,
            state: self.state.clone(),
            timeout: self.timeout,
        })
    }
}

impl<'a> Report<'a> {
    fn new(facts: &'a Facts, findings: &'a [Finding], problems: usize) -> Self {
        let network = match &facts.joined {
            Joined::Yes(network) => Some(network),
            _ => None,
        };
        Self {
            source: network.map(|network| network.source.as_str()),
            isd_as: network.map(|network| network.isd_as),
            sound: problems == 0,
            findings,
        }
    }
}

fn show(findings: &[Finding], problems: usize) {
    for finding in findings {
        let (severity, code) = (finding.severity, finding.code);
        outln!("{severity} {code}: {}", finding.problem);
        outln!("  remedy: {}", finding.remedy);
    }
    match problems {
        0 => outln!("no problems found"),
        1 => outln!("1 problem found"),
        many => outln!("{many} problems found"),
    }
}

/// Reads an AS, or a host in an AS.
fn destination(text: &str) -> Result<(IsdAsn, Option<IpAddr>), String> {
    if !text.contains(',') {
        return one_as(text).map(|isd_as| (isd_as, None));
    }
    let HostAddr { isd_as, ip } = host_address(text)?;
    Ok((isd_as, Some(ip)))
}

fn timeout(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&time) {
        true => Ok(time),
        false => Err("write 100ms to 10m".to_owned()),
    }
}

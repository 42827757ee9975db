//! `hawser ping`: SCMP echo requests to a host.

use crate::out::outln;
use crate::{
    cli::PingArgs,
    cmd,
    failure::{Doing, Failure},
    format,
};
use hawser_endhost::{
    Daemon, Endhost, Path,
    ping::{PingError, Pinger},
};
use hawser_topology::IsdAsn;
use serde::Serialize;
use std::{net::IpAddr, process::ExitCode, time::Duration};

/// Bytes of data in each request, as `scion ping` sends.
const SIZE: usize = 0;

#[derive(Serialize)]
struct Report {
    destination: String,
    path: String,
    sent: u32,
    received: u32,
    /// Share of requests without an answer, in percent.
    loss_percent: f64,
    min_ms: Option<f64>,
    avg_ms: Option<f64>,
    max_ms: Option<f64>,
}

/// Runs `hawser ping`; exit code 1 if nothing answered.
pub fn run(args: PingArgs) -> Result<ExitCode, Failure> {
    let (isd_as, ip) = host_address(&args.destination)?;
    cmd::runtime()?.block_on(async {
        let daemon = Daemon::from_env().map_err(Failure::job)?;
        let host = Endhost::new(daemon).await.map_err(Failure::job)?;
        let paths = host.paths(isd_as).await.map_err(Failure::job)?;
        let path = choose(&paths, args.path.as_deref(), isd_as)?;
        let pinger = Pinger::bind(&host, None).map_err(Failure::job)?;
        let fingerprint = path.fingerprint().to_string();
        if !args.json {
            outln!(
                "PING {isd_as},{ip} over {} ({} hops)",
                path.fingerprint().short(),
                path.info().hops()
            );
        }
        let mut rtts = Vec::new();
        let mut sent = 0;
        tokio::select! {
            () = echo(&pinger, ip, &path, &args, &mut sent, &mut rtts) => {}
            interrupted = cmd::interrupted() => interrupted?,
        }
        let report = report(&args.destination, fingerprint, sent, &rtts);
        if args.json {
            outln!("{}", serde_json::to_string(&report).doing("writing JSON")?);
        } else {
            print_summary(&report);
        }
        Ok(if rtts.is_empty() {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        })
    })
}

async fn echo(
    pinger: &Pinger,
    ip: IpAddr,
    path: &Path,
    args: &PingArgs,
    sent: &mut u32,
    rtts: &mut Vec<Duration>,
) {
    let mut tick = tokio::time::interval(args.interval.max(Duration::from_millis(1)));
    while args.count.is_none_or(|count| *sent < count.into()) {
        tick.tick().await;
        let number = *sent;
        *sent += 1;
        match pinger.echo(ip, path, SIZE, args.timeout).await {
            Ok(reply) => {
                rtts.push(reply.rtt);
                if !args.json {
                    outln!(
                        "{} bytes from {},{}: seq={number} time={}",
                        reply.size,
                        reply.from.isd_as,
                        reply.from.host.ip(),
                        format::millis(reply.rtt)
                    );
                }
            }
            Err(PingError::TimedOut(_)) if !args.json => outln!("seq={number} no answer"),
            Err(error) if !args.json => outln!("seq={number} {error}"),
            Err(_) => {}
        }
    }
}

fn choose(paths: &[Path], prefix: Option<&str>, isd_as: IsdAsn) -> Result<Path, Failure> {
    let Some(prefix) = prefix else {
        return paths
            .first()
            .cloned()
            .ok_or_else(|| Failure::job(format!("no path to {isd_as}")));
    };
    let mut matching = paths
        .iter()
        .filter(|p| p.fingerprint().matches_prefix(prefix));
    match (matching.next(), matching.next()) {
        (Some(path), None) => Ok(path.clone()),
        (Some(_), Some(_)) => Err(Failure::usage(format!(
            "--path {prefix}: several paths begin like this: give more digits"
        ))),
        (None, _) => Err(Failure::job(format!(
            "--path {prefix}: no path to {isd_as} begins like this: see `hawser paths {isd_as}`"
        ))),
    }
}

/// Reads `1-ff00:0:110,10.0.1.1`, with or without brackets.
fn host_address(text: &str) -> Result<(IsdAsn, IpAddr), Failure> {
    let wrong = || {
        Failure::usage(format!(
            "{text:?} is no host address: write for example 1-ff00:0:110,10.0.1.1"
        ))
    };
    let (isd_as, host) = text.split_once(',').ok_or_else(wrong)?;
    let host = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    let isd_as = isd_as.parse().map_err(|_| wrong())?;
    let ip = host.parse().map_err(|_| wrong())?;
    Ok((isd_as, ip))
}

fn report(destination: &str, path: String, sent: u32, rtts: &[Duration]) -> Report {
    let millis = |d: &Duration| d.as_secs_f64() * 1e3;
    let received = rtts.len() as u32;
    let sum: Duration = rtts.iter().sum();
    Report {
        destination: destination.to_owned(),
        path,
        sent,
        received,
        loss_percent: if sent == 0 {
            0.0
        } else {
            100.0 * f64::from(sent - received) / f64::from(sent)
        },
        min_ms: rtts.iter().min().map(millis),
        avg_ms: (received > 0).then(|| millis(&(sum / received))),
        max_ms: rtts.iter().max().map(millis),
    }
}

fn print_summary(report: &Report) {
    outln!(
        "--- {} ---\n{} sent, {} received, {:.0} % lost",
        report.destination,
        report.sent,
        report.received,
        report.loss_percent
    );
    if let (Some(min), Some(avg), Some(max)) = (report.min_ms, report.avg_ms, report.max_ms) {
        outln!("rtt min/avg/max = {min:.3}/{avg:.3}/{max:.3} ms");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_no_port() {
        for text in ["1-ff00:0:110,10.0.1.1", "1-ff00:0:110,[10.0.1.1]"] {
            let (isd_as, ip) = host_address(text).unwrap();
            assert_eq!(isd_as.to_string(), "1-ff00:0:110");
            assert_eq!(ip.to_string(), "10.0.1.1");
        }
        assert!(host_address("1-ff00:0:110,[fd00::1]").is_ok());
        for wrong in ["", "10.0.1.1", "1-ff00:0:110", "1-ff00:0:110,10.0.1.1:80"] {
            assert!(host_address(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn a_report_counts_what_was_lost() {
        let rtts = [Duration::from_millis(10), Duration::from_millis(30)];
        let report = report("x", String::new(), 4, &rtts);
        assert_eq!(report.loss_percent, 50.0);
        assert_eq!(report.avg_ms, Some(20.0));
    }
}

//! `hawser ping`: SCMP echo requests to a host.

mod fresh;
mod report;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ping::{Reply, next_hop};
use hawser_endhost::requests::{RequestError, Requests};
use hawser_endhost::{Path, ScmpError};
use hawser_path::show::Used;
use hawser_topology::{QuantityError, parse_duration};
use tokio::task::JoinSet;

use self::fresh::Fresh;
use self::report::{Answer, ReplyState, Report, Statistics};
use super::address::{HostAddr, host_address};
use super::choose::{self, ChoiceArgs};
use super::network::HostArgs;
use super::print::FormatArgs;
use super::{headings, path_text, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct PingArgs {
    /// The host, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = host_address)]
    pub destination: HostAddr,
    /// Stop after this many requests
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub count: Option<u16>,
    /// Time between requests, from 1ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// How long to wait for each reply
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Bytes of data in each request
    #[arg(long, short = 's', value_name = "N", default_value_t = 0)]
    pub payload_size: u16,
    /// Bytes of each request's SCION packet, headers included
    #[arg(long, value_name = "N", conflicts_with = "payload_size", help_heading = headings::RARE, hide_short_help = true)]
    pub packet_size: Option<u16>,
    /// Send requests as large as the path takes
    #[arg(long, conflicts_with_all = ["payload_size", "packet_size"], help_heading = headings::RARE, hide_short_help = true)]
    pub max_mtu: bool,
    /// Choose among paths that are alive only
    #[arg(long, help_heading = headings::PATHS, hide_short_help = true)]
    pub healthy_only: bool,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

/// Time after the timeout during which a reply is still reported, as a late one.
const LATE_REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs `hawser ping`; exit code 1 if no reply arrived.
pub fn run(args: PingArgs) -> Result<ExitCode, Failure> {
    args.choice.epic.refuse()?;
    process::runtime()?.block_on(async {
        let (human, paint) = (args.format.is_human(), args.format.paint());
        let host = args.host.join().await?;
        let HostAddr { isd_as, ip } = args.destination;
        let path = choose::path(&host, isd_as, &args.choice, args.healthy_only, paint).await?;
        let pinger = Requests::bind(&host, None, next_hop(&path, ip))?;
        let local = pinger.local_addr().host.ip();
        let size = payload_size(&args, &pinger, &path)?;
        let packet = pinger.echo_size(ip, &path, size)?;
        if packet > usize::from(path.mtu()) {
            return Err(Failure::usage(format!(
                "{size} bytes of data make a packet of {packet} bytes: the path takes {}",
                path.mtu()
            )));
        }
        let interrupted = process::interrupted()?;
        if human {
            if host.address().is_none() {
                outln!("Resolved local address:\n  {local}");
            }
            outln!("Using path:\n  {}\n", path_text::line(&path, paint));
            outln!("PING {} pld={size}B scion_pkt={packet}B", args.destination);
        }
        let mut run = Run {
            args: &args,
            pinger: Arc::new(pinger),
            path: Fresh::new(&host, path.clone()),
            size,
            human,
            sent: 0,
            highest: None,
            answers: Vec::new(),
        };
        let began = Instant::now();
        tokio::select! {
            () = run.echo() => {}
            () = interrupted => {}
        }
        let rtts: Vec<f64> = run.answers.iter().map(|one| one.round_trip_time).collect();
        let report = Report {
            path: Used::new(path.info(), local, path.next_hop()),
            payload_size: size,
            scion_packet_size: packet,
            replies: run.answers,
            statistics: Statistics::new(run.sent, &rtts, began.elapsed()),
        };
        if !args.format.document(&report)? {
            report.statistics.print(args.destination);
        }
        if !rtts.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        errln!("hawser: no reply from {}", args.destination);
        Ok(ExitCode::from(1))
    })
}

/// Reads the time between requests.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error: QuantityError| error.to_string())?;
    match interval < Duration::from_millis(1) {
        true => Err("at least 1ms".to_owned()),
        false => Ok(interval),
    }
}

/// Bytes of data in each request.
fn payload_size(args: &PingArgs, pinger: &Requests, path: &Path) -> Result<usize, Failure> {
    let wanted = match (args.max_mtu, args.packet_size) {
        (true, _) => path.mtu(),
        (false, Some(wanted)) => wanted,
        (false, None) => return Ok(args.payload_size.into()),
    };
    let headers = pinger.echo_size(args.destination.ip, path, 0)?;
    usize::from(wanted).checked_sub(headers).ok_or_else(|| {
        Failure::usage(format!(
            "a packet of {wanted} bytes: the headers alone take {headers}"
        ))
    })
}

/// The requests that were sent and their replies.
struct Run<'a> {
    args: &'a PingArgs,
    pinger: Arc<Requests>,
    path: Fresh,
    size: usize,
    human: bool,
    sent: u32,
    /// The highest number answered in time.
    highest: Option<u32>,
    answers: Vec<Answer>,
}

impl Run<'_> {
    /// Sends all requests and receives replies until the last is answered or timed out.
    async fn echo(&mut self) {
        let (timeout, count) = (self.args.timeout, self.args.count);
        let mut tick = tokio::time::interval(self.args.interval);
        let mut outstanding = JoinSet::new();
        let all_sent = |sent: u32| count.is_some_and(|count| sent >= count.into());
        // When the last request sent times out.
        let mut end = tokio::time::Instant::now();
        while !(all_sent(self.sent) && outstanding.is_empty()) {
            tokio::select! {
                _ = tick.tick(), if !all_sent(self.sent) => {
                    let (pinger, path) = (Arc::clone(&self.pinger), self.path.now());
                    let (ip, size, number) = (self.args.destination.ip, self.size, self.sent);
                    outstanding.spawn(async move {
                        (number, pinger.echo(ip, &path, size, timeout + LATE_REPLY_TIMEOUT).await)
                    });
                    self.sent += 1;
                    end = tokio::time::Instant::now() + timeout;
                }
                // A task is never aborted and does not panic.
                Some(Ok((number, reply))) = outstanding.join_next() => self.take(number, reply),
                () = tokio::time::sleep_until(end), if all_sent(self.sent) => return,
            }
        }
    }

    fn take(&mut self, number: u32, reply: Result<Reply, RequestError>) {
        let reply = match reply {
            Ok(reply) => reply,
            Err(RequestError::TimedOut(_)) => return,
            Err(error) => {
                errln!("ERROR: {}", self.explained(&error));
                return;
            }
        };
        let state = if reply.rtt > self.args.timeout {
            ReplyState::AfterTimeout
        } else if self.highest.is_some_and(|highest| number < highest) {
            ReplyState::OutOfOrder
        } else {
            self.highest = Some(number);
            ReplyState::Success
        };
        let from = HostAddr {
            isd_as: reply.from.isd_as,
            ip: reply.from.host.ip(),
        };
        if self.human {
            let (size, time) = (reply.size, format::exact_millis(reply.rtt));
            let remark = state.remark();
            outln!("{size} bytes from {from}: scmp_seq={number} time={time}{remark}");
        }
        self.answers.push(Answer {
            scion_packet_size: reply.size,
            source: from.to_string(),
            scmp_seq: number,
            round_trip_time: format::rounded_millis(reply.rtt),
            state,
        });
    }

    /// The error, with its probable cause.
    fn explained(&self, error: &RequestError) -> String {
        let (target, local) = (self.args.destination, self.pinger.local_addr().host.ip());
        let HostAddr { isd_as, ip } = target;
        match error {
            RequestError::Scmp(ScmpError::DestinationUnreachable { .. })
                if ip.is_ipv4() != local.is_ipv4() =>
            {
                let family = |ip: IpAddr| if ip.is_ipv4() { "IPv4" } else { "IPv6" };
                format!(
                    "{error}: {ip} is an {} address, and {isd_as} may have {} only",
                    family(ip),
                    family(local)
                )
            }
            error => error.to_string(),
        }
    }
}

//! `hawser ping`: SCMP echo requests to a host.

mod report;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ping::{Reply, next_hop};
use hawser_endhost::requests::{RequestError, Requests};
use hawser_endhost::{Path, ScmpError};
use hawser_path::show::Used;
use tokio::task::JoinSet;

use self::report::{Answer, Report, State};
use super::{choose, network, path_text, print, process};
use crate::cli::{Format, HostAddr, PingArgs};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};
use crate::paint::Paint;

/// How long after the timeout a reply is still reported, as a late one.
const LATE: Duration = Duration::from_secs(10);

/// Runs `hawser ping`; exit code 1 if nothing answered.
pub fn run(args: PingArgs) -> Result<ExitCode, Failure> {
    args.choice.epic.refuse()?;
    process::runtime()?.block_on(async {
        let (format, paint) = (args.format.format(), Paint::new(args.format.no_color));
        let host = network::host(&args.host).await?;
        let HostAddr { isd_as, ip } = args.destination;
        let path = choose::path(&host, isd_as, &args.choice, args.healthy_only, paint).await?;
        let pinger = Requests::bind(&host, None, next_hop(&path, ip)).map_err(Failure::job)?;
        let local = pinger.local_addr().host.ip();
        let size = payload_size(&args, &pinger, &path)?;
        let packet = pinger.echo_size(ip, &path, size).map_err(Failure::job)?;
        if packet > usize::from(path.mtu()) {
            return Err(Failure::usage(format!(
                "{size} bytes of data make a packet of {packet} bytes: the path takes {}",
                path.mtu()
            )));
        }
        if format == Format::Human {
            if host.address().is_none() {
                outln!("Resolved local address:\n  {local}");
            }
            outln!("Using path:\n  {}\n", path_text::line(&path, paint));
            outln!("PING {} pld={size}B scion_pkt={packet}B", args.destination);
        }
        let mut run = Run {
            pinger: Arc::new(pinger),
            target: args.destination,
            path: path.clone(),
            size,
            human: format == Format::Human,
            sent: 0,
            highest: None,
            answers: Vec::new(),
        };
        let began = Instant::now();
        tokio::select! {
            () = run.echo(&args) => {}
            interrupted = process::interrupted() => interrupted?,
        }
        let used = Used::new(path.info(), local, path.next_hop());
        let report = Report::new(used, size, packet, run.sent, run.answers, began.elapsed());
        if !print::document(format, &report)? {
            report.summary(args.destination);
        }
        if report.answered() {
            return Ok(ExitCode::SUCCESS);
        }
        errln!("hawser: no reply from {}", args.destination);
        Ok(ExitCode::from(1))
    })
}

/// Bytes of data in each request.
fn payload_size(args: &PingArgs, pinger: &Requests, path: &Path) -> Result<usize, Failure> {
    let wanted = match (args.max_mtu, args.packet_size) {
        (true, _) => path.mtu(),
        (false, Some(wanted)) => wanted,
        (false, None) => return Ok(args.payload_size.into()),
    };
    let headers = pinger
        .echo_size(args.destination.ip, path, 0)
        .map_err(Failure::job)?;
    usize::from(wanted).checked_sub(headers).ok_or_else(|| {
        Failure::usage(format!(
            "a packet of {wanted} bytes: the headers alone take {headers}"
        ))
    })
}

/// The requests that were sent and their replies.
struct Run {
    pinger: Arc<Requests>,
    target: HostAddr,
    path: Path,
    size: usize,
    human: bool,
    sent: u32,
    /// The highest number answered in time.
    highest: Option<u32>,
    answers: Vec<Answer>,
}

impl Run {
    /// Sends all requests and receives replies until the last is answered or timed out.
    async fn echo(&mut self, args: &PingArgs) {
        let mut tick = tokio::time::interval(args.interval);
        let mut asked = JoinSet::new();
        let all_sent = |sent: u32| args.count.is_some_and(|count| sent >= count.into());
        // Set when the last request is sent.
        let mut end = None;
        while !(all_sent(self.sent) && asked.is_empty()) {
            let over = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = tick.tick(), if !all_sent(self.sent) => {
                    let wait = args.timeout + LATE;
                    asked.spawn(ask(Arc::clone(&self.pinger), self.target.ip, self.path.clone(), self.size, wait, self.sent));
                    self.sent += 1;
                    if all_sent(self.sent) {
                        end = Some(tokio::time::Instant::now() + args.timeout);
                    }
                }
                // A task is never aborted and does not panic.
                Some(Ok((number, reply))) = asked.join_next() => self.take(number, reply, args.timeout),
                () = over => return,
            }
        }
    }

    fn take(&mut self, number: u32, reply: Result<Reply, RequestError>, timeout: Duration) {
        let reply = match reply {
            Ok(reply) => reply,
            Err(RequestError::TimedOut(_)) => return,
            Err(error) => {
                errln!("ERROR: {}", self.explained(&error));
                return;
            }
        };
        let state = if reply.rtt > timeout {
            State::AfterTimeout
        } else if self.highest.is_some_and(|highest| number < highest) {
            State::OutOfOrder
        } else {
            self.highest = Some(number);
            State::Success
        };
        let from = HostAddr {
            isd_as: reply.from.isd_as,
            ip: reply.from.host.ip(),
        };
        if self.human {
            outln!(
                "{} bytes from {from}: scmp_seq={number} time={}{}",
                reply.size,
                format::exact_millis(reply.rtt),
                state.remark()
            );
        }
        self.answers.push(Answer::new(&reply, from, number, state));
    }

    /// The error, with its probable cause.
    fn explained(&self, error: &RequestError) -> String {
        let (HostAddr { isd_as, ip }, local) = (self.target, self.pinger.local_addr().host.ip());
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

async fn ask(
    pinger: Arc<Requests>,
    ip: IpAddr,
    path: Path,
    size: usize,
    wait: Duration,
    number: u32,
) -> (u32, Result<Reply, RequestError>) {
    (number, pinger.echo(ip, &path, size, wait).await)
}

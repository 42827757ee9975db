//! What the commands of bulk transfer have in common: addresses, options, keys.

pub mod display;
pub mod files;
pub mod metadata;
pub mod report;
pub mod sockets;
pub mod spool;

use std::fmt;
use std::pin::pin;
use std::str::FromStr;
use std::time::{Duration, Instant};

use hawser_bulk::{
    Algorithm, Limit, Node, PathOptions, Request, SharedPolicy, Summary, TransferError,
    TransferEvent, TransferOptions, transfer,
};
use hawser_endhost::ScionAddr;
use hawser_keys::{Code, Trust};
use hawser_topology::{parse_rate, parse_retry};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use self::display::Display;
use self::files::FileArgs;
use self::report::Report;
use self::sockets::SocketArgs;
use super::key::KeyFileArgs;
use super::network::HostArgs;
use super::select::PathArgs;
use super::trust::TrustArgs;
use super::wait::WaitArgs;
use super::{headings, policy, print, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, plain};

/// How long people's transfers wait for a host that was lost.
pub const RETRY: &str = "5m";

/// A server, and a path in its folder: `1-ff00:0:111,10.0.2.1:31000/data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The server's address.
    pub server: ScionAddr,
    /// Relative to the server's folder; empty for the folder itself.
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "{}", self.server),
            name => write!(f, "{}/{name}", self.server),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (server, name) = text.split_once('/').unwrap_or((text, ""));
        let server = server.parse().map_err(|_| {
            format!(
                "{text:?} is not a destination: write for example 1-ff00:0:111,10.0.2.1:31000/data"
            )
        })?;
        Ok(Self {
            server,
            name: name.trim_end_matches('/').to_owned(),
        })
    }
}

/// A transfer to or from a server.
pub struct Job {
    pub place: Place,
    pub request: Request,
    /// What it is called.
    pub name: String,
}

/// What happens in one of several transfers.
enum Happened {
    Event(TransferEvent),
    Ended(Box<Result<Summary, TransferError>>),
}

/// Runs the transfers side by side, shows them, and prints the report of each when it ends; `done`
/// is what was done with the bytes, for people.
pub fn run(
    client: &ClientArgs,
    host: &HostArgs,
    jobs: Vec<Job>,
    done: &str,
) -> Result<(), Failure> {
    let began = Instant::now();
    let policy = SharedPolicy::new(policy::read(&client.paths.policy)?);
    let options = client.options(&policy)?;
    for job in &jobs {
        // Before a code is spent.
        if let Request::Fetch { destination, .. } = &job.request {
            destination.check()?;
        }
    }
    let identity = client.key.file()?.open()?;
    let names = jobs.iter().map(|job| match jobs.len() {
        1 => job.name.clone(),
        _ => format!("{} to {}", job.name, job.place.server),
    });
    let names: Vec<_> = names.collect();
    process::runtime()?.block_on(async {
        let node = client.sockets.bind(host.join().await?, None, identity)?;
        // Before anything is transferred or shown.
        let mut interrupted = pin!(process::interrupted()?);
        if let Some(used) = node.xdp() {
            errln!("hawser: AF_XDP on {}", used.status);
        }
        if let Some(rate) = client.limit {
            errln!("hawser: limited to {}", format::limit(rate));
        }
        // Ten a second for each transfer, of a display that draws less often than it takes them.
        let (happened, mut received) = unbounded_channel();
        let mut display = Display::new(names.iter().map(String::as_str), client.explain);
        let mut tasks = JoinSet::new();
        let places: Vec<_> = jobs.iter().map(|job| job.place.clone()).collect();
        for (index, job) in jobs.into_iter().enumerate() {
            tasks.spawn(work(
                index,
                node.clone(),
                job,
                options.clone(),
                happened.clone(),
            ));
        }
        let mut followed = pin!(policy::follow(&client.paths.policy, &policy));
        let mut failed = Vec::new();
        let mut partly = Vec::new();
        let mut running = places.len();
        let mut samples = vec![Vec::new(); running];
        let mut peer_limits = vec![None; running];
        while running > 0 {
            let (index, happened) = tokio::select! {
                Some(happened) = received.recv() => happened,
                never = &mut followed => match never {},
                () = &mut interrupted => {
                    display.clear();
                    tasks.shutdown().await;
                    node.close().await;
                    let text = "interrupted: the same command continues from what has arrived";
                    return Err(Failure::job(text));
                }
            };
            let ended = match happened {
                Happened::Event(event) => {
                    if let (true, TransferEvent::Progress(_, paths, at)) = (client.samples, &event)
                    {
                        let elapsed = at.saturating_duration_since(began);
                        samples[index].push(report::sample(elapsed, paths));
                    }
                    if let TransferEvent::Limited(rate) = event {
                        peer_limits[index] = rate;
                    }
                    display.show(index, event);
                    continue;
                }
                Happened::Ended(ended) => *ended,
            };
            running -= 1;
            if running == 0 {
                display.clear();
            }
            match ended {
                Ok(summary) => {
                    let place = places[index].to_string();
                    let mut report = Report::new(&summary, place, node.xdp());
                    report.samples = std::mem::take(&mut samples[index]);
                    report.limits.limit_mbit = client.limit.map(report::mbit);
                    report.limits.peer_limit_mbit = peer_limits[index].map(report::mbit);
                    match client.json {
                        true => print::json(&report)?,
                        false => report.print(&names[index], done),
                    }
                    let prefix = match places.len() {
                        1 => String::new(),
                        _ => format!("{}: ", places[index]),
                    };
                    files::list_failed(&prefix, &summary.failed);
                    partly.extend(files::outcome(&summary).err());
                }
                Err(error) => failed.push((index, error)),
            }
        }
        node.close().await;
        report_failures(failed, &places)?;
        partly.into_iter().next().map_or(Ok(()), Err)
    })
}

/// Runs one transfer; what happens goes to `happened`.
async fn work(
    index: usize,
    node: Node,
    job: Job,
    options: TransferOptions,
    happened: UnboundedSender<(usize, Happened)>,
) {
    // Passed on at once.
    let (events, mut received) = unbounded_channel();
    let mut transfer = pin!(transfer(
        &node,
        job.place.server,
        job.request,
        options,
        events
    ));
    let ended = loop {
        tokio::select! {
            ended = &mut transfer => break ended,
            Some(event) = received.recv() => {
                // The command may have been interrupted.
                let _ = happened.send((index, Happened::Event(event)));
            }
        }
    };
    while let Ok(event) = received.try_recv() {
        let _ = happened.send((index, Happened::Event(event)));
    }
    let _ = happened.send((index, Happened::Ended(Box::new(ended))));
}

/// Reports the transfers that failed: one of one as any failure, those of several each on a line.
fn report_failures(
    mut failed: Vec<(usize, TransferError)>,
    places: &[Place],
) -> Result<(), Failure> {
    match (failed.len(), places.len()) {
        (0, _) => Ok(()),
        (1, 1) => Err(failed.remove(0).1.into()),
        (count, all) => {
            for (index, error) in failed {
                errln!("hawser: {}: {}", places[index], plain(&error.to_string()));
            }
            let text =
                format!("{count} of {all} transfers failed; the same command continues them");
            Err(Failure::job(text))
        }
    }
}

/// How a transfer to or from a server is done.
#[derive(clap::Args)]
pub struct ClientArgs {
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub trust: TrustArgs,
    /// The code that `hawser receive` prints, in place of keys
    #[arg(long, value_name = "CODE", conflicts_with_all = ["server_key", "any_server"])]
    pub code: Option<Code>,
    #[command(flatten)]
    pub paths: PathArgs,
    #[command(flatten)]
    pub files: FileArgs,
    /// Rate control of every path on which this side sends [default: auto]
    #[arg(long, value_name = "ALGORITHM", help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub congestion: Option<Algorithm>,
    /// Most content per second: 100mbit, 2.5gbit
    ///
    /// Over all paths, and in all transfers together.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub key: KeyFileArgs,
    #[command(flatten)]
    pub sockets: SocketArgs,
    /// How long a server that was reached, and no longer is, is tried again: 30s, 5m, 2h; 0 for never
    #[arg(long, value_name = "TIME", default_value = RETRY, value_parser = parse_retry, help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub retry: Duration,
    /// Report the reason for every path, used or not
    #[arg(long, short = 'v')]
    pub explain: bool,
    /// Add the progress to the JSON objects, about ten times a second
    #[arg(long, requires = "json", help_heading = headings::RARE, hide_short_help = true)]
    pub samples: bool,
    /// Print JSON: one object for each transfer, at its end
    #[arg(long)]
    pub json: bool,
}

impl ClientArgs {
    /// The options of a transfer that follows this policy.
    pub fn options(&self, policy: &SharedPolicy) -> Result<TransferOptions, Failure> {
        Ok(TransferOptions {
            paths: PathOptions {
                select: self.paths.select.read()?,
                subflows: self.paths.select.most(),
                ..PathOptions::default()
            },
            policy: Some(policy.clone()),
            algorithm: self.congestion.unwrap_or_default(),
            limit: self.limit.map(|rate| Limit::new(rate, None)),
            wants: self.files.wants()?,
            retry: self.retry,
            wait: self.wait.time(),
            server: match &self.code {
                Some(code) => Trust::Code(code.clone()),
                None => self.trust.known()?.map_or(Trust::Any, Trust::Known),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_have_an_address_and_a_name() {
        let read = |text: &str| text.parse::<Place>().map(|place| place.name);
        assert_eq!(read("1-ff00:0:111,10.0.2.1:31000"), Ok(String::new()));
        assert_eq!(read("1-ff00:0:111,10.0.2.1:31000/a/b/"), Ok("a/b".into()));
        assert_eq!(read("1-ff00:0:111,[fd00::1]:31000/a"), Ok("a".into()));
        for wrong in ["", "data", "10.0.2.1:31000/a", "1-ff00:0:111,10.0.2.1/a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    /// `HAWSER_FUZZ_CASES` says how many texts are read.
    #[test]
    fn any_destination_is_read_or_refused() {
        let valid = [
            "1-ff00:0:111,10.0.2.1:31000/a/b/",
            "64-2:0:0,[fd00::1]:65535/a",
        ];
        let parts = [
            "", "/", ",", ":", "[", "]", "-", "..", "0", "65536", "f", "é", "\0",
        ];
        let mut rng = fastrand::Rng::with_seed(14);
        for _ in 0..hawser_fuzz::cases() {
            let mut text: Vec<char> = rng.choice(valid).unwrap().chars().collect();
            for _ in 0..rng.usize(0..4) {
                let from = rng.usize(0..=text.len());
                let to = rng.usize(from..=text.len()).min(from + 3);
                text.splice(from..to, rng.choice(parts).unwrap().chars());
            }
            let text = String::from_iter(text);
            match text.parse::<Place>() {
                Ok(place) => assert_eq!(place.to_string().parse(), Ok(place), "{text:?}"),
                Err(error) => assert!(error.contains(&format!("{text:?}")), "{error}"),
            }
        }
    }
}

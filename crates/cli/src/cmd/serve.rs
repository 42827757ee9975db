//! `hawser serve`: a queue of transfers for many users, with an HTTP API.

use std::collections::HashMap;
use std::path::PathBuf;

use hawser_bulk::{ServerEvent, SessionNumber};
use hawser_endhost::ScionAddr;
use hawser_service::{Addresses, Config, Job, JobState, ServiceEvent, run as run_service};
use tokio::sync::mpsc::unbounded_channel;

use super::{folders, process, receive};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// The name of the configuration, in the folder of configuration.
const FILE: &str = "serve.toml";

#[derive(clap::Args)]
pub struct ServeArgs {
    /// The configuration, in TOML; serve.toml in /etc/hawser, for users in ~/.config/hawser, when not
    /// given
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the configuration, and end
    #[arg(long)]
    pub check: bool,
}

/// Runs `hawser serve`.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    let file = match args.config {
        Some(file) => file,
        None => folders::config()?.join(FILE),
    };
    let config = Config::read(&file).map_err(Failure::usage)?;
    if args.check {
        outln!("{} is valid", file.display());
        return Ok(());
    }
    process::runtime()?.block_on(async {
        process::survive_hangup()?;
        // A few for each job and session, of which there are limits.
        let (events, mut happened) = unbounded_channel();
        let stop = process::interrupted()?;
        let running = run_service(&config, events, stop);
        tokio::pin!(running);
        let mut senders = HashMap::new();
        let ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                Some(event) = happened.recv() => show(event, &config, &mut senders)?,
            }
        };
        while let Ok(event) = happened.try_recv() {
            show(event, &config, &mut senders)?;
        }
        Ok(ended?)
    })
}

fn show(
    event: ServiceEvent,
    config: &Config,
    senders: &mut HashMap<SessionNumber, ScionAddr>,
) -> Result<(), Failure> {
    match event {
        ServiceEvent::Ready(addresses) => {
            ready(&addresses);
            show_limits(config);
        }
        ServiceEvent::Configured => outln!("the configuration was read again"),
        ServiceEvent::Job(job) => show_job(&job),
        ServiceEvent::Receive(event) => {
            let peer = match &*event {
                ServerEvent::Began { session, peer, .. } => senders.insert(*session, *peer),
                ServerEvent::Ended(session, _) => senders.remove(session),
                _ => None,
            };
            receive::show(*event, peer, None, false)?;
        }
        ServiceEvent::Trouble(text) => errln!("hawser: {}", plain(&text)),
    }
    Ok(())
}

fn ready(addresses: &Addresses) {
    if let Some(address) = addresses.receive {
        outln!("receiving at {address}");
    }
    if let Some(key) = addresses.key {
        outln!("key {key}");
    }
    if let Some(address) = addresses.http {
        outln!("API at http://{address}");
    }
    if let Some(address) = addresses.https {
        outln!("API at https://{address}");
    }
}

/// Prints the limits of the rate, which explain slow transfers.
fn show_limits(config: &Config) {
    let limited = |what: &str, rate: Option<u64>| {
        if let Some(rate) = rate {
            outln!("{what} limited to {}", format::limit(rate));
        }
    };
    limited("transfers are", config.transfers.rate);
    for (name, user) in &config.users {
        limited(&format!("transfers of {} are", plain(name)), user.rate);
    }
    let receive = config.receive.as_ref();
    limited("receiving is", receive.and_then(|receive| receive.rate));
}

fn show_job(job: &Job) {
    let submission = &job.submission;
    let what = format!("transfer {} of {}", job.id, submission.user);
    let error = job.error.as_ref().map_or("", |error| &error.text);
    let text = match job.state {
        JobState::Queued => format!(
            "{what}: queued: {} to {}/{}",
            submission.source, submission.server, submission.destination
        ),
        JobState::Running | JobState::Cancelled => format!("{what}: {}", job.state.name()),
        JobState::Waiting { .. } => format!("{what}: to be tried again: {error}"),
        JobState::Done => {
            let seconds = job.ended.zip(job.started);
            let seconds = seconds.map_or(0, |(ended, started)| ended.saturating_sub(started));
            format!(
                "{what}: done: {} in {seconds} s",
                format::bytes(job.progress.bytes)
            )
        }
        JobState::Failed => format!("{what}: failed: {error}"),
    };
    outln!("{}", plain(&text));
}

//! What the daemon prints about its transfers.

use std::collections::HashMap;

use hawser_bulk::{ServerEvent, SessionNumber};
use hawser_endhost::ScionAddr;
use hawser_service::{Config, Job, JobState, ServiceEvent};

use crate::cmd::receive;
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// Prints what happens; `senders` has the sender of each session.
pub fn show(
    event: ServiceEvent,
    senders: &mut HashMap<SessionNumber, ScionAddr>,
) -> Result<(), Failure> {
    match event {
        ServiceEvent::Receiving(address, key) => {
            outln!("receiving at {address}");
            outln!("key {key}");
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

/// Prints the limits of the rate, which explain slow transfers.
pub fn show_limits(config: &Config) {
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

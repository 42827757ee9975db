//! Bringing limits into force on this machine.

use std::sync::Arc;
use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_limit::{EnforceError, Enforcer, Limit, NamedLink, Remote};
use hawser_topology::IsdAsn;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::coordinator::Coordinator;
use crate::link::LinkId;
use crate::state::EnforcedLink;

/// Time between two readings of the counters.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which limits in force are enforced again, as somebody else may have removed them.
const ENFORCE_INTERVAL: Duration = Duration::from_secs(30);
/// First wait after a failure.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Longest wait after failures.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Keeps what the coordinator has for an attachment point on this machine in force, and reports the
/// counters each second. Never ends.
///
/// It begins with what is stored, whatever was in force: so what was stored just before a crash gets
/// into force.
pub async fn enforce_locally(
    coordinator: Coordinator,
    attachment_point: IsdAsn,
    enforcer: Arc<dyn Enforcer<LinkId>>,
) {
    let keep = keep_in_force(&coordinator, attachment_point, &enforcer);
    let sample = sample(&coordinator, attachment_point, &enforcer);
    tokio::join!(keep, sample);
}

async fn keep_in_force(
    coordinator: &Coordinator,
    at: IsdAsn,
    enforcer: &Arc<dyn Enforcer<LinkId>>,
) {
    // What ran before this process did may be in force no longer.
    let forgetting = coordinator.clone();
    let _ = tokio::task::spawn_blocking(move || forgetting.forget_deployed(at)).await;
    let mut changed = coordinator.subscribe();
    let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
    let (mut enforced, mut again) = (None, Instant::now());
    loop {
        changed.mark_unchanged();
        let state = coordinator.state();
        let version = state.host(at).map(|host| host.version);
        if version != enforced || Instant::now() >= again {
            let links = state.enforced(at).into_iter();
            let wanted: Vec<_> = links.map(named).collect();
            let result = blocking(enforcer, move |enforcer| enforcer.enforce(&wanted)).await;
            let wait = match &result {
                Ok(failed) if failed.is_empty() => {
                    enforced = version;
                    backoff.reset();
                    ENFORCE_INTERVAL
                }
                _ => {
                    enforced = None;
                    backoff.fail()
                }
            };
            again = Instant::now() + wait;
            let coordinator = coordinator.clone();
            let reported = tokio::task::spawn_blocking(move || match (result, version) {
                (Ok(failed), Some(version)) => {
                    coordinator.report_links(at, failed);
                    coordinator.report_deployed(at, version)
                }
                (Ok(_), None) => Ok(()),
                (Err(error), _) => {
                    let reason = error.to_string();
                    coordinator.report_failure(at, version.unwrap_or_default(), &reason);
                    Ok(())
                }
            });
            // A report that cannot be stored is made again.
            if !matches!(reported.await, Ok(Ok(()))) {
                enforced = None;
                again = Instant::now() + MIN_BACKOFF;
            }
            // A failure is tried again when its time has come, or what is wanted is another version.
            if enforced.is_none() {
                enforced = version;
            }
        }
        tokio::select! {
            ended = changed.changed() => if ended.is_err() {
                return;
            },
            () = sleep_until(again) => {}
        }
    }
}

async fn sample(coordinator: &Coordinator, at: IsdAsn, enforcer: &Arc<dyn Enforcer<LinkId>>) {
    let mut ticks = interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Without counters the last ones stay; why limits are not in force is reported elsewhere.
        if let Ok(usage) = blocking(enforcer, |enforcer| enforcer.usage()).await {
            coordinator.report_usage(at, usage);
        }
    }
}

async fn blocking<T: Send + 'static>(
    enforcer: &Arc<dyn Enforcer<LinkId>>,
    call: impl FnOnce(&dyn Enforcer<LinkId>) -> Result<T, EnforceError> + Send + 'static,
) -> Result<T, EnforceError> {
    let enforcer = Arc::clone(enforcer);
    let ended = tokio::task::spawn_blocking(move || call(&*enforcer)).await;
    ended.unwrap_or_else(|error| Err(EnforceError::new(error)))
}

fn named(link: EnforcedLink) -> NamedLink<LinkId> {
    let limit = |rate: u64| {
        let limit = Limit::new(rate);
        link.queue.map_or(limit, |queue| limit.with_queue(queue))
    };
    NamedLink {
        name: link.link,
        remote: Remote {
            address: link.ip,
            port: link.port,
        },
        device: link.device,
        limits: hawser_limit::Limits {
            egress: link.limits.egress.map(limit),
            ingress: link.limits.ingress.map(limit),
        },
    }
}

#[cfg(test)]
mod tests;

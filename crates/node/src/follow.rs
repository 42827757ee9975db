//! Following a coordinator: what it has is fetched, and what is in force here is reported to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_backoff::Backoff;
use hawser_bundle::{Bundle, Coordinator, LARGEST_ARCHIVE};
use hawser_control::Publication;
use hawser_limit::{Enforcer, LinkUsage};
use hyper::{Method, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::error::FetchError;
use crate::event::Event;
use crate::http::{Ask, Client};
use crate::update::Update;

/// How long a coordinator may wait for a change before it answers that there is none.
const WAIT: Duration = Duration::from_secs(30);
/// Longest time of an answer after that.
const PATIENCE: Duration = Duration::from_secs(20);
/// Shortest time between two requests that bring nothing, if a coordinator does not wait.
const MIN_REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// Waits after failures.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(60));
/// Longest wait while the coordinator is not reached. A machine that was cut off follows it again after this
/// and the rest of an attempt to connect.
const MAX_UNREACHABLE_WAIT: Duration = Duration::from_secs(8);
/// Time between two reports of counters.
const USAGE: Duration = Duration::from_secs(1);
/// Largest file of segments, in bytes.
const MAX_SEGMENTS_SIZE: u64 = 64 << 20;
/// Longest answer to a report.
const MAX_REPLY_SIZE: u64 = 64 << 10;

/// What became of a version of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Outcome {
    pub version: u64,
    /// Why it is not in force; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The links whose limits alone are not in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<FailedLink>,
}

/// A link whose limits are not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FailedLink {
    /// Its number.
    pub link: u64,
    pub error: String,
}

/// The tasks that follow one coordinator; they end when this is dropped.
pub(crate) struct Follower {
    tasks: JoinSet<()>,
    /// Whether one has ended.
    has_ended: bool,
}

impl Follower {
    /// Follows the coordinator of a host whose configuration is `bundle`. `deployed` has the
    /// version that is in force, or why one is not.
    pub fn start(
        coordinator: &Coordinator,
        bundle: &Bundle,
        updates: Sender<Update>,
        events: &UnboundedSender<Event>,
        deployed: watch::Receiver<Option<Outcome>>,
        limits: Option<Arc<dyn Enforcer<String>>>,
    ) -> Result<Self, FetchError> {
        let Coordinator {
            url,
            host,
            token,
            ca,
        } = coordinator;
        let client = Client::new(url, token, ca.as_deref())?;
        let api = format!("/api/host/{host}");
        let mut tasks = JoinSet::new();
        let reconnected = Arc::new(Notify::new());
        tasks.spawn(configuration(
            client.another(),
            api.clone(),
            Some(bundle.tag()),
            updates.clone(),
            Health::new(events),
            Arc::clone(&reconnected),
        ));
        tasks.spawn(segments(
            client.another(),
            api.clone(),
            updates,
            Health::new(events),
        ));
        tasks.spawn(report_deployed(
            client.another(),
            api.clone(),
            deployed,
            reconnected,
        ));
        if let Some(limits) = limits {
            tasks.spawn(report_usage(client, api, limits));
        }
        Ok(Self::of(tasks))
    }

    fn of(tasks: JoinSet<()>) -> Self {
        Self {
            tasks,
            has_ended: false,
        }
    }

    /// Waits until one of the tasks has ended, and then so long that another follower may be started.
    /// They end only with this node, or in a panic, which was logged.
    pub async fn ended(&mut self) {
        if !self.has_ended {
            self.has_ended = self.tasks.join_next().await.is_some();
        }
        sleep(MIN_REQUEST_INTERVAL).await;
    }
}

/// Reports the first failure of several, and that it works again.
struct Health {
    events: UnboundedSender<Event>,
    failing: bool,
}

impl Health {
    fn new(events: &UnboundedSender<Event>) -> Self {
        Self {
            events: events.clone(),
            failing: false,
        }
    }

    fn worked(&mut self) {
        if std::mem::take(&mut self.failing) {
            let _ = self.events.send(Event::CoordinatorBack);
        }
    }

    fn failed(&mut self, error: &FetchError) {
        tracing::debug!("{error}");
        if !std::mem::replace(&mut self.failing, true) {
            let reason = error.to_string();
            let _ = self.events.send(Event::Coordinator { reason });
        }
    }
}

fn waiting<'a>(path: &'a str, tag: Option<&'a str>, most: u64) -> Ask<'a> {
    Ask {
        method: Method::GET,
        path,
        tag,
        body: None,
        patience: WAIT + PATIENCE,
        most,
    }
}

/// The wait after a failure. One in which the coordinator answered lasts, and each attempt costs it work; one
/// in which it was not reached ends at any time.
pub(crate) fn wait_after(error: &FetchError, backoff: &mut Backoff) -> Duration {
    let wait = backoff.fail();
    match error {
        FetchError::Unreachable { .. } | FetchError::Broken { .. } => {
            wait.min(MAX_UNREACHABLE_WAIT)
        }
        _ => wait,
    }
}

/// Between three and five quarters of a pause: many nodes must not return all at once.
fn spread(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + fastrand::f64() / 2.0)
}

/// Waits so that requests that bring nothing are not made all the time.
async fn rest(begun: Instant) {
    sleep(MIN_REQUEST_INTERVAL.saturating_sub(begun.elapsed())).await;
}

async fn configuration(
    mut client: Client,
    api: String,
    mut tag: Option<String>,
    updates: Sender<Update>,
    mut health: Health,
    reconnected: Arc<Notify>,
) {
    let path = format!("{api}/config?wait={}", WAIT.as_secs());
    let mut backoff = BACKOFF;
    let mut connects = None;
    let mut nothing = false;
    let mut other_machine = None;
    loop {
        let begun = Instant::now();
        let asked = client
            .ask(waiting(&path, tag.as_deref(), LARGEST_ARCHIVE))
            .await;
        if let Ok(answer) = &asked
            && answer.other_machine != other_machine
        {
            other_machine.clone_from(&answer.other_machine);
            if let Some(address) = other_machine.clone() {
                let _ = health.events.send(Event::OtherMachine { address });
            }
        }
        let answer = asked.and_then(|answer| match answer.status {
            StatusCode::OK => match Bundle::unpack(&answer.body) {
                Ok(bundle) => Ok(Some(Some(bundle))),
                Err(reason) => Err(FetchError::Archive {
                    url: client.url().to_owned(),
                    reason,
                }),
            },
            StatusCode::NO_CONTENT => {
                tag = answer.tag;
                Ok(Some(None))
            }
            _ => Ok(None),
        });
        let mut failed = None;
        match answer {
            Ok(found) => {
                health.worked();
                let before = connects.replace(client.connects());
                if before.is_some_and(|before| before != client.connects()) {
                    reconnected.notify_one();
                }
                match found {
                    Some(Some(bundle)) => {
                        let new = bundle.tag();
                        let (installed, outcome) = oneshot::channel();
                        let update = Update::Configuration(Box::new(bundle), installed);
                        if updates.send(update).await.is_err() {
                            return;
                        }
                        nothing = false;
                        match outcome.await {
                            Ok(true) => tag = Some(new),
                            _ => failed = Some(backoff.fail()),
                        }
                    }
                    Some(None) => {
                        if !std::mem::replace(&mut nothing, true)
                            && updates.send(Update::Nothing).await.is_err()
                        {
                            return;
                        }
                        rest(begun).await;
                    }
                    None => rest(begun).await,
                }
            }
            Err(error) => {
                health.failed(&error);
                failed = Some(wait_after(&error, &mut backoff));
            }
        }
        match failed {
            Some(wait) => sleep(spread(wait)).await,
            None => backoff.reset(),
        }
    }
}

async fn segments(mut client: Client, api: String, updates: Sender<Update>, mut health: Health) {
    let path = format!("{api}/segments?wait={}", WAIT.as_secs());
    let mut backoff = BACKOFF;
    let mut tag = None;
    loop {
        let begun = Instant::now();
        let asked = client
            .ask(waiting(&path, tag.as_deref(), MAX_SEGMENTS_SIZE))
            .await;
        let answer = asked.and_then(|answer| {
            if answer.status != StatusCode::OK {
                return Ok(None);
            }
            match Publication::from_json(&answer.body) {
                Ok(_) => Ok(Some((answer.body.to_vec(), answer.tag))),
                Err(reason) => Err(FetchError::Segments {
                    url: client.url().to_owned(),
                    reason: reason.to_string(),
                }),
            }
        });
        match answer {
            Ok(found) => {
                health.worked();
                if let Some((bytes, new)) = found {
                    let (written, outcome) = oneshot::channel();
                    if updates
                        .send(Update::Segments(bytes, written))
                        .await
                        .is_err()
                    {
                        return;
                    }
                    // Those that could not be written are fetched again, as the disk may be full.
                    if !matches!(outcome.await, Ok(true)) {
                        sleep(spread(backoff.fail())).await;
                        continue;
                    }
                    tag = new;
                }
                backoff.reset();
                rest(begun).await;
            }
            Err(error) => {
                health.failed(&error);
                sleep(spread(wait_after(&error, &mut backoff))).await;
            }
        }
    }
}

/// Sends a report.
pub(crate) async fn post(
    client: &mut Client,
    path: &str,
    body: &impl Serialize,
) -> Result<(), FetchError> {
    let ask = Ask {
        method: Method::POST,
        path,
        tag: None,
        // Plain data can always be written as JSON.
        body: Some(serde_json::to_vec(body).unwrap_or_default()),
        patience: PATIENCE,
        most: MAX_REPLY_SIZE,
    };
    client.ask(ask).await.map(drop)
}

/// Reports what becomes of each version, until the coordinator has heard of it. Also after another
/// connection was made: a coordinator that was restarted does not know any more what failed.
async fn report_deployed(
    mut client: Client,
    api: String,
    mut deployed: watch::Receiver<Option<Outcome>>,
    reconnected: Arc<Notify>,
) {
    let path = format!("{api}/deployed_config_version");
    let mut backoff = BACKOFF;
    loop {
        let outcome = deployed.borrow_and_update().clone();
        if let Some(outcome) = outcome {
            match post(&mut client, &path, &outcome).await {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    tracing::debug!("the deployed version cannot be reported: {error}");
                    sleep(spread(wait_after(&error, &mut backoff))).await;
                    continue;
                }
            }
        }
        tokio::select! {
            changed = deployed.changed() => if changed.is_err() {
                return;
            },
            () = reconnected.notified() => {}
        }
    }
}

/// Reports what the links carried, once a second.
async fn report_usage(mut client: Client, api: String, limits: Arc<dyn Enforcer<String>>) {
    #[derive(Serialize)]
    struct Report {
        links: Vec<LinkUsage<u64>>,
    }
    let path = format!("{api}/usage");
    let mut backoff = BACKOFF;
    let mut ticks = interval(USAGE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let limits = Arc::clone(&limits);
        let read = tokio::task::spawn_blocking(move || limits.usage()).await;
        let usage = match read {
            Ok(Ok(usage)) => usage,
            Ok(Err(error)) => {
                tracing::debug!("counters cannot be read: {error}");
                continue;
            }
            // It panicked, which was logged; it may work the next time.
            Err(_) => continue,
        };
        let links = usage.into_iter().filter_map(|usage| {
            Some(LinkUsage {
                // A coordinator names links by numbers.
                link: usage.link.parse().ok()?,
                egress: usage.egress,
                ingress: usage.ingress,
            })
        });
        let report = Report {
            links: links.collect(),
        };
        if report.links.is_empty() {
            continue;
        }
        match post(&mut client, &path, &report).await {
            Ok(()) => backoff.reset(),
            Err(error) => {
                tracing::debug!("counters cannot be reported: {error}");
                sleep(spread(wait_after(&error, &mut backoff))).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_that_is_not_reached_is_tried_again_soon_and_one_that_refuses_seldom() {
        let (url, reason) = (String::new(), String::new());
        let unreachable = FetchError::Unreachable { url, reason };
        let (url, reason) = (String::new(), String::new());
        let refused = FetchError::Refused {
            url,
            status: 410,
            reason,
        };
        for (error, longest) in [
            (unreachable, MAX_UNREACHABLE_WAIT),
            (refused, Duration::from_secs(60)),
        ] {
            let mut backoff = BACKOFF;
            let waits: Vec<_> = (0..20).map(|_| wait_after(&error, &mut backoff)).collect();
            assert!(waits.is_sorted());
            assert_eq!((waits[0], waits[19]), (backoff.pause_after(1), longest));
        }
    }

    #[tokio::test]
    async fn the_end_of_a_task_is_noticed_also_when_the_wait_is_interrupted() {
        let mut tasks = JoinSet::new();
        tasks.spawn(std::future::pending());
        tasks.spawn(async { panic!("as the test wants") });
        let mut follower = Follower::of(tasks);
        let interrupted = tokio::time::timeout(MIN_REQUEST_INTERVAL / 2, follower.ended()).await;
        assert!(interrupted.is_err());
        follower.ended().await;
    }
}

//! Running an AS.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use hawser_bundle::{Bundle, Manifest, ServiceChange};
use hawser_limit::{EnforceError, Enforcer};
use hawser_topology::AsTopology;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::in_force::InForce;
use crate::error::{InstallError, NodeError};
use crate::event::Event;
use crate::folder::Folder;
use crate::follow::{FailedLink, Follower, Outcome};
use crate::health::{Facts, HealthReporter, neighbours};
use crate::http::Client;
use crate::limits::named;
use crate::moved::{self, Substitutes, Watcher};
use crate::mtus::MtuReporter;
use crate::neighbours::{Located, locate};
use crate::services::Services;
use crate::update::{Moved, Update};

/// How an AS is run.
pub struct Options {
    /// The `hawser` program, whose commands `router run` and `control run` are the services.
    pub program: PathBuf,
    /// What limits the links; `None` for an AS whose links are not limited here.
    pub limits: Option<Arc<dyn Enforcer<String>>>,
    /// The file of the network's segments, or the folder of its parts; `None` for the file in the
    /// folder of the AS, where those of a coordinator are put.
    pub segments: Option<PathBuf>,
    /// What takes the place of addresses of links that this machine lacks.
    pub addresses: Substitutes,
    /// Told what [`Health`](crate::Health) answers; `None` if nobody asks.
    pub health: Option<HealthReporter>,
}

/// Runs the AS in `folder` until `stop` completes: its services and its limits, and follows its
/// coordinator, if it has one. Then stops the services and removes the limits.
///
/// Must run inside a Tokio runtime whose threads live as long as this: the services end with the
/// thread that started them.
///
/// # Errors
/// When the configuration cannot be used, or a service does not start the first time. Whatever
/// fails later is reported to `events` and tried again.
pub async fn run(
    folder: Folder,
    options: Options,
    events: UnboundedSender<Event>,
    stop: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    let none = || InstallError::NotAnAs(folder.path().to_owned());
    let bundle = folder.current()?.ok_or_else(none)?;
    let topology = bundle.topology().map_err(InstallError::from)?;
    let (updates, received) = channel(1);
    let mut node = Node {
        manifest: bundle.manifest().map_err(InstallError::from)?,
        bundle,
        folder,
        options,
        events,
        services: None,
        follower: None,
        tasks: Tasks::default(),
        topology: watch::Sender::new(topology),
        lacks_address: false,
        updates,
        deployed: watch::Sender::new(None),
        limits: InForce::default(),
        has_been_ready: false,
    };
    let result = tokio::select! {
        result = node.work(received) => result,
        () = stop => Ok(()),
    };
    node.end().await;
    result
}

/// Tasks that end with the node, or when they are started anew.
#[derive(Default)]
struct Tasks {
    /// Resolves the names of neighbours, if any has one.
    neighbours: JoinSet<()>,
    /// Watches the addresses of this machine and the routes to neighbours, if there is a coordinator to be
    /// told.
    watcher: JoinSet<()>,
}

struct Node {
    folder: Folder,
    options: Options,
    events: UnboundedSender<Event>,
    bundle: Bundle,
    manifest: Manifest,
    /// `None` while the coordinator has no configuration for this host.
    services: Option<Services>,
    follower: Option<Follower>,
    tasks: Tasks,
    /// The topology of the current configuration.
    topology: watch::Sender<AsTopology>,
    /// Whether services have not been started, as an address of links is gone and another one was
    /// reported.
    lacks_address: bool,
    updates: Sender<Update>,
    /// What has become of the current version, as soon as that is known.
    deployed: watch::Sender<Option<Outcome>>,
    limits: InForce,
    /// Whether all services have been ready once.
    has_been_ready: bool,
}

impl Node {
    /// Works until an error at the start.
    async fn work(&mut self, mut updates: Receiver<Update>) -> Result<(), NodeError> {
        // Before the services: what they carry is to be limited from the first packet on.
        self.apply_limits().await;
        let topology = self.bundle.topology().map_err(InstallError::from)?;
        let links = moved::links(&topology);
        // They cannot start until the coordinator has answered.
        let missing = || moved::missing(&links, &mut BTreeSet::new(), &self.options.addresses);
        self.lacks_address = self.manifest.coordinator.is_some() && !missing().is_empty();
        if !self.lacks_address {
            self.start()?;
        }
        self.follow()?;
        self.watch_addresses()?;
        self.locate()?;
        loop {
            self.settle();
            self.report_health();
            if !self.has_been_ready
                && let Some((service, reason)) = self.services.as_ref().and_then(Services::ended)
            {
                return Err(NodeError::Service { service, reason });
            }
            let again = self.limits.again;
            let (services, follower) = (&mut self.services, &mut self.follower);
            tokio::select! {
                Some(update) = updates.recv() => self.update(update).await,
                changed = async {
                    match services {
                        Some(services) => services.changed().await,
                        None => std::future::pending().await,
                    }
                } => changed.map_err(|source| NodeError::Spawn {
                    program: self.options.program.clone(),
                    source,
                })?,
                () = async {
                    match follower {
                        Some(follower) => follower.ended().await,
                        None => std::future::pending().await,
                    }
                } => {
                    tracing::error!("the coordinator was no longer followed, and is again");
                    self.follow()?;
                }
                () = async {
                    match again {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => self.apply_limits().await,
            }
        }
    }

    fn tell(&self, event: Event) {
        // Without a receiver nobody wants to know.
        let _ = self.events.send(event);
    }

    fn start(&mut self) -> Result<(), NodeError> {
        let none = || InstallError::NotAnAs(self.folder.path().to_owned());
        let folder = self.folder.current_path()?.ok_or_else(none)?;
        let topology = self.bundle.topology().map_err(InstallError::from)?;
        let segments = self.segments();
        let program = &self.options.program;
        let started = Services::start(program, &folder, &topology, &segments, &self.events);
        self.services = Some(started.map_err(|source| NodeError::Spawn {
            program: program.clone(),
            source,
        })?);
        Ok(())
    }

    fn follow(&mut self) -> Result<(), NodeError> {
        self.follower = None;
        if let Some(coordinator) = &self.manifest.coordinator {
            self.follower = Some(Follower::start(
                coordinator,
                &self.bundle,
                self.updates.clone(),
                &self.events,
                self.deployed.subscribe(),
                self.options.limits.clone(),
            )?);
        }
        Ok(())
    }

    /// Has the names of neighbours resolved, anew if they were before.
    fn locate(&mut self) -> Result<(), NodeError> {
        self.tasks.neighbours = JoinSet::new();
        let located = Located::new(&self.bundle).map_err(InstallError::from)?;
        if !located.is_empty() {
            let (updates, events) = (self.updates.clone(), self.events.clone());
            self.tasks
                .neighbours
                .spawn(locate(located, updates, events));
        }
        Ok(())
    }

    /// Has the coordinator told of other addresses of this machine, and of other MTUs.
    fn watch_addresses(&mut self) -> Result<(), NodeError> {
        self.tasks.watcher = JoinSet::new();
        if let Some(coordinator) = &self.manifest.coordinator {
            let (url, ca) = (&coordinator.url, coordinator.ca.as_deref());
            let api = format!("/api/host/{}", coordinator.host);
            let reporter = MtuReporter {
                client: Client::new(url, &coordinator.token, ca)?,
                api: api.clone(),
                topology: self.topology.subscribe(),
            };
            self.tasks.watcher.spawn(reporter.report());
            let watcher = Watcher {
                client: Client::new(url, &coordinator.token, ca)?,
                api,
                topology: self.topology.subscribe(),
                substitutes: self.options.addresses.clone(),
                updates: self.updates.clone(),
                events: self.events.clone(),
            };
            self.tasks.watcher.spawn(watcher.watch());
        }
        Ok(())
    }

    /// The addresses of this machine are others.
    fn moved(&mut self, lacking: &BTreeSet<Moved>) -> Result<(), NodeError> {
        if !lacking.is_empty() {
            // Connections to the coordinator may be from an address that is gone.
            return self.follow();
        }
        if self.lacks_address && self.services.is_none() {
            // What was missing is there again.
            self.start()?;
        }
        self.lacks_address = false;
        Ok(())
    }

    fn segments(&self) -> PathBuf {
        let given = self.options.segments.clone();
        given.unwrap_or_else(|| self.folder.segments())
    }

    /// Announces the version if everything of it is in force.
    fn settle(&mut self) {
        let version = self.manifest.version;
        let ready = self.services.as_ref().is_some_and(Services::ready);
        let in_force = ready && self.limits.is;
        self.has_been_ready |= ready;
        let outcome = Outcome {
            version,
            error: None,
            // A coordinator names links by numbers.
            links: (self.limits.failed.iter())
                .filter_map(|(link, error)| {
                    Some(FailedLink {
                        link: link.parse().ok()?,
                        error: error.clone(),
                    })
                })
                .collect(),
        };
        if !in_force {
            return;
        }
        let is_new = self.deployed.borrow().as_ref().is_none_or(|before| {
            // What failed before is in force now.
            before.version != version || before.error.is_some()
        });
        publish(&self.deployed, Some(outcome));
        if is_new {
            self.tell(Event::Ready { version });
        }
    }

    /// Reports what is known of the services and limits.
    fn report_health(&self) {
        let Some(health) = &self.options.health else {
            return;
        };
        let services = self.services.as_ref();
        health.report(Facts {
            version: self.manifest.version,
            services: services.map(Services::states).unwrap_or_default(),
            limits_error: (!self.limits.is).then(|| {
                let error = self.limits.error.as_deref();
                error.unwrap_or("they have not been set yet").to_owned()
            }),
            failed_limits: self.limits.failed.clone(),
            routers: services.map(Services::router_sockets).unwrap_or_default(),
            // It was checked when it was installed.
            links: (self.bundle.topology()).map_or_else(|_| [].into(), |one| neighbours(&one)),
            segments: self.segments(),
        });
    }

    /// Puts the limits of the current configuration into force.
    async fn apply_limits(&mut self) {
        let Some(limits) = self.options.limits.clone() else {
            self.limits.is = true;
            return;
        };
        let applied = match self.bundle.link_info() {
            Ok(links) => {
                let links = named(&links);
                let applied = tokio::task::spawn_blocking(move || limits.enforce(&links)).await;
                applied.unwrap_or_else(|panic| Err(EnforceError::new(panic)))
            }
            Err(error) => Err(EnforceError::new(error)),
        };
        match applied {
            Ok(failed) => {
                for (link, reason) in &failed {
                    if self.limits.failed.get(link) != Some(reason) {
                        let (link, reason) = (link.clone(), reason.clone());
                        self.tell(Event::LinkFailed { link, reason });
                    }
                }
                self.limits.applied(failed, Instant::now());
            }
            Err(error) => {
                let reason = error.to_string();
                self.limits.refused(reason.clone(), Instant::now());
                let outcome = Outcome {
                    version: self.manifest.version,
                    error: Some(reason.clone()),
                    links: Vec::new(),
                };
                publish(&self.deployed, Some(outcome));
                self.tell(Event::LimitsFailed { reason });
            }
        }
    }

    async fn update(&mut self, update: Update) {
        match update {
            Update::Configuration(bundle, outcome) => {
                let installed = match self.change(*bundle, true).await {
                    // Its names may be others.
                    Ok(()) => self.locate(),
                    failed => failed,
                };
                if let Err(error) = &installed {
                    let reason = error.to_string();
                    self.tell(Event::NotInstalled { reason });
                }
                // The task that asked may have been replaced by the change.
                let _ = outcome.send(installed.is_ok());
            }
            Update::Nothing => {
                if let Some(services) = self.services.take() {
                    services.stop().await;
                }
                // Addresses of its neighbours would start it again.
                self.tasks.neighbours = JoinSet::new();
                publish(&self.deployed, None);
                self.tell(Event::Nothing);
            }
            Update::Neighbours(remotes, outcome) => {
                let changed = self.bundle.with_remotes(&remotes);
                let changed = changed.map_err(|e| NodeError::from(InstallError::from(e)));
                let moved = match changed {
                    Ok(bundle) if bundle == self.bundle && self.services.is_some() => Ok(()),
                    Ok(bundle) => self.change(bundle, false).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = &moved {
                    let reason = error.to_string();
                    self.tell(Event::NotInstalled { reason });
                }
                let _ = outcome.send(moved.is_ok());
            }
            Update::Moved(lacking, outcome) => {
                let moved = self.moved(&lacking);
                if let Err(error) = &moved {
                    let reason = error.to_string();
                    self.tell(Event::NotInstalled { reason });
                }
                let _ = outcome.send(moved.is_ok());
            }
            Update::Segments(bytes, outcome) => {
                let written = self.folder.write_segments(&bytes);
                self.tell(match &written {
                    Ok(()) => Event::Segments,
                    Err(error) => Event::NotInstalled {
                        reason: error.to_string(),
                    },
                });
                let _ = outcome.send(written.is_ok());
            }
        }
    }

    /// Goes over to another configuration, which came from the coordinator or else has other
    /// addresses of neighbours.
    async fn change(&mut self, bundle: Bundle, came: bool) -> Result<(), NodeError> {
        let (manifest, _) = bundle.check().map_err(InstallError::from)?;
        if manifest.isd_as != self.manifest.isd_as {
            return Err(InstallError::OtherAs {
                folder: self.folder.path().to_owned(),
                there: self.manifest.isd_as,
                wanted: manifest.isd_as,
            }
            .into());
        }
        let path = self.folder.install(&bundle)?;
        let change = bundle.change_from(&self.bundle);
        let mut restart = self.services.is_none() || change > ServiceChange::None;
        let reload = change > ServiceChange::None && change < ServiceChange::Restart;
        let states = bundle.changed_link_states(&self.bundle);
        let states = states.map_err(InstallError::from)?;
        let topology = bundle.topology().map_err(InstallError::from)?;
        let coordinator = manifest.coordinator != self.manifest.coordinator;
        self.topology.send_replace(topology.clone());
        self.lacks_address = false;
        (self.bundle, self.manifest) = (bundle, manifest);
        let version = self.manifest.version;
        self.limits.backoff.reset();
        self.apply_limits().await;
        let segments = self.segments();
        if let Some(services) = self.services.as_mut().filter(|_| reload) {
            let program = &self.options.program;
            let reloaded = services.reload(program, &path, &topology, &segments, (change, states));
            match reloaded.await {
                Ok(()) => restart = false,
                Err(reason) => tracing::info!("the services start again: {reason}"),
            }
        }
        if came {
            self.tell(Event::Changed { version, restart });
        }
        if restart {
            if let Some(services) = self.services.take() {
                services.stop().await;
            }
            self.start()?;
        }
        let used = self.services.as_ref().map(Services::folders);
        let used: Vec<_> = used.iter().flatten().map(PathBuf::as_path).collect();
        self.folder.forget_others(&used)?;
        if coordinator {
            self.follow()?;
            self.watch_addresses()?;
        }
        Ok(())
    }

    async fn end(mut self) {
        self.follower = None;
        self.tasks.neighbours.abort_all();
        self.tasks.watcher.abort_all();
        if let Some(services) = self.services.take() {
            services.stop().await;
        }
        if let Some(limits) = self.options.limits.take() {
            let reset = tokio::task::spawn_blocking(move || limits.reset()).await;
            let reset = reset.unwrap_or_else(|panic| Err(EnforceError::new(panic)));
            if let Err(error) = reset {
                let reason = format!("they are still there: {error}");
                self.tell(Event::LimitsFailed { reason });
            }
        }
    }
}

/// Hands an outcome to the task that reports it, which posts each one to the coordinator: only another
/// one than before.
fn publish(deployed: &watch::Sender<Option<Outcome>>, outcome: Option<Outcome>) {
    deployed.send_if_modified(|before| {
        let is_other = *before != outcome;
        *before = outcome;
        is_other
    });
}

mod in_force;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

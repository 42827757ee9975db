//! The machines of ASes: their secrets, the versions they run, what they report.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{MutexGuard, PoisonError};

use hawser_http::TokenHash;
use hawser_limit::Direction;
use hawser_topology::IsdAsn;

use super::{Coordinator, now};
use crate::access::{Action, Actor, allows};
use crate::change::ChangeKind;
use crate::error::ChangeError;
use crate::host::{Deployment, Host};
use crate::link::{FailedLinks, LinkUsage};
use crate::state::State;

impl Coordinator {
    /// Ends the trust in an AS's machine: its secret is refused from now on, and the next archive has
    /// another secret and other keys. For archives that others may have seen.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such AS, or the actor may neither administer nor fetch this
    /// AS's configuration.
    pub fn rotate_secret(&self, actor: &Actor, isd_as: IsdAsn) -> Result<(), ChangeError> {
        self.change_host(actor, isd_as, |host, number| {
            host.end_trust(number);
            Ok(())
        })
    }

    /// Has the secret with this hash be that of an AS's machine, which is trusted since the change of
    /// this number.
    ///
    /// # Errors
    /// As [`Self::rotate_secret`], and when the trust in that machine has ended meanwhile.
    pub(crate) fn set_secret(
        &self,
        actor: &Actor,
        isd_as: IsdAsn,
        secret: TokenHash,
        trusted_since: u64,
    ) -> Result<(), ChangeError> {
        let known = self.state().host(isd_as).and_then(|host| host.secret);
        if known == Some(secret) {
            return Ok(());
        }
        self.change_host(actor, isd_as, |host, _| {
            if host.trusted_since != trusted_since {
                let reason = format!("the secret of {isd_as} was replaced meanwhile: ask again");
                return Err(ChangeError::Conflict(reason));
            }
            host.secret = Some(secret);
            Ok(())
        })
    }

    /// Changes how the machine of an AS is trusted, given the number of the change.
    fn change_host(
        &self,
        actor: &Actor,
        isd_as: IsdAsn,
        edit: impl FnOnce(&mut Host, u64) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            let action = match state.user_ases.get(&isd_as) {
                Some(one) => Action::FetchArchive { owner: one.owner },
                None => Action::Administer,
            };
            allows(actor, action)?;
            let number = state.next.change;
            let host = state.host_mut(isd_as);
            let host = host.ok_or_else(|| ChangeError::Unknown(format!("AS {isd_as}")))?;
            edit(host, number)?;
            changes.push(ChangeKind::SecretReplaced { isd_as });
            Ok(())
        })
    }

    /// Whether this is the secret of an AS's machine. If so, the machine was seen now.
    #[must_use]
    pub fn is_host(&self, isd_as: IsdAsn, secret: &str) -> bool {
        let hash = TokenHash::of(secret);
        let state = self.state();
        let known = state.host(isd_as).and_then(|host| host.secret);
        let is_it = known == Some(hash);
        if is_it {
            self.deployments().entry(isd_as).or_default().last_seen = Some(now());
        }
        is_it
    }

    /// A machine of an AS, which has shown its secret, asks from `address`. Its program has chosen the
    /// number `instance` when it started.
    pub fn note_instance(&self, isd_as: IsdAsn, instance: u64, address: IpAddr) {
        let mut deployments = self.deployments();
        let deployment = deployments.entry(isd_as).or_default();
        let asks = deployment.instances.note(instance, address, now());
        deployment.roll_call += u64::from(asks);
        drop(deployments);
        if asks {
            self.notify();
        }
    }

    /// The address of another machine that runs an AS beside the one whose program has chosen the
    /// number `instance`.
    #[must_use]
    pub fn other_machine(&self, isd_as: IsdAsn, instance: u64) -> Option<IpAddr> {
        let deployments = self.deployments();
        deployments.get(&isd_as)?.instances.beside(instance, now())
    }

    /// A number that changes when the machines of an AS are to ask again, as one may not be there any
    /// more, or several are.
    #[must_use]
    pub fn roll_call(&self, isd_as: IsdAsn) -> u64 {
        self.deployments()
            .get(&isd_as)
            .map_or(0, |one| one.roll_call)
    }

    /// The addresses of the machines that run an AS at once; none unless there are several.
    #[must_use]
    pub fn duplicates(&self, isd_as: IsdAsn) -> Vec<IpAddr> {
        let deployments = self.deployments();
        let deployment = deployments.get(&isd_as);
        deployment.map_or_else(Vec::new, |one| one.instances.at_once(now()))
    }

    /// What is known of the way of an AS's configuration to its machine.
    #[must_use]
    pub fn deployment(&self, isd_as: IsdAsn) -> Deployment {
        self.deployments().get(&isd_as).cloned().unwrap_or_default()
    }

    /// The version of an AS's configuration, once it differs from `known`. `None` when there is no
    /// such AS.
    pub async fn version_after(&self, isd_as: IsdAsn, known: u64) -> Option<u64> {
        let mut changed = self.subscribe();
        loop {
            changed.mark_unchanged();
            let version = self.state().host(isd_as)?.version;
            if version != known {
                return Some(version);
            }
            changed.changed().await.ok()?;
        }
    }

    /// Waits until an AS's machine runs `version` or a later one, or has failed to.
    ///
    /// # Errors
    /// Why it failed, or that the AS is gone.
    pub async fn deployed(&self, isd_as: IsdAsn, version: u64) -> Result<(), String> {
        let mut changed = self.subscribe();
        loop {
            changed.mark_unchanged();
            let state = self.state();
            let gone = || format!("{isd_as} was removed");
            let host = state.host(isd_as).ok_or_else(gone)?;
            if host.deployed.is_some_and(|deployed| deployed >= version) {
                return Ok(());
            }
            match self.deployment(isd_as).failure {
                Some((failed, reason)) if failed >= version => return Err(reason),
                _ => {}
            }
            if changed.changed().await.is_err() {
                return Err(gone());
            }
        }
    }

    /// An AS's machine runs `version` of its configuration from now on.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such AS or version, or it cannot be stored.
    pub fn report_deployed(&self, isd_as: IsdAsn, version: u64) -> Result<(), ChangeError> {
        let had_failed = {
            let mut deployments = self.deployments();
            let deployment = deployments.entry(isd_as).or_default();
            deployment.last_seen = Some(now());
            deployment.failure.take().is_some()
        };
        let unknown = || ChangeError::Unknown(format!("AS {isd_as}"));
        let state = self.state();
        let host = state.host(isd_as).ok_or_else(unknown)?;
        if version > host.version {
            return Err(ChangeError::Invalid(format!(
                "{isd_as} has no version {version} yet: its configuration has version {}",
                host.version
            )));
        }
        if host.deployed == Some(version) {
            if had_failed {
                self.notify();
            }
            return Ok(());
        }
        self.change(&Actor::program(), |_, state, _| {
            let host = state.host_mut(isd_as).ok_or_else(unknown)?;
            host.deployed = Some(version);
            host.deployed_at = Some(now());
            Ok(())
        })
    }

    /// It is not known any more which version an AS's machine runs.
    ///
    /// # Errors
    /// [`ChangeError`] when it cannot be stored.
    pub(crate) fn forget_deployed(&self, isd_as: IsdAsn) -> Result<(), ChangeError> {
        let state = self.state();
        if state
            .host(isd_as)
            .is_none_or(|host| host.deployed.is_none())
        {
            return Ok(());
        }
        self.change(&Actor::program(), |_, state, _| {
            if let Some(host) = state.host_mut(isd_as) {
                host.deployed = None;
            }
            Ok(())
        })
    }

    /// An AS's machine could not bring `version` of its configuration into force, for this reason.
    pub fn report_failure(&self, isd_as: IsdAsn, version: u64, reason: &str) {
        let mut deployments = self.deployments();
        let deployment = deployments.entry(isd_as).or_default();
        deployment.last_seen = Some(now());
        // A program elsewhere sent it: what it can fill is bounded.
        let failure = Some((version, reason.chars().take(500).collect()));
        let is_new = deployment.failure != failure;
        deployment.failure = failure;
        drop(deployments);
        if is_new {
            self.notify();
        }
    }

    /// The links of an attachment point whose limits are not in force: these, each for its reason, and no
    /// others. Links of other attachment points are left out.
    pub fn report_links(&self, isd_as: IsdAsn, mut failed: FailedLinks) {
        let state = self.state();
        failed.retain(|id, reason| {
            // A program elsewhere sent it: what it can fill is bounded.
            *reason = reason.chars().take(500).collect();
            Direction::ALL
                .into_iter()
                .any(|direction| state.counts(isd_as, *id, direction))
        });
        let mut deployments = self.deployments();
        let deployment = deployments.entry(isd_as).or_default();
        deployment.last_seen = Some(now());
        let is_new = deployment.failed_links != failed;
        deployment.failed_links = failed;
        drop(deployments);
        if is_new {
            self.notify();
        }
    }

    /// What the links that an AS limits have carried, as the AS sees it. Counters of other links are left out.
    pub fn report_usage(&self, isd_as: IsdAsn, mut usage: Vec<LinkUsage>) {
        let state = self.state();
        for one in &mut usage {
            // What the second end sends is the ingress of the link.
            let link = state.as_links.get(&one.link);
            if link.is_some_and(|link| link.ends[1].isd_as == isd_as) {
                std::mem::swap(&mut one.egress, &mut one.ingress);
            }
            one.egress = one
                .egress
                .filter(|_| state.counts(isd_as, one.link, Direction::Egress));
            one.ingress = one
                .ingress
                .filter(|_| state.counts(isd_as, one.link, Direction::Ingress));
        }
        usage.retain(|one| {
            let mut directions = Direction::ALL.into_iter();
            directions.any(|direction| state.counts(isd_as, one.link, direction))
        });
        self.usages().insert(isd_as, (now(), usage));
    }

    /// The last report of each attachment point, and when it came, in milliseconds since 1970.
    #[must_use]
    pub fn usage(&self) -> BTreeMap<IsdAsn, (u64, Vec<LinkUsage>)> {
        self.usages().clone()
    }

    /// Forgets what was reported by machines that are no longer trusted.
    pub(super) fn forget_machines(&self, old: &State, new: &State) {
        let since = |state: &State, isd_as| Some(state.host(isd_as)?.trusted_since);
        let is_same = |isd_as: &IsdAsn| since(old, *isd_as) == since(new, *isd_as);
        self.deployments().retain(|isd_as, _| is_same(isd_as));
        self.usages().retain(|isd_as, _| is_same(isd_as));
    }

    fn usages(&self) -> MutexGuard<'_, BTreeMap<IsdAsn, (u64, Vec<LinkUsage>)>> {
        let usage = self.0.usage.lock();
        usage.unwrap_or_else(PoisonError::into_inner)
    }

    fn deployments(&self) -> MutexGuard<'_, BTreeMap<IsdAsn, Deployment>> {
        let deployments = self.0.deployments.lock();
        deployments.unwrap_or_else(PoisonError::into_inner)
    }
}

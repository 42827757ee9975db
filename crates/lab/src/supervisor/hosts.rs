//! Hosts that are added to ASes of a running lab.
//!
//! A host is a network namespace that a pair of devices joins with that of its AS. The lab keeps those open
//! that it makes. A guest's is another program's: the lab holds nothing of it, so that it ends with its
//! container. The devices end with either namespace, and with them all that the lab has put into the guest.

use std::error::Error;
use std::io;

use hawser_kernel::namespace::{self, NetNs};
use hawser_topology::IsdAsn;
use rustix::fd::OwnedFd;

use super::Supervisor;
use crate::build;
use crate::name;
use crate::plan::{AddedPlan, AsPlan, MAX_ADDED};
use crate::protocol::Attached;
use crate::reap::{self, Certainty};
use crate::state::HostState;

impl Supervisor {
    /// Adds a host to an AS: the namespace `guest`, or one that this makes.
    pub(super) fn add_host(
        &mut self,
        isd_as: IsdAsn,
        name: Option<String>,
        guest: Option<OwnedFd>,
    ) -> Result<Attached, Box<dyn Error>> {
        self.forget_ended(isd_as)?;
        let is_guest = guest.is_some();
        let host = match guest {
            Some(fd) => NetNs::from_fd(fd)?,
            None => NetNs::create()?,
        };
        let net_ns = host.id().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => no_right(self.state.rootless),
            _ => error,
        })?;
        if Some(net_ns) == namespace::own_net()? {
            return Err(
                "this is the network namespace of this machine, which a lab does not change: `hawser lab add \
                 host` makes a host of its own"
                    .into(),
            );
        }
        if self.state.namespaces().contains(&net_ns) {
            return Err("this network namespace is one of the lab's own".into());
        }
        let as_ = self.made.ases.get(&isd_as);
        let as_ = as_.ok_or_else(|| format!("there is no AS {isd_as}"))?;
        let plan = as_.plan.clone();
        let Some(state) = self.state.as_mut(isd_as) else {
            return Err(format!("there is no AS {isd_as}").into());
        };
        let (number, name) = choose(&state.hosts, name, isd_as)?;
        let added = AddedPlan::new(&plan, number);
        let of_as = build::namespace(&self.namespaces, isd_as)?;
        let options = (!is_guest, self.settings.no_offload);
        let mut notes = build::join_host(&added, (of_as, &host), options)?;
        if state.no_control {
            notes.push(format!(
                "the daemon of {isd_as} is run by you: have it listen where the host reaches it"
            ));
        }
        state.hosts.push(HostState {
            name: name.clone(),
            number,
            address: added.scion_host(),
            net_ns,
            is_guest,
        });
        if !is_guest {
            self.hosts.insert((isd_as, name.clone()), host);
        }
        self.write_state()?;
        tracing::info!("the host {name} is added to {isd_as}");
        Ok(Attached {
            isd_as,
            name,
            address: added.scion_host(),
            daemon: AddedPlan::daemon_of(&plan),
            bootstrap: AddedPlan::bootstrap_of(&plan),
            notes,
        })
    }

    /// Removes a host of an AS.
    pub(super) fn remove_host(&mut self, isd_as: IsdAsn, name: &str) -> Result<(), Box<dyn Error>> {
        let missing = || format!("{isd_as} has no added host {name:?}");
        let state = self.state.as_mut(isd_as).ok_or_else(missing)?;
        let mut hosts = state.hosts.iter();
        let host = hosts.find(|host| host.name == name).ok_or_else(missing)?;
        if !host.is_guest {
            reap::clear(&[host.net_ns], Certainty::Held)?;
        }
        let number = host.number;
        if let Some(as_) = self.made.ases.get(&isd_as) {
            let of_as = build::namespace(&self.namespaces, isd_as)?;
            build::remove_host(&AddedPlan::new(&as_.plan, number), of_as)?;
        }
        state.hosts.retain(|host| host.name != name);
        self.hosts.remove(&(isd_as, name.to_owned()));
        self.write_state()?;
        tracing::info!("the host {name} of {isd_as} is removed");
        Ok(())
    }

    /// Checks that programs can be run in a host: that the lab has made its namespace.
    pub(super) fn check_made(&self, isd_as: IsdAsn, name: &str) -> Result<(), String> {
        if self.hosts.contains_key(&(isd_as, name.to_owned())) {
            return Ok(());
        }
        let mut ases = self.state.ases.iter();
        let hosts = ases.find(|as_| as_.isd_as == isd_as).map(|as_| &as_.hosts);
        let hosts = hosts.map_or(&[][..], |hosts| hosts);
        Err(match hosts.iter().any(|host| host.name == name) {
            true => format!(
                "the host {name} of {isd_as} is a network namespace of another program: run commands there by \
                 that program, or by nsenter"
            ),
            false => format!("{isd_as} has no added host {name:?}"),
        })
    }

    /// The hosts whose namespaces have ended, which those of guests do with their containers.
    pub(super) fn ended_hosts(&self) -> io::Result<Vec<(IsdAsn, String)>> {
        let mut ended = Vec::new();
        for as_ in &self.state.ases {
            let Some(made) = self.made.ases.get(&as_.isd_as) else {
                continue;
            };
            for host in &as_.hosts {
                if !self.host_exists(&made.plan, host)? {
                    ended.push((as_.isd_as, host.name.clone()));
                }
            }
        }
        Ok(ended)
    }

    /// Ends what runs in the hosts of an AS that is removed, as far as the lab has made them.
    pub(super) fn end_hosts(&mut self, isd_as: IsdAsn) -> io::Result<()> {
        if let Some(as_) = self.state.as_mut(isd_as) {
            let made: Vec<_> = as_.made_hosts().collect();
            if !made.is_empty() {
                reap::clear(&made, Certainty::Held)?;
            }
        }
        self.hosts.retain(|(of, _), _| *of != isd_as);
        Ok(())
    }

    /// Hosts of an AS have the MTU of its network when they are added: what follows if that changes.
    pub(super) fn note_mtu(&self, from: &AsPlan, to: &AsPlan) -> Option<String> {
        let mut ases = self.state.ases.iter();
        let as_ = ases.find(|as_| as_.isd_as == to.isd_as)?;
        let names: Vec<&str> = as_.hosts.iter().map(|host| host.name.as_str()).collect();
        (from.inner_mtu != to.inner_mtu && !names.is_empty()).then(|| {
            format!(
                "{} of {} keep the MTU that they had: remove them and add them again",
                names.join(", "),
                to.isd_as
            )
        })
    }

    /// Forgets the hosts of an AS whose namespaces have ended.
    fn forget_ended(&mut self, isd_as: IsdAsn) -> io::Result<()> {
        let ended = self.ended_hosts()?;
        if let Some(as_) = self.state.as_mut(isd_as) {
            as_.hosts
                .retain(|host| !ended.contains(&(isd_as, host.name.clone())));
        }
        Ok(())
    }

    fn host_exists(&self, as_: &AsPlan, host: &HostState) -> io::Result<bool> {
        let of_as = build::namespace(&self.namespaces, as_.isd_as)?;
        build::exists(&AddedPlan::new(as_, host.number), of_as)
    }
}

/// The error that a lab may not enter a namespace.
fn no_right(rootless: bool) -> io::Error {
    let reason = match rootless {
        true => {
            "a lab without root reaches no network namespace outside: bring it up as root, or let `hawser lab \
             add host` make a host of its own"
        }
        false => {
            "the lab's supervisor has no right to enter this network namespace: bring the lab up as root"
        }
    };
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// The number and the name of a new host beside those that an AS has: the lowest number that is free, and a
/// name of it if none is wanted.
fn choose(
    hosts: &[HostState],
    wanted: Option<String>,
    isd_as: IsdAsn,
) -> Result<(u32, String), String> {
    let is_free = |number: &u32| hosts.iter().all(|host| host.number != *number);
    let number = (0..MAX_ADDED as u32).find(is_free);
    let number = number.ok_or_else(|| {
        format!(
            "{isd_as} has {MAX_ADDED} added hosts already, and addresses for no more: remove one"
        )
    })?;
    let is_known = |name: &str| hosts.iter().any(|host| host.name == name);
    match wanted {
        Some(name) => {
            name::check_host(&name)?;
            match is_known(&name) {
                true => Err(format!(
                    "{isd_as} has a host {name:?} already: give another name"
                )),
                false => Ok((number, name)),
            }
        }
        None => {
            // The AS's own host is the first. At most as many names are in use as there are numbers.
            let mut names = (number + 2..).map(|count| format!("host{count}"));
            let name = names.find(|name| !is_known(name)).unwrap_or_default();
            Ok((number, name))
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_kernel::namespace::NetNsId;
    use proptest::prelude::*;

    use super::*;

    fn as_() -> IsdAsn {
        "1-ff00:0:110".parse().unwrap()
    }

    fn host(number: u32, name: String) -> HostState {
        HostState {
            name,
            number,
            address: "10.0.1.2".parse().unwrap(),
            net_ns: NetNsId {
                inode: 1,
                cookie: 1,
            },
            is_guest: true,
        }
    }

    proptest! {
        /// Hosts are added and removed in any order: numbers and names stay unique and within their bounds.
        #[test]
        fn numbers_and_names_are_unique(
            operations in prop::collection::vec((any::<bool>(), 0..120usize, prop::option::of("[a-c]|host[2-9]")), 0..300)
        ) {
            let mut hosts: Vec<HostState> = Vec::new();
            for (add, at, wanted) in operations {
                if !add && at < hosts.len() {
                    hosts.remove(at);
                    continue;
                }
                let known = |name: &String| hosts.iter().any(|host| host.name == *name);
                let is_taken = wanted.as_ref().is_some_and(known);
                match choose(&hosts, wanted.clone(), as_()) {
                    Ok((number, name)) => {
                        prop_assert!(!is_taken);
                        prop_assert!(hosts.iter().all(|host| host.number != number && host.name != name));
                        prop_assert!((number as usize) < MAX_ADDED);
                        prop_assert!(wanted.is_none_or(|wanted| wanted == name));
                        hosts.push(host(number, name));
                    }
                    Err(_) => prop_assert!(is_taken || hosts.len() == MAX_ADDED),
                }
            }
        }
    }

    #[test]
    fn a_full_as_takes_no_host() {
        let hosts: Vec<_> = (0..MAX_ADDED as u32)
            .map(|number| host(number, format!("h{number}")))
            .collect();
        let error = choose(&hosts, None, as_()).unwrap_err();
        assert!(error.contains("99 added hosts"), "{error}");
        assert!(choose(&hosts[1..], None, as_()).is_ok());
        let error = choose(&[], Some("../x".to_owned()), as_()).unwrap_err();
        assert!(error.contains("is not a name for a host"), "{error}");
    }
}

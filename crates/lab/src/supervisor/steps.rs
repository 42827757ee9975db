//! The steps of a change of a lab, carried out.
//!
//! Each may be carried out again after it failed half-way. Files that services read at their start are
//! written so that they fit each other at any time: `links.json` has no interface that `topology.json`
//! lacks.

use std::error::Error;

use hawser_control::live as control;
use hawser_kernel::namespace::NetNs;
use hawser_router::live as router;
use hawser_topology::{IsdAsn, LinkState, Shape};

use super::Supervisor;
use crate::change::{self, Made, Step, Target, keys};
use crate::netlink::LOOPBACK_NAME;
use crate::plan::{AsPlan, LinkId, LinkPlan};
use crate::reap::{self, Certainty};
use crate::state::{AsState, Service};
use crate::{announce, build};

/// What a step leaves to the user, if anything.
type Note = Option<String>;
type StepResult = Result<Note, Box<dyn Error>>;

impl Supervisor {
    /// Plans the change to the network in `next.json`.
    pub(super) fn plan(&mut self) -> Result<Vec<Step>, Box<dyn Error>> {
        let target = Target::new(&self.made, self.dir.read_next()?)?;
        let steps = change::steps(&self.made, &target);
        self.target = Some(target);
        Ok(steps)
    }

    /// Carries out a step of what was planned last.
    pub(super) fn step(&mut self, step: &Step) -> StepResult {
        let Some(target) = self.target.take() else {
            return Err("no change of the lab is planned".into());
        };
        let done = self.carry_out(step, &target);
        if done.is_ok() {
            self.made.take(step, &target);
        }
        self.target = Some(target);
        // Processes may have been started, and others ended, also if it failed.
        self.write_state()?;
        tracing::info!(
            "change of the lab: {step}: {}",
            match &done {
                Ok(_) => "done".to_owned(),
                Err(error) => error.to_string(),
            }
        );
        done
    }

    fn carry_out(&mut self, step: &Step, target: &Target) -> StepResult {
        match step {
            Step::RemoveLink(id) => self.remove_link(*id)?,
            Step::RemoveAs(isd_as) => return self.remove_as(*isd_as),
            Step::SetLink(id) => return self.change_link(*id, target),
            Step::AddAs(isd_as) => self.add_as(*isd_as, target)?,
            Step::SetHost(isd_as) => {
                let (made, wanted) = both(&self.made, target, *isd_as)?;
                build::change_host((made, wanted), &self.namespaces)?;
                return Ok(self.note_mtu(made, wanted));
            }
            Step::AddLink(id) => self.add_link(*id, target)?,
            Step::Configure(isd_as) => {
                let (_, wanted) = both(&self.made, target, *isd_as)?;
                self.configure(wanted)?;
            }
            Step::Start(isd_as) => {
                let (services, state) = (&mut self.services, &mut self.state);
                services.start((*isd_as, |_| true), &self.dir, &self.namespaces, state)?;
            }
            Step::ReplaceRouters(isd_as) => return self.replace_routers(*isd_as, target),
            Step::ReloadRouters(isd_as) => return self.reload_routers(*isd_as),
            Step::SetRoutes(isd_as) => {
                let (made, wanted) = both(&self.made, target, *isd_as)?;
                let is_up = |index| {
                    let is_over = |link: &LinkPlan| {
                        let ends = [&link.a, &link.b].into_iter();
                        ends.into_iter()
                            .any(|e| (e.isd_as, e.index) == (*isd_as, index))
                    };
                    let mut links = self.made.links.values();
                    links.any(|link| link.up && is_over(&link.plan))
                };
                let routes = (&made.routes[..], &wanted.routes[..]);
                build::set_routes(wanted, routes, is_up, &self.namespaces)?;
            }
            Step::UpdateTrc(isd) => {
                let known = self.made.ases.keys().chain(&self.made.leftover);
                let known = known.copied().collect();
                let roles = self.made.roles.get_mut(isd);
                let has_others = roles.is_some_and(|roles| {
                    let has_others = roles.has_others_in(&target.network, *isd);
                    roles.begin_change(has_others);
                    has_others
                });
                keys::update_trc(&self.dir, &known, &target.network, (*isd, has_others))?;
            }
            Step::Publish => self.publish(target)?,
            Step::ReloadControl(isd_as) => return self.reload_control(*isd_as),
            Step::Forget(isd_as) => keys::forget(&self.dir, *isd_as)?,
        }
        Ok(None)
    }

    fn remove_link(&mut self, id: LinkId) -> Result<(), Box<dyn Error>> {
        let Some(link) = self.made.links.get(&id) else {
            return Ok(());
        };
        for (isd_as, interface) in id.ends() {
            let Some(as_) = self.state.as_mut(isd_as) else {
                continue;
            };
            // One that is started later does not find the link there.
            let dir = self.dir.as_dir(isd_as);
            let mut links = dir.links()?;
            if links.remove(&interface).is_some() {
                dir.write_links(&links)?;
            }
            if as_.emulates {
                announce::removal_to_emulator(&self.dir, as_, interface)?;
            }
        }
        build::remove_link(&self.namespaces, &link.plan)?;
        self.state.links.retain(|link| link.id() != id);
        Ok(())
    }

    fn remove_as(&mut self, isd_as: IsdAsn) -> StepResult {
        let as_ = self.state.as_mut(isd_as);
        let hosts = as_.map_or_else(Vec::new, |as_| as_.hosts.clone());
        self.end_hosts(isd_as)?;
        let (services, state) = (&mut self.services, &mut self.state);
        services.retire((isd_as, |_| true), &self.namespaces, state)?;
        if let Some(namespace) = self.namespaces.get(&isd_as) {
            // Programs that users started there, too.
            reap::clear(&[namespace.id()?], Certainty::Held)?;
        }
        // Nothing holds it any more.
        self.namespaces.remove(&isd_as);
        self.state.ases.retain(|as_| as_.isd_as != isd_as);
        let hosts: Vec<_> = hosts.into_iter().map(|host| host.name).collect();
        Ok((!hosts.is_empty()).then(|| {
            format!(
                "hosts that were added to {isd_as} are removed with it: {}",
                hosts.join(", ")
            )
        }))
    }

    /// Changes rate, delay, jitter, loss, queue and MTU of a link.
    fn change_link(&mut self, id: LinkId, target: &Target) -> StepResult {
        let Some(wanted) = target.links.get(&id) else {
            return Err(format!("there is no link {id}").into());
        };
        let shape = shape(target, id);
        let Some(link) = self.made.links.get(&id) else {
            return Err(format!("there is no link {id}").into());
        };
        let is_diverted = link.is_diverted == [true; 2];
        if link.plan.mtu != wanted.mtu {
            build::set_mtu(&self.namespaces, wanted, is_diverted)?;
        }
        let sides = hawser_topology::Side::BOTH;
        build::set_limit(&self.namespaces, wanted, (&sides, &shape))?;
        let up = link.up;
        if shape.is_emulated() {
            self.emulate(id)?;
        }
        let mut failures = Vec::new();
        for (isd_as, interface) in id.ends() {
            let state = LinkState { up, shape };
            let dir = self.dir.as_dir(isd_as);
            let mut links = dir.links()?;
            links.insert(interface, state);
            dir.write_links(&links)?;
            if let Some(as_) = self.state.as_mut(isd_as) {
                failures.extend(announce::to_end(&self.dir, as_, (isd_as, interface), state));
            }
        }
        match failures.is_empty() {
            true => Ok(None),
            false => Err(failures.join("; ").into()),
        }
    }

    fn add_as(&mut self, isd_as: IsdAsn, target: &Target) -> Result<(), Box<dyn Error>> {
        let Some(wanted) = target.ases.get(&isd_as) else {
            return Err(format!("there is no AS {isd_as}").into());
        };
        let known = self.made.ases.keys().chain(&self.made.leftover);
        let known = known.copied().collect();
        keys::make(&self.dir, &known, &target.network, isd_as)?;
        self.configure(wanted)?;
        // An earlier attempt may have left one.
        self.namespaces.remove(&isd_as);
        self.state.ases.retain(|as_| as_.isd_as != isd_as);
        let namespace: NetNs = build::new_namespace(isd_as)?;
        let mut as_ = AsState::new(wanted, &self.settings);
        as_.net_ns = Some(namespace.id()?);
        self.namespaces.insert(isd_as, namespace);
        self.state.ases.push(as_);
        super::raise_file_limit(&self.state);
        build::host(wanted, &self.namespaces)?;
        if self.settings.no_offload {
            build::disable_offloads_of(&self.namespaces, isd_as, &[LOOPBACK_NAME])?;
        }
        Ok(())
    }

    fn add_link(&mut self, id: LinkId, target: &Target) -> Result<(), Box<dyn Error>> {
        let Some(wanted) = target.links.get(&id) else {
            return Err(format!("there is no link {id}").into());
        };
        let shape = shape(target, id);
        // What an earlier attempt has made of it.
        build::remove_link(&self.namespaces, wanted)?;
        self.state.links.retain(|link| link.id() != id);
        build::add_link(&self.namespaces, wanted, (&shape, self.settings.no_offload))?;
        self.state.links.push(wanted.clone());
        if !shape.is_emulated() {
            return Ok(());
        }
        for side in hawser_topology::Side::BOTH {
            build::divert(&self.namespaces, wanted, side)?;
        }
        for (isd_as, interface) in id.ends() {
            if !self
                .made
                .ases
                .get(&isd_as)
                .is_some_and(|as_| as_.is_started)
            {
                // Its emulator is started with its other services.
                continue;
            }
            let (services, state) = (&mut self.services, &mut self.state);
            services.add_emulator(isd_as, &self.dir, &self.namespaces, state)?;
            if let Some(as_) = self.state.as_mut(isd_as) {
                let state = LinkState { up: true, shape };
                announce::to_emulator(&self.dir, as_, interface, state)?;
            }
        }
        Ok(())
    }

    /// Writes the files of an AS that its routers read.
    fn configure(&self, wanted: &AsPlan) -> Result<(), Box<dyn Error>> {
        let dir = self.dir.as_dir(wanted.isd_as);
        let mut links = dir.links()?;
        links.retain(|id, _| wanted.links.contains_key(id));
        dir.write_links(&links)?;
        dir.write_topology(&wanted.topology)?;
        Ok(dir.write_links(&wanted.links)?)
    }

    fn replace_routers(&mut self, isd_as: IsdAsn, target: &Target) -> StepResult {
        let (_, wanted) = both(&self.made, target, isd_as)?;
        let is_router = |service| matches!(service, Service::Router(_));
        let (services, state) = (&mut self.services, &mut self.state);
        services.retire((isd_as, is_router), &self.namespaces, state)?;
        let Some(as_) = state.as_mut(isd_as) else {
            return Err(format!("there is no AS {isd_as}").into());
        };
        as_.routers = AsState::new(wanted, &self.settings).routers;
        if as_.no_router {
            return Ok(Some(format!(
                "the routers of {isd_as} are others now, and run by you: start those of its topology.json"
            )));
        }
        services.start((isd_as, is_router), &self.dir, &self.namespaces, state)?;
        Ok(None)
    }

    fn reload_routers(&mut self, isd_as: IsdAsn) -> StepResult {
        let Some(as_) = self.state.as_mut(isd_as) else {
            return Ok(None);
        };
        let dir = self.dir.as_dir(isd_as);
        let request = router::Request::Reload {
            folder: dir.path().to_owned(),
        };
        for index in 0..as_.routers.len() {
            let service = Service::Router(index);
            let name = as_.service_name(service);
            let reason = match router::call(&as_.socket(&dir, service), &request) {
                Ok(router::Reply::Done) => continue,
                Ok(router::Reply::Error { message }) => message,
                Ok(other) => format!("it answers {other:?}"),
                Err(error) => error.to_string(),
            };
            if as_.no_router {
                return Ok(Some(format!(
                    "the {name} is run by you: restart it, as its topology.json has changed"
                )));
            }
            return Err(
                format!("the {name} does not take over its topology.json: {reason}").into(),
            );
        }
        Ok(None)
    }

    /// Writes the network, and has the state in its order.
    fn publish(&mut self, target: &Target) -> Result<(), Box<dyn Error>> {
        self.dir.write_network(&target.network)?;
        let ases = &target.network.ases;
        let place = |as_: &AsState| ases.iter().position(|known| known.isd_as == as_.isd_as);
        self.state.ases.sort_by_cached_key(place);
        let links: Vec<LinkId> = target.network.links.iter().map(LinkId::of).collect();
        let place = |link: &LinkPlan| links.iter().position(|known| *known == link.id());
        self.state.links.sort_by_cached_key(place);
        for link in &mut self.state.links {
            if let Some(made) = self.made.links.get(&link.id()) {
                *link = made.plan.clone();
            }
        }
        Ok(())
    }

    fn reload_control(&mut self, isd_as: IsdAsn) -> StepResult {
        let Some(as_) = self.state.as_mut(isd_as) else {
            return Ok(None);
        };
        let socket = self.dir.as_dir(isd_as).control_socket();
        let reason = match control::call(&socket, &control::Request::Reload) {
            Ok(control::Reply::Done) => return Ok(None),
            Ok(control::Reply::Error { message }) => message,
            Ok(other) => format!("it answers {other:?}"),
            Err(error) => error.to_string(),
        };
        match as_.no_control {
            true => Ok(Some(format!(
                "the control service of {isd_as} is run by you: restart it, as the network has changed"
            ))),
            false => Err(format!(
                "the control service of {isd_as} does not read the network: {reason}"
            )
            .into()),
        }
    }
}

/// An AS as it is, and as it is wanted.
fn both<'a>(
    made: &'a Made,
    target: &'a Target,
    isd_as: IsdAsn,
) -> Result<(&'a AsPlan, &'a AsPlan), String> {
    let both = made.ases.get(&isd_as).zip(target.ases.get(&isd_as));
    let both = both.map(|(made, wanted)| (&made.plan, wanted));
    both.ok_or_else(|| format!("there is no AS {isd_as}"))
}

/// The shape that a link is to have.
fn shape(target: &Target, id: LinkId) -> Shape {
    let (isd_as, id) = id.0;
    let state = target.ases.get(&isd_as).and_then(|as_| as_.links.get(&id));
    state.map_or_else(Shape::default, |state| state.shape)
}

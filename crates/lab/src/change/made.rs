//! What exists of a lab, and what is wanted of it.

use std::collections::{BTreeMap, BTreeSet};

use hawser_topology::{IsdAsn, Network};

use super::keys::{IsdRoles, roles_of};
use super::step::Step;
use crate::plan::{AsPlan, LinkId, LinkPlan, Plan, PlanError};

/// What exists of a lab.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub ases: BTreeMap<IsdAsn, MadeAs>,
    pub links: BTreeMap<LinkId, MadeLink>,
    /// Contents of `network.json`.
    pub published: Network,
    /// The roles of ASes by ISD, as the TRCs name them.
    pub roles: BTreeMap<u16, IsdRoles>,
    /// ASes that were removed, and whose folders exist.
    pub leftover: BTreeSet<IsdAsn>,
}

/// The roles in each ISD of a network.
pub(super) fn roles_by_isd(network: &Network) -> BTreeMap<u16, IsdRoles> {
    let isds = network.ases.iter().map(|as_| as_.isd_as.isd().to_u16());
    isds.map(|isd| (isd, roles_of(network, isd))).collect()
}

/// An AS that exists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeAs {
    /// Its addresses, its files, its routers, its routes, as they are now.
    pub plan: AsPlan,
    /// Whether its services were started.
    pub is_started: bool,
    /// Whether its routers have its files as they are now.
    pub has_routers_current: bool,
    /// Whether its control service has its files and the network as they are now.
    pub has_control_current: bool,
}

/// A link that exists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeLink {
    pub plan: LinkPlan,
    /// Whether its devices are up.
    pub up: bool,
    /// Whether plain IP that each end sends is diverted to the emulator of its AS.
    pub is_diverted: [bool; 2],
}

/// What is wanted of a lab.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub network: Network,
    pub ases: BTreeMap<IsdAsn, AsPlan>,
    pub links: BTreeMap<LinkId, LinkPlan>,
}

impl Target {
    /// The network, with the addresses that parts of it have in `made`. Links that stay are up or down
    /// as they are: a topology file does not say.
    pub fn new(made: &Made, network: Network) -> Result<Self, PlanError> {
        let plan = Plan::after(&made.to_plan(), &network)?;
        let mut ases: BTreeMap<_, _> = plan.ases.into_iter().map(|a| (a.isd_as, a)).collect();
        let links: BTreeMap<_, _> = plan.links.into_iter().map(|l| (l.id(), l)).collect();
        let target = |id: &LinkId| links.get(id);
        let kept = made.links.iter();
        let kept = kept.filter(|(id, link)| target(id).is_some_and(|t| is_same(&link.plan, t)));
        for (link, _) in kept.filter(|(_, link)| !link.up) {
            for (isd_as, id) in link.ends() {
                let state = ases.get_mut(&isd_as).and_then(|a| a.links.get_mut(&id));
                if let Some(state) = state {
                    state.up = false;
                }
            }
        }
        Ok(Self {
            network,
            ases,
            links,
        })
    }
}

/// Whether two plans are of one pair of devices, perhaps with another MTU.
pub(super) fn is_same(link: &LinkPlan, other: &LinkPlan) -> bool {
    (link.number, &link.a, &link.b) == (other.number, &other.a, &other.b)
}

/// Whether an AS keeps its namespace: its addresses are of the same family.
pub(super) fn is_kept(as_: &AsPlan, target: &AsPlan) -> bool {
    as_.host6.is_some() == target.host6.is_some()
}

impl Made {
    /// A lab of this network that has just come up.
    pub fn new(plan: Plan, network: Network) -> Self {
        let links = plan.links.into_iter().map(|link| {
            let is_emulated = |isd_as: IsdAsn, id: u16| {
                let as_ = plan.ases.iter().find(|as_| as_.isd_as == isd_as);
                let state = as_.and_then(|as_| as_.links.get(&id));
                state.is_some_and(|state| state.shape.is_emulated())
            };
            let is_diverted = link.id().ends().map(|(isd_as, id)| is_emulated(isd_as, id));
            let made = MadeLink {
                plan: link,
                up: true,
                is_diverted,
            };
            (made.plan.id(), made)
        });
        let links = links.collect();
        let ases = plan.ases.into_iter().map(|plan| {
            let made = MadeAs {
                plan,
                is_started: true,
                has_routers_current: true,
                has_control_current: true,
            };
            (made.plan.isd_as, made)
        });
        Self {
            ases: ases.collect(),
            links,
            roles: roles_by_isd(&network),
            published: network,
            leftover: BTreeSet::new(),
        }
    }

    /// The addresses and numbers that are in use.
    pub fn to_plan(&self) -> Plan {
        Plan {
            ases: self.ases.values().map(|as_| as_.plan.clone()).collect(),
            links: self.links.values().map(|link| link.plan.clone()).collect(),
        }
    }

    /// Takes in that a step towards `target` was carried out. A step of something that is not there
    /// changes nothing.
    pub fn take(&mut self, step: &Step, target: &Target) {
        match step {
            Step::RemoveLink(id) => self.take_removed_link(*id),
            Step::RemoveAs(isd_as) => {
                if self.ases.remove(isd_as).is_some() {
                    self.leftover.insert(*isd_as);
                }
            }
            Step::SetLink(id) => self.take_link_properties(*id, target),
            Step::AddAs(isd_as) => {
                if let Some(plan) = target.ases.get(isd_as) {
                    let made = MadeAs {
                        plan: AsPlan {
                            routes: Vec::new(),
                            ..plan.clone()
                        },
                        is_started: false,
                        has_routers_current: true,
                        has_control_current: false,
                    };
                    self.ases.insert(*isd_as, made);
                    self.leftover.remove(isd_as);
                    // The TRC of a new ISD is made with the keys of its first AS.
                    let isd = isd_as.isd().to_u16();
                    let roles = || roles_of(&target.network, isd);
                    self.roles.entry(isd).or_insert_with(roles);
                }
            }
            Step::AddLink(id) => {
                if let Some(plan) = target.links.get(id) {
                    let made = MadeLink {
                        plan: plan.clone(),
                        up: true,
                        is_diverted: [target.emulates(*id); 2],
                    };
                    self.links.insert(*id, made);
                }
            }
            Step::UpdateTrc(isd) => {
                self.roles.insert(*isd, roles_of(&target.network, *isd));
                for as_ in self.ases.values_mut() {
                    as_.has_control_current = false;
                }
            }
            Step::Publish => {
                self.published = target.network.clone();
                for as_ in self.ases.values_mut() {
                    as_.has_control_current = false;
                }
            }
            Step::Forget(isd_as) => {
                self.leftover.remove(isd_as);
                let isd = isd_as.isd().to_u16();
                let mut left = self.ases.keys().chain(&self.leftover);
                if !left.any(|one| one.isd().to_u16() == isd) {
                    self.roles.remove(&isd);
                }
            }
            Step::SetHost(isd_as)
            | Step::Configure(isd_as)
            | Step::Start(isd_as)
            | Step::ReplaceRouters(isd_as)
            | Step::ReloadRouters(isd_as)
            | Step::SetRoutes(isd_as)
            | Step::ReloadControl(isd_as) => {
                if let (Some(made), Some(target)) =
                    (self.ases.get_mut(isd_as), target.ases.get(isd_as))
                {
                    made.take(step, target);
                }
            }
        }
    }

    fn take_removed_link(&mut self, id: LinkId) {
        let Some(link) = self.links.remove(&id) else {
            return;
        };
        for end in [&link.plan.a, &link.plan.b] {
            if let Some(as_) = self.ases.get_mut(&end.isd_as) {
                as_.plan.links.remove(&end.id);
                // The kernel removes the routes over a device with it.
                as_.plan.routes.retain(|route| route.index != end.index);
            }
        }
    }

    fn take_link_properties(&mut self, id: LinkId, target: &Target) {
        let (Some(link), Some(wanted)) = (self.links.get_mut(&id), target.links.get(&id)) else {
            return;
        };
        link.plan.mtu = wanted.mtu;
        for (side, (isd_as, id)) in id.ends().into_iter().enumerate() {
            let shape = target.ases.get(&isd_as).and_then(|a| a.links.get(&id));
            let as_ = self.ases.get_mut(&isd_as);
            let state = as_.and_then(|as_| as_.plan.links.get_mut(&id));
            if let (Some(wanted), Some(state)) = (shape, state) {
                state.shape = wanted.shape;
                link.is_diverted[side] |= wanted.shape.is_emulated();
            }
        }
    }
}

impl Target {
    /// Whether a link is to have delay, jitter or loss.
    pub fn emulates(&self, id: LinkId) -> bool {
        let (isd_as, id) = id.0;
        let state = self.ases.get(&isd_as).and_then(|a| a.links.get(&id));
        state.is_some_and(|state| state.shape.is_emulated())
    }
}

impl MadeAs {
    fn take(&mut self, step: &Step, target: &AsPlan) {
        match step {
            Step::SetHost(_) => self.plan.inner_mtu = target.inner_mtu,
            Step::Configure(_) => {
                self.plan.topology = target.topology.clone();
                self.plan.links = target.links.clone();
                self.has_routers_current = false;
                self.has_control_current = false;
            }
            Step::Start(_) => {
                self.is_started = true;
                self.has_routers_current = true;
            }
            Step::ReplaceRouters(_) => {
                self.plan.routers = target.routers.clone();
                self.has_routers_current = true;
            }
            Step::ReloadRouters(_) => self.has_routers_current = true,
            Step::SetRoutes(_) => self.plan.routes = target.routes.clone(),
            Step::ReloadControl(_) => self.has_control_current = true,
            _ => {}
        }
    }
}

//! Which steps lead from what exists to what is wanted.

use hawser_topology::IsdAsn;

use super::made::{Made, Target, is_kept, is_same, roles_by_isd};
use super::step::Step;
use crate::plan::LinkId;

/// The steps that make `target` of `made`, in their order. Things are removed before others are added,
/// which may take their place; services read files after these are written; control services learn of
/// links when these exist.
pub(crate) fn steps(made: &Made, target: &Target) -> Vec<Step> {
    let mut planner = Planner {
        made: made.clone(),
        target,
        steps: Vec::new(),
    };
    planner.remove();
    planner.change();
    planner.add();
    planner.configure();
    planner.publish();
    planner.steps
}

/// What will exist after the steps so far.
struct Planner<'a> {
    made: Made,
    target: &'a Target,
    steps: Vec<Step>,
}

impl Planner<'_> {
    fn push(&mut self, step: Step) {
        self.made.take(&step, self.target);
        self.steps.push(step);
    }

    /// Adds a step for each of the ASes that exist by then.
    fn push_for_ases(&mut self, step: fn(IsdAsn) -> Step, is_due: impl Fn(&Self, IsdAsn) -> bool) {
        let ases: Vec<IsdAsn> = self.made.ases.keys().copied().collect();
        for isd_as in ases {
            if is_due(self, isd_as) {
                self.push(step(isd_as));
            }
        }
    }

    fn remove(&mut self) {
        let keeps_as = |isd_as: &IsdAsn| {
            let both = self.made.ases.get(isd_as).zip(self.target.ases.get(isd_as));
            both.is_some_and(|(made, target)| is_kept(&made.plan, target))
        };
        let keeps_link = |id: &LinkId| {
            let both = self.made.links.get(id).zip(self.target.links.get(id));
            both.is_some_and(|(made, target)| is_same(&made.plan, target))
                && id.ends().iter().all(|(isd_as, _)| keeps_as(isd_as))
        };
        let links = self.made.links.keys().filter(|id| !keeps_link(id));
        let links: Vec<Step> = links.map(|id| Step::RemoveLink(*id)).collect();
        let ases = self.made.ases.keys().filter(|isd_as| !keeps_as(isd_as));
        let ases: Vec<Step> = ases.map(|isd_as| Step::RemoveAs(*isd_as)).collect();
        links
            .into_iter()
            .chain(ases)
            .for_each(|step| self.push(step));
    }

    fn change(&mut self) {
        let differs = |id: &LinkId| {
            let both = self.made.links.get(id).zip(self.target.links.get(id));
            let has_other_mtu = both.is_some_and(|(made, target)| made.plan.mtu != target.mtu);
            let has_other_shape = |(isd_as, id): (IsdAsn, u16)| {
                let made = self.made.ases.get(&isd_as);
                let made = made.and_then(|as_| as_.plan.links.get(&id));
                let target = self.target.ases.get(&isd_as);
                let target = target.and_then(|as_| as_.links.get(&id));
                let both = made.zip(target);
                both.is_some_and(|(made, target)| made.shape != target.shape)
            };
            has_other_mtu || id.ends().into_iter().any(has_other_shape)
        };
        let changed = self.made.links.keys().filter(|id| differs(id));
        let changed: Vec<Step> = changed.map(|id| Step::SetLink(*id)).collect();
        changed.into_iter().for_each(|step| self.push(step));
    }

    fn add(&mut self) {
        let target = self.target;
        for isd_as in target.network.ases.iter().map(|as_| as_.isd_as) {
            if !self.made.ases.contains_key(&isd_as) {
                self.push(Step::AddAs(isd_as));
            }
        }
        self.push_for_ases(Step::SetHost, |planner, isd_as| {
            planner.differs(isd_as, |made, target| {
                made.plan.inner_mtu != target.inner_mtu || made.plan.routers != target.routers
            })
        });
        for link in target.network.links.iter().map(LinkId::of) {
            if !self.made.links.contains_key(&link) {
                self.push(Step::AddLink(link));
            }
        }
    }

    fn configure(&mut self) {
        self.push_for_ases(Step::Configure, |planner, isd_as| {
            planner.differs(isd_as, |made, target| {
                made.plan.topology != target.topology || made.plan.links != target.links
            })
        });
        self.push_for_ases(Step::Start, |planner, isd_as| {
            !planner.made.ases[&isd_as].is_started
        });
        self.push_for_ases(Step::ReplaceRouters, |planner, isd_as| {
            planner.differs(isd_as, |made, target| made.plan.routers != target.routers)
        });
        self.push_for_ases(Step::ReloadRouters, |planner, isd_as| {
            !planner.made.ases[&isd_as].has_routers_current
        });
        self.push_for_ases(Step::SetRoutes, |planner, isd_as| {
            planner.differs(isd_as, |made, target| made.plan.routes != target.routes)
        });
    }

    fn publish(&mut self) {
        for (isd, roles) in roles_by_isd(&self.target.network) {
            // A network without one is refused before.
            if !roles.core.is_empty() && self.made.roles.get(&isd) != Some(&roles) {
                self.push(Step::UpdateTrc(isd));
            }
        }
        if self.made.published != self.target.network {
            self.push(Step::Publish);
        }
        self.push_for_ases(Step::ReloadControl, |planner, isd_as| {
            !planner.made.ases[&isd_as].has_control_current
        });
        let leftover: Vec<IsdAsn> = self.made.leftover.iter().copied().collect();
        for isd_as in leftover {
            self.push(Step::Forget(isd_as));
        }
    }

    fn differs(
        &self,
        isd_as: IsdAsn,
        differ: impl Fn(&super::MadeAs, &crate::plan::AsPlan) -> bool,
    ) -> bool {
        let both = self
            .made
            .ases
            .get(&isd_as)
            .zip(self.target.ases.get(&isd_as));
        both.is_some_and(|(made, target)| differ(made, target))
    }
}

//! Changing links while traffic crosses them.

use std::convert::Infallible;
use std::time::Duration;

use hawser_control::live as control;
use hawser_topology::{End, IsdAsn, Link, LinkState, Network, Shape, Side};

use crate::error::LabError;
use crate::plan::LinkId;
use crate::protocol::{self, Request};
use crate::state::LabState;
use crate::{Lab, announce, bfd};

/// Longest wait for the supervisor, which answers commands one by one.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A change of a link; `None` leaves a value unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkChange {
    /// New limit in bit/s; `Some(None)` removes the limit.
    pub rate: Option<Option<u64>>,
    /// New one-way delay.
    pub delay: Option<Duration>,
    /// New jitter: largest difference from the delay, above or below.
    pub jitter: Option<Duration>,
    /// New fraction of packets lost, 0 to 1.
    pub loss: Option<f64>,
    /// New time that a full queue takes to drain.
    pub queue: Option<Duration>,
    /// Whether the link is up.
    pub up: Option<bool>,
}

impl LinkChange {
    fn apply(&self, to: LinkState) -> LinkState {
        let shape = to.shape;
        LinkState {
            up: self.up.unwrap_or(to.up),
            shape: Shape {
                rate: self.rate.unwrap_or(shape.rate),
                delay: self.delay.unwrap_or(shape.delay),
                jitter: self.jitter.unwrap_or(shape.jitter),
                loss: self.loss.unwrap_or(shape.loss),
                queue: self.queue.unwrap_or(shape.queue),
            },
        }
    }
}

impl Lab {
    /// Changes the link at an interface, in both directions. The change takes effect at once. When
    /// this returns after bringing a link up, the link passes packets: its routers have a BFD
    /// session.
    ///
    /// # Errors
    /// When there is no such link, the change is not valid, or the lab does not run. Also when a
    /// router or control service has ended, or a router has no BFD session with its neighbour; all
    /// others have then applied the change.
    pub fn set_link(
        &self,
        isd_as: IsdAsn,
        id: u16,
        change: &LinkChange,
    ) -> Result<LinkState, LabError> {
        self.change_link((isd_as, id), change, |_| Side::BOTH.to_vec())
    }

    /// Changes the limit, delay, jitter and loss of the link at an interface for what is sent *out of*
    /// that interface, and leaves the other direction as it is. Control services, whose paths have
    /// the same properties in both directions, keep those of the link, which [`Lab::set_link`]
    /// returns to.
    ///
    /// # Errors
    /// As [`Lab::set_link`], and when the change brings the link up or down, which it is in both
    /// directions.
    pub fn set_link_from(
        &self,
        isd_as: IsdAsn,
        id: u16,
        change: &LinkChange,
    ) -> Result<LinkState, LabError> {
        if change.up.is_some() {
            let text = "a link is up or down in both directions: change both";
            return Err(LabError::Failed(text.to_owned()));
        }
        self.change_link((isd_as, id), change, |side| vec![side])
    }

    /// Changes what is sent out of these ends of a link, which `sides` selects by the end that is
    /// named.
    fn change_link(
        &self,
        (isd_as, id): (IsdAsn, u16),
        change: &LinkChange,
        sides: impl FnOnce(Side) -> Vec<Side>,
    ) -> Result<LinkState, LabError> {
        if let Some(loss) = change.loss
            && !(0.0..=1.0).contains(&loss)
        {
            let text = format!("a loss of {loss} is not between 0 and 1");
            return Err(LabError::Failed(text));
        }
        let _lock = self.root.lock(&self.name)?;
        let mut network = self.dir.read_network()?;
        let Some((index, side)) = network.link_at(isd_as, id) else {
            return Err(unknown(&network, isd_as, id));
        };
        let sides = sides(side);
        let link = &mut network.links[index];
        let dir = |side: Side| self.dir.as_dir(link.end(side).isd_as);
        let links = dir(Side::A).links()?;
        let before = LinkState {
            up: links.get(&link.a.id).is_none_or(|state| state.up),
            shape: link.shape,
        };
        let wanted = change.apply(before);

        // The supervisor comes first, because it may refuse the change.
        let request = Request::SetLink {
            link: LinkId::of(link),
            sides: sides.clone(),
            state: wanted,
        };
        protocol::call(&self.dir.socket(), &request, TIMEOUT)?;
        // It may have started emulators.
        let state = self.dir.read_state()?;
        for &side in &sides {
            let mut links = dir(side).links()?;
            links.insert(link.end(side).id, wanted);
            dir(side).write_links(&links)?;
        }
        let both = sides.len() == Side::BOTH.len();
        if both {
            link.shape = wanted.shape;
        }
        let link = link.clone();
        self.dir.write_network(&network)?;

        let ends = sides.iter().map(|side| link.end(*side));
        let mut failures = self.announce_to_ends(&state, ends, wanted);
        if both {
            failures.extend(self.announce_to_control(&state, &link, wanted));
        }
        if failures.is_empty() && wanted.up && !before.up {
            failures = self.wait_for_bfd(&state, &link);
        }
        match failures.is_empty() {
            true => Ok(wanted),
            false => Err(LabError::Failed(format!(
                "the link is changed, but not for all: {}",
                failures.join("; ")
            ))),
        }
    }

    /// Announces the change of a link to the routers and emulators at these ends. Returns what failed.
    fn announce_to_ends<'a>(
        &self,
        state: &LabState,
        ends: impl Iterator<Item = &'a End>,
        wanted: LinkState,
    ) -> Vec<String> {
        let mut failures = Vec::new();
        for end in ends {
            if let Some(as_) = state.find(end.isd_as).map(|at| &state.ases[at]) {
                let interface = (end.isd_as, end.id);
                failures.extend(announce::to_end(&self.dir, as_, interface, wanted));
            }
        }
        failures
    }

    /// Announces the change of a link to every control service that the lab runs. Returns what failed.
    fn announce_to_control(&self, state: &LabState, link: &Link, wanted: LinkState) -> Vec<String> {
        let mut failures = Vec::new();
        for as_ in state.ases.iter().filter(|as_| !as_.no_control) {
            let request = control::Request::SetLink {
                a: (link.a.isd_as, link.a.id),
                up: wanted.up,
                shape: wanted.shape,
            };
            match control::call(&self.dir.as_dir(as_.isd_as).control_socket(), &request) {
                Ok(control::Reply::Done) => {}
                Ok(other) => failures.push(format!("control of {}: {other:?}", as_.isd_as)),
                Err(e) => failures.push(e.to_string()),
            }
        }
        failures
    }

    /// Waits for the BFD session of a link. Returns what failed.
    fn wait_for_bfd(&self, state: &LabState, link: &Link) -> Vec<String> {
        let Ok(down) = bfd::wait(&self.dir, state, [link], || Ok::<_, Infallible>(()));
        let ends = [&link.a, &link.b].into_iter();
        ends.filter(|end| down.contains(&(end.isd_as, end.id)))
            .map(|end| {
                format!(
                    "the router at {end} has no BFD session with its neighbour: is the link's loss that high?"
                )
            })
            .collect()
    }
}

/// The error for an unknown interface.
pub(crate) fn unknown(network: &Network, isd_as: IsdAsn, id: u16) -> LabError {
    let links = network.links_of(isd_as);
    let mut ids: Vec<u16> = links.map(|(link, side)| link.end(side).id).collect();
    ids.sort_unstable();
    let all: Vec<String> = ids.iter().map(|id| format!("{isd_as}#{id}")).collect();
    let all = match all.is_empty() {
        true => format!("none in {isd_as}"),
        false => all.join(", "),
    };
    LabError::Failed(format!(
        "no link of the lab has the interface {isd_as}#{id}: it has {all}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_values_change() {
        let before = LinkState {
            up: false,
            shape: Shape {
                rate: Some(1_000_000),
                delay: Duration::from_millis(5),
                loss: 0.5,
                ..Shape::default()
            },
        };
        assert_eq!(LinkChange::default().apply(before), before);
        let change = LinkChange {
            rate: Some(None),
            loss: Some(0.0),
            up: Some(true),
            ..LinkChange::default()
        };
        let after = change.apply(before);
        assert!(after.up);
        assert_eq!((after.shape.rate, after.shape.loss), (None, 0.0));
        assert_eq!(after.shape.delay, before.shape.delay);
    }

    #[test]
    fn the_error_of_an_unknown_interface_lists_existing_ones() {
        let network = Network::ready("fig4").unwrap();
        let end = &network.links[0].a;
        let error = unknown(&network, end.isd_as, 999).to_string();
        assert!(
            error.contains(&format!("{}#{}", end.isd_as, end.id)),
            "{error}"
        );
        let nowhere = unknown(&network, "9-ff00:0:9".parse().unwrap(), 1).to_string();
        assert!(nowhere.contains("none in 9-ff00:0:9"), "{nowhere}");
    }
}

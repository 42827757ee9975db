//! Changing links while traffic crosses them.

mod tell;

use std::time::Duration;

use hawser_topology::{IsdAsn, LinkState, Network, Shape, Side, as_folder};

use crate::Lab;
use crate::build::limit_of;
use crate::error::LabError;
use crate::protocol::{self, Request};

/// How long the supervisor may take, which answers commands one by one.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to change of a link; what is `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkChange {
    /// Another limit in bit/s, or with `Some(None)` none.
    pub rate: Option<Option<u64>>,
    /// Another one-way delay.
    pub delay: Option<Duration>,
    /// Another jitter, either way of the delay.
    pub jitter: Option<Duration>,
    /// Another share of packets lost, 0 to 1.
    pub loss: Option<f64>,
    /// Another time that a full queue takes to drain.
    pub queue: Option<Duration>,
    /// Down or up.
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
    /// Changes the link at an interface, in both directions, at once for packets on their way too.
    /// A link that is brought up again passes packets when this returns: its routers have heard
    /// each other.
    ///
    /// # Errors
    /// When there is no such link, the change is none, or the lab does not run.
    /// Also when a router or control service has ended, or a router has no BFD session with its
    /// neighbour: all others have applied the change.
    pub fn set_link(
        &self,
        isd_as: IsdAsn,
        id: u16,
        change: &LinkChange,
    ) -> Result<LinkState, LabError> {
        if let Some(loss) = change.loss
            && !(0.0..=1.0).contains(&loss)
        {
            return Err(LabError::Failed(format!(
                "a loss of {loss} is not between 0 and 1"
            )));
        }
        let _lock = self.root.lock(&self.name)?;
        let state = self.dir.read_state()?;
        let mut network = self.dir.read_network()?;
        let Some((index, _)) = network.link_at(isd_as, id) else {
            return Err(unknown(&network, isd_as, id));
        };
        let link = &mut network.links[index];
        let folder = |side: Side| self.dir.as_dir(&as_folder(link.end(side).isd_as));
        let was = folder(Side::A)
            .links()?
            .get(&link.a.id)
            .is_none_or(|state| state.up);
        let wanted = change.apply(LinkState {
            up: was,
            shape: link.shape,
        });

        // First what can be refused.
        let limit = limit_of(&wanted.shape);
        let request = Request::SetLink {
            link: index,
            limit,
            up: wanted.up,
        };
        protocol::call(&self.dir.socket(), &request, PATIENCE)?;
        for side in [Side::A, Side::B] {
            let mut links = folder(side).links()?;
            links.insert(link.end(side).id, wanted);
            folder(side).write_links(&links)?;
        }
        link.shape = wanted.shape;
        let link = link.clone();
        self.dir.write_network(&network)?;

        let mut failures = self.tell(&state, &link, wanted);
        if failures.is_empty() && wanted.up && !was {
            failures = self.await_bfd(&state, &link);
        }
        match failures.is_empty() {
            true => Ok(wanted),
            false => Err(LabError::Failed(format!(
                "the link is changed, but not for all: {}",
                failures.join("; ")
            ))),
        }
    }
}

/// The error for an interface that no link has.
pub(crate) fn unknown(network: &Network, isd_as: IsdAsn, id: u16) -> LabError {
    let mut ids: Vec<u16> = network
        .links_of(isd_as)
        .map(|(link, side)| link.end(side).id)
        .collect();
    ids.sort_unstable();
    let there: Vec<String> = ids.iter().map(|id| format!("{isd_as}#{id}")).collect();
    let there = match there.is_empty() {
        true => format!("none in {isd_as}"),
        false => there.join(", "),
    };
    LabError::Failed(format!(
        "no link of the lab has the interface {isd_as}#{id}: it has {there}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_changes() {
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
    fn an_unknown_interface_is_told_from_those_there() {
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

//! Parts added to a network and removed from it.

use crate::IsdAsn;
use crate::network::{
    As, DEFAULT_DISPATCHED_PORTS, DEFAULT_MTU, Link, LinkKind, Network, Shape, Side, Underlay,
};
use crate::topo::{check_link, check_mtu, new_end};

/// An AS to add, see [`Network::add_as`].
#[derive(Debug, Clone, PartialEq)]
pub struct NewAs {
    /// Its number.
    pub isd_as: IsdAsn,
    /// Whether it is a core AS.
    pub core: bool,
    /// Largest SCION packet inside the AS, in bytes; `None` for the default of topology files.
    pub mtu: Option<u16>,
    /// The underlay between its hosts and border routers.
    pub underlay: Underlay,
    /// Its note in path metadata.
    pub note: Option<String>,
}

/// A link to add, see [`Network::add_link`].
#[derive(Debug, Clone, PartialEq)]
pub struct NewLink {
    /// The first end as in a topology file: `1-ff00:0:110#1`, or without the number for the lowest that
    /// is free; `1-ff00:0:110-A#1` at the border router `A`.
    pub a: String,
    /// The other end, likewise.
    pub b: String,
    /// Its kind; `None` for a core link between core ASes, and else from a parent to its child.
    pub kind: Option<LinkKind>,
    /// Largest SCION packet on the link, in bytes; `None` for the default of topology files.
    pub mtu: Option<u16>,
    /// The underlay between its two border routers.
    pub underlay: Underlay,
    /// Rate, delay, jitter and loss, in both directions.
    pub shape: Shape,
}

impl Network {
    /// Adds an AS, without links.
    ///
    /// # Errors
    /// When there is one of that number, or the MTU is too small.
    pub fn add_as(&mut self, new: NewAs) -> Result<(), String> {
        if self.find(new.isd_as).is_some() {
            return Err(format!("there is an AS {} already", new.isd_as));
        }
        self.ases.push(As {
            isd_as: new.isd_as,
            core: new.core,
            voting: false,
            authoritative: false,
            issuing: false,
            cert_issuer: None,
            underlay: new.underlay,
            dispatched_ports: DEFAULT_DISPATCHED_PORTS,
            mtu: check_mtu(new.mtu.unwrap_or(DEFAULT_MTU))?,
            note: new.note,
        });
        Ok(())
    }

    /// Removes an AS, with its links.
    ///
    /// # Errors
    /// When there is no such AS, or it is the only one.
    pub fn remove_as(&mut self, isd_as: IsdAsn) -> Result<(), String> {
        self.known(isd_as)?;
        if self.ases.len() == 1 {
            return Err(format!(
                "{isd_as} is the only AS: a network has at least one"
            ));
        }
        self.ases.retain(|as_| as_.isd_as != isd_as);
        for as_ in &mut self.ases {
            // It keeps the certificate that it has.
            as_.cert_issuer = as_.cert_issuer.filter(|issuer| *issuer != isd_as);
        }
        let is_of = |link: &Link| {
            Side::BOTH
                .iter()
                .any(|side| link.end(*side).isd_as == isd_as)
        };
        self.links.retain(|link| !is_of(link));
        Ok(())
    }

    /// Adds a link.
    ///
    /// # Errors
    /// When an end is not valid, an interface is in use, or the kind does not fit the ASes.
    pub fn add_link(&mut self, new: &NewLink) -> Result<(), String> {
        let a = new_end(self, &new.a)?;
        let b = new_end(self, &new.b)?;
        let is_core = |isd_as| self.find(isd_as).is_some_and(|as_| as_.core);
        let default = match is_core(a.isd_as) && is_core(b.isd_as) {
            true => LinkKind::Core,
            false => LinkKind::Child,
        };
        let link = Link {
            a,
            b,
            kind: new.kind.unwrap_or(default),
            underlay: new.underlay,
            mtu: check_mtu(new.mtu.unwrap_or(DEFAULT_MTU))?,
            shape: new.shape,
        };
        let checked = check_link(&link, &self.ases);
        checked.map_err(|error| format!("link {} - {}: {error}", link.a, link.b))?;
        self.links.push(link);
        Ok(())
    }

    /// Removes the link at an interface.
    ///
    /// # Errors
    /// When there is none.
    pub fn remove_link(&mut self, isd_as: IsdAsn, id: u16) -> Result<(), String> {
        let at = self.interface(isd_as, id)?.0;
        self.links.remove(at);
        Ok(())
    }

    /// Sets the MTU of the link at an interface, in bytes of the largest SCION packet.
    ///
    /// # Errors
    /// When there is none, or the MTU is too small.
    pub fn set_link_mtu(&mut self, (isd_as, id): (IsdAsn, u16), mtu: u16) -> Result<(), String> {
        let at = self.interface(isd_as, id)?.0;
        self.links[at].mtu = check_mtu(mtu)?;
        Ok(())
    }

    /// Gives interfaces of an AS to the border router `name`, which the AS may have already.
    ///
    /// # Errors
    /// When there is no such interface, or the name is not valid.
    pub fn add_router(
        &mut self,
        isd_as: IsdAsn,
        name: &str,
        interfaces: &[u16],
    ) -> Result<(), String> {
        self.known(isd_as)?;
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_valid) {
            return Err(format!(
                "{name:?} is not a name for a router: write letters, digits and '_', for example B"
            ));
        }
        for id in interfaces {
            self.set_router((isd_as, *id), name)?;
        }
        Ok(())
    }

    /// Gives the interfaces of the border router `name` to another router of its AS.
    ///
    /// # Errors
    /// When there is no such router, or it is the only one of the AS.
    pub fn remove_router(&mut self, isd_as: IsdAsn, name: &str) -> Result<(), String> {
        self.known(isd_as)?;
        let routers = self.routers(isd_as);
        if !routers.contains(&name) {
            return Err(format!(
                "{isd_as} has no router {name:?} in its topology: it has {routers:?}"
            ));
        }
        let other = routers.iter().find(|other| **other != name);
        let other =
            (*other.ok_or_else(|| format!("{name:?} is the only router of {isd_as}"))?).to_owned();
        let own = self.links_of(isd_as).map(|(link, side)| link.end(side));
        let own: Vec<u16> = own
            .filter(|end| end.router == name)
            .map(|end| end.id)
            .collect();
        for id in own {
            self.set_router((isd_as, id), &other)?;
        }
        Ok(())
    }

    fn set_router(&mut self, (isd_as, id): (IsdAsn, u16), name: &str) -> Result<(), String> {
        let (at, side) = self.interface(isd_as, id)?;
        let link = &mut self.links[at];
        let end = match side {
            Side::A => &mut link.a,
            Side::B => &mut link.b,
        };
        name.clone_into(&mut end.router);
        Ok(())
    }

    fn known(&self, isd_as: IsdAsn) -> Result<(), String> {
        let known = self.find(isd_as).map(drop);
        known.ok_or_else(|| format!("there is no AS {isd_as}"))
    }

    fn interface(&self, isd_as: IsdAsn, id: u16) -> Result<(usize, Side), String> {
        let found = self.link_at(isd_as, id);
        found.ok_or_else(|| format!("no link has the interface {isd_as}#{id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(a: &str, b: &str) -> NewLink {
        NewLink {
            a: a.to_owned(),
            b: b.to_owned(),
            kind: None,
            mtu: None,
            underlay: Underlay::default(),
            shape: Shape::default(),
        }
    }

    fn leaf() -> NewAs {
        NewAs {
            isd_as: "1-ff00:0:112".parse().unwrap(),
            core: false,
            mtu: None,
            underlay: Underlay::default(),
            note: None,
        }
    }

    #[test]
    fn parts_come_and_go() {
        let before = Network::ready("fig4").unwrap();
        let mut network = before.clone();
        let new = leaf().isd_as;
        network.add_as(leaf()).unwrap();
        assert!(network.add_as(leaf()).is_err());
        network
            .add_link(&link("1-ff00:0:110", "1-ff00:0:112#7"))
            .unwrap();
        let added = network.links.last().unwrap();
        assert_eq!(
            (added.a.id, added.b.id, added.kind),
            (3, 7, LinkKind::Child)
        );
        network
            .add_link(&link("1-ff00:0:110-B", "1-ff00:0:111"))
            .unwrap();
        assert_eq!(network.links.last().unwrap().kind, LinkKind::Core);
        // What was added is a topology file like any other.
        let text = network.to_topo();
        assert_eq!(Network::parse(&text).unwrap(), network);
        let core = before.ases[0].isd_as;
        assert_eq!(network.routers(core), ["", "B"]);
        network.remove_router(core, "B").unwrap();
        assert_eq!(network.routers(core), [""]);
        network.add_router(core, "C", &[1, 4]).unwrap();
        assert_eq!(network.routers(core), ["C", ""]);
        network.remove_router(core, "C").unwrap();
        network.remove_link(core, 4).unwrap();
        network.remove_as(new).unwrap();
        assert_eq!(network, before);
    }

    #[test]
    fn what_is_not_possible_changes_nothing() {
        let before = Network::ready("fig4").unwrap();
        let mut network = before.clone();
        let (core, new) = (before.ases[0].isd_as, leaf().isd_as);
        let errors = [
            network.add_as(NewAs {
                mtu: Some(1000),
                ..leaf()
            }),
            network.add_link(&link("1-ff00:0:110#1", "1-ff00:0:111")),
            network.add_link(&link("1-ff00:0:110", "1-ff00:0:110")),
            network.add_link(&link("1-ff00:0:110", "1-ff00:0:112")),
            network.add_link(&link("nonsense", "1-ff00:0:110")),
            network.remove_as(new),
            network.remove_link(core, 9),
            network.set_link_mtu((core, 1), 100),
            network.add_router(core, "no-name", &[1]),
            network.add_router(core, "B", &[9]),
            network.remove_router(core, "B"),
            network.remove_router(core, ""),
        ];
        for error in errors {
            let error = error.unwrap_err();
            assert!(!error.is_empty() && !error.contains('\n'), "{error}");
        }
        assert_eq!(network, before);
    }
}

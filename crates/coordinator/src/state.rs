//! The whole state at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use hawser_limit::Direction;
use hawser_topology::IsdAsn;

use crate::as_link::AsLink;
use crate::host::{AttachmentPoint, Host, UserAs};
use crate::limits::Limits;
use crate::link::{CoreLink, Link, LinkEnd, LinkId};
use crate::user::{User, UserId};

/// The whole state at one moment.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The users.
    pub users: BTreeMap<UserId, User>,
    /// The attachment points.
    pub attachment_points: BTreeMap<IsdAsn, AttachmentPoint>,
    /// The user ASes.
    pub user_ases: BTreeMap<IsdAsn, UserAs>,
    /// The links to user ASes.
    pub links: BTreeMap<LinkId, Link>,
    /// The links between attachment points.
    pub core_links: BTreeMap<LinkId, CoreLink>,
    /// The links between user ASes, and peering links.
    pub as_links: BTreeMap<LinkId, AsLink>,
    /// The numbers that come next.
    pub(crate) next: Next,
}

/// A link as it is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcedLink {
    /// The link.
    pub link: LinkId,
    /// The AS at the far end.
    pub user_as: IsdAsn,
    /// The underlay address of the far end.
    pub ip: IpAddr,
    /// Its UDP port; `None` for all traffic with the address.
    pub port: Option<u16>,
    /// The network interface; `None` for that of the route to the address.
    pub device: Option<String>,
    /// Longest wait of a packet in the queue of each limit; `None` for the usual one.
    pub queue: Option<Duration>,
    /// The limits in bit/s; 0 for no traffic, `None` for no limit.
    pub limits: Limits,
}

/// The numbers that come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    pub user: u64,
    pub link: u64,
    pub change: u64,
    pub version: u64,
}

impl Default for Next {
    fn default() -> Self {
        Self {
            user: 1,
            link: 1,
            change: 1,
            version: 1,
        }
    }
}

impl State {
    /// Who owns the AS at the far end of a link.
    #[must_use]
    pub fn owner(&self, link: &Link) -> Option<UserId> {
        self.user_ases.get(&link.user_as.isd_as)?.owner
    }

    /// The user of a name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.values().find(|user| user.name == name)
    }

    /// The machine of an AS.
    #[must_use]
    pub fn host(&self, isd_as: IsdAsn) -> Option<&Host> {
        let attachment_point = self.attachment_points.get(&isd_as).map(|one| &one.host);
        attachment_point.or_else(|| self.user_ases.get(&isd_as).map(|one| &one.host))
    }

    pub(crate) fn host_mut(&mut self, isd_as: IsdAsn) -> Option<&mut Host> {
        let attachment_point = self.attachment_points.get_mut(&isd_as);
        match attachment_point {
            Some(one) => Some(&mut one.host),
            None => self.user_ases.get_mut(&isd_as).map(|one| &mut one.host),
        }
    }

    /// The links to user ASes that an AS has.
    pub fn links_of(&self, isd_as: IsdAsn) -> impl Iterator<Item = &Link> {
        let has = move |link: &&Link| {
            link.attachment_point.isd_as == isd_as || link.user_as.isd_as == isd_as
        };
        self.links.values().filter(has)
    }

    /// The links to other attachment points that an AS has.
    pub fn core_links_of(&self, isd_as: IsdAsn) -> impl Iterator<Item = &CoreLink> {
        let has = move |link: &&CoreLink| link.ends.iter().any(|end| end.isd_as == isd_as);
        self.core_links.values().filter(has)
    }

    /// The peering links and links to other user ASes that an AS has.
    pub fn as_links_of(&self, isd_as: IsdAsn) -> impl Iterator<Item = &AsLink> {
        let has = move |link: &&AsLink| link.ends.iter().any(|end| end.isd_as == isd_as);
        self.as_links.values().filter(has)
    }

    /// Both ends of each link of any kind that an AS has.
    pub(crate) fn link_ends_of(&self, isd_as: IsdAsn) -> impl Iterator<Item = [LinkEnd; 2]> {
        let links = self.links_of(isd_as);
        let links = links.map(|link| [link.attachment_point, link.user_as]);
        let core = self.core_links_of(isd_as).map(|link| link.ends);
        let others = self.as_links_of(isd_as).map(|link| link.ends);
        links.chain(core).chain(others)
    }

    /// The ends of all links of any kind.
    pub(crate) fn ends_mut(&mut self) -> impl Iterator<Item = &mut LinkEnd> {
        let links = self.links.values_mut();
        let links = links.flat_map(|link| [&mut link.attachment_point, &mut link.user_as]);
        let core = self.core_links.values_mut();
        let core = core.flat_map(|link| &mut link.ends);
        let others = self.as_links.values_mut();
        links
            .chain(core)
            .chain(others.flat_map(|link| &mut link.ends))
    }

    /// The far ends of the links that an AS may limit.
    pub(crate) fn limited_far_ends(
        &self,
        isd_as: IsdAsn,
    ) -> impl Iterator<Item = (LinkId, &LinkEnd)> {
        let links = self.links.values();
        let links = links.filter(move |link| link.attachment_point.isd_as == isd_as);
        let links = links.map(|link| (link.id, &link.user_as));
        let others = self.as_links_of(isd_as).map(move |link| {
            let [one, other] = &link.ends;
            (link.id, if one.isd_as == isd_as { other } else { one })
        });
        links.chain(others)
    }

    /// The limits of a link that are to be in force; `None` if none has them by this number.
    #[must_use]
    pub fn limits_of(&self, link: LinkId) -> Option<Limits> {
        let of_link = self.links.get(&link).map(Link::wanted);
        of_link.or_else(|| self.as_links.get(&link).map(|link| link.limit))
    }

    /// Whether an AS counts what a link carries in a direction: an attachment point all of its links to user
    /// ASes, others what they send.
    #[must_use]
    pub fn counts(&self, isd_as: IsdAsn, link: LinkId, direction: Direction) -> bool {
        match (self.links.get(&link), self.as_links.get(&link)) {
            (Some(link), _) => link.attachment_point.isd_as == isd_as,
            (None, Some(link)) => {
                let [first, second] = link.ends.map(|end| end.isd_as == isd_as);
                match direction {
                    Direction::Egress => first,
                    Direction::Ingress => second,
                }
            }
            (None, None) => false,
        }
    }

    /// What an AS is to enforce. Links without a known address at the far end are left out: nothing
    /// tells their packets.
    #[must_use]
    pub fn enforced(&self, isd_as: IsdAsn) -> Vec<EnforcedLink> {
        let device = self.attachment_points.get(&isd_as);
        let device = device.and_then(|one| one.device.clone());
        let of_it = |link: &&Link| link.attachment_point.isd_as == isd_as;
        let links = self.links.values().filter(of_it);
        let links = links.filter_map(|link| {
            Some(EnforcedLink {
                link: link.id,
                user_as: link.user_as.isd_as,
                ip: link.user_as.ip?,
                port: link.user_as.port,
                device: link.device.clone().or_else(|| device.clone()),
                queue: link.queue_us.map(Duration::from_micros),
                limits: link.wanted(),
            })
        });
        let others = self.as_links_of(isd_as).filter_map(|link| {
            let [first, second] = &link.ends;
            let (far, egress) = match first.isd_as == isd_as {
                true => (second, link.limit.egress),
                false => (first, link.limit.ingress),
            };
            Some(EnforcedLink {
                link: link.id,
                user_as: far.isd_as,
                ip: far.ip?,
                port: far.port,
                device: device.clone(),
                queue: link.queue_us.map(Duration::from_micros),
                limits: Limits::default().with(Direction::Egress, egress),
            })
        });
        links.chain(others).collect()
    }

    /// Gives those ASes a new version whose configuration differs from that in `before`.
    pub(crate) fn update_versions(&mut self, before: &Self) {
        let mut touched = BTreeSet::new();
        for id in differing(&before.links, &self.links) {
            for link in [before.links.get(&id), self.links.get(&id)] {
                touched.extend(link.map(|link| link.attachment_point.isd_as));
            }
            // Its far end is configured alike whatever the limits and their queues are.
            let ends = |state: &Self| {
                let link = state.links.get(&id)?;
                Some((link.attachment_point, link.user_as, link.emulation))
            };
            let (old, new) = (ends(before), ends(self));
            if old != new {
                let ends = [old, new].into_iter().flatten();
                touched.extend(ends.map(|(_, user_as, _)| user_as.isd_as));
            }
        }
        for id in differing(&before.core_links, &self.core_links) {
            for link in [before.core_links.get(&id), self.core_links.get(&id)] {
                let ends = link.into_iter().flat_map(|link| &link.ends);
                touched.extend(ends.map(|end| end.isd_as));
            }
        }
        for id in differing(&before.as_links, &self.as_links) {
            for link in [before.as_links.get(&id), self.as_links.get(&id)] {
                let ends = link.into_iter().flat_map(|link| &link.ends);
                touched.extend(ends.map(|end| end.isd_as));
            }
        }
        touched.extend(self.attachment_points.values().filter_map(|one| {
            let old = before.attachment_points.get(&one.isd_as);
            let same = old.is_some_and(|old| {
                (&old.addresses, &old.device) == (&one.addresses, &one.device)
                    && old.host.trusted_since == one.host.trusted_since
            });
            (!same).then_some(one.isd_as)
        }));
        touched.extend(self.user_ases.values().filter_map(|one| {
            let old = before.user_ases.get(&one.isd_as);
            let same = old.is_some_and(|old| {
                old.addresses == one.addresses && old.host.trusted_since == one.host.trusted_since
            });
            (!same).then_some(one.isd_as)
        }));
        let version = self.next.version;
        for isd_as in touched {
            if let Some(host) = self.host_mut(isd_as) {
                host.version = version;
                self.next.version = version + 1;
            }
        }
    }
}

/// The keys whose values differ, or that only one of both has.
pub(crate) fn differing<K: Ord + Copy, V: PartialEq>(
    one: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
) -> BTreeSet<K> {
    let keys = one.keys().chain(other.keys()).copied();
    keys.filter(|key| one.get(key) != other.get(key)).collect()
}

//! The whole state at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use hawser_topology::IsdAsn;

use crate::host::{AttachmentPoint, Host, UserAs};
use crate::limits::Limits;
use crate::link::{CoreLink, Link, LinkId};
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

    /// What an attachment point is to enforce. Links without a known address at the far end are left
    /// out: nothing tells their packets.
    #[must_use]
    pub fn enforced(&self, attachment_point: IsdAsn) -> Vec<EnforcedLink> {
        let device = self.attachment_points.get(&attachment_point);
        let device = device.and_then(|one| one.device.clone());
        let of_it = |link: &&Link| link.attachment_point.isd_as == attachment_point;
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
        links.collect()
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

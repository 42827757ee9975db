//! Hop predicates of a sequence, and the ASes they are compared with.

use sciparse::identifier::isd_asn::IsdAsn;

use crate::Path;

/// What an AS on the path must be like; `None` is any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hop {
    pub isd: Option<u16>,
    pub asn: Option<u64>,
    pub interfaces: Interfaces,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Interfaces {
    #[default]
    Any,
    /// This one, in or out.
    Either(u16),
    /// The first on the way in, the second on the way out; `None` is any.
    Both(Option<u16>, Option<u16>),
}

/// An AS as a path crosses it; 0 is the interface missing at an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    isd_as: IsdAsn,
    ingress: u16,
    egress: u16,
}

/// The ASes of a path, in order of travel.
pub(super) fn crossings(path: &Path) -> Vec<Crossing> {
    let Some((first, rest)) = path.interfaces.split_first() else {
        return Vec::new();
    };
    let mut crossings = vec![Crossing {
        isd_as: first.isd_as,
        ingress: 0,
        egress: first.id,
    }];
    crossings.extend(rest.chunks(2).map(|pair| Crossing {
        isd_as: pair[0].isd_as,
        ingress: pair[0].id,
        egress: pair.get(1).map_or(0, |interface| interface.id),
    }));
    crossings
}

impl Hop {
    /// Whether it is true of this AS.
    pub fn matches(&self, crossing: &Crossing) -> bool {
        let is = |wanted: Option<u16>, id| wanted.is_none_or(|wanted| wanted == id);
        is(self.isd, crossing.isd_as.isd().to_u16())
            && self
                .asn
                .is_none_or(|asn| asn == crossing.isd_as.asn().to_u64())
            && match self.interfaces {
                Interfaces::Any => true,
                Interfaces::Either(id) => id == crossing.ingress || id == crossing.egress,
                Interfaces::Both(ingress, egress) => {
                    is(ingress, crossing.ingress) && is(egress, crossing.egress)
                }
            }
    }
}

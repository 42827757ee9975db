//! Hop predicates of policies.

use std::fmt;
use std::str::FromStr;

use hawser_address::{Asn, Isd, IsdAsn};

use crate::Interface;
use crate::path::Crossing;
use crate::text::number;

/// A hop predicate: conditions on an AS and on the interfaces by which a path crosses it.
///
/// Parsed and printed as in an ACL: `ISD`, `ISD-AS`, `ISD-AS#IF` or `ISD-AS#IN,OUT`, where 0
/// matches any value. Sequences have another syntax: in an ACL, an interface needs an AS other than
/// 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predicate {
    pub isd_as: IsdAsn,
    pub interfaces: Interfaces,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interfaces {
    /// Any interfaces.
    Any,
    /// This one, as ingress or egress.
    Either(u16),
    /// The ingress, then the egress; 0 matches any.
    Both(u16, u16),
}

impl Predicate {
    /// Whether it matches every interface.
    pub fn is_any(&self) -> bool {
        // In an ACL, an AS of 0 has no interface.
        self.isd_as == IsdAsn::WILDCARD
    }

    /// Whether it matches `interface`, by which a path enters its AS if `enters`, or else leaves
    /// it.
    pub fn is(&self, interface: Interface, enters: bool) -> bool {
        let wanted = match self.interfaces {
            Interfaces::Any => 0,
            Interfaces::Either(id) => id,
            Interfaces::Both(ingress, _) if enters => ingress,
            Interfaces::Both(_, egress) => egress,
        };
        self.isd_as.matches(interface.isd_as) && (wanted == 0 || wanted == interface.id)
    }

    /// Whether it matches an AS as a path crosses it.
    pub fn is_crossed(&self, crossing: &Crossing) -> bool {
        let is = |wanted: u16, id: u16| wanted == 0 || wanted == id;
        let (ingress, egress) = (crossing.ingress, crossing.egress);
        self.isd_as.matches(crossing.isd_as)
            && match self.interfaces {
                Interfaces::Any => true,
                Interfaces::Either(id) => id == ingress || id == egress,
                Interfaces::Both(one, other) => is(one, ingress) && is(other, egress),
            }
    }
}

impl FromStr for Predicate {
    /// What is wrong with it.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (isd_as, interfaces) = match text.split_once('#') {
            Some((isd_as, interfaces)) => (isd_as, Some(interfaces)),
            None => (text, None),
        };
        let (isd, asn) = match isd_as.split_once('-') {
            Some((isd, asn)) => (isd, Some(asn)),
            None => (isd_as, None),
        };
        let isd = number(isd).ok_or("an ISD is a number up to 65535")?;
        let asn = match asn {
            None => Asn::WILDCARD,
            Some(asn) => asn
                .parse()
                .map_err(|_| "an AS is such as ff00:0:110 or 64512")?,
        };
        let interfaces = match interfaces.map(|both| (both, both.split_once(','))) {
            None => Interfaces::Any,
            Some(_) if !isd_as.contains('-') => return Err("interfaces need an AS before the #"),
            Some((_, Some((ingress, egress)))) => match (interface(ingress)?, interface(egress)?) {
                (0, 0) => Interfaces::Any,
                (ingress, egress) => Interfaces::Both(ingress, egress),
            },
            Some((one, None)) => match interface(one)? {
                0 => Interfaces::Any,
                id => Interfaces::Either(id),
            },
        };
        if asn == Asn::WILDCARD && interfaces != Interfaces::Any {
            return Err("where the AS is any, so is the interface");
        }
        let isd_as = IsdAsn::new(Isd::new(isd), asn);
        Ok(Self { isd_as, interfaces })
    }
}

fn interface(text: &str) -> Result<u16, &'static str> {
    number(text).ok_or("an interface is a number up to 65535, and there are at most two")
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.isd_as.asn() {
            Asn::WILDCARD => write!(f, "{}", self.isd_as.isd())?,
            _ => write!(f, "{}", self.isd_as)?,
        }
        match self.interfaces {
            Interfaces::Any => Ok(()),
            Interfaces::Either(id) => write!(f, "#{id}"),
            Interfaces::Both(ingress, egress) => write!(f, "#{ingress},{egress}"),
        }
    }
}

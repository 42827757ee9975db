//! Which changes a running lab can take.

use hawser_topology::{As, IsdAsn, Link, LinkKind, Network};

/// Checks that a lab of the network `before` can become one of `after`, whose core and peering links get
/// the direction that they have in `before`: it makes no difference, and they stay as they are.
/// `has_authority` says whether the folder of an AS has the keys of a certification authority.
///
/// # Errors
/// What is not possible, with the remedy.
pub(crate) fn check(
    before: &Network,
    mut after: Network,
    has_authority: impl Fn(IsdAsn) -> bool,
) -> Result<Network, String> {
    for as_ in &after.ases {
        let isd = as_.isd_as.isd();
        let mut of_isd = after.ases.iter().filter(|other| other.isd_as.isd() == isd);
        if !of_isd.any(|other| other.core) {
            return Err(format!(
                "ISD {isd} has no core AS: its TRC needs at least one"
            ));
        }
        match before.find(as_.isd_as) {
            Some(known) => check_roles(known, as_)?,
            None => check_new(before, as_, &has_authority)?,
        }
    }
    for link in &mut after.links {
        turn(before, link);
    }
    Ok(after)
}

fn check_roles(known: &As, as_: &As) -> Result<(), String> {
    let roles = |as_: &As| {
        (
            [as_.voting, as_.authoritative, as_.issuing],
            as_.cert_issuer,
        )
    };
    match roles(known) == roles(as_) {
        true => Ok(()),
        false => Err(format!(
            "{} gets another role in its ISD (voting, authoritative, issuing, cert_issuer), for which all certificates are made anew: not supported yet while the lab runs, take it down and bring it up again",
            as_.isd_as
        )),
    }
}

fn check_new(
    before: &Network,
    as_: &As,
    has_authority: impl Fn(IsdAsn) -> bool,
) -> Result<(), String> {
    let isd_as = as_.isd_as;
    let known = before.ases.iter().map(|known| known.isd_as);
    let of_isd: Vec<IsdAsn> = known.filter(|known| known.isd() == isd_as.isd()).collect();
    if of_isd.is_empty() {
        // All keys of a new ISD are made with it.
        return Ok(());
    }
    if as_.voting || as_.authoritative || as_.issuing {
        return Err(format!(
            "{isd_as} is new, and voting, authoritative or issuing in an ISD that the lab has: not supported yet while the lab runs, take it down and bring it up again"
        ));
    }
    match as_.cert_issuer {
        Some(issuer) if !has_authority(issuer) => Err(format!(
            "{isd_as} names {issuer} as the issuer of its certificate, which issues none in its ISD: name one that does, or leave cert_issuer out"
        )),
        None if !of_isd.iter().any(|known| has_authority(*known)) => Err(format!(
            "{isd_as} needs a certificate, and the ASes that issued those of its ISD are no longer in the lab: take it down and bring it up again"
        )),
        _ => Ok(()),
    }
}

/// Gives a link whose ends are alike the direction that it has in `before`.
fn turn(before: &Network, link: &mut Link) {
    let Some((known, _)) = before.link_at(link.a.isd_as, link.a.id) else {
        return;
    };
    let known = &before.links[known];
    let is_turned = known.a == link.b && known.b == link.a;
    if is_turned && known.kind == link.kind && link.kind != LinkKind::Child {
        std::mem::swap(&mut link.a, &mut link.b);
    }
}

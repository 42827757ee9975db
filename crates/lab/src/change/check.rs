//! Which changes a running lab can take.

use hawser_topology::{As, IsdAsn, Link, LinkKind, Network};

use super::keys::roles_of;

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
        if before.find(as_.isd_as).is_none() {
            check_new(before, as_, &has_authority)?;
        }
        check_issuer((before, &after), as_, &has_authority)?;
    }
    for link in &mut after.links {
        turn(before, link);
    }
    Ok(after)
}

/// Checks the issuer that an AS names for its certificate. With other roles in an ISD its authorities are those
/// of a fresh lab, else those that have the keys.
fn check_issuer(
    (before, after): (&Network, &Network),
    as_: &As,
    has_authority: impl Fn(IsdAsn) -> bool,
) -> Result<(), String> {
    let Some(issuer) = as_.cert_issuer.filter(|_| !as_.issuing) else {
        return Ok(());
    };
    let isd = as_.isd_as.isd();
    let isd_number = isd.to_u16();
    let of_isd = || after.ases.iter().filter(|other| other.isd_as.isd() == isd);
    let is_there = before.ases.iter().any(|other| other.isd_as.isd() == isd);
    let has_others = roles_of(before, isd_number).has_others_in(after, isd_number);
    let may_issue = match is_there && !has_others {
        true => has_authority(issuer),
        false => {
            let is_named = of_isd().any(|other| other.issuing);
            let mut issuers = of_isd().filter(|other| match is_named {
                true => other.issuing,
                false => other.core,
            });
            issuers.any(|other| other.isd_as == issuer)
        }
    };
    match may_issue {
        true => Ok(()),
        false => Err(format!(
            "{} names {issuer} as the issuer of its certificate, which issues none in its ISD: name one that does, or leave cert_issuer out",
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
    match of_isd.iter().any(|known| has_authority(*known)) {
        true => Ok(()),
        false => Err(format!(
            "{isd_as} needs a certificate, and the ASes that issued those of its ISD are no longer in the lab: take it down and bring it up again"
        )),
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

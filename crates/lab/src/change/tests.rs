//! Random networks and random changes of them, on the model that the supervisor keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hawser_topology::{As, End, IsdAsn, Link, LinkKind, Network, Shape, Underlay};
use proptest::prelude::*;

use super::made::roles_by_isd;
use super::*;
use crate::plan::{LinkId, Plan};

/// Number of ASes that networks are made of, two of them in a second ISD.
const ASES: usize = 6;

fn isd_as(at: usize) -> IsdAsn {
    let isd = 1 + u64::from(at >= ASES - 2);
    IsdAsn::from_u64(isd << 48 | 0xff00_0000_0000 | (at as u64 + 1))
}

fn an_as() -> impl Strategy<Value = (bool, bool, bool)> {
    (
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    )
}

/// A link: its ASes, interfaces, labels of routers, kind, underlay, MTU and shape, all from a few.
type RandomLink = ((usize, usize), (u16, u16), (u8, u8), u8, (bool, bool), u8);

fn a_link() -> impl Strategy<Value = RandomLink> {
    let wide = prop::bool::weighted(0.2);
    (
        (0..ASES, 0..ASES),
        (1..4u16, 1..4u16),
        (0..3u8, 0..3u8),
        0..3u8,
        (wide, any::<bool>()),
        0..3u8,
    )
}

fn network_of(ases: &[Option<(bool, bool, bool)>], links: &[RandomLink]) -> Network {
    let mut network = Network {
        ases: Vec::new(),
        links: Vec::new(),
    };
    for (at, (core, wide, large)) in ases
        .iter()
        .enumerate()
        .filter_map(|(i, a)| Some((i, (*a)?)))
    {
        network.ases.push(As {
            isd_as: isd_as(at),
            core,
            voting: core && large,
            authoritative: false,
            issuing: core && wide,
            cert_issuer: None,
            underlay: if wide { Underlay::Ipv6 } else { Underlay::Ipv4 },
            dispatched_ports: (31000, 32767),
            mtu: if large { 9000 } else { 1472 },
            note: None,
        });
    }
    for &((a, b), (a_id, b_id), (a_label, b_label), kind, (wide, large), shape) in links {
        let end = |at: usize, id: u16, label: u8| End {
            isd_as: isd_as(at),
            router: ["", "A", "B"][usize::from(label)].to_owned(),
            id,
        };
        let link = Link {
            a: end(a, a_id, a_label),
            b: end(b, b_id, b_label),
            kind: [LinkKind::Core, LinkKind::Child, LinkKind::Peer][usize::from(kind)],
            underlay: if wide { Underlay::Ipv6 } else { Underlay::Ipv4 },
            mtu: if large { 4000 } else { 1472 },
            shape: Shape {
                rate: (shape == 1).then_some(1_000_000),
                delay: Duration::from_millis(if shape == 2 { 5 } else { 0 }),
                ..Shape::default()
            },
        };
        let is_free = |end: &End| {
            network.find(end.isd_as).is_some() && network.link_at(end.isd_as, end.id).is_none()
        };
        if a != b && is_free(&link.a) && is_free(&link.b) {
            network.links.push(link);
        }
    }
    network
}

/// Networks that are like one another: each AS and each link changes now and then.
fn networks() -> impl Strategy<Value = Vec<Network>> {
    let ases = prop::collection::vec(prop::option::weighted(0.8, an_as()), ASES);
    let links = prop::collection::vec(a_link(), 0..10);
    let changes = prop::collection::vec(
        (
            prop::collection::vec((0..ASES, prop::option::weighted(0.6, an_as())), 0..3),
            prop::collection::vec((0..10usize, prop::option::weighted(0.6, a_link())), 0..4),
        ),
        2,
    );
    (ases, links, changes).prop_map(|(mut ases, mut links, changes)| {
        let mut networks = vec![network_of(&ases, &links)];
        for (of_ases, of_links) in changes {
            for (at, change) in of_ases {
                ases[at] = change;
            }
            for (at, change) in of_links {
                match (change, at < links.len()) {
                    (Some(link), true) => links[at] = link,
                    (Some(link), false) => links.push(link),
                    (None, true) => drop(links.remove(at)),
                    (None, false) => {}
                }
            }
            networks.push(network_of(&ases, &links));
        }
        networks
    })
}

fn fresh(network: &Network) -> Made {
    Made::new(Plan::of(network).unwrap(), network.clone())
}

/// What must hold of a lab at any time.
fn check_made(made: &Made) -> Result<(), TestCaseError> {
    let unique = |numbers: Vec<u32>| {
        let count = numbers.len();
        numbers.into_iter().collect::<BTreeSet<_>>().len() == count
    };
    prop_assert!(unique(made.ases.values().map(|a| a.plan.number).collect()));
    prop_assert!(unique(made.links.values().map(|l| l.plan.number).collect()));
    let mut interfaces = BTreeSet::new();
    for id in made.links.keys() {
        for end in id.ends() {
            prop_assert!(interfaces.insert(end), "{end:?} twice");
            prop_assert!(made.ases.contains_key(&end.0), "{id} without its AS");
        }
    }
    for as_ in made.ases.values() {
        let routers = as_.plan.topology.border_routers.values();
        let known: BTreeSet<u16> = routers.flat_map(|r| r.interfaces.keys().copied()).collect();
        let links = as_.plan.links.keys();
        for id in links {
            prop_assert!(known.contains(id), "links.json has an unknown interface");
        }
    }
    Ok(())
}

fn has_link(made: &Made, end: (IsdAsn, u16)) -> bool {
    made.links.keys().any(|id| id.ends().contains(&end))
}

/// What a step needs to be carried out.
fn check_step(made: &Made, step: &Step, target: &Target) -> Result<(), TestCaseError> {
    let has = |isd_as: &IsdAsn| made.ases.contains_key(isd_as);
    let is_ready = match step {
        Step::RemoveLink(id) | Step::SetLink(id) => made.links.contains_key(id),
        Step::RemoveAs(isd_as) => {
            let mut ends = made.links.keys().flat_map(|id| id.ends());
            has(isd_as) && !ends.any(|(end, _)| end == *isd_as)
        }
        Step::AddAs(isd_as) => !has(isd_as),
        Step::AddLink(id) => {
            let taken = |end| has_link(made, end);
            id.ends().iter().all(|(isd_as, _)| has(isd_as)) && !id.ends().into_iter().any(taken)
        }
        // A router fails to start when one of its links is missing, or another router has it.
        Step::Start(isd_as) | Step::ReplaceRouters(isd_as) | Step::ReloadRouters(isd_as) => {
            let links = target.ases[isd_as].links.keys();
            let exists = |id: &u16| has_link(made, (*isd_as, *id));
            has(isd_as)
                && made.ases[isd_as].plan.topology == target.ases[isd_as].topology
                && links.into_iter().all(exists)
        }
        Step::SetHost(isd_as)
        | Step::Configure(isd_as)
        | Step::SetRoutes(isd_as)
        | Step::ReloadControl(isd_as) => has(isd_as),
        Step::Forget(isd_as) => !has(isd_as) && target.network.find(*isd_as).is_none(),
        // All folders that the network names are there by then, and so are those of the voters.
        Step::UpdateTrc(_) | Step::Publish => {
            target.network.ases.iter().all(|as_| has(&as_.isd_as))
        }
    };
    prop_assert!(is_ready, "{step} too early");
    Ok(())
}

/// Carries out the first `count` steps towards a network.
fn go(made: &mut Made, network: &Network, count: usize) -> Result<Vec<Step>, TestCaseError> {
    let target = Target::new(made, network.clone()).unwrap();
    let steps = steps(made, &target);
    for step in steps.iter().take(count) {
        check_step(made, step, &target)?;
        made.take(step, &target);
        check_made(made)?;
    }
    Ok(steps)
}

/// What of an AS and of a link does not depend on numbers: the same in each lab of a network.
fn without_numbers(made: &Made) -> impl PartialEq + std::fmt::Debug + use<> {
    let ases = made.ases.iter().map(|(isd_as, as_)| {
        let plan = &as_.plan;
        let routers = plan.topology.border_routers.values().map(|router| {
            let interfaces = router.interfaces.iter();
            let interfaces = interfaces.map(|(id, interface)| {
                let to = (interface.isd_as, interface.remote_id, interface.link_to);
                (*id, to, interface.mtu, interface.underlay.local.is_ipv6())
            });
            interfaces.collect::<Vec<_>>()
        });
        let routers: BTreeSet<_> = routers
            .collect::<Vec<_>>()
            .into_iter()
            .map(|r| format!("{r:?}"))
            .collect();
        let file = (plan.topology.mtu, plan.topology.core, routers);
        (
            *isd_as,
            (
                plan.inner_mtu,
                plan.host6.is_some(),
                file,
                plan.links.clone(),
                plan.routes.len(),
            ),
        )
    });
    let links = made
        .links
        .iter()
        .map(|(id, link)| (*id, (link.plan.mtu, link.up)));
    (
        ases.collect::<BTreeMap<_, _>>(),
        links.collect::<BTreeMap<_, _>>(),
        made.published.clone(),
    )
}

/// Whether a lab is wholly what the network says.
fn check_whole(made: &Made, network: &Network) -> Result<(), TestCaseError> {
    prop_assert_eq!(without_numbers(made), without_numbers(&fresh(network)));
    prop_assert!(made.leftover.is_empty());
    for (isd, roles) in roles_by_isd(network) {
        prop_assert!(
            roles.core.is_empty() || made.roles[&isd] == roles,
            "the TRC of ISD {isd}"
        );
    }
    for as_ in made.ases.values() {
        prop_assert!(as_.is_started && as_.has_routers_current && as_.has_control_current);
    }
    let again = Target::new(made, network.clone()).unwrap();
    prop_assert_eq!(steps(made, &again), Vec::new());
    Ok(())
}

/// The ASes and links that are in both networks and alike, with all that is next to them.
fn untouched(before: &Network, after: &Network) -> (BTreeSet<IsdAsn>, BTreeSet<LinkId>) {
    let keeps = |link: &Link| {
        let same = after.links.contains(link);
        let of_end = |end: &End| {
            let both = before.find(end.isd_as).zip(after.find(end.isd_as));
            both.is_some_and(|(before, after)| before.underlay == after.underlay)
        };
        same && of_end(&link.a) && of_end(&link.b)
    };
    let links = before.links.iter().filter(|link| keeps(link));
    let links: BTreeSet<LinkId> = links.map(LinkId::of).collect();
    let mut ases = BTreeSet::new();
    for as_ in &before.ases {
        let of = |network: &Network| {
            let links = network.links_of(as_.isd_as);
            links
                .map(|(link, _)| LinkId::of(link))
                .collect::<BTreeSet<_>>()
        };
        let (old, new) = (of(before), of(after));
        if after.ases.contains(as_) && old == new && old.is_subset(&links) {
            ases.insert(as_.isd_as);
        }
    }
    (ases, links)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_change_makes_what_a_fresh_lab_is(networks in networks()) {
        let mut made = fresh(&networks[0]);
        check_made(&made)?;
        for network in &networks[1..] {
            let before = made.clone();
            let steps = go(&mut made, network, usize::MAX)?;
            check_whole(&made, network)?;
            // What stays has its addresses, and what is alike occurs in no step that touches it.
            for (isd_as, as_) in &made.ases {
                if let Some(before) = before.ases.get(isd_as) {
                    prop_assert_eq!(before.plan.host, as_.plan.host);
                }
            }
            let (ases, links) = untouched(&before.published, network);
            for link in &links {
                prop_assert_eq!(&before.links[link], &made.links[link]);
            }
            for step in steps {
                match step {
                    Step::RemoveLink(id) | Step::SetLink(id) | Step::AddLink(id) => {
                        prop_assert!(!links.contains(&id), "{}", step);
                    }
                    Step::RemoveAs(of)
                    | Step::AddAs(of)
                    | Step::SetHost(of)
                    | Step::Configure(of)
                    | Step::Start(of)
                    | Step::ReplaceRouters(of)
                    | Step::ReloadRouters(of)
                    | Step::Forget(of) => prop_assert!(!ases.contains(&of), "{}", step),
                    // These change nothing of what an AS has already, and are for all of them.
                    Step::SetRoutes(_)
                    | Step::UpdateTrc(_)
                    | Step::Publish
                    | Step::ReloadControl(_) => {}
                }
            }
        }
    }

    #[test]
    fn a_change_that_was_interrupted_goes_on_to_any_network(
        networks in networks(),
        first in 0..40usize,
        second in 0..40usize,
        back in any::<bool>(),
    ) {
        let mut made = fresh(&networks[0]);
        go(&mut made, &networks[1], first)?;
        go(&mut made, &networks[2], second)?;
        let last = if back { &networks[0] } else { &networks[2] };
        go(&mut made, last, usize::MAX)?;
        check_whole(&made, last)?;
    }

    #[test]
    fn links_that_are_down_or_differ_at_their_ends_are_known(networks in networks(), which in any::<prop::sample::Index>()) {
        let mut made = fresh(&networks[0]);
        prop_assume!(!made.links.is_empty());
        let id = *made.links.keys().nth(which.index(made.links.len())).unwrap();
        // As `lab link set` does: the link goes down, and one direction gets another delay.
        made.links.get_mut(&id).unwrap().up = false;
        for (at, (isd_as, id)) in id.ends().into_iter().enumerate() {
            let as_ = made.ases.get_mut(&isd_as).unwrap();
            let state = as_.plan.links.get_mut(&id).unwrap();
            state.up = false;
            state.shape.delay = Duration::from_millis(7 * at as u64);
        }
        let before = made.clone();
        let steps = go(&mut made, &networks[0], usize::MAX)?;
        prop_assert_eq!(&steps[0], &Step::SetLink(id));
        prop_assert!(!made.links[&id].up);
        let (isd_as, interface) = id.1;
        prop_assert!(!made.ases[&isd_as].plan.links[&interface].up);
        prop_assert_eq!(&before.links[&id].plan, &made.links[&id].plan);
    }
}

#[test]
fn roles_change_as_far_as_there_are_issuers() {
    let before = Network::ready("fig9").unwrap();
    let all = |_| true;
    let refused = |change: fn(&mut Network), authority: bool| {
        let mut after = before.clone();
        change(&mut after);
        check(&before, after, |_| authority).unwrap_err()
    };
    assert_eq!(check(&before, before.clone(), all).unwrap(), before);
    let mut voting = before.clone();
    voting.ases[0].voting = true;
    assert_eq!(check(&before, voting.clone(), all).unwrap(), voting);
    // With other roles, the issuers of certificates are those of the network.
    let error = refused(
        |network| {
            network.ases[0].issuing = true;
            network.ases[1].cert_issuer = Some(network.ases[2].isd_as);
        },
        true,
    );
    assert!(error.contains("which issues none in its ISD"), "{error}");
    let mut issuing = before.clone();
    issuing.ases[0].issuing = true;
    issuing.ases[1].cert_issuer = Some(issuing.ases[0].isd_as);
    assert_eq!(check(&before, issuing.clone(), |_| false).unwrap(), issuing);
    // Core ASes change: the TRC is updated.
    let mut other_core = before.clone();
    other_core.ases[0].core = true;
    assert_eq!(check(&before, other_core.clone(), all).unwrap(), other_core);
    let add = |network: &mut Network| {
        let mut new = network.ases[0].clone();
        new.isd_as = "1-ff00:0:99".parse().unwrap();
        network.ases.push(new);
    };
    let mut larger = before.clone();
    add(&mut larger);
    assert_eq!(check(&before, larger.clone(), all).unwrap(), larger);
    let error = refused(add, false);
    assert!(error.contains("needs a certificate"), "{error}");
    larger.ases[5].voting = true;
    assert_eq!(check(&before, larger.clone(), all).unwrap(), larger);
    // A new ISD gets its own keys, and needs a core AS.
    let new = larger.ases.last_mut().unwrap();
    new.isd_as = "2-ff00:0:99".parse().unwrap();
    let error = check(&before, larger.clone(), |_| false).unwrap_err();
    assert!(error.contains("ISD 2 has no core AS"), "{error}");
    larger.ases[5].core = true;
    assert!(check(&before, larger, |_| false).is_ok());
}

#[test]
fn a_core_link_written_the_other_way_round_stays() {
    let before = Network::ready("fig4").unwrap();
    let mut after = before.clone();
    let link = &mut after.links[0];
    std::mem::swap(&mut link.a, &mut link.b);
    assert_eq!(check(&before, after.clone(), |_| true).unwrap(), before);
    after.links[0].kind = LinkKind::Child;
    assert_eq!(check(&before, after.clone(), |_| true).unwrap(), after);
}

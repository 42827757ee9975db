//! Generated networks for experiments.

use std::fmt::Write;

use crate::random::generator;

/// Most ASes that [`generate`] makes.
pub const MAX_ASES: usize = 2000;

/// ASes of an ISD, when there are enough for several.
const ASES_PER_ISD: usize = 25;
const MAX_ISDS: usize = 8;
/// One of this many ASes is core.
const ASES_PER_CORE: usize = 8;
const MAX_CORES: usize = 6;

/// The `.topo` text of a generated network of `ases` ASes (clamped to 1 to [`MAX_ASES`]), the same
/// for the same seed.
///
/// ISDs have about 25 ASes; their core ASes are joined in a mesh, with two links between the cores
/// of any two ISDs. Below the core a quarter of the ASes are providers with two parents each, the
/// rest customers with one to three. A tenth as many peering links as ASes join providers. Rates
/// are random and decrease from the core outwards: 1 to 10 Gbit/s, 200 Mbit/s to 1 Gbit/s, 20 to
/// 200 Mbit/s.
pub fn generate(ases: usize, seed: u64) -> String {
    let ases = ases.clamp(1, MAX_ASES);
    let mut maker = Maker {
        rng: generator(seed, 0x746f_706f),
        ases: String::new(),
        links: String::new(),
    };
    let isds = (ases / ASES_PER_ISD).clamp(1, MAX_ISDS);
    let mut all = Vec::new();
    for isd in 0..isds {
        // The first ISDs take the remainder.
        let size = ases / isds + usize::from(isd < ases % isds);
        all.push(maker.isd(isd + 1, size));
    }
    for (at, isd) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            for _ in 0..2 {
                maker.between(&isd.core, &other.core, "CORE", &CORE);
            }
        }
    }
    let providers: Vec<String> = all.into_iter().flat_map(|isd| isd.providers).collect();
    for _ in 0..ases / 10 {
        maker.between(&providers, &providers, "PEER", &PROVIDER);
    }
    format!(
        "# {ases} made-up ASes in {isds} ISDs, of seed {seed}.\nASes:\n{}links:{}\n{}",
        maker.ases,
        if maker.links.is_empty() { " []" } else { "" },
        maker.links
    )
}

/// The properties of a kind of link: rates in Mbit/s, and least and largest delay in ms.
struct LinkClass {
    rates: &'static [u32],
    delay: (usize, usize),
}

const CORE: LinkClass = LinkClass {
    rates: &[1000, 2500, 5000, 10_000],
    delay: (5, 40),
};
const PROVIDER: LinkClass = LinkClass {
    rates: &[200, 500, 1000],
    delay: (2, 10),
};
const CUSTOMER: LinkClass = LinkClass {
    rates: &[20, 50, 100, 200],
    delay: (1, 5),
};

struct Isd {
    core: Vec<String>,
    providers: Vec<String>,
}

struct Maker {
    rng: fastrand::Rng,
    ases: String,
    links: String,
}

impl Maker {
    fn isd(&mut self, isd: usize, size: usize) -> Isd {
        let names: Vec<String> = (0..size)
            .map(|at| format!("{isd}-ff00:0:{:x}", isd * 0x1000 + at + 1))
            .collect();
        let cores = size.div_ceil(ASES_PER_CORE).min(MAX_CORES);
        let providers = (size - cores) / 4;
        let (core, below) = names.split_at(cores);
        let (providers, customers) = below.split_at(providers);
        for name in &names {
            let core = if core.contains(name) {
                "{core: true}"
            } else {
                "{}"
            };
            // Writing to a string cannot fail.
            let _ = writeln!(self.ases, "  \"{name}\": {core}");
        }
        for (at, one) in core.iter().enumerate() {
            for other in &core[at + 1..] {
                self.link(one, other, "CORE", &CORE);
            }
        }
        for provider in providers {
            self.below(core, provider, 2, &PROVIDER);
        }
        for customer in customers {
            let parents = [1, 2, 2, 3][self.rng.usize(..4)];
            let over = if providers.len() < 2 { core } else { providers };
            self.below(over, customer, parents, &CUSTOMER);
        }
        Isd {
            core: core.to_vec(),
            providers: providers.to_vec(),
        }
    }

    /// Adds links from at most `count` of these parents down to an AS.
    fn below(&mut self, parents: &[String], child: &str, count: usize, kind: &LinkClass) {
        let mut parents: Vec<&String> = parents.iter().collect();
        self.rng.shuffle(&mut parents);
        for parent in parents.into_iter().take(count) {
            self.link(parent, child, "CHILD", kind);
        }
    }

    /// Adds a link between a random one of `these` and another of `those`.
    fn between(&mut self, these: &[String], those: &[String], is: &str, kind: &LinkClass) {
        let one = self.rng.choice(these).cloned();
        let other = self.rng.choice(those).cloned();
        if let Some((one, other)) = one.zip(other).filter(|(one, other)| one != other) {
            self.link(&one, &other, is, kind);
        }
    }

    fn link(&mut self, a: &str, b: &str, is: &str, kind: &LinkClass) {
        let rate = kind.rates[self.rng.usize(..kind.rates.len())];
        let (least, most) = kind.delay;
        let delay = self.rng.usize(least..=most);
        let _ = writeln!(
            self.links,
            "  - {{a: \"{a}\", b: \"{b}\", linkAtoB: {is}, rate: {rate}mbit, delay: {delay}ms}}"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hawser_control::NetworkPaths;
    use hawser_topology::{LinkKind, Network};

    use super::*;

    #[test]
    fn networks_of_every_size_have_no_isolated_as() {
        for ases in [0, 1, 2, 3, 9, 40, 100, 230, MAX_ASES] {
            let network = Network::parse(&generate(ases, 7)).unwrap();
            assert_eq!(network.ases.len(), ases.max(1));
            assert!(network.ases.iter().any(|one| one.core));
            let joined: BTreeSet<_> = network
                .links
                .iter()
                .flat_map(|link| [link.a.isd_as, link.b.isd_as])
                .collect();
            assert_eq!(joined.len(), if ases < 2 { 0 } else { ases }, "{ases}");
        }
    }

    #[test]
    fn a_hundred_ases_are_several_isds_with_many_paths_between_them() {
        let text = generate(100, 1);
        assert_eq!(text, generate(100, 1));
        assert_ne!(text, generate(100, 2));
        let network = Network::parse(&text).unwrap();
        let isds: BTreeSet<_> = network.ases.iter().map(|one| one.isd_as.isd()).collect();
        assert_eq!(isds.len(), 4);
        let rates: BTreeSet<_> = network.links.iter().map(|link| link.shape.rate).collect();
        assert!(rates.len() > 8, "{rates:?}");
        assert!(network.links.iter().any(|link| link.kind == LinkKind::Peer));
        let mut paths = NetworkPaths::new(&network);
        let (first, last) = (network.ases[24].isd_as, network.ases[99].isd_as);
        assert!(paths.between(first, last, 50).len() >= 10);
        for one in &network.ases {
            for other in [first, last]
                .into_iter()
                .filter(|other| *other != one.isd_as)
            {
                assert!(!paths.between(one.isd_as, other, 1).is_empty());
            }
        }
    }
}

//! What each demo shows: who seeds, who downloads, over which paths.

use hawser_topology::{IsdAsn, Network};

use crate::failure::Failure;
use crate::paper::{fig5, fig8};

/// One demo.
pub struct Scene {
    /// The ready topology it runs on.
    pub topology: &'static str,
    /// Where the seeder is.
    pub seeder: IsdAsn,
    /// Where the leecher is.
    pub leecher: IsdAsn,
    /// The downloads, in order.
    pub acts: &'static [Act],
    /// Size of the file when the user says nothing: enough that starting up weighs little, little
    /// enough to be through in a minute.
    pub default_bytes: u64,
    /// Where the paper shows the same.
    pub paper: &'static str,
}

/// One download of a demo.
pub struct Act {
    /// What the report calls it.
    pub label: &'static str,
    /// How paths are chosen, as `get --select` reads it.
    pub select: &'static str,
    /// How many paths at most.
    pub paths: u16,
    /// The paper's goodput, in Mbit/s.
    pub paper_mbit: f64,
}

/// 001, Fig. 8.
const FIG7A: [Act; 2] = [
    Act {
        label: "shortest",
        select: "shortest",
        paths: 2,
        paper_mbit: fig8::NAIVE,
    },
    Act {
        label: "disjoint",
        select: "disjoint",
        paths: 2,
        paper_mbit: fig8::DISJOINT,
    },
];

/// 001, Fig. 5, on links of 10 Gbit/s.
const FIG4: [Act; 2] = [
    Act {
        label: "one-path",
        select: "shortest",
        paths: 1,
        paper_mbit: fig5::ONE_PATH,
    },
    Act {
        label: "disjoint",
        select: "disjoint",
        paths: 2,
        paper_mbit: fig5::TWO_PATHS,
    },
];

impl Act {
    /// What `hawser get` is told.
    pub fn args(&self) -> Vec<String> {
        let (paths, select) = (self.paths.to_string(), self.select.to_string());
        ["--paths", &paths, "--select", &select]
            .map(str::to_owned)
            .into()
    }
}

impl Scene {
    /// The demo on a ready topology.
    pub fn of(topology: &str) -> Result<Self, Failure> {
        let isd_as = |text: &str| {
            text.parse::<IsdAsn>()
                .map_err(|e| Failure::job(format!("{text}: {e}")))
        };
        match topology {
            "fig4" => Ok(Self {
                topology: "fig4",
                seeder: isd_as("1-ff00:0:111")?,
                leecher: isd_as("1-ff00:0:110")?,
                acts: &FIG4,
                default_bytes: 384 << 20,
                paper: "Gartner et al., Multipath BitTorrent over SCION, Fig. 5 (links of 10 Gbit/s)",
            }),
            "fig7a" => Ok(Self {
                topology: "fig7a",
                seeder: isd_as("1-ff00:0:4")?,
                leecher: isd_as("1-ff00:0:1")?,
                acts: &FIG7A,
                default_bytes: 32 << 20,
                paper: "Gartner et al., Multipath BitTorrent over SCION, Fig. 8",
            }),
            other => Err(Failure::usage(format!(
                "no demo on {other}: there are fig7a and fig4"
            ))),
        }
    }

    /// The ratio of the paper's figures, of the last download by the first.
    pub fn paper_ratio(&self) -> Option<f64> {
        let (first, last) = (self.acts.first()?, self.acts.last()?);
        Some(last.paper_mbit / first.paper_mbit)
    }

    /// Whether a link leads from the seeder's AS to the leecher's.
    pub fn has_direct_link(&self, network: &Network) -> bool {
        let ends = [self.seeder, self.leecher];
        let mut links = network.links.iter();
        links.any(|link| ends.contains(&link.a.isd_as) && ends.contains(&link.b.isd_as))
    }

    /// The network, with another limit on every limited link if asked for.
    pub fn network(&self, rate: Option<Option<u64>>) -> Result<Network, Failure> {
        let mut network = Network::ready(self.topology)
            .ok_or_else(|| Failure::job(format!("no topology {}", self.topology)))?;
        if let Some(rate) = rate {
            for link in &mut network.links {
                link.shape.rate = link.shape.rate.and(rate);
            }
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_has_its_network() {
        for name in ["fig4", "fig7a"] {
            let scene = Scene::of(name).unwrap();
            let network = scene.network(None).unwrap();
            assert!(network.find(scene.seeder).is_some());
            assert!(network.find(scene.leecher).is_some());
            assert!(network.links.iter().all(|l| l.shape.rate.is_some()));
            let free = scene.network(Some(None)).unwrap();
            assert!(free.links.iter().all(|l| l.shape.rate.is_none()));
        }
        assert!(Scene::of("fig9").is_err());
    }
}

//! What each experiment runs: networks, seeders, downloads, cross traffic; and what the papers
//! measured.

mod choice;
mod congestion;
mod links;
mod load;

use hawser_path::Interface;
use hawser_topology::{IsdAsn, Network};

use crate::cli::BenchName;
use crate::failure::Failure;

/// An experiment: variants that are compared.
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where the papers have it, or what it is.
    pub about: &'static str,
    /// What is compared, baselines first.
    pub variants: Vec<Variant>,
    /// Which two figures its headline ratio compares.
    pub headline: Headline,
    /// The ratio of the papers' figures.
    pub paper_ratio: Option<f64>,
    /// Bytes of each download.
    pub bytes: u64,
    /// When cross traffic flows, where there is any.
    pub window: Option<Window>,
}

/// What the headline ratio is.
pub enum Headline {
    /// Goodput of the first named variant by that of the second, times the third: 1 unless the
    /// figure is to be read per path.
    Ratio(String, String, f64),
    /// Goodput of the variant during the window by that before it.
    During(String),
}

/// When cross traffic flows, in seconds from the start of the download.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Its first second.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// Before this second a download is still starting up.
pub const SETTLED: f64 = 4.0;

/// One way to do it.
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The network it runs on.
    pub network: Network,
    /// The seeders.
    pub seeders: Vec<Seeder>,
    /// The downloads, which start together.
    pub downloads: Vec<Download>,
    /// Where cross traffic leaves, and its rate in bit/s.
    pub cross: Vec<(Interface, u64)>,
    /// What the paper measured, in Mbit/s.
    pub paper_mbit: Option<f64>,
    /// Bytes of each download, where not those of the experiment.
    pub bytes: Option<u64>,
    /// Whether seeders are IP peers to the leechers.
    pub over_ip: bool,
}

/// A seeder.
pub struct Seeder {
    /// Its AS.
    pub isd_as: IsdAsn,
    /// What `hawser seed` is told besides.
    pub args: Vec<String>,
}

/// A download.
pub struct Download {
    /// Its AS.
    pub isd_as: IsdAsn,
    /// The seeder it fetches from.
    pub seeder: usize,
    /// What `hawser get` is told besides.
    pub args: Vec<String>,
}

impl Experiment {
    /// The experiment of that name. `cross` is the rate of cross traffic by the limit of the link
    /// it is on.
    pub fn of(name: BenchName, cross: f64) -> Result<Self, Failure> {
        match name {
            BenchName::Fig5 => load::fig5(),
            BenchName::Fig8 => choice::fig8(),
            BenchName::Fig10 => choice::fig10(),
            BenchName::CongestOne => congestion::congest(false, cross),
            BenchName::CongestBoth => congestion::congest(true, cross),
            BenchName::Concurrent => load::concurrent(),
            BenchName::Filesize => load::filesize(),
            BenchName::Strategies => choice::strategies(),
            BenchName::Paths => links::paths(),
            BenchName::Unequal => links::unequal(),
        }
    }
}

const MB: u64 = 1_000_000;

fn isd_as(text: &str) -> Result<IsdAsn, Failure> {
    text.parse()
        .map_err(|e| Failure::job(format!("{text}: {e}")))
}

fn ready(name: &str) -> Result<Network, Failure> {
    Network::ready(name).ok_or_else(|| Failure::job(format!("no topology {name}")))
}

/// The leecher chooses `paths` of them itself.
fn choose(select: &str, paths: u16) -> Vec<String> {
    let paths = paths.to_string();
    ["--select", select, "--paths", &paths]
        .map(str::to_owned)
        .into()
}

/// One seeder, one leecher.
fn single(
    name: impl Into<String>,
    network: Network,
    (seeder, leecher): (&str, &str),
    args: Vec<String>,
) -> Result<Variant, Failure> {
    Ok(Variant {
        name: name.into(),
        network,
        seeders: vec![Seeder {
            isd_as: isd_as(seeder)?,
            args: Vec::new(),
        }],
        downloads: vec![Download {
            isd_as: isd_as(leecher)?,
            seeder: 0,
            args,
        }],
        cross: Vec::new(),
        paper_mbit: None,
        bytes: None,
        over_ip: false,
    })
}

/// The same by plain TCP, which goes the shortest way, and meets the limits of links but not their
/// delay and loss: border routers make those.
fn over_ip(
    name: impl Into<String>,
    network: Network,
    ends: (&str, &str),
) -> Result<Variant, Failure> {
    let variant = single(name, network, ends, Vec::new())?;
    Ok(Variant {
        over_ip: true,
        ..variant
    })
}

impl Variant {
    fn paper(mut self, mbit: f64) -> Self {
        self.paper_mbit = Some(mbit);
        self
    }

    /// The same download `count` times at once, each from a seeder of its own.
    fn times(mut self, count: usize) -> Self {
        let (seeder, download) = (self.seeders.remove(0), self.downloads.remove(0));
        for index in 0..count {
            self.seeders.push(Seeder {
                isd_as: seeder.isd_as,
                args: seeder.args.clone(),
            });
            self.downloads.push(Download {
                isd_as: download.isd_as,
                seeder: index,
                args: download.args.clone(),
            });
        }
        self
    }
}

fn ratio(of: &str, to: &str) -> Headline {
    Headline::Ratio(of.into(), to.into(), 1.0)
}

const FIG4: (&str, &str) = ("1-ff00:0:111", "1-ff00:0:110");
const FIG7A: (&str, &str) = ("1-ff00:0:4", "1-ff00:0:1");

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::*;
    use crate::cli::Cli;
    use crate::demo::Scene;
    use crate::stage::ceiling::PathCost;

    #[test]
    fn a_paper_has_one_ratio_wherever_it_stands() {
        for (name, topology) in [(BenchName::Fig8, "fig7a"), (BenchName::Fig5, "fig4")] {
            let experiment = Experiment::of(name, 1.0).unwrap();
            let scene = Scene::of(topology).unwrap();
            assert_eq!(experiment.paper_ratio, scene.paper_ratio());
        }
        // 26 by 8 Mbit/s.
        let fig8 = Experiment::of(BenchName::Fig8, 1.0).unwrap();
        assert_eq!(fig8.paper_ratio, Some(3.25));
        for name in BenchName::value_variants() {
            let experiment = Experiment::of(*name, 1.0).unwrap();
            let Headline::Ratio(one, other, scale) = &experiment.headline else {
                continue;
            };
            let paper = |name: &String| {
                let variant = experiment.variants.iter().find(|v| v.name == *name);
                variant.and_then(|variant| variant.paper_mbit)
            };
            if let (Some(one), Some(other)) = (paper(one), paper(other)) {
                let ratio = experiment.paper_ratio.unwrap();
                assert!((ratio - scale * one / other).abs() < 1e-9, "{name:?}");
            }
        }
    }

    #[test]
    fn every_experiment_is_whole() {
        for name in BenchName::value_variants() {
            let experiment = Experiment::of(*name, 1.0).unwrap();
            let has = |name: &String| experiment.variants.iter().any(|v| v.name == *name);
            assert!(match &experiment.headline {
                Headline::Ratio(one, other, _) => has(one) && has(other),
                Headline::During(one) => has(one) && experiment.window.is_some(),
            });
            for variant in &experiment.variants {
                assert!(variant.bytes.unwrap_or(experiment.bytes) > 0);
                for download in &variant.downloads {
                    assert!(download.seeder < variant.seeders.len());
                    assert!(variant.network.find(download.isd_as).is_some());
                    if variant.over_ip {
                        let seeder = variant.seeders[download.seeder].isd_as;
                        let way = PathCost::plain_tcp(&variant.network, seeder, download.isd_as);
                        assert!(way.is_some());
                    }
                    let get = [
                        "hawser",
                        "get",
                        "x.torrent",
                        "--peer",
                        "1-ff00:0:1,10.0.0.1:1",
                    ];
                    let words = get.into_iter().map(str::to_owned);
                    let told = words.chain(download.args.iter().cloned());
                    if let Err(error) = Cli::try_parse_from(told) {
                        panic!("{}, {}: {error}", experiment.name, variant.name);
                    }
                }
            }
        }
    }
}

//! The experiments, by name.

mod choice;
mod far;
mod load;

pub use self::choice::{DEMO_TOPOLOGIES, demo};
use crate::error::ExperimentError;
use crate::experiment::{DownloadExperiment, Headline};

/// An experiment that can be run.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What the experiment compares, in one line.
    pub summary: &'static str,
    build: fn(f64) -> Result<DownloadExperiment, ExperimentError>,
}

impl Entry {
    /// The experiment. `cross` is the rate of cross traffic, as a fraction of the limit of its
    /// link.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if the experiment's network is invalid.
    pub fn experiment(&self, cross: f64) -> Result<DownloadExperiment, ExperimentError> {
        (self.build)(cross)
    }
}

/// Every experiment.
pub const CATALOG: &[Entry] = &[
    Entry {
        name: "fig5",
        summary: "One path and two, on two links between two ASes (001, Fig. 5)",
        build: |_| load::fig5(),
    },
    Entry {
        name: "fig8",
        summary: "The two shortest paths, which share a link, against disjoint ones (001, Fig. 8)",
        build: |_| choice::fig8(),
    },
    Entry {
        name: "fig10",
        summary: "Two leechers that choose one path each, against the seeder choosing for both \
                  (001, Fig. 10)",
        build: |_| choice::fig10(),
    },
    Entry {
        name: "congest-one",
        summary: "Cross traffic on one of two paths between second 10 and 20 (000, 5.3.1)",
        build: |cross| load::congest(false, cross),
    },
    Entry {
        name: "congest-both",
        summary: "Cross traffic on both of two paths between second 10 and 20 (000, 5.3.2)",
        build: |cross| load::congest(true, cross),
    },
    Entry {
        name: "concurrent",
        summary: "1, 2, 3, 5 and 10 downloads at once (000, 5.4.2)",
        build: |_| load::concurrent(),
    },
    Entry {
        name: "filesize",
        summary: "Three downloads at once, of files of several sizes (000, 5.4.3)",
        build: |_| load::filesize(),
    },
    Entry {
        name: "strategies",
        summary: "Every strategy that chooses two of three paths, two of which share a link",
        build: |_| choice::strategies(),
    },
    Entry {
        name: "paths",
        summary: "One to eight disjoint paths of the same limit",
        build: |_| load::paths(),
    },
    Entry {
        name: "unequal",
        summary: "Paths that differ in rate and delay, and a bad one beside good ones",
        build: |_| load::unequal(),
    },
    Entry {
        name: "distance",
        summary: "1 Gbit/s at 25, 100 and 194 ms, with 0, 0.01 and 0.1 % loss, one path and two",
        build: |_| far::distance(),
    },
    Entry {
        name: "fairness",
        summary: "One path beside a TCP flow of the kernel, CUBIC and BBR, on a link of 100 Mbit/s",
        build: |_| far::fairness(),
    },
];

/// Seeder and leecher on `fig4`.
const FIG4: (&str, &str) = ("1-ff00:0:111", "1-ff00:0:110");
/// Seeder and leecher on `fig7a`.
const FIG7A: (&str, &str) = ("1-ff00:0:4", "1-ff00:0:1");

const MB: u64 = 1_000_000;

fn ratio(of: &str, to: &str) -> Headline {
    Headline::Ratio(of.into(), to.into(), 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceiling::PathCost;
    use crate::experiment::Means;

    fn all() -> impl Iterator<Item = DownloadExperiment> {
        let demos = DEMO_TOPOLOGIES.iter().map(|name| demo(name).unwrap());
        let listed = CATALOG.iter().map(|entry| entry.experiment(1.0).unwrap());
        listed.chain(demos)
    }

    #[test]
    fn demos_and_experiments_have_the_same_paper_ratio() {
        let find = |name| all().find(|one| one.name == name).unwrap();
        for (name, topology) in [("fig8", "fig7a"), ("fig5", "fig4")] {
            assert_eq!(find(name).paper_ratio, demo(topology).unwrap().paper_ratio);
        }
        // 26 and 8 Mbit/s.
        assert_eq!(find("fig8").paper_ratio, Some(3.25));
        for experiment in all() {
            let Headline::Ratio(one, other, scale) = &experiment.headline else {
                continue;
            };
            let paper = |name: &String| {
                let variant = experiment.variants.iter().find(|v| v.name == *name);
                variant.and_then(|variant| variant.paper_mbit)
            };
            if let (Some(one), Some(other)) = (paper(one), paper(other)) {
                let ratio = experiment.paper_ratio.unwrap();
                let name = experiment.name;
                assert!((ratio - scale * one / other).abs() < 1e-9, "{name}");
            }
        }
    }

    #[test]
    fn every_experiment_is_complete() {
        for experiment in all() {
            let has = |name: &String| experiment.variants.iter().any(|v| v.name == *name);
            assert!(match &experiment.headline {
                Headline::Ratio(one, other, _) => has(one) && has(other),
                Headline::During(one) => has(one) && experiment.window.is_some(),
            });
            for variant in &experiment.variants {
                assert!(experiment.bytes_of(variant) > 0);
                for download in &variant.downloads {
                    assert!(download.seeder < variant.seeders.len());
                    assert!(variant.network.find(download.isd_as).is_some());
                    let seeder = variant.seeders[download.seeder];
                    assert!(variant.network.find(seeder).is_some());
                    if variant.means == Means::TorrentOverIp {
                        let cost = PathCost::plain_tcp(&variant.network, seeder, download.isd_as);
                        assert!(cost.is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CATALOG.iter().map(|entry| entry.name).collect();
        for entry in CATALOG {
            assert_eq!(entry.experiment(1.0).unwrap().name, entry.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CATALOG.len());
    }

    #[test]
    fn invalid_requests_are_refused() {
        let find = |name: &str| {
            let entry = CATALOG.iter().find(|entry| entry.name == name).unwrap();
            entry.experiment(1.0).unwrap()
        };
        let error = find("fig8").with_variants(&["x".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("no variant x"), "{error}");
        let one = find("fig8").with_variants(&["naive".to_owned()]).unwrap();
        assert_eq!(one.variants.len(), 1);
        assert!(find("paths").with_bytes(1).is_err());
        assert_eq!(find("fig8").with_bytes(1).unwrap().bytes, 1);
        let unlimited = find("fig8").with_rate(None);
        let mut links = unlimited.variants.iter().flat_map(|v| &v.network.links);
        assert!(links.all(|link| link.shape.rate.is_none()));
        assert!(find("fig5").direct_link().is_some());
        assert!(find("fig8").direct_link().is_none());
    }
}

//! What each experiment runs: networks, seeders, downloads, cross traffic; and what the papers
//! measured.

use super::network::{Wire, congested, parallel};
use crate::{cli::BenchName, failure::Failure};
use hawser_path::Interface;
use hawser_topology::{IsdAsn, Network};
use std::time::Duration;

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
    /// The experiment of that name.
    /// `cross` is the rate of cross traffic by the limit of the link it is on.
    pub fn of(name: BenchName, cross: f64) -> Result<Experiment, Failure> {
        match name {
            BenchName::Fig5 => fig5(),
            BenchName::Fig8 => fig8(),
            BenchName::Fig10 => fig10(),
            BenchName::CongestOne => congest(false, cross),
            BenchName::CongestBoth => congest(true, cross),
            BenchName::Concurrent => concurrent(),
            BenchName::Filesize => filesize(),
            BenchName::Strategies => strategies(),
            BenchName::Paths => paths(),
            BenchName::Unequal => unequal(),
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

/// The same by plain TCP, which goes the shortest way.
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
    fn paper(mut self, mbit: f64) -> Variant {
        self.paper_mbit = Some(mbit);
        self
    }

    /// The same download `count` times at once, each from a seeder of its own.
    fn times(mut self, count: usize) -> Variant {
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

fn fig5() -> Result<Experiment, Failure> {
    Ok(Experiment {
        name: "fig5",
        about: "001, Fig. 5: links of 10 Gbit/s there, of 300 Mbit/s here; over IP by QUIC there, by TCP here",
        variants: vec![
            over_ip("over-ip", ready("fig4")?, FIG4)?.paper(1500.0),
            single("one-path", ready("fig4")?, FIG4, choose("shortest", 1))?.paper(1100.0),
            single("two-paths", ready("fig4")?, FIG4, choose("disjoint", 2))?.paper(2200.0),
        ],
        headline: ratio("two-paths", "one-path"),
        paper_ratio: Some(2.0),
        bytes: 400 * MB,
        window: None,
    })
}

fn fig8() -> Result<Experiment, Failure> {
    Ok(Experiment {
        name: "fig8",
        about: "001, Fig. 8",
        variants: vec![
            over_ip("over-ip", ready("fig7a")?, FIG7A)?,
            single("one-path", ready("fig7a")?, FIG7A, choose("shortest", 1))?,
            single("naive", ready("fig7a")?, FIG7A, choose("shortest", 2))?.paper(8.0),
            single("disjoint", ready("fig7a")?, FIG7A, choose("disjoint", 2))?.paper(26.0),
        ],
        headline: ratio("disjoint", "naive"),
        paper_ratio: Some(3.0),
        bytes: 32 * MB,
        window: None,
    })
}

/// Two leechers, one path each. Left to themselves both take the best, which is the same for both:
/// over B, since the way over C is made a little longer.
fn fig10() -> Result<Experiment, Failure> {
    let uploader = || ["--select-by", "uploader", "--paths", "1"].map(str::to_owned);
    Ok(Experiment {
        name: "fig10",
        about: "001, Fig. 10: two leechers, goodput of both together",
        variants: vec![
            Variant {
                over_ip: true,
                ..two_leechers("over-ip", Vec::new())?
            },
            two_leechers("leecher-based", choose("shortest", 1))?.paper(7.5),
            two_leechers("upload-based", uploader().into())?.paper(14.0),
        ],
        headline: ratio("upload-based", "leecher-based"),
        paper_ratio: Some(14.0 / 7.5),
        bytes: 16 * MB,
        window: None,
    })
}

/// The seeder in E, leechers in A and D (001, Fig. 9).
fn two_leechers(name: &str, args: Vec<String>) -> Result<Variant, Failure> {
    let mut network = ready("fig9")?;
    let c = isd_as("1-ff00:0:3")?;
    for link in network.links.iter_mut().filter(|link| link.a.isd_as == c) {
        link.shape.delay += Duration::from_millis(2);
    }
    let mut two = single(name, network, ("1-ff00:0:5", "1-ff00:0:1"), args.clone())?;
    two.downloads.push(Download {
        isd_as: isd_as("1-ff00:0:4")?,
        seeder: 0,
        args,
    });
    Ok(two)
}

/// Limit of the links of [`congest`], in Mbit/s.
const CONGESTED: f64 = 40.0;

fn congest(both: bool, share: f64) -> Result<Experiment, Failure> {
    let interface = |text: &str| -> Result<(Interface, u64), Failure> {
        let interface = text
            .parse()
            .map_err(|e| Failure::job(format!("{text}: {e}")))?;
        Ok((interface, (CONGESTED * share * 1e6) as u64))
    };
    let mut cross = vec![interface("1-ff00:0:111#1")?];
    if both {
        cross.push(interface("1-ff00:0:111#2")?);
    }
    let network = || congested(CONGESTED);
    let two_paths = if both { 300.0 } else { 900.0 };
    let mut variants = vec![
        over_ip("over-ip", network()?, FIG4)?.paper(180.0),
        single("one-path", network()?, FIG4, choose("shortest", 1))?,
        single("two-paths", network()?, FIG4, choose("disjoint", 2))?.paper(two_paths),
    ];
    for variant in &mut variants {
        variant.cross.clone_from(&cross);
    }
    Ok(Experiment {
        name: if both { "congest-both" } else { "congest-one" },
        about: if both {
            "000, 5.3.2, goodput between second 10 and 20; links of 1 Gbit/s there, of 40 Mbit/s here"
        } else {
            "000, 5.3.1, goodput between second 10 and 20; links of 1 Gbit/s there, of 40 Mbit/s here"
        },
        variants,
        headline: match both {
            true => ratio("two-paths", "one-path"),
            false => Headline::During("two-paths".into()),
        },
        paper_ratio: Some(if both { 300.0 / 180.0 } else { 0.9 }),
        bytes: 128 * MB,
        window: Some(Window {
            from: 10.0,
            to: 20.0,
        }),
    })
}

fn concurrent() -> Result<Experiment, Failure> {
    // 000, Table 5.5: files of 5 GB by the time until all are there.
    let paper = [(1, 32.3), (2, 51.5), (3, 74.2), (5, 119.5), (10, 245.8)];
    // A baseline: the same by plain TCP over one link.
    let by_tcp = [1, 10].map(|count| {
        let one = over_ip(format!("{count}-over-ip"), ready("fig4")?, FIG4)?;
        Ok(one.times(count))
    });
    let variants = paper.map(|(count, seconds)| {
        let args = choose("disjoint", 2);
        let one = single(format!("{count}"), ready("fig4")?, FIG4, args)?;
        Ok(one
            .times(count)
            .paper(count as f64 * 5e9 * 8.0 / seconds / 1e6))
    });
    Ok(Experiment {
        name: "concurrent",
        about: "000, 5.4.2: files of 5 GB on links of 1 and 10 Gbit/s there, goodput of all together",
        variants: by_tcp
            .into_iter()
            .chain(variants)
            .collect::<Result<_, Failure>>()?,
        headline: ratio("10", "1"),
        paper_ratio: Some((10.0 / 245.8) / (1.0 / 32.3)),
        bytes: 100 * MB,
        window: None,
    })
}

fn filesize() -> Result<Experiment, Failure> {
    // 000, Table 5.6: three files at once by the time until all are there; a hundredth here.
    let paper = [
        (1.0, 13.2),
        (2.5, 32.3),
        (5.0, 74.2),
        (10.0, 167.0),
        (20.0, 409.0),
    ];
    let size = |gigabytes: f64| {
        let bytes = (gigabytes * 1e7) as u64;
        (bytes, format!("{}MB", bytes / MB))
    };
    let variants = paper.map(|(gigabytes, seconds)| {
        let (bytes, name) = size(gigabytes);
        let one = single(name, ready("fig4")?, FIG4, choose("disjoint", 2))?;
        let mut three = one.times(3).paper(3.0 * gigabytes * 8e3 / seconds);
        three.bytes = Some(bytes);
        Ok(three)
    });
    // A baseline: the same by plain TCP over one link.
    let by_tcp = [1.0, 20.0].map(|gigabytes| {
        let (bytes, name) = size(gigabytes);
        let one = over_ip(format!("{name}-over-ip"), ready("fig4")?, FIG4)?;
        let mut three = one.times(3);
        three.bytes = Some(bytes);
        Ok(three)
    });
    Ok(Experiment {
        name: "filesize",
        about: "000, 5.4.3: three files at once, of 1 to 20 GB there, of a hundredth here",
        variants: by_tcp
            .into_iter()
            .chain(variants)
            .collect::<Result<_, Failure>>()?,
        headline: ratio("200MB", "10MB"),
        paper_ratio: Some((20.0 / 409.0) / (1.0 / 13.2)),
        bytes: 0,
        window: None,
    })
}

fn strategies() -> Result<Experiment, Failure> {
    let names = [
        "shortest",
        "latency",
        "bandwidth",
        "disjoint",
        "latency,disjoint",
        "bandwidth,disjoint",
        "disjoint:any",
        "spread:60%",
    ];
    let by_tcp = over_ip("over-ip", ready("fig7a")?, FIG7A);
    let variants = names.map(|name| single(name, ready("fig7a")?, FIG7A, choose(name, 2)));
    let variants = std::iter::once(by_tcp).chain(variants);
    Ok(Experiment {
        name: "strategies",
        about: "two paths at most in 001, Fig. 7a, chosen in every way",
        variants: variants.collect::<Result<_, Failure>>()?,
        headline: ratio("disjoint", "shortest"),
        paper_ratio: None,
        bytes: 32 * MB,
        window: None,
    })
}

fn paths() -> Result<Experiment, Failure> {
    let by_tcp = over_ip("over-ip", parallel(&[Wire::new(10.0, 5)])?, FIG4)?;
    let by_tcp = Variant {
        bytes: Some(20 * MB),
        ..by_tcp
    };
    let variants = (1..=8).map(|count: u16| {
        let network = parallel(&vec![Wire::new(10.0, 5); count.into()])?;
        let mut one = single(count.to_string(), network, FIG4, choose("disjoint", count))?;
        // As long for all.
        one.bytes = Some(20 * MB * u64::from(count));
        Ok(one)
    });
    Ok(Experiment {
        name: "paths",
        about: "one to eight disjoint paths of 10 Mbit/s; the ratio is per path",
        variants: std::iter::once(Ok(by_tcp))
            .chain(variants)
            .collect::<Result<_, Failure>>()?,
        headline: Headline::Ratio("8".into(), "1".into(), 1.0 / 8.0),
        paper_ratio: None,
        bytes: 0,
        window: None,
    })
}

fn unequal() -> Result<Experiment, Failure> {
    let (fast, slow) = (Wire::new(20.0, 5), Wire::new(2.0, 100));
    let bad = Wire {
        mbit: 0.5,
        millis: 300,
        loss: 10.0,
    };
    let run = |name: &str, wires: &[Wire]| {
        single(
            name,
            parallel(wires)?,
            FIG4,
            choose("disjoint", wires.len() as u16),
        )
    };
    Ok(Experiment {
        name: "unequal",
        about: "1 : 10 in rate and 5 : 100 ms in delay; the ratio is with a path of 0.5 Mbit/s, 300 ms and 10 % loss added, by without",
        variants: vec![
            over_ip("over-ip", parallel(&[fast])?, FIG4)?,
            run("fast", &[fast])?,
            run("fast+slow", &[fast, slow])?,
            run(
                "fast-far+slow-near",
                &[Wire::new(20.0, 100), Wire::new(2.0, 5)],
            )?,
            run("fast+slow+bad", &[fast, slow, bad])?,
        ],
        headline: ratio("fast+slow+bad", "fast+slow"),
        paper_ratio: None,
        // Long beside the two seconds of slow start at 100 ms.
        bytes: 100 * MB,
        window: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::stage::ceiling::PathCost;
    use clap::{Parser, ValueEnum};

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

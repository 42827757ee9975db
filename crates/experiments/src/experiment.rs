//! The parts of an experiment: variants with their networks, seeders, downloads and cross traffic.

use hawser_path::Interface;
use hawser_topology::{IsdAsn, Network};

use crate::error::{During, ExperimentError};

/// The name of the variant of [`DownloadExperiment::with_plain_tcp`].
pub const PLAIN_TCP: &str = "iperf3";

/// An experiment: variants that are compared.
#[derive(Debug, Clone)]
pub struct DownloadExperiment {
    /// The experiment's name.
    pub name: &'static str,
    /// The section or figure of the paper, or what is compared.
    pub about: &'static str,
    /// The variants to compare, baselines first.
    pub variants: Vec<Variant>,
    /// The two figures of the headline ratio.
    pub headline: Headline,
    /// The headline ratio of the papers' figures.
    pub paper_ratio: Option<f64>,
    /// Bytes of each download.
    pub bytes: u64,
    /// The time of cross traffic, if there is any.
    pub window: Option<Window>,
    /// Seconds at the start of a download that do not count for its goodput.
    pub settled: Option<f64>,
    /// Whether all variants run one after the other on one network with the same seeders, those of
    /// the first variant. Otherwise each run has its own network.
    pub one_network: bool,
}

/// The definition of the headline ratio.
#[derive(Debug, Clone)]
pub enum Headline {
    /// Goodput of the first variant divided by that of the second, times the third value, which is
    /// 1 unless the ratio is per path.
    Ratio(String, String, f64),
    /// Goodput of the variant during the window divided by that before it.
    During(String),
}

/// The time of cross traffic, in seconds from the start of the download.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Start of the window.
    pub from: f64,
    /// End of the window.
    pub to: f64,
}

/// One variant of an experiment.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The variant's name.
    pub name: String,
    /// The network that the variant runs on.
    pub network: Network,
    /// The ASes of the seeders.
    pub seeders: Vec<IsdAsn>,
    /// The downloads, which start together.
    pub downloads: Vec<Download>,
    /// The interfaces at which cross traffic leaves, each with its rate in bit/s.
    pub cross: Vec<(Interface, u64)>,
    /// A TCP flow of the kernel beside the downloads.
    pub rival: Option<Rival>,
    /// The paper's measurement, in Mbit/s.
    pub paper_mbit: Option<f64>,
    /// Bytes of each download, if they differ from the experiment's.
    pub bytes: Option<u64>,
    /// What carries the file.
    pub means: Means,
}

/// What carries the file of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// BitTorrent over SCION.
    Torrent,
    /// BitTorrent over plain IP: seeders are IP peers to the leechers.
    TorrentOverIp,
    /// A TCP flow of `iperf3` in place of a download, over plain IP.
    PlainTcp,
}

/// A TCP flow of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Rival {
    /// The ASes of its ends.
    pub ends: (IsdAsn, IsdAsn),
    /// Its congestion control, by the kernel's name.
    pub algorithm: &'static str,
    /// Seconds by which it precedes the download; negative if it follows.
    pub lead: f64,
}

impl Rival {
    /// Seconds for which both run before their rates count, and then for which they count.
    const TIMES: (f64, f64) = (10.0, 20.0);

    /// The time in which the rates count, in seconds from the start of the download.
    pub(crate) fn window(&self) -> Window {
        let from = (-self.lead).max(0.0) + Self::TIMES.0;
        Window {
            from,
            to: from + Self::TIMES.1,
        }
    }
}

/// A download.
#[derive(Debug, Clone)]
pub struct Download {
    /// The AS of the leecher.
    pub isd_as: IsdAsn,
    /// The index of the seeder.
    pub seeder: usize,
    /// Further arguments of `hawser get`.
    pub args: Vec<String>,
}

impl DownloadExperiment {
    /// Compares variants, each run on its own network. If the papers have figures for both sides of
    /// the headline, their ratio is the paper's ratio.
    pub(crate) fn new(
        name: &'static str,
        about: &'static str,
        bytes: u64,
        variants: Vec<Variant>,
        headline: Headline,
    ) -> Self {
        let paper = |name: &String| variants.iter().find(|one| one.name == *name)?.paper_mbit;
        let paper_ratio = match &headline {
            Headline::Ratio(one, other, scale) => {
                let both = paper(one).zip(paper(other));
                both.map(|(one, other)| scale * one / other)
            }
            Headline::During(_) => None,
        };
        Self {
            name,
            about,
            variants,
            headline,
            paper_ratio,
            bytes,
            window: None,
            settled: None,
            one_network: false,
        }
    }

    /// Keeps only the named variants; all of them if no name is given.
    ///
    /// # Errors
    /// [`ExperimentError::Request`] if one of the names is not that of a variant.
    pub fn with_variants(mut self, names: &[String]) -> Result<Self, ExperimentError> {
        let known: Vec<_> = self.variants.iter().map(|v| v.name.clone()).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            return Err(ExperimentError::Request(format!(
                "{} has no variant {unknown}: there are {}",
                self.name,
                known.join(", ")
            )));
        }
        if !names.is_empty() {
            self.variants.retain(|one| names.contains(&one.name));
        }
        Ok(self)
    }

    /// Sets the bytes of each download.
    ///
    /// # Errors
    /// [`ExperimentError::Request`] if variants differ in their sizes.
    pub fn with_bytes(mut self, bytes: u64) -> Result<Self, ExperimentError> {
        if self.variants.iter().any(|one| one.bytes.is_some()) {
            let text = format!("the variants of {} have sizes of their own", self.name);
            return Err(ExperimentError::Request(text));
        }
        self.bytes = bytes;
        Ok(self)
    }

    /// Sets another limit, in bit/s, on every link that has one; `None` for no limit.
    #[must_use]
    pub fn with_rate(mut self, rate: Option<u64>) -> Self {
        let networks = self.variants.iter_mut().map(|one| &mut one.network);
        for link in networks.flat_map(|network| &mut network.links) {
            link.shape.rate = link.shape.rate.and(rate);
        }
        self
    }

    /// Measures plain TCP too, as a last variant, between the ends of the first one.
    #[must_use]
    pub fn with_plain_tcp(mut self) -> Self {
        if let Some(first) = self.variants.first() {
            let mut last = first.clone();
            last.name = PLAIN_TCP.to_owned();
            (last.means, last.paper_mbit) = (Means::PlainTcp, None);
            self.variants.push(last);
        }
        self
    }

    /// The ASes of the first variant's first seeder and first download, if a link joins them.
    pub fn direct_link(&self) -> Option<(IsdAsn, IsdAsn)> {
        let (from, to) = self.ends()?;
        let mut links = self.variants.first()?.network.links.iter();
        links
            .any(|link| [(from, to), (to, from)].contains(&(link.a.isd_as, link.b.isd_as)))
            .then_some((from, to))
    }

    /// The ASes of the first variant's first seeder and first download.
    pub fn ends(&self) -> Option<(IsdAsn, IsdAsn)> {
        self.variants.first()?.ends()
    }

    /// Bytes of each download of a variant.
    pub fn bytes_of(&self, variant: &Variant) -> u64 {
        variant.bytes.unwrap_or(self.bytes)
    }
}

impl Variant {
    /// The ASes of the first seeder and of the first download.
    pub(crate) fn ends(&self) -> Option<(IsdAsn, IsdAsn)> {
        Some((*self.seeders.first()?, self.downloads.first()?.isd_as))
    }

    /// A variant with one seeder and one leecher; `args` are further arguments of `hawser get`.
    pub(crate) fn single(
        name: impl Into<String>,
        network: Network,
        (seeder, leecher): (&str, &str),
        args: Vec<String>,
    ) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: name.into(),
            network,
            seeders: vec![isd_as(seeder)?],
            downloads: vec![Download {
                isd_as: isd_as(leecher)?,
                seeder: 0,
                args,
            }],
            cross: Vec::new(),
            rival: None,
            paper_mbit: None,
            bytes: None,
            means: Means::Torrent,
        })
    }

    /// A variant with one seeder and one leecher over plain TCP, which takes the shortest route and
    /// meets the limits, delay, jitter and loss of links.
    pub(crate) fn over_ip(
        name: impl Into<String>,
        network: Network,
        ends: (&str, &str),
    ) -> Result<Self, ExperimentError> {
        let mut variant = Self::single(name, network, ends, Vec::new())?;
        variant.means = Means::TorrentOverIp;
        Ok(variant)
    }

    /// Sets the paper's figure, in Mbit/s.
    pub(crate) fn with_paper(mut self, mbit: f64) -> Self {
        self.paper_mbit = Some(mbit);
        self
    }

    /// Sets the bytes of each download of this variant.
    pub(crate) fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Lets a TCP flow of the kernel run beside the download.
    pub(crate) fn with_rival(mut self, rival: Rival) -> Self {
        self.rival = Some(rival);
        self
    }

    /// Runs the download `count` times at once, each from a different seeder.
    pub(crate) fn times(mut self, count: usize) -> Self {
        let (seeder, download) = (self.seeders.remove(0), self.downloads.remove(0));
        self.seeders = vec![seeder; count];
        self.downloads = vec![download; count];
        for (seeder, download) in self.downloads.iter_mut().enumerate() {
            download.seeder = seeder;
        }
        self
    }
}

/// A variant with one seeder and one leecher: its name, the strategy and the most paths of the
/// leecher (`None` over IP), and the paper's figure.
pub(crate) type Row<'a> = (&'a str, Option<(&'a str, u16)>, Option<f64>);

/// Variants on one network, between the same two ASes.
pub(crate) fn compared(
    network: &Network,
    ends: (&str, &str),
    rows: &[Row<'_>],
) -> Result<Vec<Variant>, ExperimentError> {
    let variants = rows.iter().map(|&(name, choice, paper_mbit)| {
        let variant = match choice {
            Some((strategy, paths)) => {
                Variant::single(name, network.clone(), ends, select(strategy, paths))
            }
            None => Variant::over_ip(name, network.clone(), ends),
        };
        Ok(Variant {
            paper_mbit,
            ..variant?
        })
    });
    variants.collect()
}

/// Parses an AS of an experiment.
pub(crate) fn isd_as(text: &str) -> Result<IsdAsn, ExperimentError> {
    text.parse().during(text)
}

/// A ready topology.
pub(crate) fn ready(name: &str) -> Result<Network, ExperimentError> {
    Network::ready(name).ok_or_else(|| ExperimentError::Step(format!("no topology {name}")))
}

/// Arguments of `hawser get`: the leecher selects at most this many paths.
pub(crate) fn select(strategy: &str, paths: u16) -> Vec<String> {
    let paths = paths.to_string();
    ["--select", strategy, "--paths", &paths]
        .map(str::to_owned)
        .into()
}

//! Experiments on goodput: of one path and of several, of one download and of many, over equal and
//! unequal links, and beside cross traffic.

use hawser_path::Interface;

use super::{FIG4, MB, ratio};
use crate::error::{During, ExperimentError};
use crate::experiment::{DownloadExperiment, Headline, Variant, Window, compared, ready, select};
use crate::network::{LinkSpec, congested, parallel};
use crate::papers::{self, congestion, fig5};

/// Limit of the links of [`congest`], in Mbit/s.
const CONGESTED_LINK_RATE: f64 = 40.0;

pub(super) fn fig5() -> Result<DownloadExperiment, ExperimentError> {
    let rows = [
        ("over-ip", None, Some(fig5::OVER_IP)),
        ("one-path", Some(("shortest", 1)), Some(fig5::ONE_PATH)),
        ("two-paths", Some(("disjoint", 2)), Some(fig5::TWO_PATHS)),
    ];
    Ok(DownloadExperiment::new(
        "fig5",
        "001, Fig. 5: links of 10 Gbit/s there, of 300 Mbit/s here; over IP by QUIC there, by TCP here",
        400 * MB,
        compared(&ready("fig4")?, FIG4, &rows)?,
        ratio("two-paths", "one-path"),
    ))
}

pub(super) fn concurrent() -> Result<DownloadExperiment, ExperimentError> {
    // A baseline: the same downloads by plain TCP over one link.
    let by_tcp = [1, 10].map(|count| {
        let one = Variant::over_ip(format!("{count}-over-ip"), ready("fig4")?, FIG4)?;
        Ok(one.times(count))
    });
    let variants = papers::concurrent().map(|(count, mbit)| {
        let args = select("disjoint", 2);
        let one = Variant::single(count.to_string(), ready("fig4")?, FIG4, args)?;
        Ok(one.times(count).with_paper(mbit))
    });
    let variants: Result<_, ExperimentError> = by_tcp.into_iter().chain(variants).collect();
    Ok(DownloadExperiment::new(
        "concurrent",
        "000, 5.4.2: files of 5 GB on links of 1 and 10 Gbit/s there, goodput of all together",
        100 * MB,
        variants?,
        ratio("10", "1"),
    ))
}

pub(super) fn filesize() -> Result<DownloadExperiment, ExperimentError> {
    // A hundredth of the paper's size.
    let size = |gigabytes: f64| {
        let bytes = (gigabytes * 1e7) as u64;
        (bytes, format!("{}MB", bytes / MB))
    };
    let variants = papers::filesize().map(|(gigabytes, mbit)| {
        let (bytes, name) = size(gigabytes);
        let one = Variant::single(name, ready("fig4")?, FIG4, select("disjoint", 2))?;
        Ok(one.times(3).with_paper(mbit).with_bytes(bytes))
    });
    // A baseline: the same downloads by plain TCP over one link.
    let by_tcp = [1.0, 20.0].map(|gigabytes| {
        let (bytes, name) = size(gigabytes);
        let one = Variant::over_ip(format!("{name}-over-ip"), ready("fig4")?, FIG4)?;
        Ok(one.times(3).with_bytes(bytes))
    });
    let variants: Result<_, ExperimentError> = by_tcp.into_iter().chain(variants).collect();
    Ok(DownloadExperiment::new(
        "filesize",
        "000, 5.4.3: three files at once, of 1 to 20 GB there, of a hundredth here",
        0,
        variants?,
        ratio("200MB", "10MB"),
    ))
}

pub(super) fn paths() -> Result<DownloadExperiment, ExperimentError> {
    let link = LinkSpec::new(10.0, 5);
    let by_tcp = Variant::over_ip("over-ip", parallel(&[link])?, FIG4)?.with_bytes(20 * MB);
    let mut variants = vec![by_tcp];
    for count in 1..=8 {
        let network = parallel(&vec![link; count.into()])?;
        let one = Variant::single(count.to_string(), network, FIG4, select("disjoint", count))?;
        // Every variant takes the same time.
        variants.push(one.with_bytes(20 * MB * u64::from(count)));
    }
    Ok(DownloadExperiment::new(
        "paths",
        "one to eight disjoint paths of 10 Mbit/s; the ratio is per path",
        0,
        variants,
        Headline::Ratio("8".into(), "1".into(), 1.0 / 8.0),
    ))
}

pub(super) fn unequal() -> Result<DownloadExperiment, ExperimentError> {
    let (fast, slow) = (LinkSpec::new(20.0, 5), LinkSpec::new(2.0, 100));
    let (far, near) = (LinkSpec::new(20.0, 100), LinkSpec::new(2.0, 5));
    let bad = LinkSpec {
        loss: 10.0,
        ..LinkSpec::new(0.5, 300)
    };
    let run = |name: &str, links: &[LinkSpec]| {
        let args = select("disjoint", links.len() as u16);
        Variant::single(name, parallel(links)?, FIG4, args)
    };
    Ok(DownloadExperiment::new(
        "unequal",
        "1 : 10 in rate and 5 : 100 ms in delay; the ratio is with a path of 0.5 Mbit/s, 300 ms and 10 % loss added, by without",
        // Long compared with the two seconds of slow start at 100 ms.
        100 * MB,
        vec![
            Variant::over_ip("over-ip", parallel(&[fast])?, FIG4)?,
            run("fast", &[fast])?,
            run("fast+slow", &[fast, slow])?,
            run("fast-far+slow-near", &[far, near])?,
            run("fast+slow+bad", &[fast, slow, bad])?,
        ],
        ratio("fast+slow+bad", "fast+slow"),
    ))
}

/// Cross traffic with this share of the limit on one of two paths, or on both.
pub(super) fn congest(both: bool, share: f64) -> Result<DownloadExperiment, ExperimentError> {
    let rate = (CONGESTED_LINK_RATE * share * 1e6) as u64;
    let (name, about, two_paths, headline, paper_ratio) = match both {
        true => (
            "congest-both",
            "000, 5.3.2, goodput between second 10 and 20; links of 1 Gbit/s there, of 40 Mbit/s here",
            congestion::BOTH_CONGESTED,
            ratio("two-paths", "one-path"),
            // The paper's single path is the one over IP.
            congestion::BOTH_CONGESTED / congestion::OVER_IP,
        ),
        false => (
            "congest-one",
            "000, 5.3.1, goodput between second 10 and 20; links of 1 Gbit/s there, of 40 Mbit/s here",
            congestion::ONE_CONGESTED,
            Headline::During("two-paths".into()),
            congestion::ONE_CONGESTED / congestion::BEFORE,
        ),
    };
    let rows = [
        ("over-ip", None, Some(congestion::OVER_IP)),
        ("one-path", Some(("shortest", 1)), None),
        ("two-paths", Some(("disjoint", 2)), Some(two_paths)),
    ];
    let mut variants = compared(&congested(CONGESTED_LINK_RATE)?, FIG4, &rows)?;
    let ends = ["1-ff00:0:111#1", "1-ff00:0:111#2"];
    for end in &ends[..1 + usize::from(both)] {
        let interface: Interface = end.parse().during(end)?;
        let cross = variants.iter_mut().map(|variant| &mut variant.cross);
        cross.for_each(|cross| cross.push((interface, rate)));
    }
    Ok(DownloadExperiment {
        paper_ratio: Some(paper_ratio),
        window: Some(Window {
            from: 10.0,
            to: 20.0,
        }),
        ..DownloadExperiment::new(name, about, 128 * MB, variants, headline)
    })
}

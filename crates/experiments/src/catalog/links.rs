//! Paths over equal and over unequal links.

use super::{FIG4, MB, ratio};
use crate::error::ExperimentError;
use crate::experiment::{Experiment, Headline, Variant, select};
use crate::network::{LinkSpec, parallel};

pub(super) fn paths() -> Result<Experiment, ExperimentError> {
    let link = LinkSpec::new(10.0, 5);
    let by_tcp = Variant::over_ip("over-ip", parallel(&[link])?, FIG4)?.with_bytes(20 * MB);
    let variants = (1..=8).map(|count: u16| {
        let network = parallel(&vec![link; count.into()])?;
        let one = Variant::single(count.to_string(), network, FIG4, select("disjoint", count))?;
        // The same time for all.
        Ok(one.with_bytes(20 * MB * u64::from(count)))
    });
    Ok(Experiment {
        name: "paths",
        about: "one to eight disjoint paths of 10 Mbit/s; the ratio is per path",
        variants: std::iter::once(Ok(by_tcp))
            .chain(variants)
            .collect::<Result<_, ExperimentError>>()?,
        headline: Headline::Ratio("8".into(), "1".into(), 1.0 / 8.0),
        paper_ratio: None,
        bytes: 0,
        window: None,
        one_network: false,
    })
}

pub(super) fn unequal() -> Result<Experiment, ExperimentError> {
    let (fast, slow) = (LinkSpec::new(20.0, 5), LinkSpec::new(2.0, 100));
    let bad = LinkSpec {
        mbit: 0.5,
        millis: 300,
        loss: 10.0,
    };
    let run = |name: &str, links: &[LinkSpec]| {
        Variant::single(
            name,
            parallel(links)?,
            FIG4,
            select("disjoint", links.len() as u16),
        )
    };
    Ok(Experiment {
        name: "unequal",
        about: "1 : 10 in rate and 5 : 100 ms in delay; the ratio is with a path of 0.5 Mbit/s, 300 ms and 10 % loss added, by without",
        variants: vec![
            Variant::over_ip("over-ip", parallel(&[fast])?, FIG4)?,
            run("fast", &[fast])?,
            run("fast+slow", &[fast, slow])?,
            run(
                "fast-far+slow-near",
                &[LinkSpec::new(20.0, 100), LinkSpec::new(2.0, 5)],
            )?,
            run("fast+slow+bad", &[fast, slow, bad])?,
        ],
        headline: ratio("fast+slow+bad", "fast+slow"),
        paper_ratio: None,
        // Long beside the two seconds of slow start at 100 ms.
        bytes: 100 * MB,
        window: None,
        one_network: false,
    })
}

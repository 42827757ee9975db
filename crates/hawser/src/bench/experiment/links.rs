//! Paths of equal and of unequal links.

use super::{Experiment, FIG4, Headline, MB, Variant, choose, over_ip, ratio, single};
use crate::bench::network::{Wire, parallel};
use crate::failure::Failure;

pub(super) fn paths() -> Result<Experiment, Failure> {
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

pub(super) fn unequal() -> Result<Experiment, Failure> {
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

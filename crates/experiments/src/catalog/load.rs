//! How much is carried: by one path and by two, for one download and for many.

use super::{FIG4, MB, ratio};
use crate::error::ExperimentError;
use crate::experiment::{Experiment, Variant, ready, select};
use crate::papers::{self, fig5};

pub(super) fn fig5() -> Result<Experiment, ExperimentError> {
    Ok(Experiment {
        name: "fig5",
        about: "001, Fig. 5: links of 10 Gbit/s there, of 300 Mbit/s here; over IP by QUIC there, by TCP here",
        variants: vec![
            Variant::over_ip("over-ip", ready("fig4")?, FIG4)?.with_paper(fig5::OVER_IP),
            Variant::single("one-path", ready("fig4")?, FIG4, select("shortest", 1))?
                .with_paper(fig5::ONE_PATH),
            Variant::single("two-paths", ready("fig4")?, FIG4, select("disjoint", 2))?
                .with_paper(fig5::TWO_PATHS),
        ],
        headline: ratio("two-paths", "one-path"),
        paper_ratio: Some(fig5::TWO_PATHS / fig5::ONE_PATH),
        bytes: 400 * MB,
        window: None,
        one_network: false,
    })
}

pub(super) fn concurrent() -> Result<Experiment, ExperimentError> {
    let paper = papers::concurrent();
    // A baseline: the same by plain TCP over one link.
    let by_tcp = [1, 10].map(|count| {
        let one = Variant::over_ip(format!("{count}-over-ip"), ready("fig4")?, FIG4)?;
        Ok(one.times(count))
    });
    let variants = paper.map(|(count, mbit)| {
        let args = select("disjoint", 2);
        let one = Variant::single(format!("{count}"), ready("fig4")?, FIG4, args)?;
        Ok(one.times(count).with_paper(mbit))
    });
    Ok(Experiment {
        name: "concurrent",
        about: "000, 5.4.2: files of 5 GB on links of 1 and 10 Gbit/s there, goodput of all together",
        variants: by_tcp
            .into_iter()
            .chain(variants)
            .collect::<Result<_, ExperimentError>>()?,
        headline: ratio("10", "1"),
        paper_ratio: Some(paper[4].1 / paper[0].1),
        bytes: 100 * MB,
        window: None,
        one_network: false,
    })
}

pub(super) fn filesize() -> Result<Experiment, ExperimentError> {
    let paper = papers::filesize();
    // A hundredth of the size.
    let size = |gigabytes: f64| {
        let bytes = (gigabytes * 1e7) as u64;
        (bytes, format!("{}MB", bytes / MB))
    };
    let variants = paper.map(|(gigabytes, mbit)| {
        let (bytes, name) = size(gigabytes);
        let one = Variant::single(name, ready("fig4")?, FIG4, select("disjoint", 2))?;
        Ok(one.times(3).with_paper(mbit).with_bytes(bytes))
    });
    // A baseline: the same by plain TCP over one link.
    let by_tcp = [1.0, 20.0].map(|gigabytes| {
        let (bytes, name) = size(gigabytes);
        let one = Variant::over_ip(format!("{name}-over-ip"), ready("fig4")?, FIG4)?;
        Ok(one.times(3).with_bytes(bytes))
    });
    Ok(Experiment {
        name: "filesize",
        about: "000, 5.4.3: three files at once, of 1 to 20 GB there, of a hundredth here",
        variants: by_tcp
            .into_iter()
            .chain(variants)
            .collect::<Result<_, ExperimentError>>()?,
        headline: ratio("200MB", "10MB"),
        paper_ratio: Some(paper[4].1 / paper[0].1),
        bytes: 0,
        window: None,
        one_network: false,
    })
}

//! How much is carried: by one path and by two, for one download and for many.

use super::{Experiment, FIG4, MB, choose, over_ip, ratio, ready, single};
use crate::failure::Failure;
use crate::paper::{self, fig5};

pub(super) fn fig5() -> Result<Experiment, Failure> {
    Ok(Experiment {
        name: "fig5",
        about: "001, Fig. 5: links of 10 Gbit/s there, of 300 Mbit/s here; over IP by QUIC there, by TCP here",
        variants: vec![
            over_ip("over-ip", ready("fig4")?, FIG4)?.paper(fig5::OVER_IP),
            single("one-path", ready("fig4")?, FIG4, choose("shortest", 1))?.paper(fig5::ONE_PATH),
            single("two-paths", ready("fig4")?, FIG4, choose("disjoint", 2))?
                .paper(fig5::TWO_PATHS),
        ],
        headline: ratio("two-paths", "one-path"),
        paper_ratio: Some(fig5::TWO_PATHS / fig5::ONE_PATH),
        bytes: 400 * MB,
        window: None,
    })
}

pub(super) fn concurrent() -> Result<Experiment, Failure> {
    let paper = paper::concurrent();
    // A baseline: the same by plain TCP over one link.
    let by_tcp = [1, 10].map(|count| {
        let one = over_ip(format!("{count}-over-ip"), ready("fig4")?, FIG4)?;
        Ok(one.times(count))
    });
    let variants = paper.map(|(count, mbit)| {
        let args = choose("disjoint", 2);
        let one = single(format!("{count}"), ready("fig4")?, FIG4, args)?;
        Ok(one.times(count).paper(mbit))
    });
    Ok(Experiment {
        name: "concurrent",
        about: "000, 5.4.2: files of 5 GB on links of 1 and 10 Gbit/s there, goodput of all together",
        variants: by_tcp
            .into_iter()
            .chain(variants)
            .collect::<Result<_, Failure>>()?,
        headline: ratio("10", "1"),
        paper_ratio: Some(paper[4].1 / paper[0].1),
        bytes: 100 * MB,
        window: None,
    })
}

pub(super) fn filesize() -> Result<Experiment, Failure> {
    let paper = paper::filesize();
    // A hundredth of the size.
    let size = |gigabytes: f64| {
        let bytes = (gigabytes * 1e7) as u64;
        (bytes, format!("{}MB", bytes / MB))
    };
    let variants = paper.map(|(gigabytes, mbit)| {
        let (bytes, name) = size(gigabytes);
        let one = single(name, ready("fig4")?, FIG4, choose("disjoint", 2))?;
        let mut three = one.times(3).paper(mbit);
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
        paper_ratio: Some(paper[4].1 / paper[0].1),
        bytes: 0,
        window: None,
    })
}

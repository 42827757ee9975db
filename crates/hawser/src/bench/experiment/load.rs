//! How much is carried: by one path and by two, for one download and for many.

use super::{Experiment, FIG4, MB, choose, over_ip, ratio, ready, single};
use crate::failure::Failure;

pub(super) fn fig5() -> Result<Experiment, Failure> {
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

pub(super) fn concurrent() -> Result<Experiment, Failure> {
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

pub(super) fn filesize() -> Result<Experiment, Failure> {
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

//! Which paths are chosen, by which strategy and by which side.

use std::time::Duration;

use super::{FIG7A, MB, ratio};
use crate::error::ExperimentError;
use crate::experiment::{Download, Experiment, Variant, isd_as, ready, select};
use crate::papers::{fig8, fig10};

pub(super) fn fig8() -> Result<Experiment, ExperimentError> {
    Ok(Experiment {
        name: "fig8",
        about: "001, Fig. 8",
        variants: vec![
            Variant::over_ip("over-ip", ready("fig7a")?, FIG7A)?,
            Variant::single("one-path", ready("fig7a")?, FIG7A, select("shortest", 1))?,
            Variant::single("naive", ready("fig7a")?, FIG7A, select("shortest", 2))?
                .with_paper(fig8::NAIVE),
            Variant::single("disjoint", ready("fig7a")?, FIG7A, select("disjoint", 2))?
                .with_paper(fig8::DISJOINT),
        ],
        headline: ratio("disjoint", "naive"),
        paper_ratio: Some(fig8::DISJOINT / fig8::NAIVE),
        bytes: 32 * MB,
        window: None,
        one_network: false,
    })
}

/// Two leechers, one path each. When leechers choose, both take the best path, which is the same
/// for both: over B, since links to C have a little more delay.
pub(super) fn fig10() -> Result<Experiment, ExperimentError> {
    let uploader = || ["--select-by", "uploader", "--paths", "1"].map(str::to_owned);
    Ok(Experiment {
        name: "fig10",
        about: "001, Fig. 10: two leechers, goodput of both together",
        variants: vec![
            Variant {
                over_ip: true,
                ..two_leechers("over-ip", Vec::new())?
            },
            two_leechers("leecher-based", select("shortest", 1))?.with_paper(fig10::LEECHER_BASED),
            two_leechers("upload-based", uploader().into())?.with_paper(fig10::UPLOAD_BASED),
        ],
        headline: ratio("upload-based", "leecher-based"),
        paper_ratio: Some(fig10::UPLOAD_BASED / fig10::LEECHER_BASED),
        bytes: 16 * MB,
        window: None,
        one_network: false,
    })
}

/// The seeder in E, leechers in A and D (001, Fig. 9).
fn two_leechers(name: &str, args: Vec<String>) -> Result<Variant, ExperimentError> {
    let mut network = ready("fig9")?;
    let c = isd_as("1-ff00:0:3")?;
    for link in network.links.iter_mut().filter(|link| link.a.isd_as == c) {
        link.shape.delay += Duration::from_millis(2);
    }
    let mut two = Variant::single(name, network, ("1-ff00:0:5", "1-ff00:0:1"), args.clone())?;
    two.downloads.push(Download {
        isd_as: isd_as("1-ff00:0:4")?,
        seeder: 0,
        args,
    });
    Ok(two)
}

pub(super) fn strategies() -> Result<Experiment, ExperimentError> {
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
    let by_tcp = Variant::over_ip("over-ip", ready("fig7a")?, FIG7A);
    let variants = names.map(|name| Variant::single(name, ready("fig7a")?, FIG7A, select(name, 2)));
    let variants = std::iter::once(by_tcp).chain(variants);
    Ok(Experiment {
        name: "strategies",
        about: "two paths at most in 001, Fig. 7a, chosen in every way",
        variants: variants.collect::<Result<_, ExperimentError>>()?,
        headline: ratio("disjoint", "shortest"),
        paper_ratio: None,
        bytes: 32 * MB,
        window: None,
        one_network: false,
    })
}

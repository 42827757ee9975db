//! Cross traffic on one path, or on both.

use hawser_path::Interface;

use super::{FIG4, MB, ratio};
use crate::error::{During, ExperimentError};
use crate::experiment::{Experiment, Headline, Variant, Window, select};
use crate::network::congested;
use crate::papers::congestion;

/// Limit of the links of [`congest`], in Mbit/s.
const CONGESTED: f64 = 40.0;

pub(super) fn congest(both: bool, share: f64) -> Result<Experiment, ExperimentError> {
    let interface = |text: &str| -> Result<(Interface, u64), ExperimentError> {
        let interface = text.parse().during(text)?;
        Ok((interface, (CONGESTED * share * 1e6) as u64))
    };
    let mut cross = vec![interface("1-ff00:0:111#1")?];
    if both {
        cross.push(interface("1-ff00:0:111#2")?);
    }
    let network = || congested(CONGESTED);
    let two_paths = match both {
        true => congestion::BOTH_CONGESTED,
        false => congestion::ONE_CONGESTED,
    };
    let mut variants = vec![
        Variant::over_ip("over-ip", network()?, FIG4)?.with_paper(congestion::OVER_IP),
        Variant::single("one-path", network()?, FIG4, select("shortest", 1))?,
        Variant::single("two-paths", network()?, FIG4, select("disjoint", 2))?
            .with_paper(two_paths),
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
        paper_ratio: Some(match both {
            // One path is that over IP there.
            true => congestion::BOTH_CONGESTED / congestion::OVER_IP,
            false => congestion::ONE_CONGESTED / congestion::BEFORE,
        }),
        bytes: 128 * MB,
        window: Some(Window {
            from: 10.0,
            to: 20.0,
        }),
        one_network: false,
    })
}

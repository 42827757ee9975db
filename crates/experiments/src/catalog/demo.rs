//! The demos: two variants one after the other on one network.

use super::{FIG4, FIG7A, ratio};
use crate::error::ExperimentError;
use crate::experiment::{Experiment, Variant, ready, select};
use crate::papers::{fig5, fig8};

/// The ready topologies that have a demo.
pub const DEMO_TOPOLOGIES: [&str; 2] = ["fig7a", "fig4"];

/// The demo on a ready topology, which names it.
///
/// # Errors
/// [`ExperimentError::Request`] if there is none on that topology.
pub fn demo(topology: &str) -> Result<Experiment, ExperimentError> {
    match topology {
        "fig7a" => fig7a(),
        "fig4" => fig4(),
        other => Err(ExperimentError::Request(format!(
            "no demo on {other}: there are {}",
            DEMO_TOPOLOGIES.join(" and ")
        ))),
    }
}

/// 001, Fig. 8.
fn fig7a() -> Result<Experiment, ExperimentError> {
    let variant = |strategy, mbit| {
        let args = select(strategy, 2);
        let variant = Variant::single(strategy, ready("fig7a")?, FIG7A, args)?;
        Ok(variant.with_paper(mbit))
    };
    Ok(Experiment {
        name: "fig7a",
        about: "Gartner et al., Multipath BitTorrent over SCION, Fig. 8",
        variants: vec![
            variant("shortest", fig8::NAIVE)?,
            variant("disjoint", fig8::DISJOINT)?,
        ],
        headline: ratio("disjoint", "shortest"),
        paper_ratio: Some(fig8::DISJOINT / fig8::NAIVE),
        // Enough that starting up weighs little, little enough to be done in a minute.
        bytes: 32 << 20,
        window: None,
        one_network: true,
    })
}

/// 001, Fig. 5.
fn fig4() -> Result<Experiment, ExperimentError> {
    let variant = |name, strategy, paths, mbit| {
        let args = select(strategy, paths);
        let variant = Variant::single(name, ready("fig4")?, FIG4, args)?;
        Ok(variant.with_paper(mbit))
    };
    Ok(Experiment {
        name: "fig4",
        about: "Gartner et al., Multipath BitTorrent over SCION, Fig. 5 (links of 10 Gbit/s)",
        variants: vec![
            variant("one-path", "shortest", 1, fig5::ONE_PATH)?,
            variant("disjoint", "disjoint", 2, fig5::TWO_PATHS)?,
        ],
        headline: ratio("disjoint", "one-path"),
        paper_ratio: Some(fig5::TWO_PATHS / fig5::ONE_PATH),
        bytes: 384 << 20,
        window: None,
        one_network: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_has_limits_and_one_network() {
        for name in DEMO_TOPOLOGIES {
            let demo = demo(name).unwrap();
            assert!(demo.one_network && demo.name == name);
            let first = &demo.variants[0];
            assert!(first.network.links.iter().all(|l| l.shape.rate.is_some()));
            for variant in &demo.variants {
                assert_eq!(variant.seeders.len(), 1);
                assert_eq!(variant.network.links.len(), first.network.links.len());
            }
        }
        assert!(demo("fig9").is_err());
    }
}

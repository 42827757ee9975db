//! Experiments on which paths are chosen, by which strategy and by which side; and the demos, which
//! show the choice.

use std::time::Duration;

use super::{FIG4, FIG7A, MB, ratio};
use crate::error::ExperimentError;
use crate::experiment::{
    Download, DownloadExperiment, Means, Variant, compared, isd_as, ready, select,
};
use crate::papers::{fig5, fig8, fig10};

/// The ready topologies with a demo.
pub const DEMO_TOPOLOGIES: [&str; 2] = ["fig7a", "fig4"];

/// The demo on the ready topology of this name: two variants one after the other on one network.
///
/// # Errors
/// [`ExperimentError::Request`] if that topology has no demo.
pub fn demo(topology: &str) -> Result<DownloadExperiment, ExperimentError> {
    let demo = match topology {
        "fig7a" => demo_fig7a(),
        "fig4" => demo_fig4(),
        other => Err(ExperimentError::Request(format!(
            "no demo on {other}: there are {}",
            DEMO_TOPOLOGIES.join(" and ")
        ))),
    };
    Ok(DownloadExperiment {
        one_network: true,
        ..demo?
    })
}

fn demo_fig7a() -> Result<DownloadExperiment, ExperimentError> {
    let rows = [
        ("shortest", Some(("shortest", 2)), Some(fig8::NAIVE)),
        ("disjoint", Some(("disjoint", 2)), Some(fig8::DISJOINT)),
    ];
    Ok(DownloadExperiment::new(
        "fig7a",
        "Gartner et al., Multipath BitTorrent over SCION, Fig. 8",
        // Large enough that starting up weighs little, small enough to be done in a minute.
        32 << 20,
        compared(&ready("fig7a")?, FIG7A, &rows)?,
        ratio("disjoint", "shortest"),
    ))
}

fn demo_fig4() -> Result<DownloadExperiment, ExperimentError> {
    let rows = [
        ("one-path", Some(("shortest", 1)), Some(fig5::ONE_PATH)),
        ("disjoint", Some(("disjoint", 2)), Some(fig5::TWO_PATHS)),
    ];
    Ok(DownloadExperiment::new(
        "fig4",
        "Gartner et al., Multipath BitTorrent over SCION, Fig. 5 (links of 10 Gbit/s)",
        384 << 20,
        compared(&ready("fig4")?, FIG4, &rows)?,
        ratio("disjoint", "one-path"),
    ))
}

pub(super) fn fig8() -> Result<DownloadExperiment, ExperimentError> {
    let rows = [
        ("over-ip", None, None),
        ("one-path", Some(("shortest", 1)), None),
        ("naive", Some(("shortest", 2)), Some(fig8::NAIVE)),
        ("disjoint", Some(("disjoint", 2)), Some(fig8::DISJOINT)),
    ];
    let variants = compared(&ready("fig7a")?, FIG7A, &rows)?;
    let headline = ratio("disjoint", "naive");
    Ok(DownloadExperiment::new(
        "fig8",
        "001, Fig. 8",
        32 * MB,
        variants,
        headline,
    ))
}

/// Two leechers, one path each. When leechers choose, both take the best path, which is the same
/// for both: over B, because links to C have slightly more delay.
pub(super) fn fig10() -> Result<DownloadExperiment, ExperimentError> {
    let uploader = ["--select-by", "uploader", "--paths", "1"].map(str::to_owned);
    let mut over_ip = two_leechers("over-ip", Vec::new())?;
    over_ip.means = Means::TorrentOverIp;
    Ok(DownloadExperiment::new(
        "fig10",
        "001, Fig. 10: two leechers, goodput of both together",
        16 * MB,
        vec![
            over_ip,
            two_leechers("leecher-based", select("shortest", 1))?.with_paper(fig10::LEECHER_BASED),
            two_leechers("upload-based", uploader.into())?.with_paper(fig10::UPLOAD_BASED),
        ],
        ratio("upload-based", "leecher-based"),
    ))
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

pub(super) fn strategies() -> Result<DownloadExperiment, ExperimentError> {
    let mut rows = vec![("over-ip", None, None)];
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
    rows.extend(names.map(|name| (name, Some((name, 2)), None)));
    Ok(DownloadExperiment::new(
        "strategies",
        "two paths at most in 001, Fig. 7a, chosen in every way",
        32 * MB,
        compared(&ready("fig7a")?, FIG7A, &rows)?,
        ratio("disjoint", "shortest"),
    ))
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

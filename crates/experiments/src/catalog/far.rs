//! Experiments on congestion control: far paths that lose packets, and rivals from the kernel.

use super::{FIG4, MB, ratio};
use crate::bed::has_congestion_control;
use crate::error::ExperimentError;
use crate::experiment::{DownloadExperiment, Rival, Variant, select};
use crate::network::{LinkSpec, behind, parallel};

/// Rate of the links of [`distance`], in Mbit/s.
const FAR: f64 = 1000.0;
/// Seconds of a far download that do not count: two connections and slow start.
const WARM_UP_SECONDS: f64 = 10.0;
/// Bytes for each path of a far download: about 20 s.
const FAR_BYTES: u64 = 2000 * MB;
/// Rate of the link of [`fairness`], in Mbit/s.
const SHARED_LINK_RATE: f64 = 100.0;
/// Seconds by which one of two flows precedes the other.
const LEAD: f64 = 5.0;

/// One way in milliseconds, so that there and back is what the names say.
const DELAYS: [(&str, f64); 3] = [("25ms", 12.5), ("100ms", 50.0), ("194ms", 97.0)];
/// One-way delays of the link of [`fairness`] in milliseconds. Without delay the round trip is that of
/// the queue, which both flows fill.
const BESIDE: [(u32, &str); 2] = [(0, ""), (10, "-20ms")];
/// In percent.
const LOSSES: [(&str, f64); 3] = [("", 0.0), ("-0.01%", 0.01), ("-0.1%", 0.1)];

pub(super) fn distance() -> Result<DownloadExperiment, ExperimentError> {
    let variant = |(delay, millis): (&str, f64), (loss_name, loss): (&str, f64), paths: u16| {
        let link = LinkSpec {
            loss,
            ..LinkSpec::new(FAR, millis)
        };
        let network = parallel(&vec![link; paths.into()])?;
        let twice = if paths > 1 { "-x2" } else { "" };
        let name = format!("{delay}{loss_name}{twice}");
        let one = Variant::single(name, network, FIG4, select("disjoint", paths))?;
        Ok::<_, ExperimentError>(one.with_bytes(FAR_BYTES * u64::from(paths)))
    };
    let mut variants = Vec::new();
    for delay in DELAYS {
        for loss in LOSSES {
            variants.push(variant(delay, loss, 1)?);
        }
    }
    for loss in LOSSES {
        variants.push(variant(DELAYS[2], loss, 2)?);
    }
    Ok(DownloadExperiment {
        settled: Some(WARM_UP_SECONDS),
        ..DownloadExperiment::new(
            "distance",
            "1 Gbit/s at three round-trip times and three rates of loss, at the longest over two paths too; goodput after the first 10 s",
            0,
            variants,
            ratio("194ms-x2", "194ms"),
        )
    })
}

pub(super) fn fairness() -> Result<DownloadExperiment, ExperimentError> {
    let mut variants = Vec::new();
    let bbr = has_congestion_control("bbr").then_some("bbr");
    for (millis, delay) in BESIDE {
        let network = behind(LinkSpec::new(SHARED_LINK_RATE, millis))?;
        for algorithm in ["cubic"].into_iter().chain(bbr) {
            for (order, lead) in [("after", -LEAD), ("before", LEAD)] {
                let name = format!("{algorithm}-{order}{delay}");
                let select = select("shortest", 1);
                let one = Variant::single(name, network.clone(), FIG4, select)?;
                let ends = (one.seeders[0], one.downloads[0].isd_as);
                variants.push(one.with_rival(Rival {
                    ends,
                    algorithm,
                    lead,
                }));
            }
        }
    }
    Ok(DownloadExperiment::new(
        "fairness",
        "beside a TCP flow of the kernel (CUBIC, and BBR where it has that) on 100 Mbit/s, at 0 and 20 ms, which starts 5 s after or before; goodput of both",
        400 * MB,
        variants,
        ratio("cubic-after", "cubic-before"),
    ))
}

//! Runs for tests.

use std::path::PathBuf;
use std::time::Duration;

use super::carrier::MptcpCarrier;
use super::case::{MptcpCase, MptcpRun};
use super::headers::HeaderRow;
use super::run::Mptcp;
use crate::ceiling::PathCost;
use crate::shape::{Choice, Series};

pub(super) fn mptcp(repeat: u16) -> Mptcp {
    Mptcp {
        program: PathBuf::new(),
        carriers: MptcpCarrier::ALL.to_vec(),
        paths: vec![1, 2, 4, 6, 8],
        rate: 20_000_000,
        delay: Duration::from_millis(10),
        time: Duration::from_secs(30),
        repeat,
    }
}

/// A run with this goodput, in Mbit/s.
pub(super) fn run(carrier: MptcpCarrier, goodput: f64) -> MptcpRun {
    MptcpRun {
        goodput,
        throughput: goodput * 1.25,
        ceiling: goodput * 17.0 / 16.0,
        headers: HeaderRow::new(carrier, &PathCost::quic(1472, 48), 48),
        set_up: Vec::new(),
    }
}

pub(super) fn series(
    carrier: MptcpCarrier,
    paths: u8,
    goodputs: &[f64],
) -> Series<MptcpCase, MptcpRun> {
    let mut series = Series::new(MptcpCase { carrier, paths });
    let runs = goodputs.iter().map(|goodput| run(carrier, *goodput));
    series.runs = runs.collect();
    series
}

//! Processor time by what it has moved.

use serde::Serialize;

use crate::bed::Carried;
use crate::numbers::median;

/// Processor time, in seconds per GB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerGigabyte {
    /// Of the sending process.
    pub sender: f64,
    /// Of the receiving process.
    pub receiver: f64,
    /// Of each border router that took part.
    pub routers: Vec<f64>,
    /// Of all together. Forwarding of plain IP by the kernel is not part of it where it is done in
    /// interrupts of idle processors.
    pub all: f64,
}

impl PerGigabyte {
    /// The medians of runs; `None` without runs.
    pub(crate) fn of(runs: &[Carried]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let of = |seconds: &dyn Fn(&Carried) -> f64| {
            let all = runs.iter().map(|run| run.per_gb(seconds(run)));
            median(&all.collect::<Vec<_>>())
        };
        let routers = runs.iter().map(|run| run.routers.len()).max().unwrap_or(0);
        let router = |index: usize| {
            let at = move |run: &Carried| run.routers.get(index).copied().unwrap_or(0.0);
            of(&at)
        };
        Some(Self {
            sender: of(&|run| run.sender),
            receiver: of(&|run| run.receiver),
            routers: (0..routers).map(router).collect(),
            all: of(&|run| run.sender + run.receiver + run.routers.iter().sum::<f64>()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_per_gigabyte() {
        let run = |seconds: f64, routers: Vec<f64>| Carried {
            bytes: 500_000_000,
            seconds,
            sender: 0.5,
            receiver: 1.0,
            routers,
            paths: 2,
            memory: None,
        };
        let runs = [
            run(1.0, vec![0.1, 0.2]),
            run(2.0, vec![0.1, 0.2]),
            run(4.0, vec![0.1, 0.4]),
        ];
        let cpu = PerGigabyte::of(&runs).unwrap();
        assert_eq!((cpu.sender, cpu.receiver), (1.0, 2.0));
        assert_eq!(cpu.routers, [0.2, 0.4]);
        assert!((cpu.all - 3.6).abs() < 1e-9);
        assert_eq!(PerGigabyte::of(&[]), None);
    }
}

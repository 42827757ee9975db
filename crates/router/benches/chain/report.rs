//! The table of all measurements.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The result of one measurement.
pub struct Outcome {
    pub gbit_per_second: f64,
    pub packets_per_second: f64,
    pub lost_packets: f64,
    /// CPU seconds per GB of the first and of the second router.
    pub routers: [f64; 2],
    /// CPU seconds per GB of the sending and of the receiving host.
    pub hosts: [f64; 2],
    /// CPU seconds per GB of the whole machine.
    pub machine: f64,
}

impl Outcome {
    /// Gbit that a CPU second of a router forwards.
    fn gbit_per_cpu_second(&self) -> f64 {
        16.0 / (self.routers[0] + self.routers[1])
    }

    /// All values with their names.
    fn values(&self) -> [(&'static str, f64); 9] {
        [
            ("gbit_per_second", self.gbit_per_second),
            ("packets_per_second", self.packets_per_second),
            ("gbit_per_cpu_second", self.gbit_per_cpu_second()),
            ("router_1_cpu_per_gb", self.routers[0]),
            ("router_2_cpu_per_gb", self.routers[1]),
            ("sender_cpu_per_gb", self.hosts[0]),
            ("receiver_cpu_per_gb", self.hosts[1]),
            ("machine_cpu_per_gb", self.machine),
            ("lost_packets", self.lost_packets),
        ]
    }
}

/// All measurements, by how batches cross the links and by contestant.
#[derive(Default)]
pub struct Report(BTreeMap<(bool, &'static str), Vec<Outcome>>);

impl Report {
    pub fn add(&mut self, whole: bool, name: &'static str, outcome: Outcome) {
        self.0.entry((whole, name)).or_default().push(outcome);
    }

    /// Prints the medians, and the spread of the rates.
    pub fn print(&self) {
        println!(
            "{:20} {:>7} {:>15} {:>10} {:>9}  {:>15}  {:>15} {:>8} {:>6}",
            "",
            "Gbit/s",
            "(lowest-highest)",
            "packets/s",
            "Gbit/CPUs",
            "routers, s/GB",
            "hosts, s/GB",
            "all s/GB",
            "lost",
        );
        for ((whole, name), outcomes) in self.0.iter().rev() {
            let how = if *whole { "batches" } else { "per packet" };
            let [rate, packets, per_cpu, r1, r2, h1, h2, all, lost] = summary(outcomes);
            println!(
                "{:20} {:7.2} {:>16} {:10.0} {:9.1}  {:15}  {:15} {:8.3} {:6.0}",
                format!("{how}, {name}"),
                rate.median,
                format!("({:.2}-{:.2})", rate.lowest, rate.highest),
                packets.median,
                per_cpu.median,
                format!("{:.3} + {:.3}", r1.median, r2.median),
                format!("{:.3} + {:.3}", h1.median, h2.median),
                all.median,
                lost.median,
            );
        }
    }

    /// Writes the medians and the extremes as JSON.
    pub fn write(&self, file: &str) {
        let rows = self.0.iter().map(|((whole, name), outcomes)| {
            let mut row = json!({ "batches_whole": whole, "name": name });
            let names = outcomes[0].values().map(|(name, _)| name);
            for (name, value) in names.into_iter().zip(summary(outcomes)) {
                let Spread {
                    lowest,
                    median,
                    highest,
                } = value;
                row[name] = json!({ "lowest": lowest, "median": median, "highest": highest });
            }
            row
        });
        let rows: Vec<Value> = rows.collect();
        std::fs::write(file, format!("{:#}\n", Value::from(rows))).unwrap();
    }
}

struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

fn summary(outcomes: &[Outcome]) -> [Spread; 9] {
    std::array::from_fn(|at| {
        let mut values: Vec<f64> = outcomes.iter().map(|o| o.values()[at].1).collect();
        values.sort_by(f64::total_cmp);
        Spread {
            lowest: values[0],
            median: values[values.len() / 2],
            highest: values[values.len() - 1],
        }
    })
}

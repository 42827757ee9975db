//! The table of all measurements.

use serde_json::{Value, json};

/// The result of one measurement.
pub struct Outcome {
    pub gbit_per_second: f64,
    pub packets_per_second: f64,
    pub lost_packets: f64,
    /// CPU seconds per GB of each router.
    pub routers: Vec<f64>,
    /// CPU seconds per GB of the sending and of the receiving host.
    pub hosts: [f64; 2],
    /// CPU seconds per GB of the whole machine.
    pub machine: f64,
}

impl Outcome {
    /// Gbit that a CPU second of a router forwards.
    fn gbit_per_cpu_second(&self) -> f64 {
        8.0 * self.routers.len() as f64 / self.routers.iter().sum::<f64>()
    }

    /// All values with their names.
    fn values(&self) -> [(&'static str, f64); 9] {
        [
            ("gbit_per_second", self.gbit_per_second),
            ("packets_per_second", self.packets_per_second),
            ("gbit_per_cpu_second", self.gbit_per_cpu_second()),
            ("router_1_cpu_per_gb", self.routers[0]),
            (
                "router_2_cpu_per_gb",
                self.routers.get(1).copied().unwrap_or_default(),
            ),
            ("sender_cpu_per_gb", self.hosts[0]),
            ("receiver_cpu_per_gb", self.hosts[1]),
            ("machine_cpu_per_gb", self.machine),
            ("lost_packets", self.lost_packets),
        ]
    }
}

/// All measurements, by case and contestant, in the order of the first ones.
#[derive(Default)]
pub struct Report(Vec<((&'static str, &'static str), Vec<Outcome>)>);

impl Report {
    pub fn add(&mut self, case: &'static str, name: &'static str, outcome: Outcome) {
        match self.0.iter_mut().find(|(of, _)| *of == (case, name)) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => self.0.push(((case, name), vec![outcome])),
        }
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
        for ((case, name), outcomes) in &self.0 {
            let [rate, packets, per_cpu, r1, r2, h1, h2, all, lost] = summary(outcomes);
            println!(
                "{:20} {:7.2} {:>16} {:10.0} {:9.1}  {:15}  {:15} {:8.3} {:6.0}",
                format!("{case}, {name}"),
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
        let rows = self.0.iter().map(|((case, name), outcomes)| {
            let mut row = json!({ "case": case, "name": name });
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

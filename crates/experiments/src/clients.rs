//! BitTorrent clients compared over plain TCP on this host: one seeder and one leecher of the same
//! program, without trackers, DHT, encryption and limits.

mod client;
mod run;

use std::path::PathBuf;

use serde::Serialize;

pub use self::client::Client;
use self::run::Stage;
use crate::error::ExperimentError;
use crate::report::{median, spread};

/// A comparison of clients.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The `hawser` program.
    pub program: PathBuf,
    /// The clients, in the order in which they take turns.
    pub clients: Vec<Client>,
    /// Runs of each.
    pub repeat: u16,
    /// Bytes of the file that is transferred.
    pub bytes: u64,
    /// Bytes of a piece; chosen by size if `None`.
    pub piece: Option<u64>,
    /// Where the seeded and the downloaded file are; in memory (tmpfs) if `None`.
    pub folder: Option<PathBuf>,
}

/// What the clients needed.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// Bytes of the file that was transferred.
    pub bytes: u64,
    /// One row for each client.
    pub rows: Vec<Row>,
}

/// What one client needed.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The client.
    pub client: Client,
    /// Its version; `None` if it is not installed.
    pub version: Option<String>,
    /// How to install it, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
    /// Its runs, in order.
    pub runs: Vec<Run>,
    /// The median rate in Gbit/s, from the start of the leecher's process to its end.
    pub gbit: Option<f64>,
    /// The difference between the largest and the smallest rate, as a share of the median.
    pub spread: Option<f64>,
    /// The median processor time of seeder and leecher together, in seconds per GB.
    pub cpu_per_gb: Option<f64>,
}

/// One run of a client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Run {
    /// Gbit/s, from the start of the leecher's process to its end.
    pub gbit: f64,
    /// Processor time of the seeder during the transfer, in seconds per GB.
    pub seeder_cpu_per_gb: f64,
    /// Processor time of the leecher, in seconds per GB.
    pub leecher_cpu_per_gb: f64,
}

impl Run {
    fn cpu_per_gb(&self) -> f64 {
        self.seeder_cpu_per_gb + self.leecher_cpu_per_gb
    }
}

impl Comparison {
    /// Runs the installed clients in turn; calls `observe` after each run with the client and the
    /// number of the run. Blocks until done.
    ///
    /// # Errors
    /// When a step fails, or a downloaded file differs from the seeded one.
    pub fn run(
        &self,
        observe: &mut dyn FnMut(Client, u16, &Run),
    ) -> Result<Table, ExperimentError> {
        let clients = self.clients.iter();
        let mut rows: Vec<Row> = clients
            .map(|client| {
                let version = client.version(&self.program);
                Row {
                    client: *client,
                    missing: version.is_none().then(|| client.remedy()),
                    version,
                    runs: Vec::new(),
                    gbit: None,
                    spread: None,
                    cpu_per_gb: None,
                }
            })
            .collect();
        let stage = Stage::prepare(self)?;
        for turn in 1..=self.repeat {
            for row in rows.iter_mut().filter(|row| row.version.is_some()) {
                let run = stage.run(row.client)?;
                observe(row.client, turn, &run);
                row.runs.push(run);
            }
        }
        rows.iter_mut().for_each(Row::sum_up);
        let bytes = self.bytes;
        Ok(Table { bytes, rows })
    }
}

impl Row {
    /// The median processor time of the seeder, in seconds per GB; NaN without runs.
    pub fn seeder_cpu_per_gb(&self) -> f64 {
        self.median(|run| run.seeder_cpu_per_gb)
    }

    /// The median processor time of the leecher, in seconds per GB; NaN without runs.
    pub fn leecher_cpu_per_gb(&self) -> f64 {
        self.median(|run| run.leecher_cpu_per_gb)
    }

    fn median(&self, value: fn(&Run) -> f64) -> f64 {
        median(&self.runs.iter().map(value).collect::<Vec<f64>>())
    }

    fn sum_up(&mut self) {
        if self.runs.is_empty() {
            return;
        }
        let gbit: Vec<f64> = self.runs.iter().map(|run| run.gbit).collect();
        self.gbit = Some(median(&gbit));
        self.spread = Some(spread(&gbit));
        self.cpu_per_gb = Some(self.median(Run::cpu_per_gb));
    }
}

//! BitTorrent clients compared over plain TCP on this host: one seeder and one leecher of the same
//! program, without trackers, DHT, encryption and limits.

mod client;
mod run;

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

pub use self::client::Client;
pub use self::run::Host;
use crate::error::ExperimentError;
use crate::shape::{Columns, Experiment, Format, Observe, Results, Row, Section, Table};

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

/// A client that may be installed.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The client.
    pub client: Client,
    /// Its version; `None` if it is not installed.
    pub version: Option<String>,
}

impl fmt::Display for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
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
    /// The most memory that one of the processes used, in bytes.
    pub memory: u64,
}

impl Run {
    /// Processor time of both, in seconds per GB.
    pub fn cpu_per_gb(&self) -> f64 {
        self.seeder_cpu_per_gb + self.leecher_cpu_per_gb
    }
}

impl Experiment for Comparison {
    type Place = ();
    type Bed = Host;
    type Case = Installed;
    type Run = Run;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<Installed> {
        let clients = self.clients.iter();
        let cases = clients.map(|&client| Installed {
            client,
            version: client.version(&self.program),
        });
        cases.collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<Host, ExperimentError> {
        let size = (self.bytes, self.piece);
        Host::prepare(&self.program, size, self.folder.as_deref())
    }

    async fn measure(&self, host: &Host, case: &Installed) -> Result<Run, ExperimentError> {
        match case.version {
            None => Err(ExperimentError::Missing(case.client.remedy())),
            Some(_) => host.run(case.client, 1).await,
        }
    }

    fn summary(&self, run: &Run) -> String {
        format!("{:.2} Gbit/s", run.gbit)
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let gigabytes = self.bytes as f64 / 1e9;
        Table {
            experiment: "clients",
            facts: vec![("bytes", self.bytes.into())],
            about: vec![format!(
                "{gigabytes:.1} GB over TCP on this host, one seeder and one leecher"
            )],
            sections: vec![Section::of("rows", self, results, &columns())],
            notes: Vec::new(),
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, Comparison>> {
    use Format::{Number, Text};
    Columns::<Row<'a, Comparison>>::new()
        .case("client")
        .both("version", "version", Text, |row| row.case.version.clone())
        .json("runs", |row| json!(row.series.runs))
        .runs()
        .median("gbit", "Gbit/s", Number(2), |run| run.gbit)
        .spread("spread", |run| run.gbit)
        .median(None, "CPU s/GB: seeder", Number(2), |run| {
            run.seeder_cpu_per_gb
        })
        .median(None, "leecher", Number(2), |run| run.leecher_cpu_per_gb)
        .median("cpu_per_gb", "all", Number(2), Run::cpu_per_gb)
        .median("memory_mb", "memory MB", Number(0), |run| {
            run.memory as f64 / 1e6
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    #[test]
    fn what_is_not_installed_is_named_with_the_remedy() {
        let comparison = Comparison {
            program: PathBuf::from("/usr/bin/env"),
            clients: vec![Client::Rqbit],
            repeat: 2,
            bytes: 1,
            piece: None,
            folder: None,
        };
        let missing = Installed {
            client: Client::Rqbit,
            version: None,
        };
        let series = Series {
            failure: Some(missing.client.remedy().to_owned()),
            case: missing,
            runs: Vec::new(),
        };
        let places = vec![((), vec![series])];
        let table = comparison.table(&Results { places });
        let text = table.to_string();
        assert!(
            text.contains("rqbit   left out: not installed: `cargo install rqbit`"),
            "{text}"
        );
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(json["rows"][0]["client"], "rqbit");
        assert_eq!(json["rows"][0]["runs"], json!([]));
    }
}

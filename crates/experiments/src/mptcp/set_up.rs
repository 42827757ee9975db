//! How long connections take until the first byte of an answer.

use super::carrier::MptcpCarrier;
use super::case::{Connection, MptcpRun};
use crate::numbers::{extremes, median};
use crate::shape::{Choice, Columns, Format};

/// How long the connections of one kind took, in milliseconds.
#[derive(Debug, Clone)]
pub(super) struct SetUpRow {
    pub carrier: MptcpCarrier,
    pub connection: Connection,
    /// Every connection.
    pub all_ms: Vec<f64>,
    /// Their median.
    pub ms: f64,
    /// The shortest and the longest.
    pub least_ms: f64,
    pub most_ms: f64,
    /// `ms` less that of plain TCP, if that was measured.
    pub more_ms: Option<f64>,
}

impl SetUpRow {
    /// Sums up connections; `plain` is the median of plain TCP, in milliseconds.
    pub fn new(
        (carrier, connection): (MptcpCarrier, Connection),
        all_ms: Vec<f64>,
        plain: Option<f64>,
    ) -> Self {
        let (ms, (least_ms, most_ms)) = (median(&all_ms), extremes(&all_ms));
        Self {
            carrier,
            connection,
            ms,
            least_ms,
            most_ms,
            more_ms: plain.map(|plain| ms - plain),
            all_ms,
        }
    }
}

/// A row for the first and one for the later connections of each carrier, as far as there are any.
pub(super) fn rows<'a>(
    runs: impl Iterator<Item = (MptcpCarrier, &'a MptcpRun)> + Clone,
) -> Vec<SetUpRow> {
    let of = |carrier, connection| -> Vec<f64> {
        let same = runs.clone().filter(|(of, _)| *of == carrier);
        let times = same.flat_map(|(_, run)| &run.set_up);
        let times = times.filter(|(which, _)| *which == connection);
        times.map(|(_, ms)| *ms).collect()
    };
    let plain = of(MptcpCarrier::Tcp, Connection::Later);
    let plain = (!plain.is_empty()).then(|| median(&plain));
    let names = MptcpCarrier::ALL.iter().flat_map(|&carrier| {
        [Connection::First, Connection::Later].map(|connection| (carrier, connection))
    });
    let rows = names.filter_map(|name| {
        let times = of(name.0, name.1);
        let compared = plain.filter(|_| name.0 != MptcpCarrier::Tcp);
        (!times.is_empty()).then(|| SetUpRow::new(name, times, compared))
    });
    rows.collect()
}

pub(super) fn columns() -> Columns<SetUpRow> {
    use Format::{Name, Number, Text};
    let carrier = |row: &SetUpRow| row.carrier.to_string();
    Columns::new()
        .both("carrier", "carrier", Name, carrier)
        .json("connection", |row| row.connection.name())
        .text("which", Name, |row| match row.carrier {
            MptcpCarrier::Tcp => "all",
            _ => row.connection.name(),
        })
        .json("all_ms", |row| row.all_ms.clone())
        .text("connections", Number(0), |row| row.all_ms.len())
        .both("ms", "median", Number(1), |row| row.ms)
        .both("least_ms", "least", Number(1), |row| row.least_ms)
        .both("most_ms", "most", Number(1), |row| row.most_ms)
        .json("more_ms", |row| row.more_ms)
        .text("more than plain TCP", Text, |row| {
            row.more_ms.map(|more| format!("{more:+.1}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::testing::run;

    #[test]
    fn there_is_a_row_for_first_and_later_connections() {
        let (mptcp, tcp) = (MptcpCarrier::Mptcp, MptcpCarrier::Tcp);
        let shim = MptcpRun {
            set_up: vec![(Connection::First, 65.0), (Connection::Later, 42.0)],
            ..run(mptcp, 16.0)
        };
        let plain = MptcpRun {
            set_up: vec![(Connection::Later, 40.0)],
            ..run(tcp, 16.0)
        };
        let rows = rows([(mptcp, &shim), (tcp, &plain)].into_iter());
        let rows: Vec<_> = rows.iter().map(|row| (row.ms, row.more_ms)).collect();
        assert_eq!(rows, [(65.0, Some(25.0)), (42.0, Some(2.0)), (40.0, None)]);
    }

    #[test]
    fn set_up_is_compared_with_plain_tcp() {
        let name = (MptcpCarrier::Mptcp, Connection::First);
        let row = SetUpRow::new(name, vec![70.0, 60.0, 65.0], Some(41.0));
        assert_eq!((row.ms, row.least_ms, row.most_ms), (65.0, 60.0, 70.0));
        assert_eq!(row.more_ms, Some(24.0));
    }
}

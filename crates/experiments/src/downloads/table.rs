//! The measurements of downloads.

use serde_json::Value;

use super::{Downloads, Run, Runs};
use crate::experiment::Headline;
use crate::shape::{Columns, Format, Results, Row, Section, Table};

/// Sums up all runs: the variants, and the headline ratio.
pub(super) fn of(downloads: &Downloads, results: &Results<Downloads>) -> Table {
    let experiment = &downloads.experiment;
    let (ratio_of, ratio) = ratio(&experiment.headline, results);
    let note = ratio.map(|ratio| {
        let paper = experiment.paper_ratio;
        let paper = paper.map(|paper| format!("  (paper: {paper:.2})"));
        format!("{ratio_of}: {ratio:.2}{}", paper.unwrap_or_default())
    });
    Table {
        experiment: experiment.name,
        facts: vec![
            ("about", experiment.about.into()),
            ("ratio", ratio.into()),
            ("ratio_of", ratio_of.into()),
            ("paper_ratio", experiment.paper_ratio.into()),
        ],
        about: vec![format!("{}: {}", experiment.name, experiment.about)],
        sections: vec![
            Section::of("rows", downloads, results, &columns(downloads)).titled("Mbit/s, medians"),
        ],
        notes: note.into_iter().collect(),
    }
}

fn columns<'a>(downloads: &Downloads) -> Columns<Row<'a, Downloads>> {
    use Format::{Name, Number, Percent};
    let mut columns = Columns::<Row<'a, Downloads>>::new()
        .both("variant", "variant", Name, |row| row.case.name.clone())
        .json("bytes", |row| row.series.runs.first().map(|run| run.bytes))
        .values("runs_mbit", goodput)
        .runs()
        .median("mbit", "goodput", Number(1), goodput)
        .spread("spread", goodput)
        .both("ceiling_mbit", "ceiling", Number(1), |row| {
            ceiling(row.series)
        })
        .text("reached", Percent(1), |row| {
            Some(row.series.median(goodput)? / ceiling(row.series)?)
        })
        .both("paper_mbit", "paper", Number(1), |row| row.case.paper_mbit)
        .json("peak_memory", |row| {
            let runs = row.series.runs.iter();
            runs.map(|run| run.peak_memory).max()
        });
    if downloads.experiment.window.is_some() {
        columns = columns
            .values("before_mbit", before)
            .median(None, "before", Number(1), before)
            .json("recovered_seconds", |row| {
                row.series.runs.iter().map(recovered).collect::<Value>()
            })
            .text("nine tenths again after (s)", Number(1), |row| {
                let mut again = row.series.runs.iter().map(recovered);
                again.try_fold(0.0, |worst: f64, s| s.map(|s| worst.max(s)))
            });
    }
    if downloads
        .experiment
        .variants
        .iter()
        .any(|one| one.rival.is_some())
    {
        columns = columns
            .values("rival_mbit", rival)
            .median(None, "beside", Number(1), rival)
            .values("share", share)
            .median(None, "bits on the link by the other's", Number(2), share);
    }
    columns
}

fn goodput(run: &Run) -> f64 {
    run.goodput_mbit
}

/// What limits leave less headers, in Mbit/s; `None` without limits.
pub(crate) fn ceiling(series: &Runs) -> Option<f64> {
    let has = |run: &Run| run.ceiling_mbit.is_some();
    let all = series.runs.iter().all(has);
    let median = series.median(|run| run.ceiling_mbit.unwrap_or_default());
    median.filter(|_| all)
}

fn before(run: &Run) -> f64 {
    run.around.map_or(f64::NAN, |(before, _)| before)
}

/// Seconds until nine tenths of the goodput before cross traffic were reached again, if ever.
fn recovered(run: &Run) -> Option<f64> {
    let (_, seconds) = run.around?;
    seconds.is_finite().then_some(seconds)
}

fn rival(run: &Run) -> f64 {
    run.rival.map_or(f64::NAN, |(mbit, _)| mbit)
}

fn share(run: &Run) -> f64 {
    run.rival.map_or(f64::NAN, |(_, share)| share)
}

/// What the headline ratio is, and its value; `None` when one of its variants was not run.
fn ratio(headline: &Headline, results: &Results<Downloads>) -> (String, Option<f64>) {
    let median = |name: &String, of: fn(&Run) -> f64| {
        let mut all = results.places.iter().flat_map(|(_, all)| all);
        all.find(|series| series.case.name == *name)?.median(of)
    };
    match headline {
        Headline::Ratio(one, other, scale) => {
            let both = median(one, goodput).zip(median(other, goodput));
            let ratio = both.map(|(one, other)| scale * one / other);
            (format!("{one} / {other}"), ratio)
        }
        Headline::During(name) => {
            let both = median(name, goodput).zip(median(name, before));
            let ratio = both.map(|(during, before)| during / before);
            (format!("{name}, during / before congestion"), ratio)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter::zip;

    use super::*;
    use crate::catalog::CATALOG;
    use crate::downloads::Options;

    /// The table of an experiment whose variants have these runs.
    fn table(name: &str, all: Vec<Vec<Run>>) -> Table {
        let entry = CATALOG.iter().find(|entry| entry.name == name);
        let downloads = Downloads {
            experiment: entry.unwrap().experiment(1.0).unwrap(),
            options: Options::default(),
        };
        let series = zip(&downloads.experiment.variants, all).map(|(variant, runs)| Runs {
            case: variant.clone(),
            runs,
            failure: None,
        });
        let places = vec![((), series.collect())];
        of(&downloads, &Results { places })
    }

    fn run(goodput_mbit: f64) -> Run {
        Run {
            goodput_mbit,
            ceiling_mbit: Some(10.0),
            ..Run::default()
        }
    }

    #[test]
    fn variants_are_compared_with_each_other_and_the_paper() {
        let disjoint = vec![run(24.0), run(20.0), run(22.0)];
        let unlimited = Run {
            ceiling_mbit: None,
            ..run(5.0)
        };
        let table = table(
            "fig8",
            vec![vec![unlimited], vec![], vec![run(8.0)], disjoint],
        );
        let text = table.to_string();
        assert!(text.starts_with("fig8: 001, Fig. 8\n"), "{text}");
        assert!(
            text.ends_with("disjoint / naive: 2.75  (paper: 3.25)\n"),
            "{text}"
        );
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(
            (&json["ratio"], &json["paper_ratio"]),
            (&2.75.into(), &3.25.into())
        );
        let rows = &json["rows"];
        assert_eq!(
            (&rows[0]["variant"], &rows[0]["ceiling_mbit"]),
            (&"over-ip".into(), &Value::Null)
        );
        assert_eq!(rows[1]["failure"], Value::Null);
        assert_eq!(rows[1]["mbit"], Value::Null);
        assert_eq!(
            (&rows[2]["paper_mbit"], &rows[2]["ceiling_mbit"]),
            (&8.0.into(), &10.0.into())
        );
        assert_eq!(
            (&rows[3]["mbit"], &rows[3]["runs_mbit"][1]),
            (&22.0.into(), &20.0.into())
        );
        assert!(rows[3].get("before_mbit").is_none() && rows[3].get("share").is_none());
    }

    #[test]
    fn cross_traffic_and_rivals_have_columns_of_their_own() {
        let around = |seconds| Run {
            around: Some((40.0, seconds)),
            ..run(30.0)
        };
        let runs = vec![around(0.5), around(f64::INFINITY)];
        let congested = table("congest-one", vec![vec![], vec![], runs]);
        let json = serde_json::to_value(&congested).unwrap();
        assert_eq!(json["ratio"], 0.75);
        assert_eq!(json["ratio_of"], "two-paths, during / before congestion");
        let seconds = &json["rows"][2]["recovered_seconds"];
        assert_eq!((&seconds[0], &seconds[1]), (&0.5.into(), &Value::Null));
        let beside = Run {
            rival: Some((60.0, 0.5)),
            ..run(30.0)
        };
        let json = serde_json::to_value(table("fairness", vec![vec![beside]])).unwrap();
        let row = &json["rows"][0];
        assert_eq!(
            (&row["rival_mbit"][0], &row["share"][0]),
            (&60.0.into(), &0.5.into())
        );
        assert_eq!(json["ratio"], Value::Null);
    }
}

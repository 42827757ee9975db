//! Tests of the shape, on an experiment without a network.

use std::cell::Cell;

use serde_json::json;

use super::*;

/// Every run of `steady` shows 2, 4, 6 and so on; `late` fails from its second run on.
struct Counted {
    on_failure: OnFailure,
    runs: Cell<f64>,
}

struct Nothing;

impl Bed for Nothing {
    async fn take_down(self) -> Result<(), ExperimentError> {
        Ok(())
    }
}

impl Experiment for Counted {
    type Place = u8;
    type Bed = Nothing;
    type Case = &'static str;
    type Run = f64;

    fn turns(&self) -> u16 {
        3
    }

    fn places(&self) -> Vec<u8> {
        vec![1, 2]
    }

    fn heading(&self, place: &u8) -> Option<String> {
        Some(format!("place {place}"))
    }

    fn cases(&self, _: &u8) -> Vec<&'static str> {
        vec!["steady", "late", "missing"]
    }

    async fn set_up(&self, _: &u8, _: Observe<'_>) -> Result<Nothing, ExperimentError> {
        self.runs.set(0.0);
        Ok(Nothing)
    }

    async fn measure(&self, _: &Nothing, case: &&'static str) -> Result<f64, ExperimentError> {
        self.runs.set(self.runs.get() + 1.0);
        match (*case, self.runs.get()) {
            ("missing", _) => Err(ExperimentError::Missing("install it")),
            ("late", run) if run > 4.0 => Err(ExperimentError::step("too late")),
            (_, run) => Ok(2.0 * run),
        }
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn summary(&self, run: &f64) -> String {
        format!("{run} Mbit/s")
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let columns = Columns::<Row<'_, Self>>::new()
            .both("case", "case", Format::Name, |row| *row.case)
            .json("place", |row| *row.place)
            .both("mbit", "Mbit/s", Format::Number(1), |row| {
                row.series.median(|run| *run)
            })
            .text("spread", Format::Percent(0), |row| {
                row.series.spread(|run| *run)
            });
        Table {
            experiment: "counted",
            facts: vec![("repeat", 3.into())],
            about: vec!["counted: runs".to_owned()],
            sections: vec![Section::of("rows", self, results, &columns)],
            ..Table::default()
        }
    }
}

async fn observed(experiment: &Counted) -> (Results<Counted>, Vec<String>) {
    let mut seen = Vec::new();
    let mut observe = |progress: Progress<'_>| {
        seen.push(match progress {
            Progress::Work { .. } | Progress::Ready(_) | Progress::Started { .. } => return,
            Progress::Place(place) => place.to_owned(),
            Progress::Run {
                turn,
                turns,
                case,
                summary,
            } => format!("{turn}/{turns} {case} {summary}"),
            Progress::Failed { case, why } => format!("{case}: {why}"),
        });
    };
    let results = run(experiment, &mut observe).await.unwrap();
    (results, seen)
}

fn counted(on_failure: OnFailure) -> Counted {
    let runs = Cell::new(0.0);
    Counted { on_failure, runs }
}

#[tokio::test]
async fn cases_take_turns_and_what_fails_is_left_out() {
    let (results, seen) = observed(&counted(OnFailure::LeaveOut)).await;
    let once = [
        "1/3 steady 2 Mbit/s",
        "1/3 late 4 Mbit/s",
        "missing: install it",
        "2/3 steady 8 Mbit/s",
        "late: too late",
        "3/3 steady 12 Mbit/s",
    ];
    let expected = [&["place 1"][..], &once, &["place 2"], &once].concat();
    assert_eq!(seen, expected);
    let (_, all) = &results.places[1];
    assert_eq!(all[0].runs, [2.0, 8.0, 12.0]);
    assert_eq!((all[1].runs.len(), all[1].missing()), (1, None));
    assert_eq!(all[1].failure.as_deref(), Some("too late"));
    assert_eq!(all[2].missing(), Some("install it"));
}

#[tokio::test]
async fn what_retries_fails_in_every_turn() {
    let (_, seen) = observed(&counted(OnFailure::Retry)).await;
    let failed = seen.iter().filter(|line| line.starts_with("missing:"));
    assert_eq!(failed.count(), 2 * 3);
}

#[tokio::test]
async fn a_failure_may_end_the_experiment() {
    let experiment = counted(OnFailure::End);
    let mut begun = Vec::new();
    let mut observe = |progress: Progress<'_>| {
        if let Progress::Started { case } = progress {
            begun.push(case.to_owned());
        }
    };
    let ended = run(&experiment, &mut observe).await;
    assert_eq!(ended.err().unwrap().to_string(), "install it");
    assert_eq!(begun, ["steady", "late", "missing"]);
}

#[tokio::test]
async fn tables_of_several_experiments_become_one() {
    let experiment = counted(OnFailure::LeaveOut);
    let mut outcome = Bench::run(&experiment, &mut |_| ()).await.unwrap();
    let mut other = Bench::run(&experiment, &mut |_| ()).await.unwrap();
    other.figures = Err(ExperimentError::step("no room"));
    let rows = outcome.table.to_string();
    outcome.extend(other);
    assert_eq!(outcome.table.sections.len(), 2);
    assert!(outcome.table.to_string().starts_with(&rows));
    assert!(outcome.figures.is_err());
}

#[tokio::test]
async fn tables_are_text_and_json() {
    let experiment = counted(OnFailure::LeaveOut);
    let (results, _) = observed(&experiment).await;
    let table = experiment.table(&results);
    let text = "\
counted: runs
place 1
  case     Mbit/s  spread
  steady      8.0    125%
  late        4.0      0%  too late
  missing  left out: install it
place 2
";
    assert!(table.to_string().starts_with(text), "{table}");
    let json = serde_json::to_value(&table).unwrap();
    assert_eq!(json["experiment"], "counted");
    let row = json!({"case": "late", "place": 1, "mbit": 4.0, "failure": "too late"});
    assert_eq!(json["rows"][1], row);
    assert_eq!(json["rows"][0]["failure"], json!(null));
    assert_eq!(json["rows"].as_array().unwrap().len(), 6);
}

#[test]
fn a_sum_of_nothing_has_no_sign() {
    let columns = Columns::<f64>::new().text("sum", Format::Number(2), |sum| *sum);
    let nothing: f64 = std::iter::empty::<f64>().sum();
    let text = Section::new("sums", "sums", [nothing, -1.5], &columns).to_string();
    assert_eq!(text, "sums\n  sum\n 0.00\n-1.50\n");
}

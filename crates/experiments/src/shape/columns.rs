//! Columns: each makes a value of a row, for JSON and for the printed table.

use std::fmt::Display;

use serde_json::Value;

use super::{Experiment, Row};

/// The columns of a table whose rows are made of `T`.
pub struct Columns<T>(pub(super) Vec<Column<T>>);

/// A column: a value of each row, its name in JSON, and how it is printed.
pub(super) struct Column<T> {
    pub key: Option<&'static str>,
    pub print: Option<(&'static str, Format)>,
    pub value: Box<dyn Fn(&T) -> Value>,
}

/// How a value is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As the name of the row, at its begin: also where nothing was measured.
    Name,
    /// As text.
    Text,
    /// With this many decimals.
    Number(usize),
    /// A share, as a percentage with this many decimals.
    Percent(usize),
}

impl<T> Columns<T> {
    /// No columns.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a value in JSON and in the text.
    #[must_use]
    pub fn both<V: Into<Value>>(
        self,
        key: &'static str,
        title: &'static str,
        format: Format,
        value: impl Fn(&T) -> V + 'static,
    ) -> Self {
        self.with(Some(key), Some((title, format)), value)
    }

    /// Adds a value in JSON only.
    #[must_use]
    pub fn json<V: Into<Value>>(
        self,
        key: &'static str,
        value: impl Fn(&T) -> V + 'static,
    ) -> Self {
        self.with(Some(key), None, value)
    }

    /// Adds a value in the text only.
    #[must_use]
    pub fn text<V: Into<Value>>(
        self,
        title: &'static str,
        format: Format,
        value: impl Fn(&T) -> V + 'static,
    ) -> Self {
        self.with(None, Some((title, format)), value)
    }

    fn with<V: Into<Value>>(
        mut self,
        key: Option<&'static str>,
        print: Option<(&'static str, Format)>,
        value: impl Fn(&T) -> V + 'static,
    ) -> Self {
        self.0.push(Column {
            key,
            print,
            value: Box::new(move |row| value(row).into()),
        });
        self
    }
}

impl<T> Default for Columns<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl Format {
    pub(super) fn of(self, value: &Value) -> String {
        match (self, value, value.as_f64()) {
            (_, Value::Null, _) => "-".to_owned(),
            // A sum of nothing is -0.
            (Self::Number(decimals), _, Some(number)) => format!("{:.decimals$}", number + 0.0),
            (Self::Percent(decimals), _, Some(share)) => {
                format!("{:.decimals$}%", 100.0 * share)
            }
            (_, Value::String(text), _) => text.clone(),
            // Without `.0` where it is whole.
            (_, _, Some(number)) => number.to_string(),
            (_, other, _) => other.to_string(),
        }
    }

    pub(super) fn pad(self, text: &str, width: usize) -> String {
        match self {
            Self::Name | Self::Text => format!("{text:<width$}"),
            Self::Number(_) | Self::Percent(_) => format!("{text:>width$}"),
        }
    }
}

/// Columns of the cases of an experiment.
impl<'a, E: Experiment> Columns<Row<'a, E>> {
    /// Adds the name of the case.
    #[must_use]
    pub fn case(self, name: &'static str) -> Self {
        self.both(name, name, Format::Name, |row| row.case.to_string())
    }

    /// Adds a part of what distinguishes the case from others.
    #[must_use]
    pub fn name<V: Display>(
        self,
        key: &'static str,
        title: &'static str,
        of: impl Fn(&E::Case) -> V + 'static,
    ) -> Self {
        self.both(key, title, Format::Name, move |row| {
            of(row.case).to_string()
        })
    }

    /// Adds the number of runs, in the text only.
    #[must_use]
    pub fn runs(self) -> Self {
        self.text("runs", Format::Number(0), |row| row.series.runs.len())
    }

    /// Adds a value of every run, in JSON only.
    #[must_use]
    pub fn values(self, key: &'static str, of: impl Fn(&E::Run) -> f64 + 'static) -> Self {
        self.json(key, move |row| row.series.values(&of))
    }

    /// Adds the median of a value; without a key in the text only.
    #[must_use]
    pub fn median(
        self,
        key: impl Into<Option<&'static str>>,
        title: &'static str,
        format: Format,
        of: impl Fn(&E::Run) -> f64 + 'static,
    ) -> Self {
        let value = move |row: &Row<'a, E>| row.series.median(&of);
        self.with(key.into(), Some((title, format)), value)
    }

    /// Adds the largest less the smallest value by the median.
    #[must_use]
    pub fn spread(self, key: &'static str, of: impl Fn(&E::Run) -> f64 + 'static) -> Self {
        self.both(key, "spread", Format::Percent(1), move |row| {
            row.series.spread(&of)
        })
    }
}

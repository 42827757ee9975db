//! Metrics in Prometheus's text format.

use std::fmt::{Display, Write as _};

/// How the values of a metric change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// They only rise, until their program ends.
    Counter,
    /// They rise and fall.
    Gauge,
}

/// Metrics in Prometheus's text format (version 0.0.4), which its file collectors read as well.
///
/// OpenMetrics, which libraries write, is another one: it names counters differently.
#[derive(Debug, Default)]
pub struct Metrics(String);

/// A metric, to which values are added.
#[derive(Debug)]
pub struct Metric<'a> {
    text: &'a mut String,
    name: String,
}

impl Metrics {
    /// Adds a metric. Its `name` begins with `hawser_`, that of a counter ends with `_total`; `help` is one
    /// line. A name may be added once.
    pub fn add(&mut self, name: impl Into<String>, kind: MetricKind, help: &str) -> Metric<'_> {
        let name = name.into();
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Metric {
            text: &mut self.0,
            name,
        }
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl Metric<'_> {
    /// Adds a value with its labels.
    pub fn value(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) -> &mut Self {
        self.text.push_str(&self.name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(
                self.text,
                "{before}{label}=\"{}\"",
                escaped(&text.to_string())
            );
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
        self
    }
}

/// The text of a label: names of devices may have any character but `/` and white space.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_labels_escaped() {
        let mut metrics = Metrics::default();
        let mut metric = metrics.add("hawser_a_total", MetricKind::Counter, "A.");
        metric.value(&[("one", &"a\"\\\n"), ("two", &2)], 7);
        metrics
            .add("hawser_b", MetricKind::Gauge, "B.")
            .value(&[], 0.5);
        assert_eq!(
            metrics.into_text(),
            "# HELP hawser_a_total A.\n# TYPE hawser_a_total counter\n\
             hawser_a_total{one=\"a\\\"\\\\\\n\",two=\"2\"} 7\n\
             # HELP hawser_b B.\n# TYPE hawser_b gauge\nhawser_b 0.5\n"
        );
    }
}

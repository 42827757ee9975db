//! Prometheus metrics of link limits. Every command and service that exports them uses these names and
//! labels, so that one dashboard reads them all.

use crate::metrics::{MetricKind, Metrics};

/// What is measured of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitMetric {
    /// Bytes of Ethernet frames sent through the limit.
    Bytes,
    /// Packets sent through the limit.
    Packets,
    /// Packets dropped at a full queue.
    Drops,
    /// Bytes in the queue.
    Backlog,
    /// The limit in bit/s.
    Rate,
    /// What an administrator allows, in bit/s.
    Maximum,
}

/// Which limit a value is of. A label that is not known is empty, which to Prometheus is the same as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitLabels<'a> {
    /// The ISD-AS of the attachment point, where one shows the links of several machines.
    pub attachment_point: &'a str,
    /// The network interface, if it is named.
    pub device: &'a str,
    /// The far end of the link: IP address, or IP address and port; `default` for all other traffic.
    pub link: &'a str,
    /// `egress` or `ingress`, as the machine with the limit sees it.
    pub direction: &'a str,
    /// The number of the link on a page or at a coordinator.
    pub number: &'a str,
}

impl LimitMetric {
    fn described(self) -> (&'static str, MetricKind, &'static str) {
        match self {
            Self::Bytes => (
                "hawser_limit_bytes_total",
                MetricKind::Counter,
                "Bytes of Ethernet frames sent through the limit.",
            ),
            Self::Packets => (
                "hawser_limit_packets_total",
                MetricKind::Counter,
                "Packets sent through the limit.",
            ),
            Self::Drops => (
                "hawser_limit_drops_total",
                MetricKind::Counter,
                "Packets dropped at a full queue.",
            ),
            Self::Backlog => (
                "hawser_limit_backlog_bytes",
                MetricKind::Gauge,
                "Bytes in the queue.",
            ),
            Self::Rate => (
                "hawser_limit_rate_bits_per_second",
                MetricKind::Gauge,
                "The limit.",
            ),
            Self::Maximum => (
                "hawser_limit_maximum_bits_per_second",
                MetricKind::Gauge,
                "What an administrator allows.",
            ),
        }
    }

    /// Adds the metric, with its values.
    pub fn write<'a>(
        self,
        metrics: &mut Metrics,
        values: impl IntoIterator<Item = (LimitLabels<'a>, u64)>,
    ) {
        let (name, kind, help) = self.described();
        let mut metric = metrics.add(name, kind, help);
        for (labels, value) in values {
            let labels: [(&str, &dyn std::fmt::Display); 5] = [
                ("attachment_point", &labels.attachment_point),
                ("device", &labels.device),
                ("link", &labels.link),
                ("direction", &labels.direction),
                ("number", &labels.number),
            ];
            metric.value(&labels, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_all_there() {
        let labels = LimitLabels {
            attachment_point: "",
            device: "eth0",
            link: "10.0.0.1",
            direction: "egress",
            number: "",
        };
        let mut metrics = Metrics::default();
        LimitMetric::Backlog.write(&mut metrics, [(labels, 7)]);
        assert_eq!(
            metrics.into_text(),
            "# HELP hawser_limit_backlog_bytes Bytes in the queue.\n\
             # TYPE hawser_limit_backlog_bytes gauge\n\
             hawser_limit_backlog_bytes{attachment_point=\"\",device=\"eth0\",link=\"10.0.0.1\",\
             direction=\"egress\",number=\"\"} 7\n"
        );
    }
}

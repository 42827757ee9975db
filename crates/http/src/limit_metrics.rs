//! Prometheus metrics of link limits. Every command and service that exports them uses these names and
//! labels, so that one dashboard reads them all.

use std::borrow::Cow;
use std::fmt::Write as _;

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
    fn described(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Bytes => (
                "hawser_limit_bytes_total",
                "counter",
                "Bytes of Ethernet frames sent through the limit.",
            ),
            Self::Packets => (
                "hawser_limit_packets_total",
                "counter",
                "Packets sent through the limit.",
            ),
            Self::Drops => (
                "hawser_limit_drops_total",
                "counter",
                "Packets dropped at a full queue.",
            ),
            Self::Backlog => ("hawser_limit_backlog_bytes", "gauge", "Bytes in the queue."),
            Self::Rate => ("hawser_limit_rate_bits_per_second", "gauge", "The limit."),
            Self::Maximum => (
                "hawser_limit_maximum_bits_per_second",
                "gauge",
                "What an administrator allows.",
            ),
        }
    }

    /// Appends the metric, with its values, in Prometheus's text format.
    pub fn write<'a>(
        self,
        text: &mut String,
        values: impl IntoIterator<Item = (LimitLabels<'a>, u64)>,
    ) {
        let (name, kind, help) = self.described();
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let LimitLabels {
                attachment_point,
                device,
                link,
                direction,
                number,
            } = labels;
            let _ = writeln!(
                text,
                "{name}{{attachment_point=\"{}\",device=\"{}\",link=\"{}\",direction=\"{}\",number=\"{}\"}} \
                 {value}",
                escaped(attachment_point),
                escaped(device),
                escaped(link),
                escaped(direction),
                escaped(number),
            );
        }
    }
}

/// The value of a label: names of devices may have any character but `/` and white space.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    Cow::Owned(value.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_all_there_and_escaped() {
        let labels = LimitLabels {
            attachment_point: "",
            device: "a\"\\\n",
            link: "10.0.0.1",
            direction: "egress",
            number: "",
        };
        let mut text = String::new();
        LimitMetric::Backlog.write(&mut text, [(labels, 7)]);
        assert_eq!(
            text,
            "# HELP hawser_limit_backlog_bytes Bytes in the queue.\n\
             # TYPE hawser_limit_backlog_bytes gauge\n\
             hawser_limit_backlog_bytes{attachment_point=\"\",device=\"a\\\"\\\\\\n\",link=\"10.0.0.1\",\
             direction=\"egress\",number=\"\"} 7\n"
        );
    }
}

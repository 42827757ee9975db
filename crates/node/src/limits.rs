//! The links of an attachment point, as they are limited.

use hawser_bundle::{LimitedLink, LinkInfo};
use hawser_limit::{Limit, Limits, NamedLink, Remote};

/// The links, under their names in [`LinkInfo`].
pub(crate) fn named(links: &LinkInfo) -> Vec<NamedLink<String>> {
    let named = |(name, link): (&String, &LimitedLink)| NamedLink {
        name: name.clone(),
        remote: Remote {
            address: link.ip,
            port: link.port,
        },
        device: link.device.clone(),
        limits: limits(link),
    };
    links.0.iter().map(named).collect()
}

fn limits(link: &LimitedLink) -> Limits {
    let limit = |kbit: Option<u64>| {
        let kbit = kbit.or(link.bandwidth);
        let limit = kbit.map(|kbit| Limit::new(kbit.saturating_mul(1000)));
        limit.map(|limit| link.queue.map_or(limit, |queue| limit.with_queue(queue)))
    };
    Limits {
        egress: limit(link.egress),
        ingress: limit(link.ingress),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn links_have_their_limits_or_those_of_both_directions() {
        let mut links = LinkInfo::default();
        let queue = Duration::from_millis(7);
        let mut add = |name: &str, port, egress, ingress, queue| {
            let ip = "127.0.0.1".parse().unwrap();
            let link = LimitedLink::new(7, ip, Some(port), egress, ingress);
            let link = LimitedLink {
                queue,
                ..link.unwrap()
            };
            links.0.insert(name.to_owned(), link);
        };
        add("1", 50000, Some(500_000), Some(500_000), None);
        add("2", 50001, None, Some(0), None);
        add("3", 50002, Some(8_000), Some(16_000), Some(queue));
        let named = named(&links);
        let remote = |port| Remote {
            address: "127.0.0.1".parse().unwrap(),
            port: Some(port),
        };
        let both = Limits::both(Limit::new(500_000));
        assert_eq!((named[0].remote, named[0].limits), (remote(50000), both));
        let nothing = named[1].limits;
        assert_eq!(
            (named[1].name.as_str(), named[1].remote),
            ("2", remote(50001))
        );
        assert_eq!(
            (nothing.egress, nothing.ingress),
            (None, Some(Limit::new(0)))
        );
        let short = |rate| Some(Limit::new(rate).with_queue(queue));
        let (egress, ingress) = (short(8_000), short(16_000));
        assert_eq!(named[2].limits, Limits { egress, ingress });
    }
}

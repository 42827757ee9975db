//! Prefixes that can be captured, and the intervals that they are.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::nftables::{Family, Interval};

/// The reason why a prefix cannot be captured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// This host's loopback addresses are below it.
    #[error("cannot capture {0}: it covers the loopback addresses, choose a longer prefix")]
    Loopback(IpNet),
    /// It has multicast addresses.
    #[error("cannot capture {0}: it covers multicast addresses, choose unicast prefixes")]
    Multicast(IpNet),
}

/// The addresses that no prefix may cover: RFC 1122, section 3.2.1.3; RFC 4291, sections 2.5.3 and
/// 2.7; RFC 5771.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
const MULTICAST: [&str; 2] = ["224.0.0.0/4", "ff00::/8"];

/// Checks that connections to all addresses of a prefix can be captured.
///
/// # Errors
/// When it covers loopback or multicast addresses.
pub fn check(prefix: &IpNet) -> Result<(), PrefixError> {
    let overlaps = |others: [&str; 2]| {
        let others = others.iter().filter_map(|other| other.parse().ok());
        others
            .into_iter()
            .any(|other: IpNet| other.contains(prefix) || prefix.contains(&other))
    };
    if overlaps(LOOPBACK) {
        return Err(PrefixError::Loopback(*prefix));
    }
    match overlaps(MULTICAST) {
        true => Err(PrefixError::Multicast(*prefix)),
        false => Ok(()),
    }
}

/// The addresses of all prefixes of a family, as the fewest intervals: they neither overlap nor
/// adjoin.
pub(crate) fn intervals(prefixes: &[IpNet], family: Family) -> BTreeSet<Interval> {
    let of_family = prefixes.iter().filter(|prefix| match prefix {
        IpNet::V4(_) => family == Family::V4,
        IpNet::V6(_) => family == Family::V6,
    });
    let mut all: Vec<_> = of_family
        .map(|prefix| (bits(prefix.network()), bits(prefix.broadcast())))
        .collect();
    all.sort_unstable();
    let mut merged: Vec<(u128, u128)> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            Some((_, before)) if first <= before.saturating_add(1) => *before = last.max(*before),
            _ => merged.push((first, last)),
        }
    }
    let address = |bits: u128| match family {
        Family::V4 => IpAddr::V4((bits as u32).into()),
        Family::V6 => IpAddr::V6(bits.into()),
    };
    let intervals = merged.into_iter().map(|(first, last)| Interval {
        first: address(first),
        last: address(last),
    });
    intervals.collect()
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(all: &[&str]) -> Vec<IpNet> {
        all.iter().map(|one| one.parse().unwrap()).collect()
    }

    fn printed(all: &[&str], family: Family) -> Vec<String> {
        let intervals = intervals(&prefixes(all), family);
        let print = |Interval { first, last }: &Interval| format!("{first}-{last}");
        intervals.iter().map(print).collect()
    }

    #[test]
    fn overlapping_and_adjoining_prefixes_are_merged() {
        let all = [
            "10.3.0.0/16",
            "10.1.2.0/24",
            "10.1.0.0/16",
            "fd00::/16",
            "10.2.0.0/16",
            "10.5.0.7/32",
            "240.0.0.0/4",
            "fd01::/16",
            "ff00::/8",
        ];
        assert_eq!(
            printed(&all, Family::V4),
            [
                "10.1.0.0-10.3.255.255",
                "10.5.0.7-10.5.0.7",
                "240.0.0.0-255.255.255.255"
            ]
        );
        assert_eq!(
            printed(&all, Family::V6),
            [
                "fd00::-fd01:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "ff00::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
            ]
        );
        assert_eq!(printed(&[], Family::V4), [""; 0]);
    }

    #[test]
    fn loopback_and_multicast_are_refused() {
        for (text, expected) in [
            ("0.0.0.0/0", Some("loopback")),
            ("::/0", Some("loopback")),
            ("::1/128", Some("loopback")),
            ("127.1.0.0/16", Some("loopback")),
            ("239.1.0.0/16", Some("multicast")),
            ("192.0.0.0/2", Some("multicast")),
            ("fe00::/7", Some("multicast")),
            ("10.0.0.0/8", None),
            ("::2/128", None),
            ("128.0.0.0/2", None),
            ("2000::/3", None),
        ] {
            let error = check(&text.parse().unwrap()).err().map(|e| e.to_string());
            let matches = match (&error, expected) {
                (Some(error), Some(word)) => {
                    error.starts_with(&format!("cannot capture {text}: it covers "))
                        && error.contains(word)
                }
                (None, None) => true,
                _ => false,
            };
            assert!(matches, "{text}: {error:?}");
        }
    }
}

//! The addresses of the host names in the map.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::thread;

use super::destination::HostName;

/// Names that are resolved at once: a name server that does not answer costs some seconds a name.
const MAX_CONCURRENT: usize = 16;

/// The addresses of host names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    names: BTreeMap<HostName, Resolved>,
}

/// What is known of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Its addresses, sorted: the present ones, or the former ones if there is an error.
    pub(super) ips: Vec<IpAddr>,
    /// Why it has no addresses now.
    pub(super) error: Option<String>,
}

impl Addresses {
    /// The addresses of `names`, from the system's resolver; blocks until it has answered. A name
    /// without an answer keeps the addresses that it has in `self`.
    #[must_use]
    pub fn resolve(&self, names: &[HostName]) -> Self {
        self.resolve_by(names, |name| {
            // The port does not matter.
            let found = (name.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|addr| addr.ip()).collect())
        })
    }

    /// As [`resolve`](Self::resolve), by the resolver `lookup`.
    #[must_use]
    pub fn resolve_by(
        &self,
        names: &[HostName],
        lookup: impl Fn(&HostName) -> io::Result<Vec<IpAddr>> + Sync,
    ) -> Self {
        let resolve = |name: &HostName| {
            let former = || {
                let known = self.names.get(name);
                known.map_or_else(Vec::new, |known| known.ips.clone())
            };
            let error = match lookup(name) {
                Ok(ips) if !ips.is_empty() => return Resolved::new(ips),
                Ok(_) => "it has none".to_owned(),
                // The system's text begins with what failed, which the message says.
                Err(error) => {
                    let text = error.to_string();
                    let (_, reason) = text.split_once("information: ").unwrap_or(("", &text));
                    reason.to_owned()
                }
            };
            Resolved {
                ips: former(),
                error: Some(error),
            }
        };
        let mut resolved = Self::default();
        for chunk in names.chunks(MAX_CONCURRENT) {
            let found: Vec<Resolved> = thread::scope(|scope| {
                let resolve = &resolve;
                let threads = chunk.iter().map(|name| scope.spawn(move || resolve(name)));
                let threads: Vec<_> = threads.collect();
                let ended = threads.into_iter().map(|thread| thread.join());
                ended.map(Result::unwrap_or_default).collect()
            });
            resolved.names.extend(chunk.iter().cloned().zip(found));
        }
        resolved
    }

    /// What is known of a name; `None` if it was not resolved.
    pub(super) fn of(&self, name: &HostName) -> Option<&Resolved> {
        self.names.get(name)
    }
}

impl Resolved {
    fn new(mut ips: Vec<IpAddr>) -> Self {
        // A program's connection to an IPv4 address by an IPv6 socket is one by IPv4.
        ips.iter_mut().for_each(|ip| *ip = ip.to_canonical());
        ips.sort();
        ips.dedup();
        Self { ips, error: None }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Destination, Hosts};
    use super::*;

    fn name(text: &str) -> HostName {
        match text.parse::<Destination>().unwrap().hosts {
            Hosts::Name(name) => name,
            Hosts::Prefix(_) => panic!("{text}"),
        }
    }

    #[test]
    fn a_name_without_an_answer_keeps_its_addresses() {
        let ips = |texts: &[&str]| -> Vec<IpAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let names = [name("a.example"), name("b.example")];
        let first = Addresses::default().resolve_by(&names, |name| match name.as_str() {
            "a.example" => Ok(ips(&["10.0.0.2", "::ffff:10.0.0.1", "10.0.0.2"])),
            _ => Ok(Vec::new()),
        });
        let a = first.of(&names[0]).unwrap();
        assert_eq!(a.ips, ips(&["10.0.0.1", "10.0.0.2"]));
        assert_eq!(a.error, None);
        let b = first.of(&names[1]).unwrap();
        assert_eq!((b.ips.len(), b.error.is_some()), (0, true));
        let second = first.resolve_by(&names, |_| Err(io::Error::other("no answer")));
        let a = second.of(&names[0]).unwrap();
        assert_eq!(a.ips, ips(&["10.0.0.1", "10.0.0.2"]));
        assert_eq!(a.error.as_deref(), Some("no answer"));
        // Names that the map has no longer are forgotten.
        let third = second.resolve_by(&names[1..], |_| Ok(ips(&["10.0.0.3"])));
        assert_eq!(third.of(&names[0]), None);
    }

    #[test]
    fn the_systems_resolver_answers() {
        let names = [name("localhost"), name("nowhere.invalid")];
        let found = Addresses::default().resolve(&names);
        let local = &found.of(&names[0]).unwrap().ips;
        assert!(local.iter().all(IpAddr::is_loopback) && !local.is_empty());
        // A name that never exists (RFC 6761, section 6.4).
        let nowhere = found.of(&names[1]).unwrap();
        assert!(nowhere.ips.is_empty() && nowhere.error.is_some());
    }
}

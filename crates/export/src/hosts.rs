//! The hosts of an export: a file with a name and an address on each line.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::error::ExportError;
use crate::name;

/// A host that runs some of the ASes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name, a DNS label.
    pub name: String,
    /// The address at which the other hosts reach it.
    pub address: IpAddr,
}

/// The hosts that run the ASes of an export, at least two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// Reads hosts: a name and an IP address on each line, with a space between; `#` begins a comment.
    /// All addresses must be of one family.
    ///
    /// # Errors
    /// When a line is not valid, a name or address is there twice, or there are fewer than two hosts.
    pub fn parse(text: &str) -> Result<Self, ExportError> {
        let mut hosts: Vec<Host> = Vec::new();
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let refused = |reason: String| ExportError::Host { line, reason };
            let (name, address) = match words.as_slice() {
                [] => continue,
                [name, address] => (*name, *address),
                _ => {
                    return Err(refused(
                        "write a name and an address, such as `first 192.0.2.1`".to_owned(),
                    ));
                }
            };
            if !name::is_label(name) {
                return Err(refused(format!(
                    "{name:?} is not the name of a host: write up to {} of a-z, 0-9 and '-'",
                    name::MAX_LABEL
                )));
            }
            let Ok(address) = address.parse::<IpAddr>() else {
                return Err(refused(format!(
                    "{address:?} is not an IP address: write for example 192.0.2.1"
                )));
            };
            if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
                return Err(refused(format!(
                    "other hosts cannot reach {address}: write the address at which they do"
                )));
            }
            for key in [name.to_owned(), address.to_string()] {
                if let Some(first) = lines.insert(key.clone(), line) {
                    return Err(refused(format!(
                        "{key} is in line {first} too: name each host once"
                    )));
                }
            }
            if let Some(first) = hosts.first()
                && first.address.is_ipv4() != address.is_ipv4()
            {
                return Err(refused(
                    "the addresses of all hosts must be IPv4, or all IPv6".to_owned(),
                ));
            }
            let name = name.to_owned();
            hosts.push(Host { name, address });
        }
        match hosts.len() {
            0 | 1 => Err(ExportError::HostCount(format!(
                "the file of hosts has {} of them: name two or more, or leave --hosts out for one machine",
                hosts.len()
            ))),
            _ => Ok(Self(hosts)),
        }
    }

    /// The hosts, in the order of the file.
    pub fn all(&self) -> &[Host] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;

    use super::*;

    #[test]
    fn hosts_are_read() {
        let hosts = Hosts::parse("# two\n a 192.0.2.1\n\nb\t192.0.2.2 # second\n").unwrap();
        let read: Vec<_> = hosts.all().iter().map(|h| (&*h.name, h.address)).collect();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let expected = [("a", address("192.0.2.1")), ("b", address("192.0.2.2"))];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, said) in [
            ("", "has 0 of them"),
            ("a 192.0.2.1", "has 1 of them"),
            (
                "a 192.0.2.1\na 192.0.2.2",
                "line 2 of the hosts: a is in line 1",
            ),
            (
                "a 192.0.2.1\nb 192.0.2.1",
                "line 2 of the hosts: 192.0.2.1 is in line 1",
            ),
            ("a", "line 1 of the hosts: write a name and an address"),
            ("a b c", "write a name and an address"),
            ("a host.example", "is not an IP address"),
            ("A 192.0.2.1", "is not the name of a host"),
            ("a 127.0.0.1", "cannot reach"),
            ("a 192.0.2.1\nb 2001:db8::1", "all IPv6"),
        ] {
            let error = Hosts::parse(text).unwrap_err();
            assert!(error.is_wrong_use());
            let error = error.to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn any_text_is_read_without_panic() {
        fuzz(&[b"a 192.0.2.1\nb 192.0.2.2 # x\n".to_vec()], |bytes| {
            drop(Hosts::parse(&String::from_utf8_lossy(bytes)));
        });
    }
}

//! Links as limits by device.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hawser_limit::{DeviceLimits, Limit, Limits, Remote};
use hawser_topology::AsTopology;

use crate::error::LimitsError;
use crate::link::{Link, LinkFile, Place};
use crate::topology;

/// The limits that a file says.
#[derive(Debug)]
pub struct FileLimits<E> {
    /// Those of each device.
    pub devices: BTreeMap<String, DeviceLimits>,
    /// The links whose device cannot be found. Their limits are not in `devices`.
    pub failed: Vec<FailedLink<E>>,
}

/// A link whose device cannot be found.
#[derive(Debug)]
pub struct FailedLink<E> {
    /// Its entry in the file.
    pub entry: String,
    /// The far end.
    pub remote: Remote,
    /// The limits that it should have.
    pub limits: Limits,
    /// Why its device cannot be found.
    pub error: E,
}

impl LinkFile {
    /// The limits of each device. `topology` has the interfaces that links name; `device_to` gives the
    /// device of links that do not name theirs. A link for which that fails keeps no other from its
    /// limits.
    ///
    /// # Errors
    /// When two links have the same packets, or an interface is unknown.
    pub fn limits<E>(
        &self,
        topology: Option<&AsTopology>,
        mut device_to: impl FnMut(IpAddr) -> Result<String, E>,
    ) -> Result<FileLimits<E>, LimitsError> {
        let mut devices: BTreeMap<String, DeviceLimits> = BTreeMap::new();
        let mut failed = Vec::new();
        let mut entries: BTreeMap<Remote, &str> = BTreeMap::new();
        for link in &self.links {
            let remote = link.remote(topology)?;
            if let Some(first) = entries.insert(remote, &link.entry) {
                return Err(LimitsError::Twice {
                    remote,
                    first: first.to_owned(),
                    second: link.entry.clone(),
                });
            }
            let limit = |rate: u64| {
                let limit = Limit::new(rate);
                link.queue.map_or(limit, |queue| limit.with_queue(queue))
            };
            let limits = Limits {
                egress: link.rates.egress.map(limit),
                ingress: link.rates.ingress.map(limit),
            };
            let device = match &link.device {
                Some(device) => Ok(device.clone()),
                None => device_to(remote.address),
            };
            match device {
                Ok(device) => {
                    let on_device = devices.entry(device).or_default();
                    on_device.links.insert(remote, limits);
                }
                Err(error) => failed.push(FailedLink {
                    entry: link.entry.clone(),
                    remote,
                    limits,
                    error,
                }),
            }
        }
        if let Some(rate) = self.default {
            for limits in devices.values_mut() {
                limits.default = Limits::both(Limit::new(rate));
            }
        }
        Ok(FileLimits { devices, failed })
    }
}

impl Link {
    /// The far end of the link. `topology` has the interfaces that links name.
    ///
    /// # Errors
    /// When the link names an interface, and there is no topology or it does not have the interface.
    pub fn remote(&self, topology: Option<&AsTopology>) -> Result<Remote, LimitsError> {
        match self.place {
            Place::Address(address, port) => Ok(Remote { address, port }),
            Place::Interface(interface) => {
                let entry = self.entry.clone();
                let Some(topology) = topology else {
                    return Err(LimitsError::NoTopology { entry, interface });
                };
                let remote = topology::remote(topology, interface);
                let remote = remote.ok_or_else(|| LimitsError::NoInterface {
                    entry,
                    interface,
                    isd_as: topology.isd_as.to_string(),
                })?;
                Ok(Remote {
                    address: remote.ip(),
                    port: Some(remote.port()),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::link::Rates;

    const TOPOLOGY: &str = r#"{
        "isd_as": "1-ff00:0:110", "mtu": 1472,
        "border_routers": {"br1": {"internal_addr": "10.0.0.1:30042", "interfaces": {
            "1": {"isd_as": "1-ff00:0:111", "link_to": "child", "mtu": 1472,
                  "underlay": {"local": "10.9.0.1:50000", "remote": "10.9.0.2:50001"}},
            "7": {"isd_as": "1-ff00:0:112", "link_to": "child", "mtu": 1472,
                  "underlay": {"local": "[fd00::1]:50000", "remote": "[fd00::2]:50001"}}
        }}}}"#;

    fn on_eth0(_: IpAddr) -> Result<String, Infallible> {
        Ok("eth0".to_owned())
    }

    fn remote(address: &str, port: Option<u16>) -> Remote {
        Remote {
            address: address.parse().unwrap(),
            port,
        }
    }

    #[test]
    fn links_are_limits_of_their_devices() {
        let text = "default = '1mbit'\n\
                    [[link]]\naddress = '10.0.0.1'\nrate = '2mbit'\n\
                    [[link]]\naddress = '10.0.0.1'\nport = 5\nrate = '3mbit'\n\
                    [[link]]\naddress = 'fd00::1'\negress = '4mbit'\ndevice = 'wg0'\n";
        let file = LinkFile::parse_toml(text).unwrap();
        let devices = file.limits(None, on_eth0).unwrap().devices;
        let default = Limits::both(Limit::new(1_000_000));
        let expected = DeviceLimits {
            links: BTreeMap::from([
                (
                    remote("10.0.0.1", None),
                    Limits::both(Limit::new(2_000_000)),
                ),
                (
                    remote("10.0.0.1", Some(5)),
                    Limits::both(Limit::new(3_000_000)),
                ),
            ]),
            default,
        };
        assert_eq!(devices["eth0"], expected);
        let wg0 = Limits {
            egress: Some(Limit::new(4_000_000)),
            ingress: None,
        };
        assert_eq!(devices["wg0"].links[&remote("fd00::1", None)], wg0);
        assert_eq!(devices["wg0"].default, default);
    }

    #[test]
    fn interfaces_are_found_in_the_topology() {
        let topology: AsTopology = serde_json::from_str(TOPOLOGY).unwrap();
        let rates = |interface| (interface == 7).then(|| Rates::both(10_000_000));
        let file = LinkFile::of_topology(&topology, rates);
        let devices = file.limits(Some(&topology), on_eth0).unwrap().devices;
        let links = &devices["eth0"].links;
        assert_eq!(
            links.keys().copied().collect::<Vec<_>>(),
            [remote("fd00::2", Some(50_001))]
        );
        let text = "[[link]]\ninterface = 2\nrate = '2mbit'\n";
        let file = LinkFile::parse_toml(text).unwrap();
        assert_eq!(
            file.limits(Some(&topology), on_eth0)
                .unwrap_err()
                .to_string(),
            "link 1 is for interface 2, which 1-ff00:0:110 does not have"
        );
        assert_eq!(
            file.limits(None, on_eth0).unwrap_err().to_string(),
            "link 1 is for interface 2: say in which topology.json it is (--from)"
        );
    }

    #[test]
    fn two_links_with_the_same_packets_are_refused() {
        let text = "[[link]]\naddress = '10.0.0.1'\nrate = '2mbit'\n\
                    [[link]]\naddress = '10.0.0.1'\nrate = '3mbit'\n";
        let error = LinkFile::parse_toml(text).unwrap().limits(None, on_eth0);
        assert_eq!(
            error.unwrap_err().to_string(),
            "link 1 and link 2 are both for 10.0.0.1: remove one, or tell them apart by port"
        );
    }

    #[test]
    fn a_link_without_a_device_keeps_no_other_from_its_limits() {
        let text = "default = '1mbit'\n\
                    [[link]]\naddress = '10.0.0.1'\nrate = '2mbit'\n\
                    [[link]]\naddress = '10.0.0.2'\nrate = '3mbit'\n";
        let file = LinkFile::parse_toml(text).unwrap();
        let two = remote("10.0.0.2", None);
        let device_to = |address| match address == two.address {
            true => Err("no route"),
            false => Ok("eth0".to_owned()),
        };
        let limits = file.limits(None, device_to).unwrap();
        assert_eq!(limits.devices["eth0"].links.len(), 1);
        let [failed] = &limits.failed[..] else {
            panic!("{:?}", limits.failed)
        };
        assert_eq!((failed.remote, failed.error), (two, "no route"));
        assert_eq!(failed.entry, "link 2");
    }
}

//! Addresses as arguments.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hawser_endhost::ScionAddr;
use hawser_topology::IsdAsn;

/// A host in an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostAddr {
    /// The host's AS.
    pub isd_as: IsdAsn,
    /// The host's address in its AS.
    pub ip: IpAddr,
}

impl fmt::Display for HostAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.isd_as, self.ip)
    }
}

/// An address to listen at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// An address of this host.
    Ip(SocketAddr),
    /// A SCION address, whose AS must be this host's.
    Scion(ScionAddr),
}

/// Reads `1-ff00:0:110,10.0.1.1`, with or without brackets.
pub fn host_address(text: &str) -> Result<HostAddr, String> {
    if let Some((isd_as, _)) = text.split_once(',')
        && isd_as.parse::<IsdAsn>().is_ok()
    {
        one_as(isd_as)?;
    }
    let read = |text: &str| {
        let (isd_as, host) = text.split_once(',')?;
        let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        Some(HostAddr {
            isd_as: isd_as.parse().ok()?,
            ip: inner.unwrap_or(host).parse().ok()?,
        })
    };
    read(text).ok_or_else(|| match text.parse::<ScionAddr>() {
        Ok(_) => "a host is meant, without a port: write for example 1-ff00:0:110,10.0.1.1".into(),
        Err(_) => "write for example 1-ff00:0:110,10.0.1.1".into(),
    })
}

/// Reads an address to listen at.
pub fn listen(text: &str) -> Result<Listen, String> {
    if let Ok(address) = text.parse() {
        return Ok(Listen::Ip(address));
    }
    if let Ok(address) = text.parse() {
        return Ok(Listen::Scion(address));
    }
    Err(match text.split_once(',') {
        None if text.parse::<IpAddr>().is_ok() => {
            let address = SocketAddr::new(text.parse().unwrap_or(IpAddr::from([0; 4])), 0);
            format!("the port is missing: write {address} for any that is free")
        }
        None if text.trim_start_matches(':').parse::<u16>().is_ok() => {
            "the address is missing: write IP:PORT".to_owned()
        }
        Some((isd_as, _)) if isd_as.parse::<IsdAsn>().is_ok() => {
            "write IP:PORT after the AS, for example 1-ff00:0:110,10.0.1.1:31000".to_owned()
        }
        _ => "write IP:PORT, or a SCION address such as 1-ff00:0:110,10.0.1.1:31000".to_owned(),
    })
}

/// Reads an address for IP peers to connect to.
pub fn tcp(text: &str) -> Result<SocketAddr, String> {
    let ip = |text: &str| text.parse::<IpAddr>();
    text.parse().map_err(|_| match ip(text) {
        Ok(ip) => format!("the port is missing: write {}", SocketAddr::new(ip, 6881)),
        Err(_) if text.trim_start_matches(':').parse::<u16>().is_ok() => format!(
            "the address is missing: write 0.0.0.0:{} for all of this host",
            text.trim_start_matches(':')
        ),
        Err(_) => "write IP:PORT, for example 0.0.0.0:6881".to_owned(),
    })
}

/// Reads an AS that can be a destination.
pub fn one_as(text: &str) -> Result<IsdAsn, String> {
    let isd_as: IsdAsn = text
        .parse()
        .map_err(|_| format!("{text:?} is not an ISD-AS: write for example 1-ff00:0:110"))?;
    match isd_as.is_wildcard() {
        true => Err(format!(
            "{isd_as} is not one AS: write for example 1-ff00:0:110"
        )),
        false => Ok(isd_as),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_no_port() {
        for text in ["1-ff00:0:110,10.0.1.1", "1-ff00:0:110,[10.0.1.1]"] {
            let host = host_address(text).unwrap();
            assert_eq!(host.to_string(), "1-ff00:0:110,10.0.1.1");
        }
        assert!(host_address("1-ff00:0:110,[fd00::1]").is_ok());
        assert!(host_address("1-ff00:0:110,fd00::1").is_ok());
        for wildcard in ["1-0,10.0.1.1", "0-0,10.0.1.1", "0-ff00:0:110,[10.0.1.1]"] {
            let error = host_address(wildcard).unwrap_err();
            assert!(error.contains("is not one AS"), "{error}");
        }
        for wrong in ["", "10.0.1.1", "1-ff00:0:110", "1-ff00:0:110,example"] {
            assert!(host_address(wrong).is_err(), "{wrong:?} was accepted");
        }
        let error = host_address("1-ff00:0:110,10.0.1.1:80").unwrap_err();
        assert!(error.contains("without a port"), "{error}");
    }

    #[test]
    fn errors_name_the_missing_part_of_an_address() {
        for (text, hint) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("fd00::1", "[fd00::1]:0"),
            ("31000", "the address is missing"),
            (":31000", "the address is missing"),
            ("1-ff00:0:110,10.0.1.1", "10.0.1.1:31000"),
            ("localhost:31000", "IP:PORT"),
        ] {
            let error = listen(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
        let ip = "10.0.1.1:0".parse().unwrap();
        assert_eq!(listen("10.0.1.1:0"), Ok(Listen::Ip(ip)));
        let scion = "1-ff00:0:110,10.0.1.1:31000";
        assert_eq!(listen(scion), Ok(Listen::Scion(scion.parse().unwrap())));
    }
}

//! The port of IP peers, mapped by the gateway.

use std::net::{IpAddr, SocketAddr};

use hawser_client::{GATEWAY_PORT, PortMapper};

use crate::cmd::headings;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct PortArgs {
    /// Have the gateway of this network map the port of IP peers, by NAT-PMP or UPnP
    ///
    /// So that peers can connect through a router that translates addresses. For TCP and UDP, until the
    /// daemon ends. The gateway is that of the default route, unless one is named: IP or IP:PORT.
    #[arg(long, value_name = "GATEWAY", num_args = 0..=1, require_equals = true, value_parser = gateway, help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub map_port: Option<Option<SocketAddr>>,
}

impl PortArgs {
    /// Has the port of `tcp` mapped, where IP peers connect, if that is wanted.
    ///
    /// # Errors
    /// Wrong use, if they cannot connect.
    pub fn start(&self, tcp: Option<SocketAddr>) -> Result<Option<PortMapper>, Failure> {
        let Some(gateway) = self.map_port else {
            return Ok(None);
        };
        let Some(tcp) = tcp else {
            let text = "--map-port: there is no port for IP peers: leave out --tcp none";
            return Err(Failure::usage(text));
        };
        // A gateway on another host would map a port at which nobody listens.
        let is_here = gateway.is_some_and(|gateway| gateway.ip().is_loopback());
        if tcp.ip().is_loopback() && !is_here {
            return Err(Failure::usage(format!(
                "--map-port: IP peers of other hosts cannot connect to {tcp}: leave out --map-port, or give \
                 --tcp another address, for example 0.0.0.0:{}",
                tcp.port()
            )));
        }
        Ok(Some(PortMapper::start(tcp.port(), gateway)))
    }
}

/// Reads the address of a gateway.
fn gateway(text: &str) -> Result<SocketAddr, String> {
    let with_port = || Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, GATEWAY_PORT));
    let address = text.parse().ok().or_else(with_port);
    let address: Option<SocketAddr> = address.filter(SocketAddr::is_ipv4);
    address.ok_or_else(|| {
        format!(
            "{text:?} is not the address of a gateway: write one of IPv4, for example 192.168.1.1"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_only_this_host_reaches_is_not_mapped() {
        let args = PortArgs {
            map_port: Some(None),
        };
        let refused = args.start(Some("127.0.0.1:6881".parse().unwrap()));
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("0.0.0.0:6881"), "{error}");
        assert!(args.start(None).is_err());
    }

    #[test]
    fn a_gateway_has_the_port_of_the_protocol_unless_it_names_another() {
        let read = |text| gateway(text).map(|address| address.to_string());
        assert_eq!(read("192.168.1.1").as_deref(), Ok("192.168.1.1:5351"));
        assert_eq!(read("127.0.0.1:99").as_deref(), Ok("127.0.0.1:99"));
        assert!(read("router").is_err() && read("fd00::1").is_err());
    }
}

//! Hosts on plain IP: packets straight to the other host, without SCION routers.
//!
//! To everything above sockets such a host is one in an AS that has neither routers nor a daemon, so
//! that lanes and connections work over plain IP as they do inside an AS: each packet has the headers
//! of one between two hosts of one AS (SCION header specification, "Empty path type").

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hawser_address::{IsdAsn, ScionAddr};

use crate::local_as::{LocalAs, LocalTopology};

/// What stands for the AS of hosts on plain IP: ISDs 16 to 63 are for private use, as are the last
/// AS numbers.
const AS: IsdAsn = IsdAsn(63 << 48 | 0xffff_ffff_ffff);

/// The largest SCION packet, in bytes: an IP packet of 1400 bytes, which most tunnels take, after
/// the headers of IPv6 and UDP.
const MTU: u16 = 1400 - 40 - 8;

/// The address of the host at `host` on plain IP.
pub fn plain_ip(host: SocketAddr) -> ScionAddr {
    ScionAddr::new(AS, host)
}

/// Where the host with this address is on plain IP; `None` if it is a host in a SCION AS.
pub fn on_plain_ip(address: ScionAddr) -> Option<SocketAddr> {
    (address.isd_as == AS).then_some(address.host)
}

pub(crate) fn topology() -> LocalTopology {
    LocalTopology {
        local: LocalAs {
            isd_as: AS,
            core: false,
            mtu: MTU,
        },
        // No router delivers, so any port will do.
        ports: 0..=0,
        routers: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::socket::{Arrival, ReceiveBuffer, Socket};
    use crate::{Endhost, Headers};

    #[tokio::test]
    async fn hosts_reach_each_other_without_a_daemon() {
        let host = Endhost::on_plain_ip(None);
        let any = "127.0.0.1:0".parse().unwrap();
        let bind = || Socket::bind(&host, Some(any)).unwrap();
        let (here, there) = (bind(), bind());
        let path = host.paths(host.local_as()).await.unwrap().remove(0);
        let remote = there.local_addr();
        let headers = Headers::new(here.local_addr(), remote, &path).unwrap();
        assert_eq!(on_plain_ip(remote), Some(headers.next_hop));
        assert_eq!(plain_ip(headers.next_hop), remote);
        here.writable().await.unwrap();
        let sent = here.try_send(&headers, b"hello", 5, 0, &mut Vec::new());
        assert_eq!(sent.unwrap(), 5);
        let mut buffer = ReceiveBuffer::default();
        let received = poll_fn(|cx| there.poll_receive(cx, &mut buffer)).await;
        received.unwrap();
        let Some(Arrival::Datagram(datagram)) = there.packets(&mut buffer).next() else {
            panic!("nothing has arrived");
        };
        assert_eq!(datagram.payload, b"hello");
        assert_eq!(datagram.from, here.local_addr().host);
    }
}

//! Socket addresses in the kernel's form (`sockaddr_storage` of sockaddr(3type)).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A socket address in the kernel's form, and its length.
pub fn to_raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: sockaddr_storage is plain data, for which all zeros is a value.
    let mut raw: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = (&raw mut raw).cast::<u8>();
    match address {
        SocketAddr::V4(v4) => {
            let v4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is large and aligned enough for every socket address
            // (POSIX), and `place` points to all of it.
            unsafe { place.cast::<libc::sockaddr_in>().write(v4) };
            (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(v6) => {
            let v6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(v6) };
            (raw, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    }
}

/// The address in `raw`; `None` when it is not of IP.
pub fn from_raw(raw: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let place = (&raw const *raw).cast::<u8>();
    match i32::from(raw.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address lies in the storage, which is large and aligned
            // enough for it.
            let v4 = unsafe { place.cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { place.cast::<libc::sockaddr_in6>().read() };
            let (ip, port) = (v6.sin6_addr.s6_addr.into(), u16::from_be(v6.sin6_port));
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernels_form() {
        for text in ["10.0.1.254:30042", "[fd00::1]:50000", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(from_raw(&to_raw(&address).0), Some(address));
        }
    }
}

//! Why a socket cannot be bound, and what to do about it, in one line.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

/// What a socket is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Why the system does not bind a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The address is not one of this host.
    NotHere,
    /// Another socket has the port, or all have one if any was wanted.
    Taken,
    /// This user may not use the port.
    Forbidden,
    /// The process has as many open files as it may have.
    ProcessFiles,
    /// The system has as many open files as it may have.
    SystemFiles,
    /// The host has no such addresses, as one without IPv6.
    NoFamily,
    /// An address that is on each link, without its interface.
    NoInterface,
    /// The system has no memory left.
    NoMemory,
    /// Another error, in the words of the system.
    Other(String),
}

/// Why a socket was not bound: prints as the cause, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The protocol.
    pub protocol: Protocol,
    /// The address that was wanted.
    pub address: SocketAddr,
    /// Why.
    pub cause: Cause,
}

impl Protocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl Cause {
    /// The cause of the system's `error` at `address`.
    #[must_use]
    pub fn new(address: SocketAddr, error: &io::Error) -> Self {
        use io::ErrorKind;
        match Errno::from_io_error(error) {
            Some(Errno::MFILE) => return Self::ProcessFiles,
            Some(Errno::NFILE) => return Self::SystemFiles,
            Some(Errno::AFNOSUPPORT) => return Self::NoFamily,
            Some(Errno::NOBUFS | Errno::NOMEM) => return Self::NoMemory,
            Some(Errno::INVAL) if is_on_each_link(address) => return Self::NoInterface,
            _ => {}
        }
        match error.kind() {
            ErrorKind::AddrNotAvailable => Self::NotHere,
            ErrorKind::AddrInUse => Self::Taken,
            ErrorKind::PermissionDenied => Self::Forbidden,
            ErrorKind::OutOfMemory => Self::NoMemory,
            _ => Self::Other(words(error)),
        }
    }
}

/// Whether `address` needs the number of an interface, and has none.
fn is_on_each_link(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// The text of a system error without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.to_owned()
}

impl Refused {
    /// The system answered `error` to a TCP listener at `address`.
    #[must_use]
    pub fn tcp(address: SocketAddr, error: &io::Error) -> Self {
        Self::new(Protocol::Tcp, address, error)
    }

    /// The system answered `error` to a UDP socket at `address`.
    #[must_use]
    pub fn udp(address: SocketAddr, error: &io::Error) -> Self {
        Self::new(Protocol::Udp, address, error)
    }

    fn new(protocol: Protocol, address: SocketAddr, error: &io::Error) -> Self {
        let cause = Cause::new(address, error);
        Self {
            protocol,
            address,
            cause,
        }
    }

    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> String {
        let (ip, port, name) = (self.address.ip(), self.address.port(), self.protocol.name());
        match &self.cause {
            Cause::NotHere => format!("{ip} is not an address of this host"),
            Cause::Taken if port == 0 => format!("all {name} ports are in use"),
            Cause::Taken => format!("another program has {name} port {port}"),
            Cause::Forbidden => format!("this user may not use {name} port {port}"),
            Cause::ProcessFiles => "this process has too many open files".to_owned(),
            Cause::SystemFiles => "the system has too many open files".to_owned(),
            Cause::NoFamily => format!("this host has no {}", family(ip)),
            Cause::NoInterface => format!("{ip} is an address on each link, and names none"),
            Cause::NoMemory => "the system has no memory left for sockets".to_owned(),
            Cause::Other(text) => text.clone(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let (ip, port) = (self.address.ip(), self.address.port());
        let flag = match self.protocol {
            Protocol::Tcp => 't',
            Protocol::Udp => 'u',
        };
        match &self.cause {
            Cause::NotHere => "take one of those that `ip address` shows".to_owned(),
            Cause::Taken if port == 0 => format!(
                "end programs that hold many (`ss -{flag}anp` shows them), or widen \
                 net.ipv4.ip_local_port_range"
            ),
            Cause::Taken => format!(
                "take another port, or end that program (`ss -{flag}lnp 'sport = {port}'` shows it)"
            ),
            Cause::Forbidden if port < 1024 => "take a port from 1024, or run it as root or with \
                                                CAP_NET_BIND_SERVICE"
                .to_owned(),
            Cause::Forbidden => "take a port that the rules of the system (AppArmor, SELinux, the \
                                 unit's SocketBindDeny=) allow"
                .to_owned(),
            Cause::ProcessFiles => {
                "raise its limit (`ulimit -n`, or LimitNOFILE= of its unit)".to_owned()
            }
            Cause::SystemFiles => {
                "end programs that hold many, or raise the sysctl fs.file-max".to_owned()
            }
            Cause::NoFamily => format!("take an {} address", other_family(ip)),
            Cause::NoInterface => format!(
                "add the number of the interface that `ip link` shows: [{ip}%2]:{port}, or take \
                 another address"
            ),
            Cause::NoMemory => "end programs that hold much".to_owned(),
            Cause::Other(_) => "mend what the system names, or take another address".to_owned(),
        }
    }
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn other_family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv6" } else { "IPv4" }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason(), self.remedy())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    fn of(address: &str, error: Errno) -> String {
        Refused::tcp(address.parse().unwrap(), &error.into()).to_string()
    }

    #[test]
    fn what_the_system_answers_names_its_remedy() {
        let elsewhere: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let error = TcpListener::bind(elsewhere).unwrap_err();
        assert_eq!(
            Refused::tcp(elsewhere, &error).to_string(),
            "192.0.2.1 is not an address of this host: take one of those that `ip address` shows"
        );
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let taken = first.local_addr().unwrap();
        let error = UdpSocket::bind(taken).unwrap_err();
        let port = taken.port();
        assert_eq!(
            Refused::udp(taken, &error).to_string(),
            format!(
                "another program has UDP port {port}: take another port, or end that program (`ss \
                 -ulnp 'sport = {port}'` shows it)"
            )
        );
    }

    #[test]
    fn each_refusal_names_its_remedy() {
        for (address, error, expected) in [
            ("127.0.0.1:80", Errno::ACCESS, ["TCP port 80", "from 1024"]),
            (
                "127.0.0.1:8030",
                Errno::ACCESS,
                ["TCP port 8030", "SocketBindDeny="],
            ),
            (
                "127.0.0.1:0",
                Errno::ADDRINUSE,
                ["all TCP ports", "ip_local_port_range"],
            ),
            (
                "127.0.0.1:1",
                Errno::MFILE,
                ["this process", "LimitNOFILE="],
            ),
            ("127.0.0.1:1", Errno::NFILE, ["the system", "fs.file-max"]),
            ("[::1]:1", Errno::AFNOSUPPORT, ["no IPv6", "IPv4 address"]),
            (
                "[fe80::1]:1",
                Errno::INVAL,
                ["on each link", "[fe80::1%2]:1"],
            ),
            ("127.0.0.1:1", Errno::NOBUFS, ["no memory", "end programs"]),
            (
                "[fe80::1%2]:1",
                Errno::INVAL,
                ["Invalid argument:", "another address"],
            ),
        ] {
            let text = of(address, error);
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");
            assert!(!text.contains("os error") && !text.contains('\n'), "{text}");
        }
    }
}

//! What is compared: tools, parts, directions, IP versions, kinds of traffic.

use std::fmt;
use std::str::FromStr;

/// Declares an enumeration whose values have a name, which is read and written.
macro_rules! named {
    ($(#[$about:meta])* $name:ident, $what:literal { $($(#[$doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $value,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$value),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|one| one.name() == text);
                found.copied().ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
                    format!("there is no {} {text:?}: there are {}", $what, names.join(", "))
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }
    };
}

named! {
    /// What sets the limits.
    LimitTool, "tool" {
        /// `hawser-limit`, over netlink.
        Hawser = "hawser",
        /// tc(8) with the commands of 004, Listing 5.2.
        TcByHand = "tc-by-hand",
    }
}

named! {
    /// A part of the evaluation.
    Part, "part" {
        /// Goodput by the size of datagrams (004, Figures 6.1 and 6.2).
        Size = "size",
        /// Goodput by the rate at which is sent (004, Figures 6.6 to 6.8).
        Rate = "rate",
        /// How far the rate of frames is from the limit.
        Accuracy = "accuracy",
        /// What thousands of links cost.
        Links = "links",
    }
}

named! {
    /// The direction, as the attachment point sees it.
    Way, "direction" {
        /// The attachment point sends.
        Egress = "egress",
        /// The attachment point receives.
        Ingress = "ingress",
    }
}

named! {
    /// The version of IP.
    IpVersion, "version of IP" {
        /// IPv4.
        V4 = "4",
        /// IPv6.
        V6 = "6",
    }
}

named! {
    /// What is sent.
    Traffic, "traffic" {
        /// UDP, datagrams of 1000 bytes.
        UdpSmall = "udp-1000",
        /// UDP, datagrams that fill the MTU.
        UdpFull = "udp-mtu",
        /// UDP, datagrams of 1400 bytes, each handed to the kernel by itself.
        UdpSingle = "udp",
        /// UDP, datagrams of 1400 bytes, 44 at once (GSO).
        UdpSegmented = "udp-gso",
        /// TCP, as fast as it goes.
        Tcp = "tcp",
    }
}

impl Traffic {
    /// What is sent to see how accurate a limit is.
    pub const ACCURACY: [Self; 3] = [Self::UdpSmall, Self::UdpFull, Self::Tcp];
    /// What is sent over many links.
    pub const LINKS: [Self; 3] = [Self::UdpSingle, Self::UdpSegmented, Self::Tcp];
}

impl IpVersion {
    /// The longest payload of a UDP datagram in a frame whose MTU is 1500 bytes.
    pub fn full_datagram(self) -> usize {
        match self {
            Self::V4 => 1472,
            Self::V6 => 1452,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for tool in LimitTool::ALL {
            assert_eq!(tool.to_string().parse(), Ok(*tool));
        }
        for part in Part::ALL {
            assert_eq!(part.to_string().parse(), Ok(*part));
        }
        let error = "sizes".parse::<Part>().unwrap_err();
        assert_eq!(
            error,
            "there is no part \"sizes\": there are size, rate, accuracy, links"
        );
    }
}

//! What is compared: tools, parts, directions, IP versions, kinds of traffic.

use crate::shape::choices;

choices! {
    /// What sets the limits.
    LimitTool, "tool" {
        /// `hawser-limit`, over netlink.
        Hawser = "hawser",
        /// tc(8) with the commands of 004, Listing 5.2.
        TcByHand = "tc-by-hand",
    }
}

choices! {
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

choices! {
    /// The direction, as the attachment point sees it.
    Way, "direction" {
        /// The attachment point sends.
        Egress = "egress",
        /// The attachment point receives.
        Ingress = "ingress",
    }
}

choices! {
    /// The version of IP.
    IpVersion, "version of IP" {
        /// IPv4.
        V4 = "4",
        /// IPv6.
        V6 = "6",
    }
}

choices! {
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
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<LimitTool>();
        assert_named::<Part>();
        assert_named::<IpVersion>();
    }
}

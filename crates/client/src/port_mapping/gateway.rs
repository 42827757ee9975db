//! The gateway of this host: that of its default route.

use std::net::Ipv4Addr;

/// Where the system lists the routes of IPv4 (proc_net(5)).
const ROUTES: &str = "/proc/net/route";
/// Flags of a route that is up and leads over a gateway (`RTF_UP`, `RTF_GATEWAY`).
const VIA_GATEWAY: u32 = 0x3;

/// The gateway of the default route with the lowest metric; `None` if there is none.
///
/// # Errors
/// If the routes cannot be read.
pub(super) fn default_gateway() -> std::io::Result<Option<Ipv4Addr>> {
    Ok(parse(&std::fs::read_to_string(ROUTES)?))
}

/// Reads the list of routes. Lines that are none are left out.
fn parse(text: &str) -> Option<Ipv4Addr> {
    let route = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let mut hex = || u32::from_str_radix(fields.next()?, 16).ok();
        let (destination, gateway, flags) = (hex()?, hex()?, hex()?);
        let metric: u32 = fields.nth(2)?.parse().ok()?;
        let mask = u32::from_str_radix(fields.next()?, 16).ok()?;
        let is_default = (destination, mask) == (0, 0) && flags & VIA_GATEWAY == VIA_GATEWAY;
        // In the byte order of the host, as a number.
        is_default.then(|| (metric, Ipv4Addr::from(gateway.to_ne_bytes())))
    };
    let routes = text.lines().filter_map(route);
    routes.min_by_key(|(metric, _)| *metric).map(|(_, it)| it)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0100000A\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_default_route_of_the_lowest_metric_counts() {
        assert_eq!(parse(ROUTES), Some(Ipv4Addr::new(192, 168, 1, 1)));
        let first: Vec<&str> = ROUTES.lines().take(2).collect();
        assert_eq!(parse(&first.join("\n")), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(parse(ROUTES.lines().next().unwrap()), None);
    }

    mod fuzz {
        use super::*;

        #[test]
        fn lists_of_routes() {
            let valid = [ROUTES.as_bytes().to_vec()];
            hawser_fuzz::fuzz(&valid, |input| {
                if let Ok(text) = std::str::from_utf8(input) {
                    let _ = parse(text);
                }
            });
        }
    }
}

//! Setting limits: with hawser, and with tc(8) as the thesis does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use hawser_limit::{DeviceLimits, Limit, Limiter, Limits, Outcome, Remote};

use super::bed::DEVICE;
use super::names::LimitTool;
use crate::error::{During, ExperimentError};

/// The device to which the thesis redirects what is received.
const IFB: &str = "ifb0";

/// Limits that are set, of the same rate for both directions of each link. Dropping it removes them.
pub struct Set {
    with: With,
    removed: bool,
}

enum With {
    Hawser {
        limiter: Box<Limiter>,
        wanted: BTreeMap<String, DeviceLimits>,
    },
    TcByHand,
}

/// Why a tool cannot be used here, if it cannot.
pub fn lacks(tool: LimitTool) -> Option<String> {
    let missing = |program: &&str| Command::new(program).arg("-V").output().is_err();
    match tool {
        LimitTool::Hawser => None,
        LimitTool::TcByHand => ["tc", "ip"]
            .into_iter()
            .find(missing)
            .map(|program| format!("{program} is not installed: install iproute2")),
    }
}

/// Limits to `rate` bit/s.
fn limits(rate: u64) -> Limits {
    Limits::both(Limit::new(rate))
}

fn remote(address: IpAddr) -> Remote {
    Remote {
        address,
        port: None,
    }
}

/// Limits of `links`, as hawser takes them.
fn wanted(links: &[IpAddr], rate: u64) -> BTreeMap<String, DeviceLimits> {
    let links = links.iter().map(|link| (remote(*link), limits(rate)));
    let limits = DeviceLimits {
        links: links.collect(),
        default: Limits::default(),
    };
    BTreeMap::from([(DEVICE.to_owned(), limits)])
}

fn apply(
    limiter: &mut Limiter,
    wanted: &BTreeMap<String, DeviceLimits>,
) -> Result<(), ExperimentError> {
    let applied = limiter.apply(wanted).and_then(Outcome::all);
    applied.map(drop).map_err(ExperimentError::step)
}

impl Set {
    /// Limits each of `links` to `rate` bit/s. To be called inside the attachment point, which has no
    /// limits yet.
    pub fn new(tool: LimitTool, links: &[IpAddr], rate: u64) -> Result<Self, ExperimentError> {
        let with = match tool {
            LimitTool::Hawser => With::Hawser {
                limiter: Box::new(Limiter::open().map_err(ExperimentError::step)?),
                wanted: wanted(links, rate),
            },
            LimitTool::TcByHand => With::TcByHand,
        };
        let removed = false;
        let mut set = Self { with, removed };
        match &mut set.with {
            With::Hawser { limiter, wanted } => apply(limiter, wanted)?,
            With::TcByHand => {
                batch(
                    "ip",
                    &format!("link add {IFB} type ifb\nlink set {IFB} up\n"),
                )?;
                batch("tc", &script(links, rate))?;
            }
        }
        Ok(set)
    }

    /// Changes the limit of the link with this number in the order of `links`.
    pub fn change(
        &mut self,
        links: &[IpAddr],
        number: usize,
        rate: u64,
    ) -> Result<(), ExperimentError> {
        match &mut self.with {
            With::Hawser { limiter, wanted } => {
                if let Some(device) = wanted.get_mut(DEVICE) {
                    device.links.insert(remote(links[number]), limits(rate));
                }
                apply(limiter, wanted)?;
            }
            With::TcByHand => {
                let mut lines = String::new();
                for (device, handle) in [(DEVICE, 1), (IFB, 2)] {
                    class(
                        &mut lines,
                        "change",
                        device,
                        handle,
                        number + 1,
                        rate / 1000,
                    );
                }
                batch("tc", &lines)?;
            }
        }
        Ok(())
    }

    /// Removes the limits.
    pub fn reset(mut self) -> Result<(), ExperimentError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<(), ExperimentError> {
        self.removed = true;
        match &mut self.with {
            With::Hawser { limiter, .. } => {
                let none = BTreeMap::from([(DEVICE.to_owned(), DeviceLimits::default())]);
                apply(limiter, &none)
            }
            With::TcByHand => {
                let lines =
                    format!("qdisc del dev {DEVICE} root\nqdisc del dev {DEVICE} ingress\n");
                batch("tc", &lines)?;
                batch("ip", &format!("link del {IFB}\n"))
            }
        }
    }
}

impl Drop for Set {
    /// After a failure, so that the next measurement begins without limits.
    fn drop(&mut self) {
        if !self.removed
            && let Err(error) = self.remove()
        {
            tracing::warn!("limits are not removed: {error}");
        }
    }
}

/// The commands of 004, Listing 5.2, without the program's name.
fn script(links: &[IpAddr], rate: u64) -> String {
    let mut lines = String::new();
    let of = |link: &IpAddr| match link {
        IpAddr::V4(_) => ("ip", 32),
        IpAddr::V6(_) => ("ip6", 128),
    };
    for (device, handle, side) in [(DEVICE, 1, "dst"), (IFB, 2, "src")] {
        let _ = writeln!(
            lines,
            "qdisc add dev {device} root handle {handle}: htb default 9999"
        );
        class(&mut lines, "add", device, handle, 9999, 1000);
        for number in 1..=links.len() {
            class(&mut lines, "add", device, handle, number, rate / 1000);
        }
        for (link, number) in links.iter().zip(1..) {
            let (protocol, prefix) = of(link);
            // Without a protocol tc takes the match for all of them, as in the thesis.
            let _ = writeln!(
                lines,
                "filter add dev {device} u32 match {protocol} {side} {link}/{prefix} flowid \
                 {handle}:{number}"
            );
        }
        if device == DEVICE {
            let _ = writeln!(lines, "qdisc add dev {DEVICE} handle ffff: ingress");
            for (name, protocol, any) in [("ip", "ip", "0.0.0.0/0"), ("ipv6", "ip6", "::0/0")] {
                let _ = writeln!(
                    lines,
                    "filter add dev {DEVICE} parent ffff: protocol {name} u32 match {protocol} src \
                     {any} action mirred egress redirect dev {IFB}"
                );
            }
        }
    }
    lines
}

/// The thesis has the number of the AS as name, which tc reads as hexadecimal, and as priority, of which
/// the kernel has eight.
fn class(lines: &mut String, verb: &str, device: &str, handle: u8, number: usize, kbit: u64) {
    let _ = writeln!(
        lines,
        "class {verb} dev {device} parent {handle}:0 classid {handle}:{number} htb rate {kbit}kbit \
         ceil {kbit}kbit burst 5k prio {number} mtu 1500"
    );
}

/// Has a program carry out commands, one in a line.
fn batch(program: &str, lines: &str) -> Result<(), ExperimentError> {
    let step = || format!("setting limits with {program}");
    let mut child = Command::new(program)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .during(step())?;
    let mut input = child.stdin.take().ok_or("no input").during(step())?;
    // It prints warnings meanwhile, which must be read. It may end before it has read everything; what it
    // prints then says why.
    let (written, output) = std::thread::scope(|scope| {
        let writing = scope.spawn(move || input.write_all(lines.as_bytes()));
        let output = child.wait_with_output();
        (writing.join(), output)
    });
    let output = output.during(step())?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => match written {
            Ok(written) => written.during(step()),
            Err(_) => Err("the writing thread panicked").during(step()),
        },
        false => {
            let mut lines = said.lines().filter(|line| !line.starts_with("Warning"));
            Err(lines.next().unwrap_or("it failed").to_owned()).during(step())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tc_is_given_the_commands_of_the_thesis() {
        let links: [IpAddr; 2] = [
            "fe80::20c:29ff:fe08:993c".parse().unwrap(),
            "192.168.17.129".parse().unwrap(),
        ];
        let text = script(&links, 500_000);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 15);
        assert_eq!(
            lines[0],
            "qdisc add dev point root handle 1: htb default 9999"
        );
        assert_eq!(
            lines[1],
            "class add dev point parent 1:0 classid 1:9999 htb rate 1000kbit ceil 1000kbit burst 5k \
             prio 9999 mtu 1500"
        );
        assert_eq!(
            lines[4],
            "filter add dev point u32 match ip6 dst fe80::20c:29ff:fe08:993c/128 flowid 1:1"
        );
        assert_eq!(
            lines[14],
            "filter add dev ifb0 u32 match ip src 192.168.17.129/32 flowid 2:2"
        );
    }
}

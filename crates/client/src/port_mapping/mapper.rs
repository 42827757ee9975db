//! What is asked of a gateway when, without I/O: time and answers in, requests out.
//!
//! Each request is repeated after 250 ms, 500 ms and so on (RFC 6886, section 3.1) until it is answered. A
//! mapping is renewed when half of its time is over (section 3.3). What fails is tried again after a pause:
//! the gateway may be allowed to map ports later, or start again.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::message::{Answer, Protocol, Request};

/// The lifetime that is asked for, in seconds, as section 3.3 recommends.
pub(super) const LIFETIME: u32 = 7200;
/// Shortest time between a mapping and its renewal, whatever lifetime the gateway gives.
const MIN_RENEWAL: Duration = Duration::from_secs(30);
/// Time until a request is sent again, at first; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Times that a request is sent. UPnP is tried 16 s after the first of them, as more gateways know that:
/// sooner than after the minute of section 3.1.
const MAX_ATTEMPTS: u32 = 6;
/// Time after which what has failed is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(10 * 60);

/// What is done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// It was sent this many times, and is due again.
    Asks { attempts: u32, due: Duration },
    /// It was answered, and is due again.
    Done { due: Duration },
    /// It has failed, and is due again.
    Failed { due: Duration },
}

impl Step {
    fn due(&self) -> Duration {
        match self {
            Self::Asks { due, .. } | Self::Done { due } | Self::Failed { due } => *due,
        }
    }
}

/// A mapping of one protocol.
#[derive(Debug, Clone)]
struct Mapping {
    protocol: Protocol,
    step: Step,
    /// The port of the gateway, and until when it is mapped.
    external: Option<(u16, Duration)>,
    /// Why there is none.
    reason: Option<String>,
}

/// The mappings of one port, of TCP and UDP.
#[derive(Debug)]
pub(super) struct Mapper {
    /// The port on this host.
    port: u16,
    mappings: [Mapping; 2],
    address: Option<Ipv4Addr>,
    address_step: Step,
}

/// What there is of mappings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub address: Option<Ipv4Addr>,
    pub tcp: Option<u16>,
    pub udp: Option<u16>,
    /// Why one is missing; `None` while any is asked for.
    pub reason: Option<String>,
}

impl Mapper {
    /// For this port, to be asked for from now on.
    pub fn new(port: u16, now: Duration) -> Self {
        let begins = Step::Asks {
            attempts: 0,
            due: now,
        };
        Self {
            port,
            mappings: Protocol::BOTH.map(|protocol| Mapping {
                protocol,
                step: begins.clone(),
                external: None,
                reason: None,
            }),
            address: None,
            address_step: begins,
        }
    }

    /// What is to be sent now.
    pub fn advance(&mut self, now: Duration) -> Vec<Request> {
        let mut requests = Vec::new();
        if next_step(&mut self.address_step, now) == Next::Send {
            requests.push(Request::Address);
        }
        for mapping in &mut self.mappings {
            if mapping.external.is_some_and(|(_, until)| now >= until) {
                mapping.external = None;
            }
            match next_step(&mut mapping.step, now) {
                Next::Send => requests.push(Request::Map {
                    protocol: mapping.protocol,
                    internal: self.port,
                    // The same as before, also when it is renewed.
                    external: mapping.external.map_or(self.port, |(port, _)| port),
                    lifetime: LIFETIME,
                }),
                Next::GiveUp => {
                    let text = "the gateway does not answer to NAT-PMP: allow it in its settings";
                    mapping.reason = Some(text.to_owned());
                }
                Next::Wait => {}
            }
        }
        requests
    }

    /// When [`Self::advance`] has something to do.
    pub fn next_due(&self) -> Duration {
        let expiries = self.mappings.iter().filter_map(|it| it.external);
        let expiries = expiries.map(|(_, until)| until);
        let steps = self.mappings.iter().map(|mapping| mapping.step.due());
        let due = steps.chain(expiries).min();
        due.map_or(self.address_step.due(), |due| {
            due.min(self.address_step.due())
        })
    }

    /// The gateway has answered. What was not asked for is ignored.
    pub fn on_answer(&mut self, answer: Answer, now: Duration) {
        match answer {
            Answer::Address(address) => {
                if is_asked(&self.address_step) {
                    // Private or missing: the gateway is behind another one.
                    self.address = Some(address).filter(|address| !address.is_unspecified());
                    let due = now.saturating_add(renewal(LIFETIME));
                    self.address_step = Step::Done { due };
                }
            }
            Answer::Mapped {
                protocol,
                internal,
                external,
                lifetime,
            } => {
                let port = self.port;
                let mapping = self.mapping(protocol);
                if internal != port || !is_asked(&mapping.step) || external == 0 || lifetime == 0 {
                    return;
                }
                let lasts = Duration::from_secs(lifetime.into());
                mapping.external = Some((external, now.saturating_add(lasts)));
                mapping.reason = None;
                mapping.step = Step::Done {
                    due: now.saturating_add(renewal(lifetime)),
                };
            }
            Answer::Refused(None, _) => {
                if is_asked(&self.address_step) {
                    let due = now.saturating_add(RETRY);
                    self.address_step = Step::Failed { due };
                }
            }
            Answer::Refused(Some(protocol), code) => {
                let mapping = self.mapping(protocol);
                if is_asked(&mapping.step) {
                    mapping.reason = Some(code.reason());
                    let due = now.saturating_add(RETRY);
                    mapping.step = Step::Failed { due };
                }
            }
        }
    }

    fn mapping(&mut self, protocol: Protocol) -> &mut Mapping {
        let [tcp, udp] = &mut self.mappings;
        match protocol {
            Protocol::Tcp => tcp,
            Protocol::Udp => udp,
        }
    }

    /// What ends the mappings that there are, or may be (section 3.4).
    pub fn end(&self) -> Vec<Request> {
        let asked = self.mappings.iter().filter(|mapping| {
            mapping.external.is_some() || matches!(mapping.step, Step::Asks { attempts: 1.., .. })
        });
        let end = |mapping: &Mapping| Request::Map {
            protocol: mapping.protocol,
            internal: self.port,
            external: 0,
            lifetime: 0,
        };
        asked.map(end).collect()
    }

    /// What there is.
    pub fn mapped(&self) -> Mapped {
        let [tcp, udp] = &self.mappings;
        let port = |mapping: &Mapping| mapping.external.map(|(port, _)| port);
        let reason = self.mappings.iter().find_map(|mapping| {
            let reason = mapping.reason.as_ref()?;
            Some(format!("{}: {reason}", mapping.protocol.name()))
        });
        // The other one may be mapped still.
        let is_decided = !self.mappings.iter().any(|mapping| is_asked(&mapping.step));
        let reason = reason.filter(|_| is_decided);
        Mapped {
            address: self.address,
            tcp: port(tcp),
            udp: port(udp),
            reason,
        }
    }
}

/// Whether an answer is waited for.
fn is_asked(step: &Step) -> bool {
    matches!(step, Step::Asks { attempts: 1.., .. })
}

/// When a mapping of this lifetime, in seconds, is renewed.
pub(super) fn renewal(lifetime: u32) -> Duration {
    (Duration::from_secs(lifetime.into()) / 2).max(MIN_RENEWAL)
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait,
    Send,
    GiveUp,
}

/// What is due of a request.
fn next_step(step: &mut Step, now: Duration) -> Next {
    if now < step.due() {
        return Next::Wait;
    }
    let attempts = match step {
        Step::Asks { attempts, .. } => *attempts,
        Step::Done { .. } | Step::Failed { .. } => 0,
    };
    if attempts >= MAX_ATTEMPTS {
        *step = Step::Failed {
            due: now.saturating_add(RETRY),
        };
        return Next::GiveUp;
    }
    *step = Step::Asks {
        attempts: attempts + 1,
        due: now.saturating_add(FIRST_PAUSE * 2_u32.pow(attempts)),
    };
    Next::Send
}

#[cfg(test)]
mod tests;

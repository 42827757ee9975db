//! What sends, and what congests one of its paths.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What sends over the two paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sender {
    /// One `hawser send`.
    Hawser,
    /// Two independent TCP flows, one over each path: what the paper compares with.
    Tcp,
}

/// What congests one of the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// UDP at a constant rate, as in the paper.
    Udp,
    /// Two TCP flows of other hosts.
    Tcp,
}

/// A sender beside a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// What sends.
    pub sender: Sender,
    /// What congests one of its paths.
    pub load: Load,
}

impl Case {
    /// All cases.
    pub const ALL: [Self; 4] = [
        Self::of(Sender::Hawser, Load::Udp),
        Self::of(Sender::Tcp, Load::Udp),
        Self::of(Sender::Hawser, Load::Tcp),
        Self::of(Sender::Tcp, Load::Tcp),
    ];

    const fn of(sender: Sender, load: Load) -> Self {
        Self { sender, load }
    }

    /// Whether plain IP must have the delay of the links.
    pub fn needs_delay(self) -> bool {
        self.sender == Sender::Tcp || self.load == Load::Tcp
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sender = match self.sender {
            Sender::Hawser => "hawser",
            Sender::Tcp => "tcp",
        };
        let load = match self.load {
            Load::Udp => "udp",
            Load::Tcp => "tcp",
        };
        f.pad(&format!("{sender}-beside-{load}"))
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|case| case.to_string() == text);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(Self::to_string).collect();
            format!("there is no variant {text}: there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_are_refused() {
        for case in Case::ALL {
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        assert!("hawser".parse::<Case>().is_err());
    }
}

//! What sends, and what congests one of its paths.

use std::fmt;

use crate::shape::Choice;

/// What sends over the two paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// One `hawser send`.
    Hawser,
    /// Two independent TCP flows, one over each path: what the paper compares with.
    Tcp,
}

/// What congests one of the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Choice for Case {
    const WHAT: &'static str = "variant";
    const ALL: &'static [Self] = &[
        Self::of(Sender::Hawser, Load::Udp),
        Self::of(Sender::Tcp, Load::Udp),
        Self::of(Sender::Hawser, Load::Tcp),
        Self::of(Sender::Tcp, Load::Tcp),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Case>();
    }
}

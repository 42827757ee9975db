//! Which connections are encrypted.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How data is sent after an encrypted handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// As it is: only the handshake is encrypted.
    Plain,
    /// Encrypted with RC4.
    Rc4,
}

/// A set of methods: `crypto_provide` or `crypto_select`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Methods(pub u32);

impl Methods {
    /// Both methods.
    pub const ALL: Self = Self(0b11);

    /// Whether a method is in it.
    pub fn has(self, method: Method) -> bool {
        self.0 & Self::from(method).0 != 0
    }

    /// The only method in it, if it is known.
    pub fn single(self) -> Option<Method> {
        let mut all = [Method::Plain, Method::Rc4].into_iter();
        all.find(|method| self == Self::from(*method))
    }
}

impl From<Method> for Methods {
    fn from(method: Method) -> Self {
        Self(match method {
            Method::Plain => 0b01,
            Method::Rc4 => 0b10,
        })
    }
}

/// What a connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// The handshake of BEP 3.
    Plain,
    /// The handshake of MSE.
    Encrypted,
}

/// Whether connections are encrypted.
///
/// | policy | dials | offers | accepts | selects |
/// | --- | --- | --- | --- | --- |
/// | `disable` | plain | | plain | |
/// | `allow` | plain, then encrypted | both | both | plain, else RC4 |
/// | `prefer` | encrypted, then plain | both | both | RC4, else plain |
/// | `require` | encrypted | RC4 | encrypted | RC4 |
///
/// A second dial follows when the peer closes the first connection without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Never.
    Disable,
    /// If the peer wants it.
    Allow,
    /// Unless the peer does not support it.
    Prefer,
    /// Always.
    Require,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Disable, Self::Allow, Self::Prefer, Self::Require];

    /// What is dialed, in this order.
    pub fn dials(self) -> &'static [Wire] {
        match self {
            Self::Disable => &[Wire::Plain],
            Self::Allow => &[Wire::Plain, Wire::Encrypted],
            Self::Prefer => &[Wire::Encrypted, Wire::Plain],
            Self::Require => &[Wire::Encrypted],
        }
    }

    /// Whether a connection that begins so is accepted.
    pub fn accepts(self, wire: Wire) -> bool {
        match wire {
            Wire::Plain => self != Self::Require,
            Wire::Encrypted => self != Self::Disable,
        }
    }

    /// The methods that the side that dials offers (`crypto_provide`); none with
    /// [`Self::Disable`].
    pub fn provide(self) -> Methods {
        match self {
            Self::Disable => Methods(0),
            Self::Allow | Self::Prefer => Methods::ALL,
            Self::Require => Method::Rc4.into(),
        }
    }

    /// The method that the other side selects among those offered (`crypto_select`); `None` if it
    /// accepts none of them.
    pub fn select(self, provided: Methods) -> Option<Method> {
        let order: &[Method] = match self {
            Self::Disable => &[],
            Self::Allow => &[Method::Plain, Method::Rc4],
            Self::Prefer => &[Method::Rc4, Method::Plain],
            Self::Require => &[Method::Rc4],
        };
        let mut order = order.iter().copied();
        order.find(|method| provided.has(*method))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a policy for encryption: write disable, allow, prefer or require")]
pub struct PolicyParseError(String);

impl FromStr for Policy {
    type Err = PolicyParseError;

    fn from_str(text: &str) -> Result<Self, PolicyParseError> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|policy| policy.name() == text);
        found.ok_or_else(|| PolicyParseError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_print_as_they_are_written() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "always".parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains("`always`") && error.contains("require"));
    }

    #[test]
    fn two_sides_agree_as_their_policies_say() {
        use Policy::{Allow, Disable, Prefer, Require};

        for (dials, accepts, expected) in [
            (Disable, Require, None),
            (Require, Disable, None),
            (Allow, Allow, Some(Method::Plain)),
            (Prefer, Allow, Some(Method::Plain)),
            (Allow, Prefer, Some(Method::Rc4)),
            (Require, Allow, Some(Method::Rc4)),
            (Allow, Require, Some(Method::Rc4)),
            (Require, Require, Some(Method::Rc4)),
        ] {
            assert_eq!(accepts.select(dials.provide()), expected);
        }
        assert_eq!(Require.select(Method::Plain.into()), None);
        assert_eq!(Prefer.select(Method::Plain.into()), Some(Method::Plain));
        assert_eq!(Prefer.select(Methods(0xffff_fff0)), None);
    }

    #[test]
    fn what_is_dialed_last_is_accepted_by_every_policy_that_accepts_anything_dialed() {
        for dials in Policy::ALL {
            for accepts in Policy::ALL {
                let meets = dials.dials().iter().any(|wire| accepts.accepts(*wire));
                let both = [dials, accepts];
                let apart = both.contains(&Policy::Require) && both.contains(&Policy::Disable);
                assert_eq!(meets, !apart, "{dials} {accepts}");
            }
        }
    }

    #[test]
    fn only_one_method_can_be_selected() {
        assert_eq!(Methods(1).single(), Some(Method::Plain));
        assert_eq!(Methods(2).single(), Some(Method::Rc4));
        for other in [0, 3, 4, 6, u32::MAX] {
            assert_eq!(Methods(other).single(), None);
        }
    }
}

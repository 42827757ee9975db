//! One end of a link between two ASes.

use std::fmt;
use std::str::FromStr;

use hawser_address::IsdAsn;

use crate::text::{number, serde_as_text};

/// An interface of an AS: one end of a link to a neighbouring AS.
///
/// The pair of AS and number is unique worldwide; disjointness is judged by it (001, section VI).
/// Printed and parsed as `1-ff00:0:110#2`; serde uses that string too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface {
    /// The AS the interface belongs to.
    pub isd_as: IsdAsn,
    /// Its number, unique within the AS. Never 0 on a path.
    pub id: u16,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.isd_as, self.id)
    }
}

/// The error of parsing an [`Interface`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no interface: write ISD-AS#NUMBER, such as 1-ff00:0:110#2")]
pub struct InterfaceParseError(String);

impl FromStr for Interface {
    type Err = InterfaceParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || InterfaceParseError(text.to_owned());
        let (isd_as, id) = text.split_once('#').ok_or_else(bad)?;
        Ok(Self {
            isd_as: isd_as.parse().map_err(|_| bad())?,
            id: number(id).ok_or_else(bad)?,
        })
    }
}

serde_as_text!(Interface);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rejects_invalid_interfaces() {
        for text in [
            "",
            "#",
            "1-ff00:0:110",
            "1-ff00:0:110#",
            "1-ff00:0:110#x",
            "1-ff00:0:110#+1",
            "1-ff00:0:110#-1",
            "1-ff00:0:110#65536",
            "1-ff00:0:110#1#2",
            "ff00:0:110#1",
            " 1-ff00:0:110#1",
        ] {
            let error = text.parse::<Interface>().unwrap_err();
            assert!(error.to_string().contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn prints_as_scion_does() {
        let interface: Interface = "1-ff00:0:110#2".parse().unwrap();
        assert_eq!(interface.isd_as.to_u64(), 0x0001_ff00_0000_0110);
        assert_eq!(interface.id, 2);
        assert_eq!(
            serde_json::to_string(&interface).unwrap(),
            "\"1-ff00:0:110#2\""
        );
    }

    proptest! {
        #[test]
        fn reads_what_it_prints(isd_as: u64, id: u16) {
            let interface = Interface { isd_as: IsdAsn(isd_as), id };
            prop_assert_eq!(interface.to_string().parse(), Ok(interface));
            let json = serde_json::to_string(&interface).unwrap();
            prop_assert_eq!(serde_json::from_str::<Interface>(&json).unwrap(), interface);
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "\\PC{0,40}") {
            if let Ok(interface) = text.parse::<Interface>() {
                prop_assert_eq!(interface.to_string().parse(), Ok(interface));
            }
        }
    }
}

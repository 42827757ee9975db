//! CO2 emitted per gigabyte carried, by AS and interface.

use std::collections::BTreeMap;
use std::str::FromStr;

use hawser_address::IsdAsn;
use thiserror::Error;

use crate::Interface;

/// Largest value accepted for one AS, in g/GB: far above any network, low enough for sums to be
/// exact.
const MAX_CARBON: f64 = 1e6;

/// Grams of CO2 per GB, by AS or by interface.
///
/// Parsed from YAML or JSON: a map from `1-ff00:0:110` or `1-ff00:0:110#2` to a number from 0 to
/// 1,000,000.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Carbon {
    ases: BTreeMap<IsdAsn, f64>,
    interfaces: BTreeMap<Interface, f64>,
}

/// Why a text is not a [`Carbon`] table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CarbonError {
    /// It is not a map from texts to numbers.
    #[error("not a table of carbon values: {0}; write lines such as '1-ff00:0:110: 12.5'")]
    Form(String),
    /// A key is neither an AS nor an interface.
    #[error("'{0}' is neither an AS nor an interface: write 1-ff00:0:110 or 1-ff00:0:110#2")]
    Key(String),
    /// A value is out of range.
    #[error("{value} g/GB of '{key}' is not an amount: write a number from 0 to 1000000")]
    Value {
        /// The AS or interface.
        key: String,
        /// The value.
        value: String,
    },
}

impl FromStr for Carbon {
    type Err = CarbonError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = |why: String| {
            // The first line says what is wrong, the others show where.
            CarbonError::Form(why.lines().next().unwrap_or_default().to_owned())
        };
        let read: BTreeMap<String, f64> =
            serde_saphyr::from_str(text).map_err(|error| form(error.to_string()))?;
        let mut table = Self::default();
        for (key, value) in read {
            if !is_amount(value) {
                let value = value.to_string();
                return Err(CarbonError::Value { key, value });
            }
            if let Ok(interface) = key.parse() {
                table.interfaces.insert(interface, value);
            } else if let Ok(isd_as) = key.parse::<IsdAsn>()
                && !isd_as.is_wildcard()
            {
                table.ases.insert(isd_as, value);
            } else {
                return Err(CarbonError::Key(key));
            }
        }
        Ok(table)
    }
}

impl Carbon {
    /// The grams of CO2 per GB of crossing an AS: the sum over the crossed interfaces if a value is
    /// known for each, else the value of the AS.
    pub(crate) fn crossing<'a>(
        &self,
        isd_as: IsdAsn,
        mut crossed: impl Iterator<Item = &'a Interface>,
    ) -> Option<f64> {
        let sum = crossed.try_fold((0.0, false), |(sum, _), interface| {
            Some((sum + self.interfaces.get(interface)?, true))
        });
        match sum {
            Some((sum, true)) => Some(sum),
            _ => self.ases.get(&isd_as).copied(),
        }
    }
}

/// Whether a value in g/GB is accepted.
pub(crate) fn is_amount(value: f64) -> bool {
    (0.0..=MAX_CARBON).contains(&value)
}

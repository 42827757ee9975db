//! Limits of links.

use hawser_limit::Direction;
use hawser_topology::format_rate;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, SchemaType, Type};

/// Lowest limit but 0: 8 kbit/s, as low as the kernel limits.
pub const MIN_LIMIT: u64 = 8_000;
/// Highest limit: 100 Gbit/s.
pub const MAX_LIMIT: u64 = 100_000_000_000;

/// Why a rate is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// It is out of bounds.
    #[error(
        "{0} bit/s is not a limit: give 0 (no traffic), or {MIN_LIMIT} (8 kbit/s) to {MAX_LIMIT} (100 Gbit/s)"
    )]
    OutOfBounds(u64),
    /// It is above the link's maximum.
    #[error("{} is above the maximum of {} for {direction}", format_rate(*wanted), format_rate(*maximum))]
    AboveMaximum {
        /// The direction.
        direction: Direction,
        /// The wanted limit in bit/s.
        wanted: u64,
        /// The maximum in bit/s.
        maximum: u64,
    },
}

/// Rates in both directions, in bit/s: 0 (no traffic), or [`MIN_LIMIT`] to [`MAX_LIMIT`]; `None` for
/// no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(
    description = "As the attachment point, or the first end, sees it: egress is to the user AS or to the \
        second end, ingress from it."
)]
pub struct Limits {
    /// To the user AS.
    #[serde(default)]
    #[schema(schema_with = rate_schema)]
    pub egress: Option<u64>,
    /// From the user AS.
    #[serde(default)]
    #[schema(schema_with = rate_schema)]
    pub ingress: Option<u64>,
}

impl Limits {
    /// The same in both directions.
    #[must_use]
    pub const fn both(rate: Option<u64>) -> Self {
        Self {
            egress: rate,
            ingress: rate,
        }
    }

    /// That of a direction.
    #[must_use]
    pub const fn of(self, direction: Direction) -> Option<u64> {
        match direction {
            Direction::Egress => self.egress,
            Direction::Ingress => self.ingress,
        }
    }

    /// With another one in a direction.
    #[must_use]
    pub const fn with(mut self, direction: Direction, rate: Option<u64>) -> Self {
        match direction {
            Direction::Egress => self.egress = rate,
            Direction::Ingress => self.ingress = rate,
        }
        self
    }

    /// The lower one in each direction, where `None` is the highest.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        let lower = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            egress: lower(self.egress, other.egress),
            ingress: lower(self.ingress, other.ingress),
        }
    }

    /// Checks that both are in bounds.
    ///
    /// # Errors
    /// [`LimitError::OutOfBounds`] of the first one that is not.
    pub fn check(self) -> Result<(), LimitError> {
        let wrong = |rate: &u64| *rate != 0 && !(MIN_LIMIT..=MAX_LIMIT).contains(rate);
        match [self.egress, self.ingress]
            .into_iter()
            .flatten()
            .find(wrong)
        {
            Some(rate) => Err(LimitError::OutOfBounds(rate)),
            None => Ok(()),
        }
    }

    /// Checks that both are in bounds, and none is above `maximum`. `None` is not: it stands for as
    /// much as the maximum allows.
    ///
    /// # Errors
    /// [`LimitError`] of the first one that is wrong.
    pub fn check_below(self, maximum: Self) -> Result<(), LimitError> {
        self.check()?;
        for direction in Direction::ALL {
            if let (Some(wanted), Some(maximum)) = (self.of(direction), maximum.of(direction))
                && wanted > maximum
            {
                return Err(LimitError::AboveMaximum {
                    direction,
                    wanted,
                    maximum,
                });
            }
        }
        Ok(())
    }
}

/// How a limit or maximum is described (OpenAPI).
#[must_use]
pub fn rate_schema() -> Schema {
    let integer = || ObjectBuilder::new().schema_type(Type::Integer);
    let rate = AnyOfBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .item(integer().enum_values(Some([0])))
        .item(integer().minimum(Some(MIN_LIMIT)).maximum(Some(MAX_LIMIT)))
        .description(Some(format!(
            "bit/s: 0 for no traffic, or {MIN_LIMIT} to {MAX_LIMIT}; null for none."
        )))
        .examples([2_000_000])
        .build();
    Schema::AnyOf(rate)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_have_bounds() {
        for right in [None, Some(0), Some(MIN_LIMIT), Some(MAX_LIMIT)] {
            assert_eq!(Limits::both(right).check(), Ok(()));
        }
        for wrong in [1, 7_999, MAX_LIMIT + 1, u64::MAX] {
            let error = LimitError::OutOfBounds(wrong);
            assert_eq!(
                Limits::default()
                    .with(Direction::Ingress, Some(wrong))
                    .check(),
                Err(error)
            );
        }
    }

    #[test]
    fn a_limit_above_the_maximum_is_named() {
        let maximum = Limits {
            egress: Some(1_000_000),
            ingress: None,
        };
        let error = Limits::both(Some(2_000_000))
            .check_below(maximum)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "2mbit is above the maximum of 1mbit for egress"
        );
        assert_eq!(Limits::both(None).check_below(maximum), Ok(()));
    }

    proptest! {
        #[test]
        fn what_is_in_force_is_never_above_the_maximum(
            limit: (Option<u64>, Option<u64>),
            maximum: (Option<u64>, Option<u64>),
        ) {
            let limit = Limits { egress: limit.0, ingress: limit.1 };
            let maximum = Limits { egress: maximum.0, ingress: maximum.1 };
            let in_force = limit.min(maximum);
            prop_assert!(in_force.min(maximum) == in_force && in_force.min(limit) == in_force);
            for direction in Direction::ALL {
                if let Some(maximum) = maximum.of(direction) {
                    prop_assert!(in_force.of(direction).is_some_and(|rate| rate <= maximum));
                }
            }
        }
    }
}

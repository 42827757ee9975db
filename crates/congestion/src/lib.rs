//! How fast a subflow may send: rate control of one path, without I/O and without a clock.

mod control;

pub use self::control::RateControl;

//! The rate, delay, jitter and loss of a link, as arguments.

use std::time::Duration;

use hawser_topology::{Shape, parse_duration, parse_loss};

use crate::cmd::quantity::{RateArg, rate_or_none};

#[derive(clap::Args)]
pub struct ShapeArgs {
    /// Limit of Ethernet frames, for example 10mbit; `none` for no limit
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    pub rate: Option<RateArg>,
    /// One-way delay, for example 20ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub delay: Option<Duration>,
    /// Largest difference of a packet's delay from that, for example 2ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub jitter: Option<Duration>,
    /// Share of packets lost, for example 0.1%
    #[arg(long, value_name = "PERCENT", value_parser = parse_loss)]
    pub loss: Option<f64>,
}

impl ShapeArgs {
    /// The shape of a new link.
    pub fn of_new(&self) -> Shape {
        let default = Shape::default();
        Shape {
            rate: self.rate.and_then(|rate| rate.0),
            delay: self.delay.unwrap_or(default.delay),
            jitter: self.jitter.unwrap_or(default.jitter),
            loss: self.loss.unwrap_or(default.loss),
            ..default
        }
    }
}

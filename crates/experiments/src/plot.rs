//! What figures are drawn with.

mod area;
#[cfg(test)]
pub(crate) mod check;
mod plane;

pub(crate) use self::area::{
    Area, CEILING, COLOURS, Drawn, GREY, HALF_BAR, PAPER, SHADE, SIGN, bar, dashed_sign, range,
    sign, svg, text,
};
pub(crate) use self::plane::{Plane, deviation};

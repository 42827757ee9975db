//! Objects of traffic control as netlink messages.

pub(crate) mod attribute;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod u32_filter;

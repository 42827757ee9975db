//! Who a request comes from.

mod caller;
mod sessions;

pub(crate) use self::caller::{Caller, Refusal, by_token, check_page, refuse};
pub(crate) use self::sessions::{COOKIE, LIFETIME, Sessions};

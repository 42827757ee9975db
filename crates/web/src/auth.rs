//! Who a request comes from.

mod caller;

pub(crate) use self::caller::{Caller, Refusal, SESSION_COOKIE, check_page};

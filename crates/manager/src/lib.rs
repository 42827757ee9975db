//! The path manager: which paths a transfer uses, told what happens and ordering what to do.
//!
//! No I/O, no clock, no async: every call is given the time.

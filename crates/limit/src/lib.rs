//! Link limits as kernel state, by netlink.

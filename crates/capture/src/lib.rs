//! Which packets of this host are captured: nftables, routes, control groups.

//! The BitTorrent engine.

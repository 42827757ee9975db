//! Keys of hosts: the own one, those that are allowed and known, and the short code in their place.

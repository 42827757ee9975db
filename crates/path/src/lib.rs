//! What a path is, how paths are compared and chosen, and why.

//! The control plane an AS offers its hosts: path segments and the daemon API.

//! The network that a command's arguments name.

use std::path::Path;

use hawser_topology::Network;

use crate::failure::Failure;

/// Reads a `.topo` file by its path, or a ready topology by its name.
///
/// # Errors
/// Wrong use, if there is neither; a failed job, if the file is invalid.
pub fn read(topology: &str) -> Result<Network, Failure> {
    match Network::ready(topology) {
        Some(network) => Ok(network),
        None if Path::new(topology).exists() => {
            Network::load(Path::new(topology)).map_err(Failure::job)
        }
        None => {
            let ready: Vec<_> = Network::ready_names().collect();
            Err(Failure::usage(format!(
                "{topology}: there is no such file, nor a ready topology of that name ({})",
                ready.join(", ")
            )))
        }
    }
}

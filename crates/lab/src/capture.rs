//! Capturing the packets on a link.

mod pcapng;
mod socket;

use std::io;

use hawser_topology::{End, IsdAsn};

pub use self::pcapng::{CaptureInterface, CaptureWriter, Frame, SNAP_LENGTH};
pub use self::socket::Capture;
use crate::Lab;
use crate::error::LabError;

impl Lab {
    /// Starts a capture at an interface. Moves the calling process into the namespace of the AS:
    /// the process must have one thread if the lab runs without root (user_namespaces(7)), and is
    /// ended with the lab.
    ///
    /// # Errors
    /// When there is no such interface, or the capture fails to start.
    pub fn capture(&self, isd_as: IsdAsn, id: u16) -> Result<Capture, LabError> {
        let state = self.dir.read_state()?;
        let network = self.dir.read_network()?;
        let Some((index, side)) = network.link_at(isd_as, id) else {
            return Err(crate::link::unknown(&network, isd_as, id));
        };
        let Some((known, side_of)) = state.link_at(isd_as, id) else {
            return Err(crate::link::unknown(&network, isd_as, id));
        };
        let device = &known.end(side_of).device;
        let link = &network.links[index];
        let name = |end: &End| format!("{}#{}", end.isd_as, end.id);
        let interface = CaptureInterface {
            device: device.clone(),
            near: name(link.end(side)),
            far: name(link.end(side.other())),
        };
        self.enter(isd_as)?;
        Capture::open(interface).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    ": it takes CAP_NET_RAW: run it as root, or in a lab of your own"
                }
                _ => "",
            };
            LabError::Failed(format!("cannot capture at {device}: {error}{hint}"))
        })
    }
}

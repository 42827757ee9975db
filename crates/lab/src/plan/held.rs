//! The devices to which a lab diverts plain IP, so that its emulator can hold it.

use super::layout::{EndPlan, Mac};

/// Lowest index of the devices that plain IP is diverted to, and of those where the emulator
/// receives it: above those of all interfaces.
const MIN_TO_INDEX: u32 = 100_000;
const MIN_AT_INDEX: u32 = 200_000;

/// The mark of packets that the emulator sends, which are not diverted again: HW in ASCII, as in the
/// handles of limits.
pub(crate) const MARK: u32 = 0x4857;

/// A pair of devices in the namespace of an AS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldPlan {
    /// The device that plain IP is diverted to, and the one at which it arrives.
    pub devices: [String; 2],
    pub indices: [u32; 2],
    /// Not those of the link's ends: the kernel must not take a packet in on its way to the emulator.
    pub macs: [Mac; 2],
}

/// The device of the link at interface `id`.
pub(crate) fn device(id: u16) -> String {
    format!("if{id}")
}

/// The device at which the emulator receives plain IP for the link at interface `id`.
pub(crate) fn held_device(id: u16) -> String {
    format!("held{id}")
}

impl EndPlan {
    /// The devices to which plain IP for this end of a link is diverted.
    pub fn held(&self) -> HeldPlan {
        let id = u32::from(self.id);
        let mac = |kind| {
            let mut mac = self.mac;
            mac[1] = kind;
            mac
        };
        HeldPlan {
            devices: [format!("hold{id}"), held_device(self.id)],
            indices: [MIN_TO_INDEX + id, MIN_AT_INDEX + id],
            macs: [mac(0x69), mac(0x6a)],
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_topology::Network;

    use super::*;
    use crate::plan::Plan;

    #[test]
    fn devices_have_names_and_addresses_of_their_own() {
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let (near, far) = (&plan.links[0].a, &plan.links[0].b);
        let held = near.held();
        assert_eq!(held.devices, ["hold1", "held1"]);
        assert_eq!(near.device, device(1));
        for mac in held.macs {
            assert!(mac != near.mac && mac != far.mac, "{mac:?}");
        }
    }
}

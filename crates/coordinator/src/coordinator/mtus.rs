//! What the machines of ASes find of what carries their links.

use std::collections::BTreeMap;

use hawser_topology::{IsdAsn, Underlay};

use super::Coordinator;
use crate::access::Actor;
use crate::change::ChangeKind;
use crate::configuration::network::largest;
use crate::error::ChangeError;
use crate::link::LinkEnd;
use crate::state::State;

/// Least MTU of a link: SCION's links take packets of that size.
const MIN_MTU: u16 = 1280;

/// Sets the MTUs of the ends that an AS has, by interface. Returns whether any is another.
fn set(state: &mut State, isd_as: IsdAsn, mtus: &BTreeMap<u16, u16>) -> bool {
    let mut has_changed = false;
    let mut set = |end: &mut LinkEnd| {
        let found = end.interface.and_then(|interface| mtus.get(&interface));
        let (Some(found), true) = (found, end.isd_as == isd_as) else {
            return;
        };
        let carrier = match end.ip {
            Some(ip) if ip.is_ipv6() => Underlay::Ipv6,
            _ => Underlay::Ipv4,
        };
        let mtu = Some((*found).max(MIN_MTU)).filter(|mtu| *mtu < largest(carrier));
        has_changed |= end.mtu != mtu;
        end.mtu = mtu;
    };
    state.ends_mut().for_each(&mut set);
    has_changed
}

impl Coordinator {
    /// The machine of an AS, which has shown its secret, has found how large SCION packets may be over what
    /// carries its links, by their interfaces. Links have the smaller MTU of both ends, and at most that of
    /// Ethernet. Interfaces that the AS does not have are left out, and links that are not named stay as they
    /// are. Nothing changes if all that is known already.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such AS, or the change cannot be stored.
    pub fn report_mtus(
        &self,
        isd_as: IsdAsn,
        mtus: &BTreeMap<u16, u16>,
    ) -> Result<(), ChangeError> {
        let unknown = || ChangeError::Unknown(format!("AS {isd_as}"));
        let state = self.state();
        state.host(isd_as).ok_or_else(unknown)?;
        if !set(&mut (*state).clone(), isd_as, mtus) {
            return Ok(());
        }
        self.change(&Actor::program(), |_, state, changes| {
            if set(state, isd_as, mtus) {
                changes.push(match state.attachment_points.contains_key(&isd_as) {
                    true => ChangeKind::AttachmentPointChanged { isd_as },
                    false => ChangeKind::UserAsChanged { isd_as },
                });
            }
            Ok(())
        })
    }
}

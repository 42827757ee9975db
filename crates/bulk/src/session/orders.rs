//! The path manager in a session of the side that dials: what it orders, and what it is informed of.

use hawser_endhost::Path;
use hawser_manager::{Action, Carried, Order, PathSet, SubflowId};

use super::Session;
use crate::data::{Command, SubflowKey};
use crate::error::TransferError;

impl Session {
    /// Informs the path manager of something about a subflow that it has ordered.
    pub(super) fn inform(
        &mut self,
        subflow: SubflowKey,
        inform: impl FnOnce(&mut PathSet<Path>, SubflowId),
    ) {
        let ordered = self.subflows.get(subflow).and_then(|one| one.ordered);
        if let (Some(paths), Some(id)) = (self.joining.paths(), ordered) {
            inform(paths, id);
        }
    }

    /// Does what the path manager orders.
    pub(super) fn follow_orders(&mut self) -> Result<(), TransferError> {
        let Some(dialer) = self.joining.dialer() else {
            return Ok(());
        };
        let carried = |id| {
            let one = self.subflows.ordered(id);
            let measured = one.map(|(_, one)| one.measured).unwrap_or_default();
            Carried {
                bytes: measured.delivered,
                usable: measured.usable,
            }
        };
        let orders = dialer.orders(carried, &self.events)?;
        orders.into_iter().for_each(|order| self.obey(order));
        Ok(())
    }

    /// Carries out an order about a subflow that is connected.
    fn obey(&mut self, order: Order) {
        let Some((key, _)) = self.subflows.ordered(order.subflow) else {
            return;
        };
        match order.action {
            // The dialer carries it out.
            Action::Dial => {}
            Action::Hold | Action::Resume => {
                let held = order.action == Action::Hold;
                self.data.give(Command::Hold(self.key, key, held));
            }
            Action::Close { drain } => {
                if let Some(one) = self.subflows.get_mut(key) {
                    one.ordered = None;
                }
                match drain {
                    true => self.drain(key),
                    false => self.remove(key),
                }
            }
        }
    }
}

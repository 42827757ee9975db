//! Passing on the info dictionary to peers that have a magnet link alone (BEP 9).

use std::sync::Arc;
use std::time::Instant;

use hawser_magnet::Serve;

use super::state::Swarm;
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::Message;

impl<T: Transport> Swarm<T> {
    /// Handles a request for a piece of the info dictionary.
    pub(super) fn on_metadata_request(&mut self, conn: ConnId, piece: u32, now: Instant) {
        let Some(known) = self.conns.open.get(&conn) else {
            return;
        };
        let Some(id) = known.theirs.metadata else {
            return;
        };
        let info = || Serve::new(Arc::clone(self.metainfo.info()), now);
        let serve = self.conns.metadata.entry(conn).or_insert_with(info);
        let payload = serve.answer(piece, now).encode().into();
        known.send([Message::Extended { id, payload }]);
    }
}

//! Files that change while they are served.

use std::sync::Arc;
use std::time::Duration;

use hawser_store::{News, Stamps, Watch};

use super::event::Event;
use super::state::Swarm;
use crate::close::CloseCode;
use crate::picker::ConnId;
use crate::progress::ChangedFile;
use crate::transport::Transport;
use crate::wire::Message;

/// Interval at which files that are not being read are checked.
const SCAN: Duration = Duration::from_secs(1);

/// The text of a close when pieces offered to the peer were withdrawn. BEP 3 has no message for
/// that: the peer must connect again to learn which pieces are offered.
pub(super) const WITHDRAWN: &str = "some pieces are not offered any more: connect again";

impl<T: Transport> Swarm<T> {
    /// Starts to watch the pieces that are offered; the files are in the states `stamps`.
    pub(super) fn watch_content(&mut self, stamps: Stamps) {
        let (files, metainfo) = (Arc::clone(&self.shared.files), Arc::clone(&self.metainfo));
        let offered = self.shared.offered();
        let content = Watch::new(files, metainfo, stamps, |piece| offered.has(piece));
        let content = Arc::clone(self.shared.content.get_or_init(|| Arc::new(content)));
        let events = self.net.events.clone();
        self.net.tasks.spawn(async move {
            loop {
                tokio::time::sleep(SCAN).await;
                let content = Arc::clone(&content);
                // Fails when the runtime shuts down.
                if tokio::task::spawn_blocking(move || content.scan())
                    .await
                    .is_err()
                    || events.send(Event::Scanned).await.is_err()
                {
                    return;
                }
            }
        });
    }

    /// Informs peers and the user of changes to the files.
    pub(super) fn follow_content(&mut self) {
        let Some(content) = self.shared.content.get() else {
            return;
        };
        // Before the news are taken: pieces that are final now are in these or earlier ones.
        let is_final = self.shared.is_final();
        if let Some(news) = content.take_news() {
            self.pass_on(news);
        }
        if self.announced_final != is_final {
            self.announced_final = is_final;
            for conn in self
                .conns
                .open
                .values()
                .filter(|conn| conn.serving.extended)
            {
                conn.send([self.introduction(conn.connection.peer())]);
            }
        }
    }

    /// Informs peers and the user of changes to the files.
    fn pass_on(&mut self, news: News) {
        let Some(content) = self.shared.content.get() else {
            return;
        };
        // A piece may be in both lists, also more than once: its present state counts.
        for piece in news.withdrawn.iter().chain(&news.restored) {
            self.shared.offer(*piece, content.is_offered(*piece));
        }
        let lacks = |id: &ConnId| {
            news.withdrawn
                .iter()
                .any(|p| !self.fetching.picker.has(*id, *p))
        };
        let misled: Vec<ConnId> = self.conns.open.keys().copied().filter(lacks).collect();
        for id in misled {
            self.drop_conn(id, CloseCode::Withdrawn, WITHDRAWN);
        }
        // A super-seeder reveals them later.
        let offered = self.shared.announced();
        for (id, conn) in self.conns.open.iter() {
            let restored = news.restored.iter().copied();
            let restored =
                restored.filter(|p| offered.has(*p) && !self.fetching.picker.has(*id, *p));
            conn.send(restored.map(Message::Have));
        }
        for changed in news.changed.into_iter().map(ChangedFile::from) {
            tracing::debug!(%changed, "a file under the seeder");
            let reported = &mut self.tally.changed;
            reported.retain(|before| before.path != changed.path);
            reported.push(changed);
        }
    }
}

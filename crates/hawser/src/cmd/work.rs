//! A progress bar for work on this machine, such as hashing.

use std::time::Instant;

use crate::format;
use crate::screen::Live;

/// Shows the progress, if there is a terminal.
#[derive(Debug)]
pub struct Work {
    name: &'static str,
    begun: Instant,
    live: Option<Live>,
}

impl Work {
    /// Work of that name, which begins now; its bar is removed when this is dropped.
    pub fn begin(name: &'static str) -> Self {
        Self {
            name,
            begun: Instant::now(),
            live: Live::start(),
        }
    }

    /// Shows that `done` of `total` bytes are done.
    pub fn show(&mut self, done: u64, total: u64) {
        let Self { name, begun, live } = self;
        let Some(live) = live else {
            return;
        };
        let seconds = begun.elapsed().as_secs_f64().max(1e-3);
        live.draw(|columns| {
            let each_second = format::bytes((done as f64 / seconds) as u64);
            let tail = format!("{}  {each_second}/s", format::share(done, total));
            vec![format::bar(name, done, total, &tail, columns)]
        });
    }
}

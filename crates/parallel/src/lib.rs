//! Work on many things at once, on threads that end with it.

use std::num::NonZero;
use std::thread;

/// Most threads.
const MAX_THREADS: usize = 16;
/// Fewest things for a thread of their own: fewer are done sooner than a thread is started.
const MIN_SHARE: usize = 4;

/// What `work` makes of each of `things`, in their order.
pub fn map<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = things.len().div_ceil(threads.min(MAX_THREADS));
    let work = &work;
    thread::scope(|scope| {
        let shares = things.chunks(share.max(MIN_SHARE));
        let started = shares.map(|share| scope.spawn(|| share.iter().map(work).collect()));
        // All are started before the first is waited for.
        let started: Vec<thread::ScopedJoinHandle<'_, Vec<R>>> = started.collect();
        let mut all = Vec::with_capacity(things.len());
        for thread in started {
            match thread.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_stays(things in prop::collection::vec(any::<u8>(), 0..100)) {
            let expected: Vec<u32> = things.iter().map(|&one| u32::from(one) + 1).collect();
            prop_assert_eq!(map(&things, |&one| u32::from(one) + 1), expected);
        }
    }
}

mod bottleneck;

use std::time::Duration;

use self::bottleneck::{Link, Sender, run, share};
use crate::{Algorithm, Announced};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_link_fills() {
    let link = Link {
        rate: 12.5e6,
        rtt: 25 * MS,
        queue: 50 * MS,
        loss: 0.0,
        change: None,
    };
    for algorithm in Algorithm::ALL {
        let mut senders = [Sender::new(algorithm, Announced::default(), 1)];
        run(link, &mut senders, Duration::from_secs(10), 1);
        let share = share(&senders[0], link.rate, 5.0, 10.0);
        assert!(share > 0.8, "{algorithm}: {share}");
    }
}

#[test]
fn after_idle_times_the_rate_is_still_known() {
    let link = Link {
        rate: 12.5e6,
        rtt: 25 * MS,
        queue: 50 * MS,
        loss: 0.0,
        change: None,
    };
    for algorithm in Algorithm::ALL {
        // Nothing to send half of the time.
        let active = (0..10).map(|at| at * 2000 * MS..(at * 2000 + 1000) * MS);
        let mut senders = [Sender::new(algorithm, Announced::default(), 1).active(active)];
        run(link, &mut senders, Duration::from_secs(20), 1);
        let share = share(&senders[0], link.rate, 8.0, 20.0);
        assert!(share > 0.3, "{algorithm}: {share}");
        assert!(share < 0.55, "{algorithm}: {share}");
    }
}

//! What was interrupted is completed by the next call.

use super::*;

#[test]
fn a_change_that_was_interrupted_anywhere_is_completed() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let before = printed();
        let small = links([
            (remote(THERE[0], None), both(1_000_000)),
            (remote(THERE[0], Some(50_000)), both(2_000_000)),
            (remote(THERE[1], Some(50_000)), both(3_000_000)),
        ]);
        let with_default = DeviceLimits {
            default: both(5_000_000),
            ..links([
                (remote(THERE[0], Some(50_001)), both(2_000_000)),
                (remote(THERE[1], None), both(3_000_000)),
            ])
        };
        let mut points = 0;
        for (from, to) in [
            (DeviceLimits::default(), small.clone()),
            (small.clone(), with_default.clone()),
            (with_default, DeviceLimits::default()),
            (many(700, 1_000_000), small.clone()),
            (small, many(700, 1_000_000)),
        ] {
            let (from, to) = (on("a", from), on("a", to));
            let count = {
                let mut limiter = Limiter::open().unwrap();
                limiter.apply(&from).unwrap().all().unwrap();
                limiter.apply_part(&to, usize::MAX)
            };
            // Every point of short changes, a few all over long ones.
            let step = if count < 100 { 1 } else { count / 8 };
            for point in (0..count).step_by(step) {
                Limiter::open()
                    .unwrap()
                    .apply(&from)
                    .unwrap()
                    .all()
                    .unwrap();
                Limiter::open().unwrap().apply_part(&to, point);
                let mut limiter = Limiter::open().unwrap();
                limiter.apply(&to).unwrap().all().unwrap();
                limiter.agrees("a");
                let again = Limiter::open().unwrap().apply(&to).unwrap().all().unwrap();
                assert_eq!(again, Summary::default(), "after {point} of {count}");
                points += 1;
            }
        }
        assert!(points > 100, "{points}");
        let nothing = on("a", DeviceLimits::default());
        Limiter::open()
            .unwrap()
            .apply(&nothing)
            .unwrap()
            .all()
            .unwrap();
        assert_eq!(printed(), before);
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn limits_in_part_are_told_when_they_are_read() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let wanted = on("a", links([(remote(THERE[0], None), both(1_000_000))]));
        let mut limiter = Limiter::open().unwrap();
        // The class is there, its queue and filters are not.
        let count = limiter.apply_part(&wanted, usize::MAX);
        limiter
            .apply(&on("a", DeviceLimits::default()))
            .unwrap()
            .all()
            .unwrap();
        let incomplete = (1..count).filter(|&point| {
            Limiter::open().unwrap().apply_part(&wanted, point);
            let error = Limiter::open().unwrap().read("a").err();
            let nothing = on("a", DeviceLimits::default());
            Limiter::open()
                .unwrap()
                .apply(&nothing)
                .unwrap()
                .all()
                .unwrap();
            error.is_some_and(|error| {
                error.to_string() == "the limits of a are set up only in part: apply them again"
            })
        });
        assert!(incomplete.count() > 3);
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn a_device_that_is_removed_meanwhile_is_named() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let mut limiter = Limiter::open().unwrap();
        limiter
            .apply(&on("a", many(3, 1_000_000)))
            .unwrap()
            .all()
            .unwrap();
        // The state is remembered, the device is gone.
        run("ip link del dev a");
        let error = limiter
            .apply(&on("a", many(4, 1_000_000)))
            .unwrap()
            .all()
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text == "the device a was removed while its limits were set"
                || text == "no device a in this network namespace",
            "{text}"
        );
        assert_eq!(limiter.remove_orphans().unwrap().all().unwrap(), 1);
        assert!(!run("ip link show").contains("hawser"));
    };
    pair.here.run(inside).unwrap();
}

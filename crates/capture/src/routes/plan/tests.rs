//! Plans, applied to a model of the kernel's routes and rules.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::super::Device;
use super::*;

const TABLE: u32 = 4857;

/// What the kernel does with a change.
fn apply(state: &mut TableState, change: &Change) {
    let at = |state: &TableState, route: &Route| {
        let mut routes = state.routes.iter().cloned();
        routes.find(|other| other.destination == route.destination && other.table == route.table)
    };
    match change {
        Change::AddRoute(route) => {
            assert_eq!(at(state, route), None, "exists");
            state.routes.insert(route.clone());
        }
        Change::ReplaceRoute(route) => {
            let old = at(state, route).expect("nothing to replace");
            assert_eq!(old.protocol, PROTOCOL, "replaces a foreign route");
            state.routes.remove(&old);
            state.routes.insert(route.clone());
        }
        Change::RemoveRoute(route) => assert!(state.routes.remove(route), "no such route"),
        Change::AddRule(rule) => assert!(state.rules.insert(rule.clone()), "exists"),
        Change::RemoveRule(rule) => {
            let matches = |other: &&Rule| {
                let key = |rule: &Rule| {
                    let action = std::mem::discriminant(&rule.action);
                    (action, rule.priority, rule.table, rule.protocol)
                };
                key(other) == key(rule)
                    && (rule.ip_protocol.is_none() || rule.ip_protocol == other.ip_protocol)
                    && (rule.incoming.is_none() || rule.incoming == other.incoming)
                    && same_family(&other.destination, &rule.destination)
                    && (rule.destination.prefix_len() == 0 || rule.destination == other.destination)
                    && (rule.mark.is_none() || rule.mark == other.mark)
            };
            // The kernel's order among rules of one priority is that of their creation, which may be
            // any: the last one is the one with most conditions.
            let found = state
                .rules
                .iter()
                .rfind(matches)
                .expect("no such rule")
                .clone();
            state.rules.remove(&found);
        }
    }
}

fn prefix() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (0..4_u32, 14..=17_u8).prop_map(|(n, length)| {
            let net = Ipv4Net::new_assert((0x0a00_0000 + (n << 15)).into(), length);
            IpNet::V4(net).trunc()
        }),
        (0..3_u128, 30..=32_u8).prop_map(|(n, length)| {
            let net = Ipv6Net::new_assert(((0xfd01 << 112) + (n << 96)).into(), length);
            IpNet::V6(net).trunc()
        }),
    ]
}

fn routes() -> impl Strategy<Value = Routes> {
    let device = (
        prop::collection::vec(prefix(), 0..5),
        2..4_u32,
        prop::option::of(Just(Ipv4Addr::LOCALHOST)),
        prop::option::of(Just(1300)),
        any::<(bool, bool)>(),
    );
    let device = device.prop_map(|(prefixes, index, source, mtu, exempt)| {
        let mut device = Device::new(index, prefixes);
        (device.source, device.mtu) = (source, mtu);
        (device.without_tcp, device.own_only) = exempt;
        Target::Device(device)
    });
    let target = prop_oneof![4 => device, 1 => Just(Target::Listener)];
    (1..3_u32, 1..3_u32, target)
        .prop_map(|(priority, mark, target)| Routes::new(TABLE, priority, mark, target))
}

/// Anything that may be in the kernel: ours, foreign, and in other tables.
fn found() -> impl Strategy<Value = TableState> {
    let protocol = prop_oneof![Just(PROTOCOL), Just(4)];
    let table = prop_oneof![Just(TABLE), Just(254)];
    let route = (prefix(), protocol.clone(), table.clone(), 2..4_u32).prop_map(
        |(destination, protocol, table, device)| Route {
            table,
            protocol,
            ..Route::new(destination, device)
        },
    );
    let everything = [Ipv4Net::default().into(), Ipv6Net::default().into()];
    let destination = prop_oneof![prefix(), prop::sample::select(everything.to_vec())];
    let mark = prop::option::of(1..3_u32);
    let ip_protocol = prop::option::of(Just(6_u8));
    let action = prop_oneof![
        4 => Just(RuleAction::Lookup),
        1 => (3..6_u32).prop_map(RuleAction::Goto),
        1 => Just(RuleAction::Nop)
    ];
    let incoming = prop::option::of(Just("lo".to_owned()));
    let conditions = (destination, ip_protocol, incoming, mark, any::<bool>());
    let rule = (action, protocol, table, 1..3_u32, conditions);
    let rule = rule.prop_map(|(action, protocol, table, priority, conditions)| {
        let (destination, ip_protocol, incoming, mark, inverted) = conditions;
        Rule {
            action,
            destination,
            priority,
            table,
            protocol,
            ip_protocol,
            incoming,
            mark,
            inverted,
        }
    });
    let routes = prop::collection::vec(route, 0..8);
    let rules = prop::collection::btree_set(rule, 0..8);
    (routes, rules).prop_map(|(all, rules)| {
        // One route to each destination in a table.
        let mut routes: Vec<Route> = Vec::new();
        for route in all {
            let key = |route: &Route| (route.destination, route.table);
            if routes.iter().all(|other| key(other) != key(&route)) {
                routes.push(route);
            }
        }
        TableState {
            routes: routes.into_iter().collect(),
            rules,
        }
    })
}

/// The routes and rules that are not ours.
fn foreign(state: &TableState) -> TableState {
    let ours = |table: u32, protocol: u8| table == TABLE && protocol == PROTOCOL;
    let mut rest = state.clone();
    rest.routes.retain(|one| !ours(one.table, one.protocol));
    rest.rules.retain(|one| !ours(one.table, one.protocol));
    rest
}

proptest! {
    #[test]
    fn plans_lead_from_anything_to_what_is_wanted(
        routes in routes(),
        found in found(),
    ) {
        let wanted = TableState::wanted(&routes).unwrap();
        let changes = match plan(TABLE, &wanted, &found) {
            Ok(changes) => changes,
            Err(RoutesError::Foreign { destination, table }) => {
                let foreign = foreign(&found);
                let mut in_way = foreign.routes.iter().filter(|route| route.table == table);
                prop_assert!(in_way.any(|route| route.destination == destination));
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let mut state = found.clone();
        for change in &changes {
            apply(&mut state, change);
            // A rule leads to routes.
            let complete = wanted.routes.is_subset(&state.routes);
            prop_assert!(complete || !matches!(change, Change::AddRule(_)));
        }
        let mut expected = foreign(&found);
        expected.routes.extend(wanted.routes.iter().cloned());
        expected.rules.extend(wanted.rules.iter().cloned());
        prop_assert_eq!(&state, &expected);
        prop_assert_eq!(plan(TABLE, &wanted, &state).unwrap(), []);

        // Reset leaves exactly what is foreign.
        for change in plan(TABLE, &TableState::default(), &state).unwrap() {
            apply(&mut state, &change);
        }
        prop_assert_eq!(state, foreign(&found));
    }
}

#[test]
fn one_rule_for_each_family_with_routes() {
    let device = |all: &[&str]| {
        let prefixes = all.iter().map(|one| one.parse::<IpNet>().unwrap());
        Routes::new(TABLE, 9, 7, Target::Device(Device::new(2, prefixes)))
    };
    let count = |routes: &Routes| {
        let state = TableState::wanted(routes).unwrap();
        (state.routes.len(), state.rules.len())
    };
    assert_eq!(count(&device(&[])), (0, 0));
    assert_eq!(count(&device(&["10.1.2.3/16", "10.1.0.0/16"])), (1, 1));
    assert_eq!(count(&device(&["10.1.0.0/16", "fd01::/16"])), (2, 2));
    assert_eq!(count(&Routes::new(TABLE, 9, 7, Target::Listener)), (2, 2));
}

#[test]
fn the_systems_tables_are_refused() {
    let error = |table, priority, mark| {
        let routes = Routes::new(table, priority, mark, Target::Listener);
        TableState::wanted(&routes).unwrap_err().to_string()
    };
    for (table, priority) in [(0, 9), (253, 9), (254, 9), (255, 9), (100, 0)] {
        let expected = format!(
            "cannot use the routing table {table} with a rule of priority {priority}: choose a \
             table other than 0 and 253 to 255, and a priority from 1"
        );
        assert_eq!(error(table, priority, 7), expected);
    }
    let expected = "the mark 0 cannot distinguish packets: choose another";
    assert_eq!(error(100, 9, 0), expected);
}

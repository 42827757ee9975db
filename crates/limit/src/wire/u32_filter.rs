//! The attributes of the `u32` classifier and of the action `mirred` (`linux/pkt_cls.h`,
//! `linux/tc_act/tc_mirred.h`).

use super::attribute::{Writer, find, read, text, word};
use crate::state::{Key, ROOT, Spot, Then};

const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_HASH: u16 = 2;
const TCA_U32_LINK: u16 = 3;
const TCA_U32_DIVISOR: u16 = 4;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;

const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
const MIRRED: &str = "mirred";
/// `TC_ACT_STOLEN`: the packet has left this way.
const STOLEN: u32 = 4;
/// `TCA_EGRESS_REDIR`.
const REDIRECT: u32 = 1;
/// The number of the action that redirects to an IFB is this plus the IFB's own. With a number the kernel
/// makes one action for all filters, and removes it with the last of them; an action for each would be
/// an eighth of the time to set thousands of limits. Numbers that the kernel chooses begin at 1.
const FIRST_ACTION: u32 = 0x4857_0000;

/// `TC_U32_TERMINAL`: the search ends here.
const TERMINAL: u8 = 1;
/// Length of `struct tc_u32_sel`, and of each `struct tc_u32_key` after it.
const SEL: usize = 16;
const KEY: usize = 16;
/// Buckets of a table.
const DIVISOR: u32 = 256;
/// From this number on tables are those with which preferences begin.
const FIRST_ROOT_TABLE: u32 = 0x800;

/// The place of a table or filter: 12 bits of table, 8 of bucket, 12 of the number in the bucket.
pub(crate) fn handle(table: u32, bucket: u8, number: u16) -> u32 {
    (table << 20) | (u32::from(bucket) << 12) | u32::from(number & 0xfff)
}

/// Table, bucket and number of a handle.
pub(crate) fn parts(handle: u32) -> (u32, u8, u16) {
    (handle >> 20, (handle >> 12) as u8, (handle & 0xfff) as u16)
}

pub(crate) fn is_root_table(table: u32) -> bool {
    table >= FIRST_ROOT_TABLE
}

pub(crate) fn write_table(to: &mut Writer) {
    to.word(TCA_U32_DIVISOR, DIVISOR);
}

/// Writes a filter; `index` is the kernel's number of the IFB to which it redirects.
pub(crate) fn write_node(to: &mut Writer, spot: Spot, keys: &[Key], then: Then, index: u32) {
    let (mut flags, mut at, mut mask) = (TERMINAL, 0, 0);
    if spot.table != crate::state::ROOT_TABLE {
        let place = handle(u32::from(spot.table), spot.bucket, 0);
        to.word(TCA_U32_HASH, place);
    }
    match then {
        Then::Class(minor) => to.word(TCA_U32_CLASSID, class(minor)),
        Then::Redirect(_) => {
            // Class 0 is none: what comes back from the IFB is sent at once.
            to.word(TCA_U32_CLASSID, class(0));
            to.nested(TCA_U32_ACT, |actions| {
                actions.nested(1, |action| {
                    action.text(TCA_ACT_KIND, MIRRED);
                    action.nested(TCA_ACT_OPTIONS, |options| {
                        // struct tc_mirred
                        let action = FIRST_ACTION.wrapping_add(index);
                        let words = [action, 0, STOLEN, 0, 0, REDIRECT, index];
                        options.words(TCA_MIRRED_PARMS, &words);
                    });
                });
            });
        }
        Then::Table {
            table,
            mask: bits,
            at: offset,
        } => {
            to.word(TCA_U32_LINK, handle(u32::from(table), 0, 0));
            (flags, at, mask) = (0, offset as i16, bits);
        }
        Then::Other => {}
    }
    let mut sel = Vec::with_capacity(SEL + KEY * keys.len());
    sel.extend([flags, 0, keys.len() as u8, 0]);
    sel.extend([0; 6]);
    sel.extend(at.to_ne_bytes());
    sel.extend(mask.to_be_bytes());
    for key in keys {
        sel.extend(key.mask.to_be_bytes());
        sel.extend(key.value.to_be_bytes());
        sel.extend(key.at.to_ne_bytes());
        sel.extend([0; 4]);
    }
    to.bytes(TCA_U32_SEL, &sel);
}

/// The identifier of a class of hawser's HTB.
pub(crate) fn class(minor: u16) -> u32 {
    (u32::from(ROOT) << 16) | u32::from(minor)
}

/// What the kernel says of a filter or table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Table,
    /// The keys; and where it leads, with the kernel's number of the device if that is a redirection.
    Node(Vec<Key>, FoundThen),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundThen {
    Then(Then),
    RedirectTo(u32),
}

/// Reads the options of a filter; `None` if their format is not the documented one.
pub(crate) fn read_node(options: &[u8]) -> Option<Found> {
    if find(options, TCA_U32_DIVISOR).is_some() {
        return Some(Found::Table);
    }
    let sel = find(options, TCA_U32_SEL)?;
    let count = usize::from(*sel.get(2)?);
    let keys = sel.get(SEL..SEL + KEY * count)?.chunks_exact(KEY);
    let big = |bytes: &[u8], at: usize| word(bytes, at).map(u32::from_be);
    // A key that is relative to something else than the IP header is not one of hawser's.
    let is_plain = |key: &[u8]| word(key, 12) == Some(0);
    let mut plain = true;
    let mut all = Vec::with_capacity(count);
    for key in keys {
        plain &= is_plain(key);
        all.push(Key {
            mask: big(key, 0)?,
            value: big(key, 4)?,
            at: word(key, 8)? as i32,
        });
    }
    let number = |kind| find(options, kind).and_then(|value| word(value, 0));
    let redirected = find(options, TCA_U32_ACT).map(redirection);
    let then = match (number(TCA_U32_LINK), redirected, number(TCA_U32_CLASSID)) {
        _ if !plain => FoundThen::Then(Then::Other),
        (Some(table), None, _) if parts(table).0 < FIRST_ROOT_TABLE => {
            let at = i16::from_ne_bytes(sel.get(10..12)?.try_into().ok()?);
            FoundThen::Then(Then::Table {
                table: parts(table).0 as u16,
                mask: big(sel, 12)?,
                at: i32::from(at),
            })
        }
        (None, Some(Some(index)), _) => FoundThen::RedirectTo(index),
        (None, None, Some(class)) if class >> 16 == u32::from(ROOT) => {
            FoundThen::Then(Then::Class(class as u16))
        }
        _ => FoundThen::Then(Then::Other),
    };
    Some(Found::Node(all, then))
}

/// The kernel's number of the device to which the only action redirects.
fn redirection(actions: &[u8]) -> Option<u32> {
    let mut all = read(actions);
    let (_, action) = all.next()?;
    if all.next().is_some() || text(find(action, TCA_ACT_KIND)?)? != MIRRED {
        return None;
    }
    let parms = find(find(action, TCA_ACT_OPTIONS)?, TCA_MIRRED_PARMS)?;
    let word = |i: usize| word(parms, 4 * i);
    (word(2)? == STOLEN && word(5)? == REDIRECT).then_some(word(6)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_then() -> impl Strategy<Value = Then> {
        prop_oneof![
            (1..0x800_u16, any::<u32>(), any::<i16>()).prop_map(|(table, mask, at)| Then::Table {
                table,
                mask,
                at: at.into()
            }),
            any::<u16>().prop_map(Then::Class),
            any::<u8>().prop_map(Then::Redirect),
        ]
    }

    proptest! {
        #[test]
        fn written_filters_are_read_unchanged(
            keys in prop::collection::vec((any::<u32>(), any::<u32>(), any::<i32>()), 0..8),
            then in any_then(),
            table in 0..0x800_u16,
            bucket: u8,
            index: u32,
        ) {
            let keys: Vec<Key> =
                keys.into_iter().map(|(mask, value, at)| Key { mask, value, at }).collect();
            let mut writer = Writer::default();
            let spot = Spot { preference: 1, table, bucket };
            write_node(&mut writer, spot, &keys, then, index);
            let expected = match then {
                Then::Redirect(_) => FoundThen::RedirectTo(index),
                then => FoundThen::Then(then),
            };
            let bytes = writer.into_bytes();
            prop_assert_eq!(read_node(&bytes), Some(Found::Node(keys, expected)));
        }

        #[test]
        fn handles_are_taken_apart(table in 0..0x1000_u32, bucket: u8, number in 0..0x1000_u16) {
            prop_assert_eq!(parts(handle(table, bucket, number)), (table, bucket, number));
        }

        #[test]
        fn reading_any_bytes_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let _ = read_node(&bytes);
            let mut writer = Writer::default();
            let spot = Spot { preference: 1, table: 1, bucket: 1 };
            let key = Key { mask: 1, value: 1, at: 0 };
            write_node(&mut writer, spot, &[key; 3], Then::Redirect(1), 7);
            let mut whole = writer.into_bytes();
            whole.truncate(cut.index(whole.len()));
            whole.extend(bytes);
            let _ = read_node(&whole);
        }
    }
}

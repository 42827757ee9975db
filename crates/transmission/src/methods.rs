//! The methods.

mod call;
mod get;
mod session;
mod torrent;

use crate::client::Action;
use crate::error::CallError;
use crate::json::Object;

pub(crate) use self::call::Call;

/// Whether a method changes something. A notification of one that does not is not run.
pub(crate) fn has_effect(method: &str) -> bool {
    !matches!(
        method,
        "free_space" | "group_get" | "port_test" | "session_get" | "session_stats" | "torrent_get"
    )
}

/// Runs the method of this name in snake_case and writes its result. What is written before an
/// error is not to be used.
pub(crate) fn run(
    method: &str,
    call: &mut Call<'_>,
    result: &mut Object<'_>,
) -> Result<(), CallError> {
    match method {
        "blocklist_update" => Err(CallError::Unsupported("block lists are")),
        "free_space" => session::free_space(call, result),
        "group_get" => session::group_get(call, result),
        "group_set" => session::group_set(call),
        "port_test" => session::port_test(call, result),
        "queue_move_bottom" => call.act(Action::QueueBottom),
        "queue_move_down" => call.act(Action::QueueDown),
        "queue_move_top" => call.act(Action::QueueTop),
        "queue_move_up" => call.act(Action::QueueUp),
        "session_close" => call.client.close(),
        "session_get" => session::get(call, result),
        "session_set" => session::set(call),
        "session_stats" => session::stats(call, result),
        "torrent_add" => torrent::add(call, result),
        "torrent_get" => get::get(call, result),
        "torrent_reannounce" => call.act(Action::Reannounce),
        "torrent_remove" => torrent::remove(call),
        "torrent_rename_path" => torrent::rename(call, result),
        "torrent_set" => torrent::set(call),
        "torrent_set_location" => torrent::relocate(call),
        "torrent_start" => call.act(Action::Start),
        "torrent_start_now" => call.act(Action::StartNow),
        "torrent_stop" => call.act(Action::Stop),
        "torrent_verify" => call.act(Action::Verify),
        _ => Err(CallError::UnknownMethod),
    }
}

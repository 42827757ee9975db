# Seeds or downloads one torrent: python3 -c ... seed|get TORRENT FOLDER OWN_PORT [SEEDER_PORT...]
import os
import sys

import libtorrent as lt

action, torrent, folder, own, *seeders = sys.argv[1:]
seeds = action == "seed"
interface = "127.0.0.1:" + own
settings = lt.high_performance_seed()
settings.update({
    # A seeder listens once it has checked its files: a connection before that would fail, and be
    # tried again a minute later.
    "listen_interfaces": "" if seeds else interface,
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_incoming_utp": False,
    "enable_outgoing_utp": False,
    # Seeders have one address.
    "allow_multiple_connections_per_ip": True,
    # No encryption.
    "in_enc_policy": 2,
    "out_enc_policy": 2,
    "alert_mask": lt.alert.category_t.status_notification
    | lt.alert.category_t.storage_notification
    | lt.alert.category_t.error_notification,
})
session = lt.session(settings)
parameters = lt.add_torrent_params()
parameters.ti = lt.torrent_info(torrent)
parameters.save_path = folder
# Started at once, not at the next turn of a queue.
parameters.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
handle = session.add_torrent(parameters)
while True:
    session.wait_for_alert(1000)
    for alert in session.pop_alerts():
        if isinstance(alert, lt.torrent_checked_alert):
            if seeds:
                session.apply_settings({"listen_interfaces": interface})
            else:
                for seeder in seeders:
                    handle.connect_peer(("127.0.0.1", int(seeder)))
        if isinstance(alert, lt.torrent_error_alert):
            sys.exit(str(alert))
        if isinstance(alert, lt.torrent_finished_alert) and not seeds:
            # The last pieces may not be written yet.
            handle.flush_cache()
        if isinstance(alert, lt.cache_flushed_alert) and not seeds:
            # Without waiting until the session has ended.
            os._exit(0)

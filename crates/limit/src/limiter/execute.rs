//! Changes sent to the kernel.

use std::io;
use std::time::{Duration, Instant};

use hawser_kernel::netlink::NetlinkError;

use super::{Known, Limiter};
use crate::change::Change;
use crate::error::{LimitError, reading};
use crate::text::Names;
use crate::wire::encode::{ifb_name, request};

/// Longest wait for the kernel to release a table, and the time between two attempts.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

impl Limiter {
    /// Makes changes on a device, in order.
    pub(super) fn execute(
        &mut self,
        device: &str,
        changes: &[Change],
        known: &mut Known,
    ) -> Result<(), LimitError> {
        // Tables that are released one by one, and IFBs, whose numbers the kernel chooses, need a look
        // at each answer.
        let alone = |change: &Change| match change {
            Change::AddIfb(_) | Change::DelTable { .. } => true,
            Change::DelPreference { .. } => {
                let is_table = |other: &Change| matches!(other, Change::DelTable { .. });
                changes.iter().any(is_table)
            }
            _ => false,
        };
        let mut rest = changes;
        while let Some(first) = rest.first() {
            let count = match alone(first) {
                true => 1,
                false => rest.iter().take_while(|change| !alone(change)).count(),
            };
            let (batch, later) = rest.split_at(count);
            rest = later;
            self.send(device, batch, known, alone(first))?;
            if let Change::AddIfb(ifb) = first {
                let name = ifb_name(known.indices.device, *ifb);
                let found = self.netlink.interface(&name);
                let found = found.map_err(|error| reading(&name, error))?;
                let found = found.ok_or(LimitError::NoDevice(name))?;
                known.indices.ifbs.insert(*ifb, found.index);
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        device: &str,
        batch: &[Change],
        known: &Known,
        alone: bool,
    ) -> Result<(), LimitError> {
        let request = |change| request(change, device, &known.indices, &known.state);
        let requests: Vec<_> = batch.iter().map(request).collect();
        let start = Instant::now();
        loop {
            let Err((at, error)) = self.netlink.raw_batch(&requests) else {
                return Ok(());
            };
            let may_be_gone = alone && !matches!(batch.first(), Some(Change::AddIfb(_)));
            match error.refusal() {
                // With its last filter the kernel may have removed the preference, and all tables.
                Some(libc::ENOENT | libc::EINVAL) if may_be_gone => return Ok(()),
                Some(libc::EBUSY) if may_be_gone && start.elapsed() < RELEASE_TIMEOUT => {
                    std::thread::sleep(RETRY_INTERVAL);
                }
                _ => {
                    let names = Names {
                        device,
                        index: known.indices.device,
                    };
                    return Err(failed(device, batch.get(at), &names, error));
                }
            }
        }
    }
}

/// The error of a change that the kernel refused.
fn failed(
    device: &str,
    change: Option<&Change>,
    names: &Names<'_>,
    error: NetlinkError,
) -> LimitError {
    let source = match error {
        NetlinkError::Refused(source) => source,
        other => return reading(device, other),
    };
    let unsupported = |what, module| LimitError::Unsupported { what, module };
    match (source.raw_os_error(), change) {
        (_, _) if source.kind() == io::ErrorKind::PermissionDenied => {
            LimitError::Denied(device.to_owned())
        }
        (Some(libc::ENODEV | libc::ENXIO), _) => LimitError::Vanished(device.to_owned()),
        (Some(libc::EOPNOTSUPP), Some(Change::AddIfb(_))) => unsupported("IFB devices", "ifb"),
        (Some(libc::ENOENT), Some(Change::AddRoot(_))) => unsupported("HTB", "sch_htb"),
        (Some(libc::ENOENT), Some(Change::AddIngress)) => {
            unsupported("ingress queueing discipline", "sch_ingress")
        }
        (Some(libc::ENOENT), Some(Change::AddTable { .. })) => {
            unsupported("u32 classifier", "cls_u32")
        }
        (_, change) => LimitError::Refused {
            change: change.map_or_else(|| device.to_owned(), |change| names.command(change)),
            source,
        },
    }
}

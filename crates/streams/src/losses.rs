//! How many packets of a path are lost.

/// How many packets of a path are lost.
#[derive(Debug, Default)]
pub struct Losses {
    /// Packets sent and lost, as of the last measurement.
    sent: u64,
    lost: u64,
    /// Of a thousand.
    smoothed: u16,
}

impl Losses {
    /// Packets that make a measurement.
    const PACKETS: u64 = 50;

    /// Packets of a thousand that were lost of late, where so many were sent and lost in all.
    pub fn update(&mut self, sent: u64, lost: u64) -> u16 {
        let packets = sent.saturating_sub(self.sent);
        if packets >= Self::PACKETS {
            let part = lost.saturating_sub(self.lost) * 1000 / packets;
            let part = part.min(1000) as u16;
            self.smoothed = (self.smoothed + part) / 2;
            (self.sent, self.lost) = (sent, lost);
        }
        self.smoothed
    }
}

//! Makes the rate control for a subflow.

use std::time::Instant;

use super::algorithm::Algorithm;
use super::allegro::Allegro;
use super::announced::Announced;
use super::choice::Congestion;
use super::control::RateControl;
use super::pcc::Pcc;
use super::vivace::Vivace;
use super::window::WindowControl;

impl Algorithm {
    /// Starts controlling a subflow whose full packets have `packet` bytes, over a path that
    /// announces `announced`. `seed` determines all random choices.
    pub fn start(
        self,
        now: Instant,
        packet: u64,
        announced: Announced,
        seed: u64,
    ) -> Box<dyn RateControl> {
        let random = fastrand::Rng::with_seed(seed);
        let window = |setting| {
            let mtu = u16::try_from(packet).unwrap_or(u16::MAX);
            Box::new(WindowControl::new(now, mtu, announced, setting, seed))
        };
        match self {
            Self::Auto | Self::Bbr => window(Congestion::Bbr),
            Self::Cubic => window(Congestion::Cubic),
            Self::AllegroPublished => {
                let allegro = Allegro::published(packet, announced, random);
                Box::new(Pcc::new(packet, announced, allegro))
            }
            Self::AllegroHercules => {
                let allegro = Allegro::hercules(packet, announced, random);
                Box::new(Pcc::new(packet, announced, allegro))
            }
            Self::Vivace => {
                let vivace = Vivace::new(packet, announced, random);
                Box::new(Pcc::new(packet, announced, vivace))
            }
        }
    }
}

//! What this machine runs on.

use std::fs;
use std::path::Path;

/// Where the kernel lists power supplies (ABI/testing/sysfs-class-power).
const SUPPLIES: &str = "/sys/class/power_supply";

/// Whether a battery of this machine, not one of a device at it, is being discharged. A machine that names no
/// battery, as most servers and virtual ones, does not run on one.
pub fn is_on_battery() -> bool {
    is_discharging(Path::new(SUPPLIES))
}

fn is_discharging(supplies: &Path) -> bool {
    let Ok(all) = fs::read_dir(supplies) else {
        return false;
    };
    all.flatten().any(|supply| {
        let says = |file: &str, value: &str| {
            // What the kernel does not know of a supply has no file.
            let text = fs::read_to_string(supply.path().join(file));
            text.is_ok_and(|text| text.trim() == value)
        };
        says("type", "Battery") && says("status", "Discharging") && !says("scope", "Device")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supplies(all: &[&[(&str, &str)]]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        for (number, files) in all.iter().enumerate() {
            let supply = folder.path().join(number.to_string());
            fs::create_dir(&supply).unwrap();
            for (file, text) in *files {
                fs::write(supply.join(file), format!("{text}\n")).unwrap();
            }
        }
        is_discharging(folder.path())
    }

    #[test]
    fn only_an_own_battery_that_is_discharged_counts() {
        let mains = [("type", "Mains"), ("online", "1")];
        let battery = [("type", "Battery"), ("status", "Discharging")];
        let charging = [("type", "Battery"), ("status", "Charging")];
        let mouse = [
            ("type", "Battery"),
            ("status", "Discharging"),
            ("scope", "Device"),
        ];
        assert!(!supplies(&[]));
        assert!(!supplies(&[&mains, &charging, &mouse]));
        assert!(supplies(&[&mains, &battery]));
        assert!(!is_discharging(Path::new("/no such folder")));
    }
}

// Rates, sizes and times as text.

const UNITS = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];

// The unit in which a rate is a handy number.
export function unitOf(rate) {
  return UNITS.find(([size]) => rate >= size) ?? UNITS[2];
}

function digits(number, most) {
  return Number(number.toPrecision(most)).toLocaleString("en", { maximumFractionDigits: 6, useGrouping: false });
}

// A rate that is measured: three digits.
export function rate(bits) {
  if (bits < 0.5) return "0";
  const [size, unit] = unitOf(bits);
  return `${digits(bits / size, 3)} ${unit}`;
}

// A rate that was set: as it was set.
export function exactRate(bits) {
  if (bits === 0) return "no traffic";
  const [size, unit] = unitOf(bits);
  return `${digits(bits / size, 12)} ${unit}`;
}

export function limitText(bits) {
  return bits === null ? "no limit" : exactRate(bits);
}

export function bytes(count) {
  const [size, unit] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([s]) => count >= s) ?? [1, "B"];
  return `${digits(count / size, 3)} ${unit}`;
}

export function count(number) {
  return number.toLocaleString("en");
}

export function time(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function dateTime(ms) {
  const day = new Date(ms).toLocaleDateString("en-CA");
  const today = new Date().toLocaleDateString("en-CA");
  return day === today ? `today ${time(ms)}` : `${day} ${time(ms)}`;
}

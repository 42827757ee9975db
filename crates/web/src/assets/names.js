// Names of ASes and directions, and what is in force on a link.

export const MIN_LIMIT = 8000;
export const MAX_LIMIT = 100e9;

// What is in force: the lower one of limit and maximum.
export function wanted(link, direction) {
  const [limit, maximum] = [link.limit[direction], link.maximum[direction]];
  return limit === null ? maximum : maximum === null ? limit : Math.min(limit, maximum);
}

// An AS by its label, or its number.
export function asName(end) {
  return end.label || end.isd_as;
}

// Its number, where it has one: the only attachment point of a machine may have none.
export function asNumber(end) {
  return end.isd_as === "0-0" ? "" : end.isd_as;
}

export const DIRECTIONS = ["egress", "ingress"];

export function directionName(direction) {
  return direction === "egress" ? "To the user AS" : "From the user AS";
}

// The same within a sentence.
export function directionPhrase(direction) {
  return direction === "egress" ? "to the user AS" : "from the user AS";
}

// A time of a link in microseconds; none is the usual one of queues.
export function timeText(us) {
  if (us === null) return "the usual one";
  return us < 1000 ? `${us} µs` : `${us / 1000} ms`;
}

// A fraction of packets.
export function lossText(loss) {
  return `${Number((loss * 100).toPrecision(6))} %`;
}

// Delay, jitter, loss and queue of a link, those that it has.
export function propertiesText(link) {
  return [
    link.delay_us ? `delay ${timeText(link.delay_us)}` : "",
    link.jitter_us ? `jitter ${timeText(link.jitter_us)}` : "",
    link.loss ? `loss ${lossText(link.loss)}` : "",
    link.queue_us === null ? "" : `queue ${timeText(link.queue_us)}`,
  ].filter(Boolean).join(", ");
}

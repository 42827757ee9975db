// The same request for each of several torrents.

// Requests that are under way at once: a browser has few connections to one server.
const AT_ONCE = 4;

// Why it failed, and for how many of them it did; empty if it did for none.
export async function each(hashes, ask) {
  const failed = [];
  const waiting = [...hashes];
  const work = async () => {
    for (let hash = waiting.shift(); hash; hash = waiting.shift()) {
      try {
        await ask(hash);
      } catch (problem) {
        failed.push(problem.message);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (!failed.length || hashes.length === 1) return failed[0] ?? "";
  return `${failed.length} of ${hashes.length} failed: ${failed[0]}`;
}

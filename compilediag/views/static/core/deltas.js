// Makes the new value of a part of the page from the old one and what changed; `patches.py` explains the format.

/** @type {(old: any, delta: Delta) => any} */
export function applyDelta(old, delta) {
  if ("=" in delta) return delta["="];
  if (delta.t) return old.slice(0, delta.t[0]) + delta.t[1];
  if (delta.l) {
    return delta.l.flatMap((step) => {
      if (!Array.isArray(step)) return step["="];
      const [at, change] = step;
      return typeof change === "number" ? old.slice(at, at + change) : [applyDelta(old[at], change)];
    });
  }
  const made = { ...old };
  for (const key of delta.x ?? []) delete made[key];
  for (const [key, change] of Object.entries(delta.k ?? {})) made[key] = applyDelta(made[key], change);
  return made;
}

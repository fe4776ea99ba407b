// The documents that the kernel made of each function, and the guard trees, put together again. Nothing is reckoned here.

/** The trees of entries: lines that entries share come once, and a tree is runs of them. */
class Trees {
  constructor() {
    this.clear();
  }

  clear() {
    this.taken = 0;
    this.version = 0;
    this.lines = new Map(); // key -> all lines of the trees that share it
    this.trees = new Map(); // event id -> {key, runs}
  }

  take(rows) {
    for (; this.taken < rows.length; this.taken += 1) {
      const [id, key, fresh, runs] = rows[this.taken];
      if (!this.lines.has(key)) this.lines.set(key, []);
      this.lines.get(key).push(...fresh);
      this.trees.set(id, { key, runs });
      this.version += 1;
    }
  }

  /** {numbers, lines} of a tree: the numbers of its lines in order, and all lines by number; null if it is not here. */
  get(id) {
    const tree = this.trees.get(id);
    if (!tree) return null;
    const numbers = tree.runs.flatMap(([first, count]) => Array.from({ length: count }, (_, i) => first + i));
    return { numbers, lines: this.lines.get(tree.key) };
  }
}

/** The lists of a document come as [names, rows]. */
function unpack(packed) {
  const list = ([names, rows]) => rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
  return { ...packed, entries: list(packed.entries), rows: list(packed.rows), guards: list(packed.guards) };
}

export class Documents {
  constructor(store) {
    this.store = store;
    this.trees = new Trees();
    this.version = -1;
    this.ranked = []; // [id, document], most seconds lost first
    this.known = new Map(); // id -> [as it came, document]
  }

  refresh() {
    const [functions, trees] = [this.store.table("functions"), this.store.table("trees")];
    if (this.source !== trees) this.trees.clear();
    this.source = trees;
    this.trees.take(trees.rows);
    if (this.version === functions.version && this.functions === functions) return;
    this.functions = functions;
    this.version = functions.version;
    const rank = ([, one], [, other]) => (other.lost_s ?? 0) - (one.lost_s ?? 0) || other.recompiles - one.recompiles;
    const kept = this.known;
    this.known = new Map(functions.rows.map(([id, packed]) => {
      const before = kept.get(id);
      return [id, before?.[0] === packed ? before : [packed, unpack(packed)]];
    }));
    this.ranked = [...this.known].map(([id, [, found]]) => [id, found]).sort(rank);
  }

  byId(id) {
    return this.known.get(id)?.[1] ?? null;
  }

  /** The function and the row of a recompile, by its event id; null if it is in none. */
  ofEvent(event) {
    for (const [id, found] of this.ranked) {
      const row = found.rows.find((candidate) => candidate.event === event);
      if (row) return { id, found, row };
    }
    return null;
  }

  /** A place that names an event becomes that of its guard; one that names nothing that of the first function. */
  resolve(place) {
    const events = place.events ?? (place.event === undefined ? [] : [place.event]);
    for (const event of events) {
      const hit = this.ofEvent(event);
      if (hit) return { page: "explorer", function: hit.id, guard: hit.found.guards[hit.row.guard]?.key };
    }
    if (place.function !== undefined || events.length || !this.ranked.length) return place;
    return { page: "explorer", function: this.ranked[0][0] };
  }

  /** The findings that a recompile of a function, or those for one guard of it, speak for. */
  findingsOf(found, guard) {
    const events = new Set(found.rows.filter((row) => guard === null || row.guard === guard).map((row) => row.event));
    return this.store.findings.filter((finding) => finding.evidence.some((event) => events.has(event)));
  }
}

/** A short name for a guard in the grid: A, B, ... Z, AA, ... */
export function guardTag(at) {
  const letter = String.fromCharCode(65 + (at % 26));
  return at < 26 ? letter : guardTag(Math.floor(at / 26) - 1) + letter;
}

// Which events belong to one compile, and which compiles to one function.
//
// A compile id is torch's own (`0/1`) and is used again after torch._dynamo.reset() and in another process: a group is
// (rank, pid, compile id, how many forward compiles of that id had begun by then).

const SLACK_MS = 5; // a recompile's reason is told just before its compile begins

export class Groups {
  constructor(store) {
    this.store = store;
    this.clear();
  }

  clear() {
    this.version = -1;
    this.source = null;
    this.starts = new Map(); // rank|pid|compile id -> begin of each forward compile, sorted
    this.cache = new Map(); // table -> {version, ids}
    this.functions = new Map(); // group -> {name, file, line, lane}
  }

  /** Brings the index up to date with the compiles table; cheap when that has not changed. */
  refresh() {
    const compiles = this.store.table("compiles");
    if (this.source === compiles && this.version === compiles.version) return;
    this.clear();
    this.source = compiles;
    this.version = compiles.version;
    for (const row of compiles.rows) {
      if (compiles.get(row, "trigger") === "lazy_backward") continue;
      const key = this.keyOf(compiles, row);
      if (!this.starts.has(key)) this.starts.set(key, []);
      this.starts.get(key).push(compiles.get(row, "time"));
    }
    this.starts.forEach((times) => times.sort((a, b) => a - b));
    this.learnFunctions("compiles");
    this.learnFunctions("recompiles");
  }

  keyOf(table, row) {
    return `${table.get(row, "rank") ?? ""}|${table.get(row, "pid") ?? ""}|${table.get(row, "compile_id")}`;
  }

  /** The group of a row, or null for an event outside any compile. */
  of(table, row) {
    const position = table.place.get(row[0]);
    let known = this.cache.get(table);
    if (!known) this.cache.set(table, (known = { ids: [], rows: [] }));
    if (known.rows[position] !== row) {
      known.rows[position] = row;
      known.ids[position] = this.find(table, row);
    }
    return known.ids[position];
  }

  find(table, row) {
    if (table.get(row, "compile_id") === null) return null;
    const key = this.keyOf(table, row);
    const starts = this.starts.get(key);
    if (!starts || starts.length < 2) return `${key}#0`;
    const time = table.get(row, "time") + SLACK_MS;
    let turn = 0;
    while (turn + 1 < starts.length && starts[turn + 1] <= time) turn += 1;
    return `${key}#${turn}`;
  }

  learnFunctions(tableName) {
    const table = this.store.table(tableName);
    for (const row of table.rows) {
      const group = this.of(table, row);
      if (group === null || (this.functions.has(group) && table.get(row, "function") === null)) continue;
      const [name, file, line] = ["function", "file", "line"].map((key) => table.get(row, key));
      this.functions.set(group, describeFunction(name, file, line));
    }
  }

  /** {name, file, line, lane} of the function that a group compiles, or null. */
  functionOf(group) {
    return this.functions.get(group) ?? null;
  }

  /** The rows of a table that belong to a group, in order of time. */
  members(name, group) {
    const table = this.store.table(name);
    const found = table.rows.filter((row) => this.of(table, row) === group);
    return found.sort((a, b) => table.get(a, "time") - table.get(b, "time"));
  }

  /** The group of a compile in flight, which has no row of its own yet; it runs in the process that is watched. */
  ofFlight(flight) {
    const sources = this.store.table("sources");
    const pid = this.store.meta.pid ?? null;
    const own = sources.rows.find((row) => sources.get(row, "pid") === pid);
    const key = `${(own && sources.get(own, "rank")) ?? ""}|${pid ?? ""}|${flight.compile_id}`;
    return `${key}#${Math.max(0, (this.starts.get(key)?.length ?? 1) - 1)}`;
  }
}

/** A function as lanes and lists name it. */
export function describeFunction(name, file, line) {
  return { name: name ?? "?", file, line, lane: `${name}|${file}|${line}` };
}

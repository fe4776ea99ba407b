// Says that a long compile has ended to a reader who looks elsewhere: a notification if the browser allows it, else a sign
// in the title of the browser's tab. Off until the reader asks for it.
import { formatFunction, formatSeconds } from "../core/format.js";
import { recall, remember } from "../core/memory.js";

const LONG_S = 10; // compiles of at least so many s
const SIGN = "✓ ";
const NAME = "notify"; // under which the choice is remembered

export class EndNotice {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, RunningCompile>} key -> compile in flight */
    this.before = new Map();
    this.isOn = recall(NAME) === true;
    this.clear = () => this.unmark();
  }

  /** @returns {Command} */
  get command() {
    const note = this.isOn ? "on" : "off";
    return { key: "notify", label: `Notify when a compile of ${LONG_S} s or more ends`, note, run: () => void this.toggle() };
  }

  async toggle() {
    this.isOn = !this.isOn;
    remember(NAME, this.isOn);
    this.store.notify(true);
    if (this.isOn && "Notification" in globalThis && Notification.permission === "default") await Notification.requestPermission();
  }

  /** Looks which compiles have ended. */
  follow() {
    const now = new Map(this.store.now.map((flight) => [flight.compile_key ?? "", flight]));
    for (const [key, flight] of this.before) {
      const seconds = (this.store.kernelNow() - flight.started_ms) / 1000;
      if (now.has(key) || !this.isOn || seconds < LONG_S) continue;
      const text = `${formatFunction(flight.function) ?? "a function"} compiled in ${formatSeconds(Math.round(seconds))}`;
      const isAllowed = "Notification" in globalThis && Notification.permission === "granted";
      if (isAllowed) new Notification("Compile ended", { body: text, tag: "compilediag" });
      else {
        this.unmark();
        this.title = `${SIGN}${text} · `;
        document.title = this.title + document.title;
        for (const type of ["pointermove", "keydown"]) addEventListener(type, this.clear, { once: true });
      }
    }
    this.before = now;
  }

  /** Takes the sign away when the reader is back. */
  unmark() {
    if (this.title && document.title.startsWith(this.title)) document.title = document.title.slice(this.title.length);
    this.title = "";
    for (const type of ["pointermove", "keydown"]) removeEventListener(type, this.clear);
  }
}

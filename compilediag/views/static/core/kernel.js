// The kernel of a live page: what it is asked, and that it has stopped.

/** @typedef {{request: number, path?: string, notice?: string, error?: string}} Answer */

export class KernelRequests {
  /** @param {(message: object) => void} send */
  constructor(send) {
    this.send = send;
    this.count = 0;
    /** @type {Map<number, (answer: Answer) => void>} */
    this.waiting = new Map();
  }

  /** @type {(message: object) => Promise<Answer>} */
  ask(message) {
    this.count += 1;
    const request = this.count;
    return new Promise((resolve) => {
      this.waiting.set(request, resolve);
      this.send({ ...message, request });
    });
  }

  /** @param {Answer} answer */
  receive(answer) {
    this.waiting.get(answer.request)?.(answer);
    this.waiting.delete(answer.request);
  }
}

const GONE = new Set(["dead", "restarting", "autorestarting", "terminating"]);
/** Events of the classic notebook. */
const CLASSIC = "kernel_dead.Kernel kernel_killed.Session kernel_restarting.Kernel kernel_autorestarting.Kernel";

/**
 * Calls `onStop` when the kernel stops or restarts: what it was recording has ended then.
 * @param {any} manager the host's widget manager: JupyterLab's has `kernel`, the classic notebook's has `notebook`
 * @param {() => void} onStop
 */
export function followKernel(manager, onStop) {
  const kernel = manager?.kernel;
  kernel?.statusChanged?.connect((/** @type {unknown} */ _, /** @type {string} */ status) => GONE.has(status) && onStop());
  kernel?.disposed?.connect(onStop);
  manager?.notebook?.events?.on?.(CLASSIC, onStop);
}

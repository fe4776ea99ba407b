// Notices that the kernel of a widget has stopped, where the host says so. Elsewhere its silence is all there is.

/** @typedef {{connect: (listener: (sender: unknown, value: any) => void) => void}} Signal of JupyterLab */

const GONE = new Set(["dead", "restarting", "autorestarting", "terminating"]);
/** Events of the classic notebook. */
const CLASSIC = "kernel_dead.Kernel kernel_killed.Session kernel_restarting.Kernel kernel_autorestarting.Kernel";

/**
 * Calls `onStop` when the kernel stops or restarts: what it was recording has ended then.
 * @param {any} manager the host's widget manager: JupyterLab's has `kernel`, the classic notebook's has `notebook`
 * @param {() => void} onStop
 */
export function followKernel(manager, onStop) {
  /** @type {{statusChanged?: Signal, disposed?: Signal} | null | undefined} */
  const kernel = manager?.kernel;
  kernel?.statusChanged?.connect((_, status) => GONE.has(status) && onStop());
  kernel?.disposed?.connect(onStop);
  manager?.notebook?.events?.on?.(CLASSIC, onStop);
}

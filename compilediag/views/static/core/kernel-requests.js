// Asks the kernel to do something and waits for its answer, which comes when the kernel is idle.

/** @typedef {{request: number, path?: string, notice?: string, error?: string}} Answer */

export class KernelRequests {
  /** @param {(message: object) => void} send */
  constructor(send) {
    this.send = send;
    this.count = 0;
    /** @type {Map<number, (answer: Answer) => void>} */
    this.waiting = new Map();
  }

  /**
   * @param {object} message
   * @returns {Promise<Answer>}
   */
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

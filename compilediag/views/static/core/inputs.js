// What something was made of, so that it is made again only when that has changed.

export class Inputs {
  constructor() {
    /** @type {unknown[]} the same array until one of them changes */
    this.last = [];
  }

  /** @param {unknown[]} inputs */
  haveChanged(...inputs) {
    const isSame = inputs.length === this.last.length && inputs.every((input, i) => input === this.last[i]);
    if (!isSame) this.last = inputs;
    return !isSame;
  }
}

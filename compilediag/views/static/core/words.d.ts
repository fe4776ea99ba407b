// words.js is no file: esm.py makes this module of compilediag/events/words.py.

export const WORDS: {
  /** Names of phases -> words. */
  phases: Record<string, string>;
  /** Pattern of the names of phases, and words. */
  patterns: [pattern: string, words: string][];
  /** Kind of a phase -> its word, and what happens in it. */
  phaseKinds: Record<string, [word: string, meaning: string]>;
  /** Pattern of the whole name of a phase, and its kind. */
  phaseNames: [pattern: string, kind: string][];
  /** Codes of the tables -> words. */
  codes: Record<string, string>;
  /** A total, a tab, a label of a column, a mark or a kind of guard -> what it means. */
  meanings: Record<string, string>;
};

// Where in a text of JSON a JSON pointer (RFC 6901) leads.

/** @typedef {{ start: number, end: number }} Span */

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\]|\\.)*"/sy;
const SCALAR = /[^\s,:{}[\]"]+/y;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]]/gs;

/** Thrown where a text is no JSON. */
class Broken extends Error {}

/**
 * Find what faults of a text are about: what the pointer of each leads to, or the closest part around it that is there.
 * @param {string} text
 * @param {import("./api.js").Place[]} faults
 * @returns {Span[]}
 */
export function places(text, faults) {
  const walk = new Walk(text);
  return faults.map((fault) => {
    const said = fault.code === "not_json" ? /line (\d+), column (\d+)/.exec(fault.detail) : null;
    if (said) return spot(text, Number(said[1]), Number(said[2]));
    const steps = fault.pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    try {
      return walk.find(steps);
    } catch (error) {
      if (!(error instanceof Broken || error instanceof SyntaxError)) throw error;
      return { start: 0, end: text.split("\n", 1)[0]?.length ?? 0 };
    }
  });
}

/**
 * Give what is left of a line from a column on, both counted from 1.
 * @param {string} text
 * @param {number} number
 * @param {number} column
 * @returns {Span}
 */
function spot(text, number, column) {
  const lines = text.split("\n", number);
  const line = lines.pop() ?? "";
  const start = text.length && lines.join("\n").length + (lines.length ? 1 : 0);
  return { start: start + column - 1, end: start + Math.max(line.length, column) };
}

/**
 * Give the number of the line that holds an offset, from 0.
 * @param {string} text
 * @param {number} offset
 */
export function lineOf(text, offset) {
  let line = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

/** Finds values in a text; it may be long and have many faults, so what lies around one is remembered for the next. */
class Walk {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    /** @type {Map<number, { members: Map<string, number>, end: number }>} */
    this.known = new Map();
  }

  /**
   * Give the span of what the steps lead to, as far as they lead.
   * @param {string[]} steps
   * @returns {Span}
   */
  find(steps) {
    let start = this.after(SPACE, 0);
    for (const step of steps) {
      const next = this.isScalar(start) ? undefined : this.parts(start).members.get(step);
      if (next === undefined) break;
      start = next;
    }
    if (this.isScalar(start)) return { start, end: this.end(start) };
    // A whole object is shown by its first line: its end may be far away.
    const line = this.text.indexOf("\n", start);
    const end = this.end(start);
    return { start, end: line < 0 ? end : Math.min(line, end) };
  }

  /**
   * Give where the members of an object or array begin, by their names or numbers, and where it ends.
   * @param {number} start
   */
  parts(start) {
    const before = this.known.get(start);
    if (before) return before;
    const named = this.text[start] === "{";
    const closing = named ? "}" : "]";
    const members = new Map();
    let offset = this.after(SPACE, start + 1);
    for (let index = 0; this.text[offset] !== closing; index += 1) {
      if (index) offset = this.after(SPACE, this.mark(offset, ","));
      let name = String(index);
      if (named) {
        const end = this.after(STRING, offset);
        name = JSON.parse(this.text.slice(offset, end));
        offset = this.after(SPACE, this.mark(this.after(SPACE, end), ":"));
      }
      members.set(name, offset);
      offset = this.after(SPACE, this.end(offset));
    }
    const found = { members, end: offset + 1 };
    this.known.set(start, found);
    return found;
  }

  /** @param {number} start */
  isScalar(start) {
    return this.text[start] !== "{" && this.text[start] !== "[";
  }

  /**
   * Give where a value ends, however deep it is nested.
   * @param {number} start
   */
  end(start) {
    if (this.isScalar(start)) return this.after(this.text[start] === '"' ? STRING : SCALAR, start);
    TOKEN.lastIndex = start;
    let depth = 0;
    for (let found = TOKEN.exec(this.text); found; found = TOKEN.exec(this.text)) {
      const mark = found[0];
      if (mark === "{" || mark === "[") depth += 1;
      else if (mark === "}" || mark === "]") depth -= 1;
      if (!depth) return TOKEN.lastIndex;
    }
    throw new Broken();
  }

  /**
   * @param {RegExp} pattern
   * @param {number} offset
   */
  after(pattern, offset) {
    pattern.lastIndex = offset;
    if (!pattern.test(this.text)) throw new Broken();
    return pattern.lastIndex;
  }

  /**
   * @param {number} offset
   * @param {string} mark
   */
  mark(offset, mark) {
    if (this.text[offset] !== mark) throw new Broken();
    return offset + 1;
  }
}

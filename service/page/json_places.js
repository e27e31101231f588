// Where in a text of JSON a JSON pointer (RFC 6901) leads.

/** @typedef {{ start: number, end: number }} Span */

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\]|\\.)*"/sy;
const SCALAR = /[^\s,:{}[\]"]+/y;

/** Said where a text is no JSON. */
class Broken extends Error {}

/**
 * Find what a fault of a text is about: what its pointer leads to, or the closest part around it that is there.
 * @param {string} text
 * @param {import("./api.js").Place} fault
 * @returns {Span}
 */
export function place(text, fault) {
  const said = fault.code === "not_json" ? /line (\d+), column (\d+)/.exec(fault.detail) : null;
  if (said) {
    const lines = text.split("\n", Number(said[1]));
    const line = lines.pop() ?? "";
    const start = text.length && lines.join("\n").length + (lines.length ? 1 : 0);
    return { start: start + Number(said[2]) - 1, end: start + Math.max(line.length, Number(said[2])) };
  }
  const steps = fault.pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  try {
    return new Walk(text).value(0, steps).span;
  } catch {
    return { start: 0, end: text.split("\n", 1)[0]?.length ?? 0 }; // no JSON, or nested too deep to be walked
  }
}

/**
 * Give the number of the line that holds an offset, from 0.
 * @param {string} text
 * @param {number} offset
 */
export function lineOf(text, offset) {
  return text.slice(0, offset).split("\n").length - 1;
}

class Walk {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  /**
   * Walk over a value; give where it ends, and the span of what the steps lead to in it.
   * @param {number} offset
   * @param {string[] | null} steps Null where what is sought is elsewhere.
   * @returns {{ end: number, span: Span }}
   */
  value(offset, steps) {
    const start = this.after(SPACE, offset);
    const opening = this.text[start];
    if (opening === "{" || opening === "[") return this.parts(start, opening === "{", steps);
    const end = this.after(opening === '"' ? STRING : SCALAR, start);
    return { end, span: { start, end } };
  }

  /**
   * Walk over an object or an array.
   * @param {number} start
   * @param {boolean} named
   * @param {string[] | null} steps
   */
  parts(start, named, steps) {
    const closing = named ? "}" : "]";
    let found = null;
    let offset = this.after(SPACE, start + 1);
    for (let index = 0; this.text[offset] !== closing; index += 1) {
      if (index) offset = this.after(SPACE, this.mark(offset, ","));
      let name = String(index);
      if (named) {
        const end = this.after(STRING, offset);
        name = JSON.parse(this.text.slice(offset, end));
        offset = this.mark(this.after(SPACE, end), ":");
      }
      const leads = steps !== null && steps[0] === name;
      const part = this.value(offset, leads ? steps.slice(1) : null);
      if (leads) found = part.span;
      offset = this.after(SPACE, part.end);
    }
    // A whole object is shown by its first line: its end may be far away.
    const line = this.text.indexOf("\n", start);
    const span = { start, end: line < 0 ? offset + 1 : Math.min(line, offset + 1) };
    return { end: offset + 1, span: found ?? span };
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

// The order and the choice of rows in long tables.

/** @typedef {string | number | null} Value */

const WORDS = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * Compare two values: numbers by size, words so that block.2 comes before block.10, and what is missing always last.
 * @param {Value} one
 * @param {Value} other
 * @param {boolean} descending
 */
export function compare(one, other, descending) {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const numbers = typeof one === "number" && typeof other === "number";
  const order = numbers ? one - other : WORDS.compare(String(one), String(other));
  return descending ? -order : order;
}

/**
 * Give rows in the order of one of their values; equal ones stay in the order that they have.
 * @template Row
 * @param {Row[]} rows
 * @param {(row: Row) => Value} valueOf
 * @param {boolean} descending
 * @returns {Row[]}
 */
export function sorted(rows, valueOf, descending) {
  const keyed = rows.map((row) => ({ row, value: valueOf(row) }));
  keyed.sort((one, other) => compare(one.value, other.value, descending));
  return keyed.map(({ row }) => row);
}

/**
 * Tell whether a text holds all words of a filter, in any order and case.
 * @param {string} text
 * @param {string} filter
 */
export function matches(text, filter) {
  const lower = text.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => lower.includes(word));
}

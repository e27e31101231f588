// Tables as CSV (RFC 4180) that no spreadsheet takes for formulas.

/** @typedef {string | number | null} Value */

/**
 * Write one cell. A text that a spreadsheet would run begins with an apostrophe, which is how these mark a text.
 * @param {Value} value
 */
export function cell(value) {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^\s*[=+\-@]|^[\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n']|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Write a table.
 * @param {Value[][]} rows The headings first.
 */
export function csv(rows) {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

// Figures as people read them; the words and digits of service/reports/wording.py.

/** @type {[string, number][]} */
const SECONDS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
/** @type {[string, number][]} */
const BYTES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

/**
 * Write a number with so many significant digits.
 * @param {number} number
 * @param {number} [digits]
 */
export function significant(number, digits = 4) {
  if (number === 0 || !Number.isFinite(number)) return String(number);
  const rounded = number.toExponential(digits - 1);
  const exponent = Number(rounded.slice(rounded.indexOf("e") + 1));
  if (exponent < -5 || exponent > 12) return rounded.replace(/(?<=e[+-])(?=\d$)/, "0");
  const [whole, part] = number.toFixed(Math.max(0, digits - 1 - exponent)).split(".");
  const grouped = (whole ?? "").replace(/\B(?=(\d{3})+$)/g, " ");
  return part === undefined ? grouped : `${grouped}.${part}`;
}

/**
 * Write a time in the unit that suits it.
 * @param {number} value
 */
export function seconds(value) {
  if (value === 0) return "0 s";
  const [unit, size] = SECONDS.find(([, least]) => Math.abs(value) >= least) ?? ["s", 1];
  return `${significant(value / size)} ${unit}`;
}

/**
 * Write a time that is only estimated, in whole units.
 * @param {number} value
 */
export function roughly(value) {
  if (value < 120) return `${Math.round(value)} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

/**
 * Write bytes in the binary unit that suits them.
 * @param {number} value
 * @param {number} [digits]
 */
export function sized(value, digits = 3) {
  const found = BYTES.find(([, least]) => Math.abs(value) >= least);
  return found ? `${significant(value / found[1], digits)} ${found[0]}` : `${value} B`;
}

const MOST_DIGITS = 12; // numbers of bytes that are one to so many digits are shown as one
const COUNTED = /(?<![\w.])((?:at least|to) )?(\d{4,}) bytes\b/g;

/**
 * Write the bytes in a message of the service, which are whole numbers there, in the units that suit them.
 *
 * Numbers that differ keep as many digits as tell them apart; what would be enough is not rounded to less.
 * @param {string} text
 */
export function readable(text) {
  const values = [...new Set(Array.from(text.matchAll(COUNTED), ([, , number]) => Number(number)))];
  let digits = 3;
  while (digits < MOST_DIGITS && new Set(values.map((value) => sized(value, digits))).size < values.length) digits += 1;
  return text.replace(COUNTED, (_, asked = "", number) => `${asked}${sized(asked ? enough(Number(number), digits) : Number(number), digits)}`);
}

/**
 * Give bytes that so many digits express exactly, at least as many as are needed.
 * @param {number} needed
 * @param {number} digits
 */
function enough(needed, digits) {
  const unit = BYTES.find(([, least]) => needed >= least)?.[1];
  if (!unit) return needed;
  const step = unit * 10 ** (Math.floor(Math.log10(needed / unit)) + 1 - digits);
  return Math.ceil(needed / step) * step;
}

/**
 * Write a fraction in percent; a small one that is not 0 does not become 0.
 * @param {number} fraction
 */
export function percent(fraction) {
  if (fraction !== 0 && Math.abs(fraction) < 1e-4) return "under 0.01 %";
  return `${(fraction * 100).toFixed(Math.abs(fraction) < 0.1 ? 2 : 1)} %`;
}

/**
 * Write a number with its noun.
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many) {
  return `${number} ${number === 1 ? one : many ?? `${one}s`}`;
}

/** The field of the metrics behind each named objective, as in models/objective.py. */
export const FIELDS = {
  iteration_time: "iteration_time_s",
  tokens_per_second: "tokens_per_second",
  peak_memory: "peak_memory_bytes",
  bottleneck_time: "bottleneck_time_s",
  num_devices: "num_devices",
  inter_node_bytes: "inter_node_bytes",
};

/**
 * Write the value of a metric, given by its field, with its unit.
 * @param {string} field
 * @param {number} value
 */
export function metric(field, value) {
  if (field.endsWith("_s")) return seconds(value);
  if (field.endsWith("_bytes")) return sized(value);
  if (field === "num_devices") return String(Math.round(value));
  return `${significant(value)} ${field.split("_")[0]}/s`;
}

/**
 * Write a value of an objective, which may be a list of metrics or a weighted sum.
 * @param {unknown} objective
 * @param {number | null} value
 */
export function amount(objective, value) {
  if (value === null) return "not known yet";
  const first = Array.isArray(objective) ? objective[0] : objective;
  const field = typeof first === "string" ? /** @type {Record<string, string>} */ (FIELDS)[first] : undefined;
  return field === undefined ? significant(value) : metric(field, value);
}

/**
 * Name devices, those of a node whose numbers follow each other as a range, such as node0:0-7.
 * @param {string[]} devices
 */
export function ranges(devices) {
  /** @type {Map<string, number[]>} */
  const numbers = new Map();
  for (const device of devices) {
    const at = device.lastIndexOf(":");
    const node = device.slice(0, at);
    numbers.set(node, [...(numbers.get(node) ?? []), Number(device.slice(at + 1))]);
  }
  const named = [...numbers].flatMap(([node, found]) => {
    const sorted = found.sort((one, other) => one - other);
    const firsts = sorted.filter((number, index) => number - 1 !== sorted[index - 1]);
    const lasts = sorted.filter((number, index) => number + 1 !== sorted[index + 1]);
    return firsts.map((first, index) => (first === lasts[index] ? `${node}:${first}` : `${node}:${first}-${lasts[index]}`));
  });
  return named.join(", ");
}

/**
 * Write a moment as the user's clock has it.
 * @param {string} text
 */
export function moment(text) {
  return new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

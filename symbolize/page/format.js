// Numbers and names as people read them.

const DASH = "–";
const SCALES = {
  time: [
    [3.6e12, "h"],
    [6e10, "min"],
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ],
  size: [
    [2 ** 50, "PB"],
    [2 ** 40, "TB"],
    [2 ** 30, "GB"],
    [2 ** 20, "MB"],
    [2 ** 10, "kB"],
    [1, "B"],
  ],
  gcu: ["P*", "T*", "G*", "M*", "k*", "", "m*", "u*", "n*"].map((prefix, i) => [1e3 ** (8 - i), `${prefix}GCU`]),
};
const COUNTS = /^(count|sample|unit)?s?$/i;
const MAX_UNIT = 32;
const HIDDEN_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A name without characters that are invisible or change the direction of the text around them. */
function shown(name) {
  return name.replace(HIDDEN_CHARACTERS, "\ufffd");
}

/** A unit: what it measures, and how many of the smallest unit for that it is. */
class Unit {
  constructor(name, kind, factor) {
    this.suffix = COUNTS.test(name) || name.length > MAX_UNIT ? "" : ` ${shown(name)}`;
    this.scales = SCALES[kind];
    this.factor = factor;
  }
}

/** A value with its unit: three or four significant digits; binary multiples of bytes, as pprof. */
function formatValue(value, { suffix, scales, factor }) {
  if (!scales) return WHOLE.format(value) + suffix;
  const size = value * factor;
  if (size === 0) return "0";
  const [scale, name] = scales.find(([least]) => Math.abs(size) >= least) ?? scales[scales.length - 1];
  const scaled = size / scale;
  const digits = Number.isInteger(scaled) ? 0 : Math.abs(scaled) < 10 ? 2 : Math.abs(scaled) < 100 ? 1 : 0;
  return `${scaled.toFixed(digits)} ${name}`;
}

/** A value with the sign of a change. */
function formatChange(value, unit) {
  return value > 0 ? `+${formatValue(value, unit)}` : formatValue(value, unit).replace("-", "−");
}

function formatShare(part, whole) {
  if (!whole) return DASH;
  const percent = (100 * part) / whole;
  return `${percent !== 0 && Math.abs(percent) < 0.05 ? percent.toFixed(2) : percent.toFixed(1)} %`;
}

/** By how much a value grew; what only rounding makes of scaled values is no change. */
function changeOf(value, base) {
  return Math.abs(value - base) <= 1e-12 * Math.max(Math.abs(value), Math.abs(base)) ? 0 : value - base;
}

/** A part of a total, 0 if there is none. */
function shareOf(part, whole) {
  return whole ? part / whole : 0;
}

function formatShareChange(change) {
  const percent = (100 * change).toFixed(1);
  return `${change > 0 ? "+" : ""}${percent} points`.replace("-", "−");
}

/** A qualified name, and what is left of it when there is less and less space: `Parser::accept`, then `accept`. */
function shorterNames(name) {
  const starts = [];
  let depth = 0;
  for (const { 0: separator, index } of name.matchAll(/[<({[]|[>)}\]]|::|\/|\.(?=[A-Z(])/g)) {
    if ("<({[".includes(separator)) depth++;
    else if (">)}]".includes(separator)) depth--;
    else if (depth === 0) starts.push(index + separator.length);
  }
  return [
    name,
    ...starts
      .slice(-2)
      .map((start) => name.slice(start))
      .filter((text) => !text.startsWith("operator")),
  ];
}

// The labels and times of samples: which rows of the values are chosen by them.

class Slices {
  constructor(data) {
    const { keys, hasThreads, bins, width, notes } = data.slices;
    this.data = data;
    this.keys = keys.map(([name, texts], key) => ({
      name: shown(name),
      texts: texts.map((text, code) => (code ? shown(text) || "empty" : `no ${shown(name)}`)),
      codes: data.column(`label.${key}`), // by set of labels
    }));
    Object.assign(this, { hasThreads, bins, width, notes: notes.map(shown) });
    this.set = data.column("slice.set");
    this.bin = data.column("slice.bin");
  }

  /** The chosen text by key, of what the state says of labels. */
  labels(text) {
    const pairs = text.split(",").map((each) => each.split(".").map(Number));
    return new Map(pairs.filter(([key, code]) => this.keys[key]?.texts[code] !== undefined));
  }

  /** The first and the last part of the time that is chosen, null if all is. */
  range(text) {
    const [first, last] = text.split(".").map(Number);
    return this.bins > 1 && 0 <= first && first <= last && last < this.bins ? { first, last } : null;
  }

  /** Which rows are chosen, by row; null if all are. */
  rows(values) {
    const labels = this.labels(values.labels);
    const range = this.range(values.time);
    if (!labels.size && !range) return null;
    const { set, bin } = this;
    const { first, last } = range ?? { first: 0, last: this.bins };
    const isChosen = new Uint8Array(this.keys[0]?.codes.length ?? 1).fill(1);
    for (const [key, code] of labels) this.keys[key].codes.forEach((each, i) => (isChosen[i] &= each === code));
    return Uint8Array.from(set, (each, row) => isChosen[each] & (bin[row] >= first) & (bin[row] <= last));
  }

  /** The values of a sample type by row, without their signs. */
  sizes(kind) {
    const name = `value.size.${kind}`;
    return this.data.column(this.data.has(name) ? name : `value.own.${kind}`).map(Math.abs);
  }

  /** The sums of sizes by text of a key. */
  sums(key, sizes) {
    const { codes, texts } = this.keys[key];
    const sums = new Float64Array(texts.length);
    for (let row = 0; row < sizes.length; row++) sums[codes[this.set[row]]] += sizes[row];
    return sums;
  }

  /** A time from the begin on, as text. */
  time(bin) {
    const seconds = (bin * this.width) / 1e9;
    const all = (this.bins * this.width) / 1e9;
    const [scale, unit] = all >= 1 ? [1, "s"] : all >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
    return `${(seconds * scale).toFixed(all * scale < 10 ? 2 : all * scale < 100 ? 1 : 0)} ${unit}`;
  }

  /** What is chosen, as texts. */
  texts(values) {
    const range = this.range(values.time);
    const labels = [...this.labels(values.labels)].map(([key, code]) => {
      const { name, texts } = this.keys[key];
      return code ? `${name} ${texts[code]}` : texts[code];
    });
    return range ? [...labels, `${this.time(range.first)} to ${this.time(range.last + 1)}`] : labels;
  }
}

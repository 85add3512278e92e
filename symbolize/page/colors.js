// Fills of frames and the legend. Lightness is fixed for each theme, so that text on every fill keeps its contrast.

const MODULE_HUES = [65, 235, 150, 325, 105, 195, 20, 280];
const VARIANTS = 4;
const CHANGE_STEPS = 10;
const KINDS = [
  { label: "named", hue: 235, chroma: 0.07 },
  { label: "inlined", hue: 150, chroma: 0.08 },
  { label: "inlined or called", hue: 190, chroma: 0.07 },
  { label: "folded: code that several functions share", hue: 320, chroma: 0.09 },
  { label: "unsymbolized", hue: 60, chroma: 0.008 },
];
const THEMES = {
  light: {
    base: 0.87,
    spread: 0.022,
    chroma: 1,
    text: "#1d1b18",
    faintText: "#625d57",
    faint: "oklch(0.945 0.006 70)",
    match: ["oklch(0.82 0.145 330)", "oklch(0.79 0.15 330)"],
    outline: "#1d1b18",
    hover: "#57534e",
    even: 0.93,
    step: -0.13,
  },
  dark: {
    base: 0.43,
    spread: 0.02,
    chroma: 0.95,
    text: "#f6f3ee",
    faintText: "#a8a29a",
    faint: "oklch(0.29 0.006 70)",
    match: ["oklch(0.52 0.17 330)", "oklch(0.49 0.17 330)"],
    outline: "#ffffff",
    hover: "#d6d3d1",
    even: 0.36,
    step: 0.09,
  },
};

/** A small number from a name, the same in every profile. */
function variantOf(name) {
  let hash = 7;
  for (let i = 0; i < name.length && i < 80; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return (hash >>> 3) % VARIANTS;
}

/** How a frame was resolved: an index of KINDS. */
function kindOf(flags) {
  if (flags & UNSYMBOLIZED) return 4;
  if (flags & FOLDED) return 3;
  if (flags & INLINED) return flags & CALLED ? 2 : 1;
  return 0;
}

class Colors {
  /** `functions` has the values by frame: the heaviest modules get the colours. */
  constructor(data, modules, functions) {
    this.modules = modules;
    this.variants = Uint8Array.from(data.names, variantOf);
    const [flat, cumulative] = [functions.flat, functions.cumulative].map((values) => {
      const sums = new Float64Array(data.modules.length);
      for (let row = 0; row < modules.length; row++) sums[modules[row]] += Math.abs(values[row]);
      return sums;
    });
    const byValue = (a, b) => flat[b] - flat[a] || cumulative[b] - cumulative[a];
    this.ranked = [...cumulative.keys()].filter((module) => cumulative[module]).sort(byValue);
    this.rank = new Uint8Array(data.modules.length).fill(MODULE_HUES.length);
    this.ranked.slice(0, MODULE_HUES.length).forEach((module, rank) => (this.rank[module] = rank));
    this.labels = data.modules.map((module) => shown(module) || "no module");
    this.setTheme("light");
  }

  setTheme(name) {
    const theme = (this.theme = THEMES[name]);
    const shades = (hue, chroma) =>
      Array.from({ length: VARIANTS }, (_, i) => {
        const lightness = theme.base + (i - (VARIANTS - 1) / 2) * theme.spread;
        return `oklch(${lightness.toFixed(3)} ${(chroma * theme.chroma).toFixed(3)} ${hue + 4 * (i - 1.5)})`;
      });
    this.moduleFills = [...MODULE_HUES.map((hue) => shades(hue, 0.078)), shades(70, 0.012)];
    this.kindFills = KINDS.map(({ hue, chroma }) => shades(hue, chroma));
    this.changeFills = Array.from({ length: 2 * CHANGE_STEPS + 1 }, (_, i) => {
      const strength = Math.abs(i / CHANGE_STEPS - 1);
      const lightness = theme.even + theme.step * strength;
      return `oklch(${lightness.toFixed(3)} ${(0.006 + 0.125 * strength).toFixed(3)} ${i > CHANGE_STEPS ? 40 : 245})`;
    });
  }

  /** The fill of a branch; `totals` of base and new turn values into shares. */
  fill(branch, by, totals) {
    if (by === "change") return this.changeFills[this.changeStep(branch, totals)];
    if (branch.frame < 0) return this.theme.faint;
    const variant = this.variants[branch.frame];
    if (by === "kind") return this.kindFills[kindOf(branch.flags)][variant];
    return this.moduleFills[this.rank[this.modules[branch.frame]]][variant];
  }

  /** The change of share in relation to both shares, from 0 (gone) to 2 * CHANGE_STEPS (new). */
  changeStep(branch, totals) {
    const before = totals.base ? Math.abs(branch.base / totals.base) : 0;
    const after = totals.value ? Math.abs(branch.value / totals.value) : 0;
    const relative = before + after ? (after - before) / (before + after) : 0;
    return Math.round(CHANGE_STEPS * (1 + Math.sign(relative) * Math.abs(relative) ** 0.7));
  }

  /** Fills and labels of the legend; `kinds` are those in the picture. */
  legend(by, kinds) {
    if (by === "change") {
      const labels = [
        [0, "gone"],
        [5, "smaller share"],
        [10, "same share"],
        [15, "larger share"],
        [20, "new"],
      ];
      return labels.map(([step, label]) => ({ fill: this.changeFills[step], label }));
    }
    if (by === "kind") return kinds.map((kind) => ({ fill: this.kindFills[kind][1], label: KINDS[kind].label }));
    const named = this.ranked.slice(0, MODULE_HUES.length);
    const result = named.map((module, rank) => ({ fill: this.moduleFills[rank][1], label: this.labels[module] }));
    const others = this.ranked.length - named.length;
    if (others > 0) result.push({ fill: this.moduleFills[MODULE_HUES.length][1], label: `${others} other modules` });
    return result;
  }
}

// Tracks: a row for each of the heaviest threads with its values in the order of time. Dragging over them chooses a part
// of the time, a click on a name a thread.

const MOST_TRACKS = 8;
const TRACK = 22;
const BAR = 4;
const NARROWEST_DRAG = 4;

class Tracks {
  constructor(app) {
    this.app = app;
    this.slices = app.slices;
    this.box = byId("tracks");
    this.lanes = byId("lanes");
    this.canvas = this.lanes.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.dragged = null;
    this.box.hidden = !(this.slices?.bins > 1);
    if (this.box.hidden) return;
    const { lanes } = this;
    lanes.addEventListener("pointerdown", (event) => this.press(event));
    lanes.addEventListener("pointermove", (event) => this.drag(event));
    lanes.addEventListener("pointerup", () => this.release());
    lanes.addEventListener("pointercancel", () => ((this.dragged = null), this.draw()));
    lanes.addEventListener("keydown", (event) => this.key(event));
    byId("all-times").addEventListener("click", () => this.choose(null));
    new ResizeObserver(() => this.draw()).observe(lanes);
  }

  get range() {
    return this.slices.range(this.app.state.values.time);
  }

  /** The thread that is chosen, null if all are. */
  get chosen() {
    return this.slices.hasThreads ? this.app.chosenLabel(0) : null;
  }

  /** Add up the values of a sample type by track and part of the time. */
  fill(kind) {
    if (this.box.hidden) return;
    const { slices } = this;
    const sizes = slices.sizes(kind);
    const { keys, hasThreads } = slices;
    const codes = hasThreads ? keys[0].codes : new Uint8Array(keys[0]?.codes.length ?? 1);
    const sums = hasThreads ? slices.sums(0, sizes) : [1];
    const order = [...sums.keys()].filter((code) => sums[code]).sort((a, b) => sums[b] - sums[a]);
    const trackOf = new Uint16Array(sums.length);
    order.forEach((code, i) => (trackOf[code] = Math.min(i, MOST_TRACKS - 1)));
    const others = order.length - MOST_TRACKS + 1;
    this.tracks = order.slice(0, others > 1 ? MOST_TRACKS - 1 : MOST_TRACKS).map((code) => ({
      code: hasThreads ? code : null,
      name: hasThreads ? keys[0].texts[code] : "all",
    }));
    if (others > 1) this.tracks.push({ code: null, name: `${WHOLE.format(others)} others` });
    for (const track of this.tracks) track.values = new Float64Array(slices.bins);
    for (let row = 0; row < sizes.length; row++) {
      if (sizes[row]) this.tracks[trackOf[codes[slices.set[row]]]].values[slices.bin[row]] += sizes[row];
    }
    const names = this.tracks.map((track) => {
      const choose = () => this.app.chooseLabel(0, this.chosen === track.code ? null : track.code);
      const button = element("button", { onclick: choose, title: track.name, "aria-pressed": "false" });
      button.append(track.name.replace(/^.* \/ /, "")); // the process is in the title
      button.disabled = track.code === null;
      return button;
    });
    setContent(byId("track-names"), names);
    this.lanes.style.height = `${TRACK * this.tracks.length}px`;
  }

  show() {
    if (this.box.hidden) return;
    const { slices, range, chosen } = this;
    [...byId("track-names").children].forEach((button, i) => {
      const { code } = this.tracks[i];
      button.setAttribute("aria-pressed", code !== null && code === chosen);
    });
    const all = slices.time(slices.bins);
    byId("range").textContent = range
      ? `${slices.time(range.first)} to ${slices.time(range.last + 1)} of ${all}`
      : `${all}: drag to choose a part`;
    byId("all-times").hidden = !range;
    this.draw();
  }

  draw() {
    const { lanes, canvas, context, slices, tracks } = this;
    const width = lanes.clientWidth;
    if (!tracks || !width) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tracks.length * TRACK * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${tracks.length * TRACK}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(lanes);
    const scale = width / slices.bins;
    const wide = Math.ceil(BAR / scale); // parts of the time in a bar
    const bars = tracks.map(({ values }) => {
      const sums = new Float64Array(Math.ceil(values.length / wide));
      for (let bin = 0; bin < values.length; bin++) sums[Math.floor(bin / wide)] += values[bin];
      return sums;
    });
    const most = Math.max(...bars.map((sums) => sums.reduce((largest, sum) => Math.max(largest, sum), 0)));
    const { chosen } = this;
    const range = this.dragged ?? this.range;
    tracks.forEach(({ code }, i) => {
      const bottom = (i + 1) * TRACK - 1;
      context.fillStyle = style.borderTopColor;
      context.fillRect(0, bottom, width, 1);
      const isOut = chosen !== null && chosen !== code;
      context.fillStyle = style.color;
      bars[i].forEach((sum, bar) => {
        if (!sum) return;
        const first = bar * wide;
        context.globalAlpha = isOut || (range && (first + wide <= range.first || first > range.last)) ? 0.3 : 1;
        const height = Math.max(1, (sum / most) * (TRACK - 3));
        context.fillRect(first * scale, bottom - height, wide * scale - (wide * scale > 2 ? 0.5 : 0), height);
      });
      context.globalAlpha = 1;
    });
    if (!range) return;
    context.strokeStyle = style.outlineColor;
    const left = range.first * scale;
    context.strokeRect(left + 0.5, 0.5, Math.max((range.last + 1) * scale - left - 1, 1), tracks.length * TRACK - 1);
  }

  /** The part of the time at a place of the window. */
  at(event) {
    const box = this.lanes.getBoundingClientRect();
    const bin = Math.floor(((event.clientX - box.left) / box.width) * this.slices.bins);
    return Math.min(Math.max(bin, 0), this.slices.bins - 1);
  }

  press(event) {
    if (event.button !== 0) return;
    this.lanes.setPointerCapture(event.pointerId);
    const at = this.at(event);
    this.dragged = { first: at, last: at, at, from: event.clientX, isWide: false };
  }

  drag(event) {
    if (!this.dragged) return;
    const to = this.at(event);
    const { at, from } = this.dragged;
    this.dragged.isWide ||= Math.abs(event.clientX - from) >= NARROWEST_DRAG;
    Object.assign(this.dragged, { first: Math.min(at, to), last: Math.max(at, to) });
    this.draw();
  }

  /** A drag chooses a range, a click ends the choice. */
  release() {
    const { dragged } = this;
    this.dragged = null;
    if (dragged) this.choose(dragged.isWide ? dragged : null);
  }

  choose(range) {
    this.app.state.set({ time: range ? `${range.first}.${range.last}` : "" }, true);
    this.app.graph.details.say(byId("range").textContent);
  }

  /** Arrow keys move the range, with Shift its end; Escape ends it. */
  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const { range } = this;
    if (event.ctrlKey || event.metaKey || event.altKey || !(step || (event.key === "Escape" && range))) return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return this.choose(null);
    const { bins } = this.slices;
    const wide = Math.max(1, Math.round(bins / 50));
    if (!range) return this.choose({ first: 0, last: Math.min(bins - 1, 5 * wide) });
    const { first, last } = range;
    const least = event.shiftKey ? first - last : -first;
    const by = Math.min(Math.max(step * wide, least), bins - 1 - last);
    this.choose({ first: event.shiftKey ? first : first + by, last: last + by });
  }
}

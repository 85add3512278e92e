// What the reader looks at, kept in the fragment of the address, so that a view can be shared and "back" works.

const DEFAULTS = {
  view: "graph", // "graph", "table", "peek", "source"
  type: null, // sample type: its column
  zoom: "", // frames from the root to the zoomed branch: rows of the frames, separated by dots; "^" before callers
  sandwich: -1, // row of the function whose stacks are merged in the graph, or -1
  peek: -1, // row of the function whose callers and callees are in the table, or -1
  focus: "", // expressions that choose stacks and frames
  ignore: "",
  hide: "",
  labels: "", // key.text for each label that is chosen, both by number, separated by commas
  time: "", // the first and the last part of the time that is chosen: 12.40
  search: "",
  callers: false, // from the leaves to their callers
  flip: false, // root at the bottom
  order: "weight", // "weight" or "name"
  color: "", // "module", "kind" or "change"
  file: "", // path in the source view
  line: 0,
  code: -1, // function beside the source: its number among those with instructions, or -1: what the line became
  sort: "", // column of the table; "-" before it: ascending
};

class State {
  constructor(selected, onChange) {
    this.defaults = { ...DEFAULTS, type: selected };
    this.onChange = onChange;
    this.values = this.parse();
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.fragment()) return;
      this.values = this.parse();
      this.onChange();
    });
  }

  parse() {
    const values = { ...this.defaults };
    for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
      if (!Object.hasOwn(values, key)) continue;
      const type = typeof values[key];
      if (type === "number") values[key] = Number.isInteger(Number(text)) ? Number(text) : values[key];
      else values[key] = type === "boolean" ? text === "1" : text;
    }
    return values;
  }

  fragment() {
    const chosen = Object.entries(this.values).filter(([key, value]) => value !== this.defaults[key]);
    return new URLSearchParams(
      chosen.map(([key, value]) => [key, typeof value === "boolean" ? Number(value) : value]),
    ).toString();
  }

  /** Change some values. A step is one that "back" undoes; typing and sorting are none. */
  set(changes, isStep = false) {
    Object.assign(this.values, changes);
    const target = `#${this.fragment()}`;
    if (target !== (location.hash || "#")) {
      if (isStep) location.hash = target;
      else location.replace(target);
    }
    this.onChange(changes);
  }
}

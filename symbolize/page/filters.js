// Focus, ignore and hide, with the meaning that pprof gives them: expressions that are searched in the name, the source
// file and the module of a frame; their case counts.

const FILTERS = ["focus", "ignore", "hide"];

/** Which frames a filter matches, by row; null without a filter. */
function framesMatching(text, { data, files, modules, fileOf, moduleOf }) {
  if (!text) return null;
  const { expression } = filterMatcher(text);
  const [inFile, inModule] = [files, modules].map((all) => Uint8Array.from(all, (each) => expression.test(each)));
  return Uint8Array.from(
    data.names,
    (name, row) => inFile[fileOf[row]] || inModule[moduleOf[row]] || expression.test(name),
  );
}

/** What the filters of the state find: for each the frames by row, or null; null without any filter. Samples without a
 * stack have no frames that could be left, only a name in their place. */
function frameFilters(values, app) {
  if (!FILTERS.some((name) => values[name])) return null;
  const matches = FILTERS.map((name) => [name, framesMatching(values[name], app)]);
  return { ...Object.fromEntries(matches), stackless: app.data.names.indexOf("[no stack]") };
}

function filterMatcher(text) {
  return text.startsWith("(?i)") ? matcher(text.slice(4), "i") : matcher(text, "");
}

/** The tree without the frames that are hidden, and for each node of the given one the node that its own values count
 * for: its nearest caller that is left, -1 if there is none, or if `focus` or `ignore` drop the stacks that end there. */
function filteredTree(tree, { focus, ignore, hide, stackless }) {
  const target = new Int32Array(tree.count);
  const dropped = new Uint8Array(tree.count); // 1: no frame matches `focus`, 2: one matches `ignore`
  const frame = new Uint32Array(tree.count);
  const flags = new Uint8Array(tree.count);
  const parent = new Int32Array(tree.count);
  let count = 1;
  dropped[0] = focus ? 1 : 0;
  for (let node = 1; node < tree.count; node++) {
    const row = tree.frame[node];
    const above = tree.parent[node];
    dropped[node] = focus?.[row] ? dropped[above] & 2 : dropped[above];
    if (ignore?.[row]) dropped[node] |= 2;
    if (hide?.[row] || (row === stackless && above === 0)) target[node] = target[above];
    else {
      frame[count] = row;
      flags[count] = tree.flags[node];
      parent[count] = target[above];
      target[node] = count++;
    }
  }
  parent[0] = -1;
  const end = new Int32Array(count).fill(1);
  for (let node = count - 1; node > 0; node--) end[parent[node]] += end[node]; // sizes of subtrees
  for (let node = 0; node < count; node++) end[node] += node;
  for (let node = 0; node < tree.count; node++) if (dropped[node] || !target[node]) target[node] = -1;
  return { tree: tree.like({ count, frame, flags, parent, end }), target };
}

/** The fields of the filters, and a selector for each key of labels. */
class FilterPanel {
  constructor(app) {
    this.app = app;
    this.panel = byId("filters");
    this.button = byId("show-filters");
    this.button.addEventListener("click", () => this.toggle(this.panel.hidden));
    byId("clear-filters").addEventListener("click", () => app.clearChoice());
    this.fields = FILTERS.map((name) => [name, byId(`filter-${name}`)]);
    const change = () => app.state.set(Object.fromEntries(this.fields.map(([name, { value }]) => [name, value])));
    for (const [, field] of this.fields) {
      field.addEventListener("input", () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(change, 150);
      });
      field.addEventListener("keydown", (event) => event.key === "Escape" && field.blur());
    }
    this.selects = (app.slices?.keys ?? []).map(({ name }, key) => {
      const select = element("select", { title: name });
      select.addEventListener("change", () => app.chooseLabel(key, select.value === "" ? null : Number(select.value)));
      byId("labels").append(element("label", {}, `${name} `, select));
      return select;
    });
    byId("filter-notes").textContent = (app.slices?.notes ?? []).join(". ");
    this.toggle(app.choiceTexts().length > 0);
  }

  toggle(isOpen) {
    this.panel.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", isOpen);
    this.app.graph?.show(true);
  }

  /** Fill the selectors: the heaviest labels first, with their shares of a sample type. */
  fill(kind) {
    const { slices } = this.app;
    const sizes = slices?.sizes(kind);
    const whole = sizes?.reduce((sum, size) => sum + size, 0);
    for (const [key, select] of this.selects.entries()) {
      const { texts } = slices.keys[key];
      const sums = slices.sums(key, sizes);
      const order = [...sums.keys()].filter((code) => sums[code]).sort((a, b) => sums[b] - sums[a]);
      const option = (code) => element("option", { value: code }, `${texts[code]} (${formatShare(sums[code], whole)})`);
      setContent(select, [element("option", { value: "" }, "all"), ...order.map(option)]);
    }
  }

  show() {
    const { values } = this.app.state;
    const labels = this.app.slices?.labels(values.labels);
    for (const [name, field] of this.fields) {
      if (document.activeElement !== field) field.value = values[name];
    }
    for (const [key, select] of this.selects.entries()) select.value = labels.get(key) ?? "";
    const count = this.app.choiceTexts().length;
    this.button.textContent = count ? `Filters (${count})` : "Filters";
    byId("clear-filters").disabled = count === 0;
  }
}

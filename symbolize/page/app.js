// The page: reads the data, keeps the views in step with the state, and says what a click or key does.

const VIEWS = ["graph", "table", "peek", "source"];
const CHOICES = ["type", "labels", "time", ...FILTERS];
const byId = (id) => document.getElementById(id);

class App {
  constructor(data) {
    this.data = data;
    this.files = data.files;
    this.modules = data.modules;
    this.fileOf = data.column("frame.files");
    this.moduleOf = data.column("frame.modules");
    this.wholeTree = new CallTree(data);
    this.slices = data.slices ? new Slices(data) : null;
    this.searchField = byId("search");
    this.help = byId("help");
    this.last = {};
    this.state = new State(data.selected, () => this.update());
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.theme = this.wantedTheme();
    this.source = new SourceView(this);
    this.graph = new Graph(this);
    this.table = new FunctionTable(this);
    this.peek = new Peek(this);
    this.tracks = new Tracks(this);
    this.filters = new FilterPanel(this);
    this.listen();
    this.update();
  }

  listen() {
    const { state, data } = this;
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.open(button.dataset.view));
    }
    const select = (id, key) => byId(id).addEventListener("change", () => state.set({ [key]: byId(id).value }));
    select("order", "order");
    select("color", "color");
    byId("type").append(
      ...data.types.map(([type, unit], i) => element("option", { value: i }, unit ? `${type} (${unit})` : type)),
    );
    byId("type").addEventListener("change", () => state.set({ type: Number(byId("type").value) }));
    byId("type").closest("label").hidden = data.types.length < 2;
    byId("color").querySelector("[value=change]").hidden = !data.difference;
    byId("callers").addEventListener("click", () => this.graph.invert());
    byId("flip").addEventListener("click", () => state.set({ flip: !state.values.flip }));
    byId("theme").addEventListener("click", () => this.changeTheme());
    byId("show-help").addEventListener("click", () => this.showHelp());
    this.searchField.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => state.set({ search: this.searchField.value }), 60);
    });
    this.dark.addEventListener("change", () => this.applyTheme());
    addEventListener("beforeprint", () => {
      this.applyTheme("light");
      this.graph.drawing.drawForPrint();
    });
    addEventListener("afterprint", () => {
      this.graph.drawing.endPrint();
      this.applyTheme();
    });
    listenToKeys(this);
  }

  /** Bring what is shown in line with the state. */
  update() {
    const { values } = this.state;
    const { last } = this;
    if (!this.data.types[values.type]) values.type = this.data.selected;
    for (const key of ["sandwich", "peek"]) if (!(values[key] < this.data.names.length)) values[key] = -1;
    if (!VIEWS.includes(values.view)) values.view = VIEWS[0];
    const isOther = CHOICES.some((key) => values[key] !== last[key]);
    if (isOther) this.choose(values.type !== last.type);
    if (values.search !== last.search) {
      this.search = values.search ? new Search(values.search, this.data.names) : null;
      if (document.activeElement !== this.searchField) this.searchField.value = values.search;
    }
    if (values.search !== last.search || isOther) this.showMatches();
    for (const view of VIEWS) byId(view).hidden = view !== values.view;
    for (const button of document.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", button.dataset.view === values.view);
    }
    if (values.view === "graph") this.graph.show(values.search !== last.search || values.color !== last.color);
    else if (values.view === "table") this.table.show();
    else if (values.view === "peek") this.peek.show();
    else this.source.show();
    this.last = { ...values };
  }

  /** Make the tree and the values of what is chosen by sample type, labels, time and filters. */
  choose(isOtherType) {
    const { data, slices, wholeTree } = this;
    const { values } = this.state;
    const kind = values.type;
    this.unit = new Unit(...data.types[kind].slice(1));
    const chosen = slices?.rows(values) ?? null;
    const filters = frameFilters(values, this);
    const { tree, target } = filters ? filteredTree(wholeTree, filters) : { tree: wholeTree, target: null };
    const node = (each, row) => (chosen && !chosen[row] ? -1 : target ? target[each] : each);
    const nodes = chosen || target ? wholeTree.holders.map(node) : wholeTree.holders;
    this.tree = tree;
    const weights = (this.weights = new Weights(tree, data, kind, nodes));
    const rows = data.names.length;
    const net = (this.net = { value: weights.total[0], base: weights.baseTotal?.[0] ?? 0 });
    const whole = (i, value) => data.totals[i]?.[kind] ?? Math.abs(value);
    const inSlices = chosen && slices.sizes(kind).reduce((sum, size, row) => sum + chosen[row] * size, 0);
    const [value, base] = [inSlices ?? whole(0, net.value), whole(1, net.base)];
    this.chosenShare = chosen ? `${formatShare(value, whole(0, net.value))} of all samples` : "";
    this.totals = { value, base, width: Math.max(weights.width[0], value + base) }; // filters may have left less
    this.functions = functionTotals(tree, weights.own, weights.total, rows);
    this.baseFunctions = weights.isDifference ? functionTotals(tree, weights.baseOwn, weights.baseTotal, rows) : null;
    if (isOtherType) {
      const all = nodes === wholeTree.holders ? weights : new Weights(wholeTree, data, kind, wholeTree.holders);
      const functions = all === weights ? this.functions : functionTotals(wholeTree, all.own, all.total, rows);
      this.colors = new Colors(data, this.moduleOf, functions); // a choice changes no colours
      this.colors.setTheme(this.theme);
      this.tracks.fill(kind);
      this.filters.fill(kind);
    }
    this.tracks.show();
    this.filters.show();
    this.graph.clear();
    this.showSummary();
  }

  /** What is chosen but the sample type, as texts. */
  choiceTexts() {
    const { values } = this.state;
    const filters = FILTERS.filter((name) => values[name]).map((name) => {
      const note = filterMatcher(values[name]).isLiteral ? ", as plain text" : "";
      return `${name} ${shown(values[name])}${note}`;
    });
    return [...(this.slices?.texts(values) ?? []), ...filters];
  }

  /** The text of a key of labels that is chosen, by number, or null. */
  chosenLabel(key) {
    return this.slices?.labels(this.state.values.labels).get(key) ?? null;
  }

  chooseLabel(key, code) {
    const labels = this.slices.labels(this.state.values.labels);
    if (code === null) labels.delete(key);
    else labels.set(key, code);
    this.state.set({ labels: [...labels].map((each) => each.join(".")).join(",") }, true);
  }

  clearChoice() {
    this.state.set({ labels: "", time: "", focus: "", ignore: "", hide: "" }, true);
  }

  showSummary() {
    const { data, totals, net, unit, weights } = this;
    const type = data.types[this.state.values.type][0];
    const width = weights.width[0];
    const named = width ? `${formatShare(weights.named, width)} of samples in named code` : "no samples";
    const sum = weights.hasNegative ? " net" : "";
    const ofWhole = (value, whole) =>
      formatValue(value, unit) + (changeOf(value, whole) ? `${sum} of ${formatValue(whole, unit)}` : "");
    const amounts = weights.isDifference
      ? [
          `${type}: ${ofWhole(net.value, totals.value)}`,
          `base: ${ofWhole(net.base, totals.base)}`,
          `change: ${formatChange(changeOf(net.value, net.base), unit)}`,
        ]
      : [`${ofWhole(net.value, totals.value)} ${type}`];
    const compared = data.baseTitle ? [`compared with ${shown(data.baseTitle)}`] : [];
    const texts = [...amounts, this.chosenShare, named, ...compared, ...this.choiceTexts()];
    byId("summary").textContent = texts.filter(Boolean).join(" · ");
    byId("type").value = this.state.values.type;
  }

  showMatches() {
    const { search, tree, weights, totals } = this;
    const output = byId("matches");
    if (!search) return void (output.textContent = "");
    const share = formatShare(search.matched(tree, weights.width), totals.width);
    const count = `${WHOLE.format(search.functions)} function${search.functions === 1 ? "" : "s"}`;
    output.textContent = `${share} in ${count}${search.isLiteral ? ", as plain text" : ""}`;
  }

  leave() {
    const { values } = this.state;
    if (values.view !== "graph") this.open("graph");
    else if (values.zoom) this.state.set({ zoom: "" }, true);
    else if (values.sandwich >= 0) this.graph.endSandwich();
    else if (values.search) this.endSearch();
    else this.clearChoice();
  }

  endSearch() {
    clearTimeout(this.typing);
    this.searchField.value = "";
    this.searchField.blur();
    this.state.set({ search: "" });
  }

  changeOrder() {
    this.state.set({ order: this.state.values.order === "weight" ? "name" : "weight" });
  }

  open(view) {
    if (view === "peek") return this.peek.open();
    this.state.set({ view }, true);
    if (view === "graph") this.graph.drawing.stage.focus({ preventScroll: true });
  }

  openSource(row) {
    const line = this.source.lineOf(row);
    const code = this.source.instructions.blockOf(row);
    this.state.set({ view: "source", file: this.files[this.fileOf[row]], line, code }, true);
  }

  openSelectedSource() {
    const row = this.graph.selected?.frame ?? -1;
    if (row >= 0 && this.source.has(row)) this.openSource(row);
    else this.open("source");
  }

  showHelp() {
    this.help.showModal();
  }

  // Dark and light.

  /** What the reader chose here, else in the browser. */
  wantedTheme() {
    return this.chosenTheme ?? (this.dark.matches ? "dark" : "light");
  }

  changeTheme() {
    this.chosenTheme = this.wantedTheme() === "dark" ? "light" : "dark";
    this.applyTheme();
  }

  applyTheme(forced = null) {
    this.theme = forced ?? this.wantedTheme();
    document.documentElement.style.colorScheme = forced ?? this.chosenTheme ?? "light dark";
    this.colors.setTheme(this.theme);
    this.graph.show(true);
  }
}

async function start() {
  const message = byId("message");
  try {
    if (typeof DecompressionStream === "undefined")
      throw new Error("this browser is too old: it has no DecompressionStream");
    const app = new App(await readData());
    globalThis.symbolizePage = app; // for the console and for tests
    message.remove();
    byId("app").hidden = false;
    app.update();
    requestAnimationFrame(() => performance.mark("first picture"));
  } catch (error) {
    message.textContent = `This page cannot be shown: ${error.message}`;
    throw error;
  }
}

start();

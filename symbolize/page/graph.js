// The graph: which views of the call tree it shows, zoomed where, and what clicks and arrow keys do in it.

const MOST_CRUMBS = 6;
const MOST_VIEWS = 20;

class Graph {
  constructor(app) {
    this.app = app;
    this.state = app.state;
    this.drawing = new Drawing(byId("stage"));
    this.details = new Details(app, this);
    this.views = new Map();
    this.shorter = [];
    this.zoomed = this.selected = this.shownDetails = null;
    this.details.showSelected(null);
    const { stage } = this.drawing;
    stage.addEventListener("click", (event) => this.click(this.drawing.hit(event)?.branch));
    stage.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.point(event));
    stage.addEventListener("pointerleave", () => this.point(null));
    stage.addEventListener("scroll", () => this.point(null), { passive: true });
    new ResizeObserver(() => this.drawing.isResized && this.show(true)).observe(stage);
  }

  /** Forget the views: the values are others. */
  clear() {
    this.views.clear();
    this.zoomed = this.selected = null;
  }

  /** The views that are shown: from the root, from the leaves, or both ways from a function. The first one has the root. */
  currentViews() {
    const { tree, weights, data } = this.app;
    const { callers, sandwich } = this.state.values;
    const key = `${callers} ${sandwich}`;
    if (!this.views.has(key)) {
      if (this.views.size >= MOST_VIEWS) this.views.clear();
      if (sandwich >= 0) {
        const nodes = outermostNodes(tree, sandwich);
        this.views.set(key, [
          new Callees(tree, weights, data.names, nodes, sandwich),
          Callers.ofFunction(tree, weights, data.names, nodes, sandwich),
        ]);
      } else if (callers) this.views.set(key, [Callers.ofLeaves(tree, weights, data.names)]);
      else this.views.set(key, [new Callees(tree, weights, data.names, [0], -1)]);
    }
    return this.views.get(key);
  }

  /** The zoomed branch: as far as the path of the state leads. */
  zoomedBranch(views) {
    const { zoom, order } = this.state.values;
    let branch = views[zoom.startsWith("^") && views[1] ? 1 : 0].root;
    for (const frame of zoom.replace("^", "").split(".").filter(Boolean)) {
      const next = branch.children(order).find((child) => child.frame === Number(frame));
      if (!next) break;
      branch = next;
    }
    return branch;
  }

  /** Lay the graph out anew and draw it. */
  show(keepScroll = false) {
    if (byId("graph").hidden || !this.drawing.pixels) return;
    const start = performance.now();
    const { app } = this;
    const { values } = this.state;
    const views = this.currentViews();
    this.zoomed = this.zoomedBranch(views);
    const layout = new Layout(this.drawing.pixels);
    views.forEach((view, i) =>
      layout.addView(this.zoomed.view === view ? this.zoomed : view.root, values.order, i === 0),
    );
    layout.finish();
    const color = values.color || (app.weights.isDifference ? "change" : "module");
    const above = new Set();
    for (let branch = this.zoomed.parent; branch; branch = branch.parent) above.add(branch);
    const { search, colors, totals } = app;
    const isMatch = (branch) => search !== null && branch.frame >= 0 && search.matches[branch.frame] === 1;
    const scene = {
      flip: values.flip,
      theme: colors.theme,
      paper: getComputedStyle(document.body).backgroundColor,
      fill: (branch) => colors.fill(branch, color, totals),
      labels: (branch) => this.labels(branch),
      isMatch,
      isFaint: (branch) => above.has(branch) || (search !== null && !isMatch(branch)),
    };
    this.showControls(color);
    this.showLegend(color, layout);
    this.showCrumbs();
    if (this.selected && !layout.find(this.selected)) this.selected = null;
    if (!this.selected && values.sandwich >= 0) this.selected = views[0].root;
    if (this.selected !== this.shownDetails) this.details.showSelected((this.shownDetails = this.selected));
    this.drawing.hovered = null;
    this.drawing.show(layout, scene, keepScroll);
    this.drawing.select(this.selected);
    performance.measure("redraw", { start });
  }

  showControls(color) {
    const { values } = this.state;
    byId("order").value = values.order;
    byId("color").value = color;
    byId("callers").setAttribute("aria-pressed", values.callers);
    byId("callers").disabled = values.sandwich >= 0;
    byId("flip").setAttribute("aria-pressed", values.flip);
  }

  showLegend(color, layout) {
    const { weights, data, colors } = this.app;
    const entries = colors.legend(color, layout.kinds()).map(({ fill, label }) => {
      const swatch = element("i");
      swatch.style.background = fill;
      return element("li", {}, swatch, label);
    });
    const notes = [
      weights.isDifference ? "width: base plus new" : "",
      weights.hasNegative ? "some values are negative: widths add up absolute values" : "",
      data.rounded ? "totals above 2⁵³ are rounded" : "",
    ];
    byId("legend").replaceChildren(
      ...entries,
      ...notes.filter(Boolean).map((note) => element("li", { class: "note" }, note)),
    );
  }

  showCrumbs() {
    const path = [];
    for (let branch = this.zoomed; branch; branch = branch.parent) path.unshift(branch);
    const { sandwich, callers } = this.state.values;
    const crumb = (branch) => {
      const name = branch.frame < 0 ? (callers ? "all, inverted" : "all") : this.label(branch);
      const current = branch === this.zoomed ? "location" : null;
      const button = element(
        "button",
        { onclick: () => this.zoom(branch), "aria-current": current, title: name },
        name,
      );
      return element("li", {}, button);
    };
    const crumbs =
      path.length > MOST_CRUMBS
        ? [...path.slice(0, 2).map(crumb), element("li", {}, "…"), ...path.slice(-3).map(crumb)]
        : path.map(crumb);
    if (sandwich >= 0)
      crumbs.unshift(element("li", {}, element("button", { onclick: () => this.endSandwich() }, "all")));
    byId("crumbs").classList.toggle("wide", crumbs.length === 1);
    byId("crumbs").replaceChildren(...crumbs);
  }

  label(branch) {
    const { data } = this.app;
    if (branch.count) return `${WHOLE.format(branch.count)} smaller frames`;
    return branch.frame < 0 ? `all ${data.types[this.state.values.type][0]}` : data.names[branch.frame];
  }

  /** The label of a branch and shorter forms of it. */
  labels(branch) {
    if (branch.frame < 0) return [this.label(branch)];
    return (this.shorter[branch.frame] ??= shorterNames(this.app.data.names[branch.frame]));
  }

  click(branch) {
    this.drawing.stage.focus({ preventScroll: true });
    if (!branch) return;
    if (branch.count) branch = branch.parent; // they are wider when it is
    this.selected = branch;
    this.details.showTooltip(null);
    if (branch === this.zoomed) this.show(true);
    else this.zoom(branch);
  }

  point(event) {
    const rectangle = event && this.drawing.hit(event);
    this.drawing.hover(rectangle);
    this.details.showTooltip(rectangle?.branch ?? null, event);
    this.drawing.stage.style.cursor = rectangle ? "pointer" : "";
  }

  zoom(branch) {
    const frames = [];
    for (let each = branch; each.parent; each = each.parent) frames.unshift(each.frame);
    this.selected = branch;
    this.state.set({ zoom: (frames.length && branch.view.sign < 0 ? "^" : "") + frames.join(".") }, true);
  }

  zoomSelected() {
    if (this.selected) this.zoom(this.selected.count ? this.selected.parent : this.selected);
  }

  zoomOut() {
    if (this.zoomed?.parent) this.zoom(this.zoomed.parent);
  }

  zoomAll() {
    this.state.set({ zoom: "", sandwich: -1, view: "graph" }, true);
  }

  sandwich(row) {
    this.selected = null;
    this.state.set({ view: "graph", sandwich: row, zoom: "", callers: false }, true);
    this.select(this.currentViews()[0].root);
    this.drawing.stage.focus({ preventScroll: true });
  }

  endSandwich() {
    this.state.set({ sandwich: -1, zoom: "" }, true);
  }

  sandwichSelected() {
    if (this.state.values.view === "graph" && this.selected?.frame >= 0) this.sandwich(this.selected.frame);
  }

  invert() {
    this.selected = null;
    this.state.set({ view: "graph", callers: !this.state.values.callers, zoom: "", sandwich: -1 }, true);
  }

  select(branch) {
    this.selected = this.shownDetails = branch;
    this.drawing.select(branch);
    this.details.showTooltip(null);
    this.details.showSelected(branch);
  }

  /** Move the selection by an arrow key: `x` to the next frame of the row, `y` to the next row of the screen. */
  move(x, y) {
    const { layout } = this.drawing;
    const place = this.selected && layout.find(this.selected);
    if (!place) return this.select(this.zoomed);
    if (x) {
      const count = layout.rows.get(place.level).left.length;
      return this.select(layout.rectangle(place.level, Math.min(Math.max(place.index + x, 0), count - 1)).branch);
    }
    const level = place.level + (this.state.values.flip ? -y : y);
    const row = layout.rows.get(level);
    if (!row) return;
    const isAway = Math.abs(level) > Math.abs(place.level);
    const wanted = isAway
      ? row.branches.find((each) => each.parent === this.selected || (place.level === 0 && !each.parent?.parent))
      : row.branches.find((each) => each === this.selected.parent || level === 0);
    if (wanted) this.select(wanted);
  }

  async copySelected() {
    const [button, name] = [byId("copy"), this.details.bar.querySelector("strong")]; // others may follow meanwhile
    if (!button || !(this.selected?.frame >= 0)) return;
    try {
      await navigator.clipboard.writeText(this.label(this.selected));
      button.textContent = "Copied";
      this.details.say("copied");
    } catch {
      getSelection().selectAllChildren(name);
      this.details.say("The browser does not allow copying; the name is marked.");
    }
  }
}

// Peek: the callers and callees of a function with the values of these calls, as `go tool pprof -peek` has them.

const MOST_EDGES = 500;

/** The values of the calls of a function and by it, by row of the other function: a call counts once a stack, and those
 * of a function by itself are none. */
function edgeTotals(tree, total, row) {
  const edges = { callers: new Map(), callees: new Map() };
  const add = (others, other, node) => {
    const edge = others.get(other);
    if (!edge) others.set(other, { value: total[node], end: tree.end[node] });
    else if (node >= edge.end) {
      edge.value += total[node];
      edge.end = tree.end[node];
    }
  };
  for (let node = 1; node < tree.count; node++) {
    const parent = tree.parent[node];
    const [caller, callee] = [tree.frame[parent], tree.frame[node]];
    if (parent === 0 || caller === callee) continue;
    if (callee === row) add(edges.callers, caller, node);
    else if (caller === row) add(edges.callees, callee, node);
  }
  return edges;
}

class Peek {
  constructor(app) {
    this.app = app;
    this.table = document.querySelector("#peek table");
  }

  open(row = this.app.graph.selected?.frame) {
    this.app.state.set({ view: "peek", peek: row >= 0 ? row : this.app.state.values.peek }, true);
  }

  /** The function that was chosen, else that of the sandwich, else that with the largest own value. */
  row() {
    const { state, functions } = this.app;
    const { peek, sandwich } = state.values;
    if (peek >= 0 || sandwich >= 0) return peek >= 0 ? peek : sandwich;
    return functions.flat.reduce((most, value, row, flat) => (Math.abs(value) > Math.abs(flat[most]) ? row : most), 0);
  }

  show() {
    const { weights, tree, functions, baseFunctions, data, totals } = this.app;
    const row = this.row();
    const isEmpty = data.names.length === 0;
    const edges = edgeTotals(tree, weights.total, row);
    const before = weights.isDifference ? edgeTotals(tree, weights.baseTotal, row) : null;
    const lines = (which) => {
      const others = [...new Set([...edges[which].keys(), ...(before?.[which].keys() ?? [])])];
      const all = others.map((other) => ({
        row: other,
        value: edges[which].get(other)?.value ?? 0,
        base: before?.[which].get(other)?.value ?? 0,
      }));
      const size = ({ value, base }) => Math.abs(value) + Math.abs(base);
      return all.filter(size).sort((a, b) => size(b) - size(a) || (data.names[a.row] < data.names[b.row] ? -1 : 1));
    };
    const own = (label, values, base) => ({ row, label, value: values[row], base: base?.[row] ?? 0 });
    const groups = isEmpty
      ? []
      : [
          ["Callers", lines("callers")],
          [
            "Function",
            [
              own("", functions.cumulative, baseFunctions?.cumulative),
              own("in itself", functions.flat, baseFunctions?.flat),
            ],
          ],
          ["Callees", lines("callees")],
        ];
    const heads = weights.isDifference ? ["Base", "New", "Change", "Share"] : ["Value", "Of all", "Of the function"];
    const head = [...heads, "Function"].map((text, i) =>
      element("th", { scope: "col", class: i < heads.length ? this.look(i) : "name" }, text),
    );
    this.table.tHead.replaceChildren(element("tr", {}, ...head));
    const bodies = groups.map(([title, rows]) => this.group(title, rows, functions.cumulative[row], totals));
    setContent(this.table, [this.table.caption, this.table.tHead, ...bodies]);
  }

  /** The class of a column of numbers; a narrow window has no room for four. */
  look(i) {
    return i < 3 ? "number" : "number wide";
  }

  group(title, rows, cumulative, totals) {
    const count = this.app.weights.isDifference ? 5 : 4;
    const note = (text) => element("td", { colspan: count, class: "note" }, text);
    const body = element("tbody", {});
    body.append(
      element("tr", {}, element("th", { colspan: count, scope: "rowgroup" }, title)),
      ...rows.slice(0, MOST_EDGES).map((each) => this.line(each, cumulative, totals)),
    );
    if (!rows.length) body.append(element("tr", {}, note("none")));
    if (rows.length > MOST_EDGES)
      body.append(element("tr", {}, note(`${WHOLE.format(rows.length - MOST_EDGES)} lighter ones`)));
    return body;
  }

  line({ row, label, value, base }, cumulative, totals) {
    const { unit, weights, data, modules, moduleOf } = this.app;
    const change = changeOf(value, base);
    const texts = weights.isDifference
      ? [
          formatValue(base, unit),
          formatValue(value, unit),
          formatChange(change, unit),
          formatShareChange(changeOf(shareOf(value, totals.value), shareOf(base, totals.base))),
        ]
      : [formatValue(value, unit), formatShare(value, totals.value), formatShare(value, cumulative)];
    const name = element("td", { class: "name" });
    if (label) name.append(label);
    else {
      const module = element("span", { class: "module" }, shown(modules[moduleOf[row]]));
      name.append(element("button", { onclick: () => this.open(row) }, ...breakable(data.names[row])), " ", module);
    }
    const cells = texts.map((text, i) => element("td", { class: this.look(i) }, text));
    if (weights.isDifference) cells[2].classList.add(change > 0 ? "grown" : change < 0 ? "shrunk" : "same");
    return element("tr", {}, ...cells, name);
  }
}

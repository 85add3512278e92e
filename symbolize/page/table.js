// The table of functions: sortable, filtered by the search, some rows at a time.

const FIRST_ROWS = 200;
const MORE_ROWS = 1000;

class FunctionTable {
  constructor(app) {
    this.app = app;
    this.table = document.querySelector("#table table");
    this.more = document.getElementById("more");
    this.count = document.getElementById("row-count");
    this.limit = FIRST_ROWS;
    this.more.addEventListener("click", () => {
      const shown = this.limit;
      this.limit += MORE_ROWS;
      this.table.tBodies[0].append(...this.lines(shown));
      this.showCount();
    });
  }

  /** Columns: key, label, value by row, text by row; those marked wide are left out on narrow screens. */
  columns() {
    const { app } = this;
    const { unit, totals, functions, baseFunctions } = app;
    const numbers = (key, label, values, wide) => ({
      key,
      label,
      wide,
      value: (row) => values[row],
      text: (row) => formatValue(values[row], unit),
    });
    const shares = (key, label, values) => ({
      key,
      label,
      value: (row) => values[row],
      text: (row) => formatShare(values[row], totals.value),
      bar: true,
    });
    const name = { key: "name", label: "Function", value: (row) => app.data.names[row] };
    const module = {
      key: "module",
      label: "Module",
      wide: true,
      value: (row) => shown(app.modules[app.moduleOf[row]]),
    };
    if (!app.weights.isDifference) {
      const { flat, cumulative } = functions;
      return [
        numbers("flat", "Flat", flat, true),
        shares("flat%", "Flat %", flat),
        numbers("cum", "Cum", cumulative, true),
        shares("cum%", "Cum %", cumulative),
        name,
        module,
      ];
    }
    const change = (key, label, values, base) => {
      const value = (row) => changeOf(values[row], base[row]);
      return { key, label, value, size: (row) => Math.abs(value(row)), text: (row) => formatChange(value(row), unit) };
    };
    const share = (key, label, values, base) => {
      const value = (row) => changeOf(shareOf(values[row], totals.value), shareOf(base[row], totals.base));
      return { key, label, value, size: (row) => Math.abs(value(row)), text: (row) => formatShareChange(value(row)) };
    };
    return [
      numbers("base-flat", "Flat base", baseFunctions.flat, true),
      numbers("flat", "Flat new", functions.flat, true),
      change("delta-flat", "Flat change", functions.flat, baseFunctions.flat),
      share("share-flat", "Flat share", functions.flat, baseFunctions.flat),
      numbers("base-cum", "Cum base", baseFunctions.cumulative, true),
      numbers("cum", "Cum new", functions.cumulative, true),
      change("delta-cum", "Cum change", functions.cumulative, baseFunctions.cumulative),
      share("share-cum", "Cum share", functions.cumulative, baseFunctions.cumulative),
      name,
      module,
    ];
  }

  /** Rows with a value, in the chosen order: heaviest first, texts from A to Z. */
  rows(columns) {
    const { state, functions, baseFunctions, search, data } = this.app;
    const chosen = state.values.sort || (baseFunctions ? "delta-flat" : "flat%");
    const key = chosen.replace(/^-/, "");
    const column = columns.find((each) => each.key === key) ?? columns[0];
    const sign = chosen.startsWith("-") ? -1 : 1;
    const value = column.size ?? column.value;
    const rows = [];
    for (let row = 0; row < data.names.length; row++) {
      const counts = functions.flat[row] || functions.cumulative[row] || baseFunctions?.cumulative[row];
      if (counts && (!search || search.matches[row])) rows.push(row);
    }
    const cumulative = functions.cumulative;
    const compare = (a, b) => {
      const x = value(a),
        y = value(b);
      if (x === y) return cumulative[b] - cumulative[a] || (data.names[a] < data.names[b] ? -1 : 1);
      return typeof x === "string" ? sign * (x < y ? -1 : 1) : sign * (y - x);
    };
    return { rows: rows.sort(compare), column, sign };
  }

  show() {
    const columns = this.columns();
    const { rows, column, sign } = this.rows(columns);
    const heads = columns.map((each) => {
      const isText = !each.text;
      const sorted = each !== column ? null : sign > 0 === isText ? "ascending" : "descending";
      const toggle = () => this.app.state.set({ sort: each === column && sign > 0 ? `-${each.key}` : each.key });
      const button = element("button", { onclick: toggle }, each.label);
      return element("th", { scope: "col", "aria-sort": sorted, class: this.classOf(each) }, button);
    });
    this.table.tHead.replaceChildren(element("tr", {}, ...heads));
    Object.assign(this, { rowsInOrder: rows, shownColumns: columns });
    setContent(this.table.tBodies[0], this.lines(0));
    this.showCount();
  }

  /** The lines of the table from one on, up to the limit. */
  lines(first) {
    return this.rowsInOrder.slice(first, this.limit).map((row) => this.line(row, this.shownColumns));
  }

  showCount() {
    const { length } = this.rowsInOrder;
    const shown = length > this.limit ? `${WHOLE.format(this.limit)} of ` : "";
    this.count.textContent = `${shown}${WHOLE.format(length)} function${length === 1 ? "" : "s"}`;
    this.more.hidden = length <= this.limit;
  }

  classOf(column) {
    return [column.text ? "number" : column.key, column.wide ? "wide" : ""].filter(Boolean).join(" ");
  }

  line(row, columns) {
    const { app } = this;
    const cells = columns.map((column) => {
      const cell = element("td", { class: this.classOf(column) });
      if (column.key === "name") {
        cell.append(
          element(
            "button",
            { title: "All stacks with this function, merged", onclick: () => app.graph.sandwich(row) },
            ...breakable(app.data.names[row]),
          ),
        );
        if (app.source.has(row)) {
          cell.append(
            element(
              "button",
              {
                class: "to-source",
                onclick: () => app.openSource(row),
                "aria-label": `Source of ${app.data.names[row]}`,
              },
              "source",
            ),
          );
        }
        const peek = {
          class: "to-source",
          onclick: () => app.peek.open(row),
          "aria-label": `Callers of ${app.data.names[row]}`,
        };
        cell.append(element("button", peek, "callers"));
        cell.append(element("span", { class: "narrow" }, shown(app.modules[app.moduleOf[row]])));
      } else cell.append(column.text ? column.text(row) : column.value(row));
      if (column.bar && app.totals.value) {
        cell.style.setProperty("--share", Math.min(1, Math.max(0, column.value(row) / app.totals.value)));
        cell.classList.add("share");
      }
      if (column.size) cell.classList.add(column.value(row) > 0 ? "grown" : column.value(row) < 0 ? "shrunk" : "same");
      return cell;
    });
    return element("tr", {}, ...cells);
  }
}

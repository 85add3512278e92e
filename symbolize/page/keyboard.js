// Keys. Those with a modifier, and those typed into a field, are left to the browser.

const KEYS = [
  ["/", "search", (app) => app.searchField.select()],
  ["Escape", "zoom out, end the sandwich, the search, then what is chosen", (app) => app.leave()],
  ["Enter", "zoom into the selected frame", (app) => app.graph.zoomSelected()],
  ["+", "zoom into the selected frame", (app) => app.graph.zoomSelected(), "="],
  ["-", "zoom out by one frame", (app) => app.graph.zoomOut()],
  ["0", "zoom out to everything", (app) => app.graph.zoomAll()],
  ["← ↑ → ↓", "select the next frame", null],
  ["i", "invert: from leaves to callers", (app) => app.graph.invert()],
  ["u", "upside down: flame graph or icicle", (app) => app.state.set({ flip: !app.state.values.flip })],
  ["f", "sandwich: all stacks with the selected function, merged", (app) => app.graph.sandwichSelected()],
  ["g", "graph", (app) => app.open("graph")],
  ["t", "table of functions", (app) => app.open("table")],
  ["p", "peek: callers and callees of the selected function", (app) => app.peek.open()],
  ["s", "source of the selected function", (app) => app.openSelectedSource()],
  ["c", "copy the name of the selected function", (app) => app.graph.copySelected()],
  ["o", "order by weight or by name", (app) => app.changeOrder()],
  ["d", "dark or light", (app) => app.changeTheme()],
  ["?", "these keys", (app) => app.showHelp()],
];
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

function listenToKeys(app) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || app.help.open) return;
    const { target } = event;
    if (target === app.searchField) {
      if (event.key === "Escape") app.endSearch();
      else if (event.key === "Enter") target.blur();
      return;
    }
    if (target.matches("select, input, textarea")) return;
    if (event.key === "Enter" && target.matches("button, summary")) return;
    const arrow = app.state.values.view === "graph" && ARROWS[event.key];
    const known = KEYS.find(([key, , action, other]) => action && (key === event.key || other === event.key));
    if (arrow) app.graph.move(...arrow);
    else if (known) known[2](app);
    else return;
    event.preventDefault();
  });
  document
    .getElementById("keys")
    .append(
      ...KEYS.map(([key, text]) =>
        element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, text)),
      ),
    );
}

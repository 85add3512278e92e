// What is known of a frame: the tooltip under the pointer, and the bar below the picture for the selected one.

/** A new element with text and attributes; text is never markup. */
function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value !== null) made.setAttribute(key, value);
  }
  made.append(...content);
  return made;
}

/** Make `children` the content of an element; they may be more than a call can have arguments. What scrolls around it
 * takes the focus of what is replaced: without any, the keyboard would begin at the top of the page. */
function setContent(parent, children) {
  const hadFocus = parent.contains(document.activeElement);
  const content = document.createDocumentFragment();
  for (const child of children) content.append(child);
  parent.replaceChildren(content);
  if (hadFocus) parent.closest(".scroll")?.focus({ preventScroll: true });
}

/** A qualified name that may be broken into lines behind its separators. */
function breakable(name) {
  return name.split(/(?<=::|[/,<])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}

class Details {
  constructor(app, graph) {
    this.app = app;
    this.graph = graph;
    this.tooltip = document.getElementById("tooltip");
    this.bar = document.getElementById("details");
    this.live = document.getElementById("live");
  }

  /** Label and text of what is known of a branch. */
  facts(branch) {
    const { weights, unit, totals, functions } = this.app;
    const withShare = (value, whole = totals.value) => `${formatValue(value, unit)} (${formatShare(value, whole)})`;
    if (weights.isDifference) {
      return [
        ["new", withShare(branch.value)],
        ["base", withShare(branch.base, totals.base)],
        ["change", formatChange(changeOf(branch.value, branch.base), unit)],
        ["share", formatShareChange(changeOf(shareOf(branch.value, totals.value), shareOf(branch.base, totals.base)))],
      ];
    }
    const facts = [["total here", withShare(branch.value)]];
    if (!branch.count && branch.view.sign > 0 && !(branch.view instanceof Callers))
      facts.push(["self here", withShare(branch.own)]);
    if (branch.frame >= 0) {
      facts.push(["function flat", withShare(functions.flat[branch.frame])]);
      facts.push(["function cum", withShare(functions.cumulative[branch.frame])]);
    }
    return facts;
  }

  /** File, module, and how the frame was resolved. */
  place(branch) {
    if (branch.count) return "each too narrow to be drawn: zoom in, or look for them in the table";
    if (branch.frame < 0) return "all samples";
    const { files, modules, fileOf, moduleOf } = this.app;
    const kind = kindOf(branch.flags);
    return [shown(files[fileOf[branch.frame]]), shown(modules[moduleOf[branch.frame]]), kind ? KINDS[kind].label : ""]
      .filter(Boolean)
      .join(" · ");
  }

  showTooltip(branch, event) {
    this.tooltip.hidden = !branch;
    if (!branch) return;
    const facts = this.facts(branch).map(([label, text]) =>
      element("div", {}, element("dt", {}, label), element("dd", {}, text)),
    );
    this.tooltip.replaceChildren(
      element("strong", {}, ...breakable(this.graph.label(branch))),
      element("p", {}, this.place(branch)),
      element("dl", {}, ...facts),
    );
    const { offsetWidth: width, offsetHeight: height } = this.tooltip;
    const left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8));
    const below = event.clientY + 18;
    this.tooltip.style.left = `${left}px`;
    this.tooltip.style.top = `${below + height > innerHeight ? Math.max(4, event.clientY - height - 12) : below}px`;
  }

  showSelected(branch) {
    const { app, graph } = this;
    if (!branch) {
      this.bar.replaceChildren(
        element(
          "p",
          { class: "hint" },
          "Click a frame to zoom in. Arrow keys move from frame to frame; ? lists all keys.",
        ),
      );
      return;
    }
    const facts = this.facts(branch);
    const texts = facts.map(([label, text]) => element("div", {}, element("dt", {}, label), element("dd", {}, text)));
    const buttons = [];
    if (branch.frame >= 0) {
      buttons.push(
        element(
          "button",
          { title: "All stacks with this function, merged (f)", onclick: () => graph.sandwich(branch.frame) },
          "Sandwich",
        ),
      );
      if (app.source.has(branch.frame)) {
        buttons.push(element("button", { title: "Source (s)", onclick: () => app.openSource(branch.frame) }, "Source"));
      }
      buttons.push(
        element("button", { id: "copy", title: "Copy the name (c)", onclick: () => graph.copySelected() }, "Copy name"),
      );
    }
    this.bar.replaceChildren(
      element(
        "div",
        { class: "names" },
        element("strong", {}, ...breakable(graph.label(branch))),
        element("p", {}, this.place(branch)),
      ),
      element("dl", {}, ...texts),
      element("div", { class: "buttons" }, ...buttons),
    );
    this.say(`${graph.label(branch)}, ${facts.map(([label, text]) => `${label} ${text}`).join(", ")}`);
  }

  /** Something that screen readers announce. */
  say(text) {
    this.live.textContent = text;
  }
}

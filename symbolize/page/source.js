// The source view: values beside the lines of one file. Long stretches without values are folded.

const CONTEXT = 12;
const SHORTEST_FOLD = 6;
const MOST_OPENED = 2000; // lines of a fold that a click opens

class SourceView {
  constructor(app) {
    this.app = app;
    const { data } = app;
    this.body = document.querySelector("#source tbody");
    this.select = document.getElementById("file");
    this.message = document.getElementById("source-message");
    this.lines = data.has("line.file")
      ? { file: data.column("line.file"), number: data.column("line.number") }
      : { file: [], number: [] };
    this.frameLines = data.has("frame.line") ? data.column("frame.line") : null;
    this.select.addEventListener("change", () => app.state.set({ file: this.select.value, line: 0, code: -1 }, true));
    this.known = new Set(data.sources);
    for (const file of this.lines.file) this.known.add(data.lineFiles[file]);
    this.instructions = new Instructions(app);
    for (const file of this.instructions.files()) this.known.add(file); // also those without values
    this.body.addEventListener("click", (event) => {
      const line = Number(event.target.closest("tr.decoded")?.dataset.line);
      if (!line || String(getSelection())) return;
      this.isChosenHere = true;
      app.state.set({ file: this.file, line, code: -1 }, true);
    });
  }

  /** Whether there is something to show of the file of a function. */
  has(row) {
    return this.known.has(this.app.files[this.app.fileOf[row]]) || this.instructions.blockOf(row) >= 0;
  }

  /** By file: lines with their values of the chosen sample type. */
  index() {
    const { data, state } = this.app;
    const kind = state.values.type;
    if (this.indexed === kind) return;
    this.indexed = kind;
    this.byFile = new Map([...this.known].map((file) => [file, { lines: new Map(), flat: 0 }]));
    if (!data.has("line.file")) return;
    const flat = data.column(`line.flat.${kind}`),
      cumulative = data.column(`line.cumulative.${kind}`);
    for (let i = 0; i < flat.length; i++) {
      const entry = this.byFile.get(data.lineFiles[this.lines.file[i]]);
      entry.lines.set(this.lines.number[i], { flat: flat[i], cumulative: cumulative[i] });
      entry.flat += flat[i];
    }
  }

  /** The texts of the embedded files by path. */
  texts() {
    this.reading ??= readSources();
    return this.reading;
  }

  /** The line that shows a function: the heaviest of its own, 0 if none is known. */
  lineOf(row) {
    return this.frameLines ? this.frameLines[row] : 0;
  }

  async show() {
    const texts = await this.texts();
    const { state } = this.app;
    this.index();
    const order = [...this.byFile].sort((a, b) => b[1].flat - a[1].flat || (a[0] < b[0] ? -1 : 1));
    const chosen = this.byFile.has(state.values.file) ? state.values.file : order[0]?.[0];
    setContent(
      this.select,
      order.map(([path, { flat }]) => {
        const option = element("option", { value: path }, `${shown(path)} (${formatValue(flat, this.app.unit)})`);
        option.selected = path === chosen;
        return option;
      }),
    );
    this.select.hidden = order.length === 0;
    [this.file, this.line] = [chosen, 0];
    const text = texts[chosen];
    const messages = [
      chosen === undefined && "This profile has no line numbers, and no source files are embedded in this page.",
      chosen !== undefined &&
        text === undefined &&
        "The text of this file is not embedded in this page; these are its lines with values.",
      this.app.weights.isDifference && "The values are those of the new profile.",
      this.app.choiceTexts().length > 0 && "The values are those of all samples, whatever is chosen.",
    ];
    this.message.textContent = messages.filter(Boolean).join(" ");
    const line = chosen === state.values.file ? state.values.line : 0; // not a line of a file that is not here
    if (chosen !== undefined) this.fill(this.byFile.get(chosen).lines, text?.replace(/\n$/, "").split("\n"), line);
    else this.body.replaceChildren();
    this.instructions.show(chosen, this.line);
  }

  /** The rows of a file; `texts` are its lines, if they are known. */
  fill(lines, texts, line) {
    this.most = 0;
    let heaviest = 0,
      flat = 0;
    for (const [number, values] of lines) {
      this.most = Math.max(this.most, Math.abs(values.cumulative));
      if (Math.abs(values.flat) > flat) [heaviest, flat] = [number, Math.abs(values.flat)];
    }
    if (!texts) {
      const numbers = [...new Set(line > 0 ? [...lines.keys(), line] : lines.keys())].sort((a, b) => a - b);
      setContent(
        this.body,
        numbers.map((number) => this.row(number, "", lines.get(number))),
      );
    } else {
      const rows = [];
      const near = new Uint8Array(texts.length + 2);
      for (const number of [...lines.keys(), line]) {
        if (number < 1) continue;
        near.fill(1, Math.max(1, number - CONTEXT), Math.min(texts.length, number + CONTEXT) + 1);
      }
      for (let number = 1; number <= texts.length;) {
        let last = number;
        while (last <= texts.length && !near[last]) last++;
        if (last - number >= SHORTEST_FOLD && lines.size) {
          rows.push(this.fold(number, last - 1, texts, lines));
          number = last;
        } else {
          for (last = Math.max(last, number + 1); number < last; number++) {
            rows.push(this.row(number, texts[number - 1], lines.get(number)));
          }
        }
      }
      setContent(this.body, rows);
    }
    const target = this.body.querySelector(`[data-line="${line || heaviest}"]`);
    this.line = line || heaviest;
    if (line) target?.classList.add("target");
    target?.scrollIntoView({ block: this.isChosenHere ? "nearest" : "center" });
    if (this.isChosenHere) target?.querySelector("button")?.focus({ preventScroll: true });
    this.isChosenHere = false;
    if (!target) this.body.closest(".scroll").scrollTop = 0;
  }

  fold(first, last, texts, lines) {
    const row = element("tr", { class: "fold" });
    const open = () => {
      const opened = [];
      const end = Math.min(last, first + MOST_OPENED - 1);
      for (let number = first; number <= end; number++)
        opened.push(this.row(number, texts[number - 1], lines.get(number)));
      if (end < last) opened.push(this.fold(end + 1, last, texts, lines));
      row.replaceWith(...opened);
    };
    const label = first === last ? `line ${first}` : `lines ${first} to ${last}`;
    row.append(element("td", { colspan: 4 }, element("button", { onclick: open }, `Show ${label}`)));
    return row;
  }

  row(number, text, values) {
    const { unit } = this.app;
    const share = values && this.most ? Math.abs(values.cumulative) / this.most : 0;
    const cell = (value) => element("td", { class: "number" }, value ? formatValue(value, unit) : "");
    const isDecoded = this.instructions.has(this.file, number);
    const row = element(
      "tr",
      { "data-line": number, class: [values && "hot", isDecoded && "decoded"].filter(Boolean).join(" ") || null },
      cell(values?.flat),
      cell(values?.cumulative),
      element("th", { scope: "row" }, isDecoded ? element("button", {}, number) : number || "?"),
      element("td", { class: "code" }, shownCode(text)),
    );
    row.style.setProperty("--share", share);
    return row;
  }
}

/** A line of source; tabs stay, what is invisible does not. */
function shownCode(text) {
  return text.replace(/\r$/, "").split("\t").map(shown).join("    ");
}

// The machine instructions beside the source, of a line or of a function, with the values of each address.

const CODE_CONTEXT = 3;
const SHORTEST_CODE_FOLD = 4;

class Instructions {
  constructor(app) {
    const { data } = app;
    this.app = app;
    this.blocks = [];
    byId("instructions").hidden = !data.code;
    if (!data.code) return;
    this.code = data.code;
    this.body = document.querySelector("#instructions tbody");
    this.select = byId("code");
    for (const name of ["distance", "line", "text", "file", "inlined"]) this[name] = data.column(`code.${name}`);
    let last = 0;
    this.blocks = this.code.blocks.map(([file, begin, end, frame, count], i) => {
      const [name, range] = [frame < 0 ? file : data.names[frame], `0x${begin}–0x${end}`];
      return { i, file, name, range, frame, begin: BigInt(`0x${begin}`), first: last, last: (last += count) };
    });
    this.decoded = new Set(Array.from(this.line, (line, i) => `${line} ${this.path(i)}`));
    this.select.addEventListener("change", () => {
      const block = this.blocks[this.select.value];
      if (block) this.open(block, this.weigh(block, () => true).heaviest);
      else app.state.set({ code: -1 }, true);
    });
  }

  path(i) {
    return this.code.file[this.file[i]];
  }

  /** The paths of the source files of instructions, where they are known. */
  files() {
    return this.code ? this.code.file.filter(Boolean) : [];
  }

  /** The code of a function, -1 if none is in the page. */
  blockOf(row) {
    return this.blocks.findIndex((block) => block.frame === row);
  }

  /** Whether instructions of a line are in the page. */
  has(file, line) {
    return line > 0 && this.decoded?.has(`${line} ${file}`);
  }

  /** Show the chosen function, else what a line became; the first function where no line is known. */
  show(file, line) {
    if (!this.code) return;
    const { data, state, unit } = this.app;
    this.flat = data.column(`code.flat.${state.values.type}`);
    this.cumulative = data.column(`code.cumulative.${state.values.type}`);
    const isOfLine = (i) => line > 0 && this.line[i] === line && this.path(i) === file;
    const first = this.blocks[state.values.code] ?? (line > 0 ? undefined : this.blocks[0]);
    const isNear = first ? (i) => this.flat[i] || this.cumulative[i] : isOfLine;
    const own = this.blocks.map((block) => this.weigh(block, isNear));
    const values = this.blocks.map((block) => formatValue(this.weigh(block, () => true).flat, unit));
    const options = [
      [-1, line > 0 ? `of line ${line}` : "of a line"],
      ...this.blocks.map(({ i, name, range }) => [i, `${name} ${range} (${values[i]})`]),
    ].map(([value, text]) => element("option", { value }, text));
    setContent(this.select, options);
    this.select.value = first?.i ?? -1;
    const blocks = this.blocks
      .filter(({ i, frame }) => (first ? frame === first.frame : own[i].heaviest >= 0))
      .sort((a, b) => (b === first) - (a === first) || own[b.i].flat - own[a.i].flat);
    const { heaviest } = blocks.length ? own[blocks[0].i] : {};
    this.most = Math.abs(this.flat[heaviest]);
    const rows = blocks.flatMap((block) => this.rows(block, isNear, isOfLine));
    setContent(this.body, rows);
    const missing = [!blocks.length && "No instructions of this line are in the page", ...this.code.missing.map(shown)];
    byId("no-code").textContent = missing.filter(Boolean).join("; ");
    const scroll = this.body.closest(".scroll");
    const target = this.body.querySelector(`[data-instruction="${heaviest}"]`);
    scroll.scrollTop = target ? target.offsetTop - scroll.clientHeight / 2 : 0;
  }

  /** The flat value of those instructions of a block that are wanted, and the heaviest of them, -1 if there is none. */
  weigh({ first, last }, isWanted) {
    const result = { flat: 0, heaviest: -1 };
    for (let i = first; i < last; i++) {
      if (!isWanted(i)) continue;
      result.flat += this.flat[i];
      if (!(Math.abs(this.flat[i]) <= Math.abs(this.flat[result.heaviest]))) result.heaviest = i;
    }
    return result;
  }

  /** The head of a block and its instructions; those far from the line, or from values, are folded. */
  rows(block, isNear, isTarget) {
    const { name, file, range, first, last } = block;
    const head = `${name}  ${shown(file)} ${range}`;
    const rows = [element("tr", { class: "function" }, element("th", { colspan: 4, scope: "rowgroup" }, head))];
    const near = new Uint8Array(last - first);
    for (let i = 0; i < near.length; i++) {
      if (isNear(first + i)) near.fill(1, Math.max(0, i - CODE_CONTEXT), i + CODE_CONTEXT + 1);
    }
    for (let i = 0, end; i < near.length; i = end) {
      end = near.indexOf(1 - near[i], i);
      if (end < 0) end = near.length;
      const isFolded = !near[i] && end - i >= SHORTEST_CODE_FOLD;
      rows.push(...this.run(block, first + i, isFolded ? first + i : first + end, first + end, isTarget));
    }
    return rows;
  }

  /** Instructions up to `end`, each below its line where that changes, and a button for those from there to `last`. */
  run(block, first, end, last, isTarget) {
    const rows = [];
    for (let i = first; i < end; i++) {
      const isSame = (column) => i > first && column[i] === column[i - 1];
      if (![this.file, this.line, this.inlined].every(isSame)) rows.push(this.place(block, i));
      rows.push(this.row(block, i, isTarget(i)));
    }
    if (end < last) {
      const open = () => row.replaceWith(...this.run(block, end, Math.min(end + MOST_OPENED, last), last, isTarget));
      const button = element("button", { onclick: open }, `Show ${last - end} instructions`);
      const row = element("tr", { class: "fold" }, element("td", { colspan: 4 }, button));
      rows.push(row);
    }
    return rows;
  }

  row(block, i, isTarget) {
    const cell = (value) => element("td", { class: "number" }, value ? formatValue(value, this.app.unit) : "");
    const isHot = this.flat[i] || this.cumulative[i];
    const row = element(
      "tr",
      { "data-instruction": i, class: `${isHot ? "hot" : ""} ${isTarget ? "target" : ""}` },
      cell(this.flat[i]),
      cell(this.cumulative[i]),
      element("th", { scope: "row" }, (block.begin + BigInt(this.distance[i])).toString(16)),
      element("td", { class: "code" }, shown(this.code.text[this.text[i]])),
    );
    row.style.setProperty("--share", this.most ? Math.min(1, Math.abs(this.flat[i]) / this.most) : 0);
    return row;
  }

  /** The source line of an instruction, and the function that was inlined there. */
  place(block, i) {
    const path = shown(this.path(i));
    const text = path ? `${path.slice(path.lastIndexOf("/") + 1)}:${this.line[i] || "?"}` : "unknown line";
    const button = element("button", { title: path, onclick: () => this.open(block, i) }, text);
    const inlined = shown(this.code.inlined[this.inlined[i]]);
    const cell = element("td", { class: "place", colspan: 2 }, button, inlined && ` inlined ${inlined}`);
    return element("tr", {}, element("td", { colspan: 2 }), cell);
  }

  /** Show a function, and the source at one of its instructions. */
  open(block, i) {
    const file = this.path(i);
    this.app.state.set({ code: block.i, ...(file && { file, line: this.line[i] }) }, true);
  }
}

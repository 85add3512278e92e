// Where the branches are: for each row its rectangles from left to right. What is narrower than half a pixel is left out,
// or one rectangle for all such children of a branch.

const NARROWEST = 0.5;
const NARROWEST_REST = 2;

/** Rectangles of a picture `pixels` wide. Row 0 is that of the root; callers of a focused function have negative rows. */
class Layout {
  constructor(pixels) {
    this.pixels = pixels;
    this.rows = new Map(); // level with sign -> { branches, left, width }
    this.first = 0;
    this.last = 0;
    this.count = 0;
  }

  add(branch, left, width) {
    const level = branch.level * branch.view.sign;
    let row = this.rows.get(level);
    if (!row) this.rows.set(level, (row = { branches: [], left: [], width: [] }));
    row.branches.push(branch);
    row.left.push(left);
    row.width.push(width);
    this.first = Math.min(this.first, level);
    this.last = Math.max(this.last, level);
    this.count++;
  }

  /** Add a view that is zoomed into one of its branches: the branches above it over the whole width, then what is
   * below it. */
  addView(zoomed, order, withRoot) {
    for (let above = zoomed.parent; above; above = above.parent) {
      if (above.parent || withRoot) this.add(above, 0, this.pixels);
    }
    if (zoomed.parent || withRoot) this.add(zoomed, 0, this.pixels);
    if (!zoomed.width) return;
    const scale = this.pixels / zoomed.width;
    const open = [{ branch: zoomed, left: 0 }];
    while (open.length) {
      const { branch, left } = open.pop();
      let x = left;
      const children = branch.children(order);
      for (const [i, child] of children.entries()) {
        const width = child.width * scale;
        if (width >= NARROWEST) {
          this.add(child, x, width);
          open.push({ branch: child, left: x });
        } else if (order === "weight") {
          this.addRest(branch, children.slice(i), x, scale);
          break;
        }
        x += width;
      }
    }
  }

  /** Add one rectangle for the children of a branch that are too narrow each. */
  addRest(branch, children, left, scale) {
    const width = children.reduce((sum, child) => sum + child.width, 0);
    if (width * scale < NARROWEST_REST) return;
    const rest = new Branch(branch.view, branch, -1);
    rest.count = children.length;
    for (const child of children) {
      rest.value += child.value;
      rest.base += child.base;
    }
    this.add(rest, left, width * scale);
  }

  /** Rows are filled branch by branch: order each from left to right, for `at`. */
  finish() {
    for (const row of this.rows.values()) {
      const order = row.left.map((_, i) => i).sort((a, b) => row.left[a] - row.left[b]);
      row.branches = order.map((i) => row.branches[i]);
      row.width = order.map((i) => row.width[i]);
      row.left = order.map((i) => row.left[i]);
    }
    return this;
  }

  /** Which kinds of frames are in it, in ascending order. */
  kinds() {
    const present = new Set();
    for (const { branches } of this.rows.values()) {
      for (const { frame, flags } of branches) if (frame >= 0) present.add(kindOf(flags));
    }
    return [...present].sort();
  }

  /** The rectangle at `x` of a row, or null. */
  at(level, x) {
    const row = this.rows.get(level);
    if (!row) return null;
    let low = 0,
      high = row.left.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.left[middle] <= x) low = middle + 1;
      else high = middle;
    }
    return low && x < row.left[low - 1] + row.width[low - 1] ? this.rectangle(level, low - 1) : null;
  }

  /** Where a branch is drawn, or null. */
  find(branch) {
    const level = branch.level * branch.view.sign;
    const index = this.rows.get(level)?.branches.indexOf(branch) ?? -1;
    return index < 0 ? null : this.rectangle(level, index);
  }

  rectangle(level, index) {
    const row = this.rows.get(level);
    return { branch: row.branches[index], level, index, left: row.left[index], width: row.width[index] };
  }
}

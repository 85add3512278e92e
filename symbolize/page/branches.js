// What is drawn: branches, which are nodes of the call tree merged by function, from the root to callees or from leaves
// to callers. They are made when they are drawn first, so that a large tree costs no more than what is visible.

/** A rectangle of the picture: some nodes with one function. `cursors` are the nodes from which it goes on. */
class Branch {
  constructor(view, parent, frame) {
    this.view = view;
    this.parent = parent;
    this.frame = frame; // -1: the root, and what stands for branches that are too narrow
    this.count = 0; // of such branches
    this.level = parent ? parent.level + 1 : 0;
    this.flags = 0;
    this.width = 0;
    this.value = 0;
    this.base = 0;
    this.own = 0;
    this.cursors = view.noCursors();
    this.order = null;
    this._children = null;
  }

  /** The branches next to this one, ordered by `order`: "weight" or "name". */
  children(order) {
    this._children ??= this.view.expand(this);
    if (this.order !== order) {
      const names = this.view.names;
      const byName = (a, b) => (names[a.frame] < names[b.frame] ? -1 : names[a.frame] > names[b.frame] ? 1 : 0);
      this._children.sort(order === "name" ? byName : (a, b) => b.width - a.width || byName(a, b));
      this.order = order;
    }
    return this._children;
  }
}

/** Finds the branch of a function among the children of the branch that is being expanded. */
class Grouping {
  constructor(view, parent, rows) {
    this.view = view;
    this.parent = parent;
    this.slots = rows; // scratch by frame: 1 + index of its branch; zero again afterwards
    this.found = [];
  }

  branch(frame) {
    let slot = this.slots[frame];
    if (!slot) {
      this.found.push(new Branch(this.view, this.parent, frame));
      slot = this.slots[frame] = this.found.length;
    }
    return this.found[slot - 1];
  }

  finish() {
    for (const branch of this.found) this.slots[branch.frame] = 0;
    return this.found;
  }
}

/** Branches towards callees. The cursors of a branch are its nodes. */
class Callees {
  constructor(tree, weights, names, nodes, frame) {
    Object.assign(this, { tree, weights, names, slots: new Int32Array(names.length), sign: 1 });
    this.root = new Branch(this, null, frame);
    for (const node of nodes) this.add(this.root, node);
  }

  noCursors() {
    return [];
  }

  add(branch, node) {
    const { tree, weights } = this;
    branch.flags |= tree.flags[node];
    branch.width += weights.width[node];
    branch.value += weights.total[node];
    branch.own += weights.own[node];
    if (weights.isDifference) branch.base += weights.baseTotal[node];
    branch.cursors.push(node);
  }

  expand(branch) {
    const { end, frame } = this.tree;
    const { width } = this.weights;
    const group = new Grouping(this, branch, this.slots);
    for (const node of branch.cursors) {
      for (let child = node + 1; child < end[node]; child = end[child]) {
        if (width[child] > 0) this.add(group.branch(frame[child]), child);
      }
    }
    return group.finish();
  }
}

/** Branches towards callers. The cursors of a branch are the callers of its nodes, each with what it called cost. */
class Callers {
  constructor(tree, weights, names, frame) {
    Object.assign(this, { tree, weights, names, slots: new Int32Array(names.length), sign: -1 });
    this.root = new Branch(this, null, frame);
  }

  noCursors() {
    return { node: [], width: [], value: [], base: [] };
  }

  /** All stacks, from their leaves. */
  static ofLeaves(tree, weights, names) {
    const view = new Callers(tree, weights, names, -1);
    const { ownWidth, own, baseOwn } = weights;
    for (let node = 1; node < tree.count; node++) {
      if (ownWidth[node]) view.add(view.root, node, ownWidth[node], own[node], baseOwn ? baseOwn[node] : 0);
    }
    view.sign = 1;
    return view;
  }

  /** The stacks with a function, from its outermost nodes. */
  static ofFunction(tree, weights, names, nodes, frame) {
    const view = new Callers(tree, weights, names, frame);
    const { width, total, baseTotal } = weights;
    for (const node of nodes) {
      view.root.flags |= tree.flags[node];
      view.add(view.root, tree.parent[node], width[node], total[node], baseTotal ? baseTotal[node] : 0);
    }
    return view;
  }

  add(branch, cursor, width, value, base) {
    branch.width += width;
    branch.value += value;
    branch.base += base;
    if (cursor > 0 && width > 0) {
      branch.cursors.node.push(cursor);
      branch.cursors.width.push(width);
      branch.cursors.value.push(value);
      branch.cursors.base.push(base);
    }
  }

  expand(branch) {
    const { frame, parent, flags } = this.tree;
    const { node, width, value, base } = branch.cursors;
    const group = new Grouping(this, branch, this.slots);
    for (let i = 0; i < node.length; i++) {
      const next = group.branch(frame[node[i]]);
      next.flags |= flags[node[i]];
      this.add(next, parent[node[i]], width[i], value[i], base[i]);
    }
    return group.finish();
  }
}

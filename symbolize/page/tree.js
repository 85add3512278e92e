// The call tree as columns by node, in preorder: the subtree of a node is the range from it to `end`.

const CALLED = 1,
  INLINED = 2,
  FOLDED = 4,
  UNSYMBOLIZED = 8;

class CallTree {
  constructor(data) {
    const pops = data.column("node.pops");
    const count = pops.length + 1;
    this.count = count;
    this.frame = data.column("node.frame");
    this.flags = data.column("node.flags");
    this.parent = new Int32Array(count);
    this.end = new Int32Array(count).fill(count);
    const path = new Int32Array(data.depth + 1);
    let depth = 0;
    this.parent[0] = -1;
    for (let node = 1; node < count; node++) {
      const above = depth + 1 - pops[node - 1];
      for (; depth >= above; depth--) this.end[path[depth]] = node;
      depth = above;
      this.parent[node] = path[depth - 1];
      path[depth] = node;
    }
    const steps = data.column("value.step");
    this.holders = new Int32Array(steps.length); // the node of each row of values, ascending
    for (let i = 0, node = 0; i < steps.length; i++) this.holders[i] = node += steps[i];
  }

  /** A tree of other nodes. */
  like(columns) {
    return Object.assign(Object.create(CallTree.prototype), columns);
  }

  /** The sum over each node's subtree of what `own` gives to nodes. */
  sums(own) {
    const total = own.slice();
    for (let node = this.count - 1; node > 0; node--) total[this.parent[node]] += total[node];
    return total;
  }
}

/** The values of one sample type, by node: own and total ones, those of the base (if there is one), and the widths.
 *
 * A width is the sum of the absolute values of the stacks below a node, of base and new: the page has a column of them
 * where some are negative, since stacks of one node may cancel. So it is the total where no value is
 * negative and nothing is compared, and children are never wider than their parent in any profile. */
class Weights {
  /** `nodes` says which node each row of values counts for, negative where it does not count. */
  constructor(tree, data, kind, nodes) {
    const spread = (name) => {
      const own = new Float64Array(tree.count);
      const values = data.column(name);
      for (let i = 0; i < values.length; i++) if (nodes[i] >= 0) own[nodes[i]] += values[i];
      return own;
    };
    this.own = spread(`value.own.${kind}`);
    this.total = tree.sums(this.own);
    this.isDifference = data.difference;
    this.baseOwn = this.isDifference ? spread(`value.base.${kind}`) : null;
    this.baseTotal = this.isDifference ? tree.sums(this.baseOwn) : null;
    this.hasNegative = data.has(`value.size.${kind}`);
    if (this.hasNegative || this.isDifference) {
      if (this.hasNegative) this.ownWidth = spread(`value.size.${kind}`);
      else this.ownWidth = this.own.map((value, node) => value + this.baseOwn[node]);
      this.width = tree.sums(this.ownWidth);
    } else {
      this.ownWidth = this.own;
      this.width = this.total;
    }
    this.named = 0;
    for (let node = 0; node < tree.count; node++) {
      if (!(tree.flags[node] & UNSYMBOLIZED)) this.named += this.ownWidth[node];
    }
  }
}

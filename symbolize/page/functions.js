// Totals by function, as `pprof -top` counts them: in cum a function counts once a stack, however often it recurs there.

/** Flat and cumulative values by row of the frames: Float64Arrays. */
function functionTotals(tree, own, total, rows) {
  const flat = new Float64Array(rows),
    cumulative = new Float64Array(rows);
  const open = new Int32Array(rows); // where the outermost subtree of a function ends
  for (let node = 1; node < tree.count; node++) {
    const row = tree.frame[node];
    flat[row] += own[node];
    if (node >= open[row]) {
      cumulative[row] += total[node];
      open[row] = tree.end[node];
    }
  }
  return { flat, cumulative };
}

/** The nodes at which a function is outermost in its stacks. */
function outermostNodes(tree, row) {
  const nodes = [];
  for (let node = 1; node < tree.count;) {
    if (tree.frame[node] === row) (nodes.push(node), (node = tree.end[node]));
    else node++;
  }
  return Int32Array.from(nodes);
}

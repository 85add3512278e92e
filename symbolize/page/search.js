// Search by regular expression: which functions match, and what share of the total is in stacks with one of them.

/** A matcher for what the reader typed, or a link says: what is no regular expression is searched as it is, and so is
 * one that repeats a group, as it could take for ever. */
function matcher(text, flags) {
  try {
    if (/\)[*+{]/.test(text)) throw new SyntaxError("repeats a group");
    return { expression: new RegExp(text, flags), isLiteral: false };
  } catch {
    return { expression: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags), isLiteral: true };
  }
}

class Search {
  constructor(text, names) {
    this.text = text;
    const flags = /[A-Z]/.test(text.replace(/\\./g, "")) ? "" : "i"; // case counts if there is a capital
    const { expression, isLiteral } = matcher(text, flags);
    this.isLiteral = isLiteral;
    this.functions = 0;
    this.matches = new Uint8Array(names.length);
    for (let row = 0; row < names.length; row++) {
      if (expression.test(names[row])) this.functions += this.matches[row] = 1;
    }
  }

  /** The value in stacks with a matching function. */
  matched(tree, total) {
    let sum = 0;
    for (let node = 1; node < tree.count;) {
      if (this.matches[tree.frame[node]]) ((sum += total[node]), (node = tree.end[node]));
      else node++;
    }
    return sum;
  }
}

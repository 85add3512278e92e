// Draws a layout, and finds what is under the pointer. Two canvases: the picture, and the outlines over it.

const ROW = 20;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const PADDING = 5;
const NARROWEST_TEXT = 26;
const TALLEST_PRINT = 0.9; // in widths of the picture, so that it fills a page

class Drawing {
  constructor(stage) {
    this.stage = stage;
    this.extent = stage.querySelector(".extent");
    [this.canvas, this.overlay] = stage.querySelectorAll("canvas");
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.outlines = this.overlay.getContext("2d");
    this.widths = new Map();
    this.layout = new Layout(0);
    this.scene = null;
    this.hovered = this.selected = null;
    this.scrolled = 0;
    stage.addEventListener("scroll", () => this.draw(), { passive: true });
  }

  get pixels() {
    return this.stage.clientWidth;
  }

  /** Show a layout. A scene has: flip, fill(branch), labels(branch), isFaint(branch), isMatch(branch), theme, paper. */
  show(layout, scene, keepScroll) {
    this.layout = layout;
    this.scene = scene;
    const height = (layout.last - layout.first + 1) * ROW;
    this.extent.style.height = `${height}px`;
    if (!keepScroll) {
      const root = this.top(0) + this.scrolled;
      this.stage.scrollTop = scene.flip ? root - this.stage.clientHeight + ROW : 0;
      if (layout.first < 0) this.stage.scrollTop = root - this.stage.clientHeight / 2;
    }
    this.draw();
  }

  /** The top of a row on the screen; the root is at the bottom of a flipped picture. */
  top(level) {
    const { first, last } = this.layout;
    const height = Math.max((last - first + 1) * ROW, this.stage.clientHeight);
    return (this.scene?.flip ? height - (level - first + 1) * ROW : (level - first) * ROW) - this.scrolled;
  }

  get isResized() {
    return this.layout.pixels !== this.pixels || this.canvas.style.height !== `${this.stage.clientHeight}px`;
  }

  resize(height) {
    const ratio = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overlay]) {
      const wide = Math.round(this.pixels * ratio),
        high = Math.round(height * ratio);
      if (canvas.width !== wide || canvas.height !== high) {
        canvas.width = wide;
        canvas.height = high;
        canvas.style.width = `${this.pixels}px`;
        canvas.style.height = `${height}px`;
      }
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.outlines.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw(height = this.stage.clientHeight, scrolled = this.stage.scrollTop) {
    if (!this.scene || !this.pixels || this.isPrinting) return;
    this.scrolled = scrolled;
    this.resize(height);
    const { context, scene, layout } = this;
    context.fillStyle = scene.paper;
    context.fillRect(0, 0, this.pixels, height);
    const rows = [...layout.rows].map(([level, row]) => ({ row, top: this.top(level) }));
    const visible = rows.filter(({ top }) => top > -ROW && top < height);
    this.drawRectangles(visible);
    this.drawTexts(visible);
    this.drawOutlines();
  }

  /** Rectangles, fill by fill: to change the fill of a canvas costs more than to fill. */
  drawRectangles(rows) {
    const { context } = this;
    const byFill = new Map();
    for (const {
      row: { branches, left, width },
      top,
    } of rows) {
      for (let i = 0; i < branches.length; i++) {
        const fill = this.fillOf(branches[i]);
        let list = byFill.get(fill);
        if (!list) byFill.set(fill, (list = []));
        list.push(left[i], top, width[i] > 3 ? width[i] - 1 : width[i]);
      }
    }
    for (const [fill, list] of byFill) {
      context.fillStyle = fill;
      for (let i = 0; i < list.length; i += 3) context.fillRect(list[i], list[i + 1], list[i + 2], ROW - 1);
    }
  }

  fillOf(branch) {
    const { scene } = this;
    if (scene.isMatch(branch)) return scene.theme.match[branch.level & 1];
    return scene.isFaint(branch) ? scene.theme.faint : scene.fill(branch);
  }

  drawTexts(rows) {
    const { context, scene } = this;
    context.font = FONT;
    context.textBaseline = "middle";
    for (const {
      row: { branches, left, width },
      top,
    } of rows) {
      for (let i = 0; i < branches.length; i++) {
        if (width[i] < NARROWEST_TEXT) continue;
        const text = this.fit(scene.labels(branches[i]), width[i] - 2 * PADDING);
        context.fillStyle = scene.isFaint(branches[i]) ? scene.theme.faintText : scene.theme.text;
        if (text) context.fillText(text, left[i] + PADDING, top + ROW / 2);
      }
    }
  }

  drawOutlines() {
    const { outlines, scene, layout } = this;
    outlines.clearRect(0, 0, this.overlay.width, this.overlay.height);
    const outline = ({ level, left, width }, color, thickness) => {
      outlines.strokeStyle = color;
      outlines.lineWidth = thickness;
      const wide = Math.max(width - 1 - thickness, 1);
      outlines.strokeRect(left + thickness / 2, this.top(level) + thickness / 2, wide, ROW - 1 - thickness);
    };
    if (this.hovered) outline(this.hovered, scene.theme.hover, 1);
    const selected = this.selected && layout.find(this.selected);
    if (selected) outline(selected, scene.theme.outline, 2);
  }

  /** The first of the texts that fits into a width, or as much of the last as does. */
  fit(texts, space) {
    for (const text of texts) {
      const shortened = this.cut(text, space);
      if (shortened === text || text === texts[texts.length - 1]) return shortened;
    }
    return "";
  }

  /** A text cut to a width, by the sum of its characters' widths: measuring whole texts is slow. */
  cut(text, space) {
    let used = 0,
      cut = 0;
    const dots = this.characterWidth("…");
    for (let i = 0; i < text.length; i++) {
      const wide = this.characterWidth(text[i]);
      if (used + dots <= space) cut = i;
      used += wide;
      if (used > space) return cut > 1 ? `${text.slice(0, cut)}…` : "";
    }
    return text;
  }

  characterWidth(character) {
    let width = this.widths.get(character);
    if (width === undefined) this.widths.set(character, (width = this.context.measureText(character).width));
    return width;
  }

  /** What is drawn under a pointer event, or null. */
  hit(event) {
    const box = this.stage.getBoundingClientRect();
    const y = event.clientY - box.top;
    const first = this.layout.first;
    const rows = Math.floor((y - this.top(first)) / ROW);
    return this.layout.at(this.scene.flip ? first - rows : first + rows, event.clientX - box.left);
  }

  hover(rectangle) {
    if (rectangle?.branch === this.hovered?.branch) return false;
    this.hovered = rectangle;
    this.drawOutlines();
    return true;
  }

  select(branch) {
    this.selected = branch;
    const place = branch && this.layout.find(branch);
    if (place) {
      const top = this.top(place.level);
      if (top < 0) this.stage.scrollTop += top;
      else if (top + ROW > this.stage.clientHeight) this.stage.scrollTop += top + ROW - this.stage.clientHeight;
    }
    this.drawOutlines();
  }

  /** Draw the rows that fit on a page, for a printer; nothing redraws them until `endPrint`. */
  drawForPrint() {
    const rows = (this.layout.last - this.layout.first + 1) * ROW;
    const height = Math.min(rows, TALLEST_PRINT * this.pixels);
    this.draw(height, this.scene.flip ? Math.max(rows, this.stage.clientHeight) - height : 0);
    this.isPrinting = true;
  }

  endPrint() {
    this.isPrinting = false;
  }
}

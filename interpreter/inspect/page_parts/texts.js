// How wide texts are on a canvas, and texts cut to a width; in the font that its context has.
class Texts {
  constructor(ctx) {
    this.ctx = ctx;
    this.widths = new Map();  // of measured texts, by font and text
  }

  measure(text) {
    const key = `${this.ctx.font}\n${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 50000) this.widths.clear();
      width = this.ctx.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  // `text`, cut to the width by an ellipsis.
  fit(text, width) {
    const chars = text.length > 400 ? text.slice(0, 400) : text;
    if (chars === text && this.measure(text) <= width) return text;
    let low = 0;
    let high = chars.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.ctx.measureText(`${chars.slice(0, middle)}\u2026`).width <= width) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low === 0 ? '' : `${chars.slice(0, low)}\u2026`;
  }
}

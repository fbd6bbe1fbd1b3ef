/*
 * The squarified treemap of Bruls, Huizing and van Wijk: fills a rectangle with
 * nodes, the largest first, each of an area in proportion to its size, in rows
 * that keep them as close to squares as they can be. Calls place(node, box).
 */
function squarify(nodes, box, place) {
  const sorted = nodes.filter((node) => node.size > 0).sort((a, b) => b.size - a.size);
  let left = sorted.reduce((sum, node) => sum + node.size, 0);
  let { x, y, w, h } = box;
  let from = 0;

  while (from < sorted.length && w > 0 && h > 0) {
    const side = Math.min(w, h), scale = w * h / left;
    let row = 0, worst = Infinity, to = from;
    for (; to < sorted.length; to++) {
      const sum = row + sorted[to].size, length = sum * scale / side;
      /* How far the first, the largest, and this, the smallest, are from squares. */
      const ratios = [sorted[from].size, sorted[to].size].map((size) => {
        const width = size * scale / length;
        return Math.max(width / length, length / width);
      });
      if (Math.max(...ratios) > worst) break;
      worst = Math.max(...ratios);
      row = sum;
    }
    const thick = row * scale / side;
    let at = 0;
    for (; from < to; from++) {
      const long = sorted[from].size * scale / thick;
      place(sorted[from], w < h ? { x: x + at, y, w: long, h: thick } : { x, y: y + at, w: thick, h: long });
      at += long;
    }
    if (w < h) { y += thick; h -= thick; } else { x += thick; w -= thick; }
    left -= row;
  }
}

/* Returns what a careful reader would complain about: text on text, text cut off, faint text, plots not drawn. */
(() => {
  const complaints = [];
  const seen = element => {
    const style = getComputedStyle(element);
    return style.visibility !== "hidden" && style.display !== "none" && Number(style.opacity) > 0.05;
  };
  const short = text => text.trim().replace(/\s+/g, " ").slice(0, 40);

  /* 1. Every text that is really painted, line by line, with the box it is painted in. */
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(parent.tagName)) continue;
    let hidden = false;
    for (let up = parent; up; up = up.parentElement) {
      const folded = up.tagName === "DETAILS" && !up.open && !up.querySelector(":scope > summary").contains(parent);
      if (!seen(up) || folded) hidden = true;
    }
    if (hidden) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 2 || box.height < 2) continue;
      const clip = parent.closest(".table, .nsewdrag, .modebar, figure, pre");
      if (clip) {
        const frame = clip.getBoundingClientRect();
        if (box.bottom > frame.bottom + 1 || box.top < frame.top - 1 || box.right > frame.right + 1) continue;
      }
      texts.push({node, parent, box});
    }
  }

  /* 2. Text over text: boxes of different elements that overlap by more than a sliver. */
  const sorted = texts.slice().sort((a, b) => a.box.top - b.box.top);
  for (let i = 0; i < sorted.length; i++) {
    for (let j = i + 1; j < sorted.length && sorted[j].box.top < sorted[i].box.bottom; j++) {
      const a = sorted[i], b = sorted[j];
      if (a.parent === b.parent || a.parent.contains(b.parent) || b.parent.contains(a.parent)) continue;
      const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const tall = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      const least = Math.min(a.box.height, b.box.height);
      if (wide > 3 && tall > 0.45 * least) complaints.push(`overlap: "${short(a.node.data)}" and "${short(b.node.data)}"`);
    }
  }

  /* 3. Nothing sticks out of the page. */
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1)
    complaints.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${width}`);

  /* 4. Contrast by the formula of WCAG 2: 4.5, and 3 for large text. */
  const parse = colour => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let up = element; up; up = up.parentElement) {
      const colour = parse(getComputedStyle(up).backgroundColor);
      if (colour.length === 3 || (colour.length === 4 && colour[3] > 0.99)) return colour;
    }
    return [255, 255, 255];
  };
  let lowest = 21;
  for (const {node, parent} of texts) {
    const style = getComputedStyle(parent);
    const colour = parse(parent.namespaceURI.endsWith("svg") ? style.fill : style.color);
    if (colour.length < 3) continue;
    const [a, b] = [light(colour), light(behind(parent))].sort((p, q) => q - p);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    lowest = Math.min(lowest, ratio);
    if (ratio < needed) complaints.push(`contrast ${ratio.toFixed(2)}: "${short(node.data)}"`);
  }

  /* 5. Every plot is drawn: axes, and traces with ink in them. */
  const plots = [...document.querySelectorAll(".plotly-graph-div")].filter(plot => !plot.closest("details:not([open])"));
  for (const plot of plots) {
    const box = plot.getBoundingClientRect();
    const marks = [...plot.querySelectorAll(".scatterlayer path, .barlayer path")];
    const ink = marks.filter(mark => { const b = mark.getBoundingClientRect(); return b.width + b.height > 2; }).length;
    const wanted = plot.data.filter(trace => trace.visible !== false && trace.visible !== "legendonly").length;
    const layers = plot.querySelectorAll(".scatterlayer .trace, .barlayer .trace").length;
    if (layers < wanted) complaints.push(`plot ${plot.id} draws ${layers} of ${wanted} curves`);
    if (!plot.querySelector(".main-svg") || !ink) complaints.push(`plot ${plot.id} is not drawn`);
    if (box.width < 100 || box.height < 80) complaints.push(`plot ${plot.id} has ${box.width} x ${box.height} pixels`);
  }
  const images = [...document.images];
  for (const image of images) if (!image.complete || !image.naturalWidth) complaints.push(`image ${image.alt} is not drawn`);
  for (const image of images) if (!image.alt) complaints.push("an image has no text for those who cannot see it");

  return {complaints: [...new Set(complaints)], texts: texts.length, plots: plots.length, images: images.length, lowest};
})()

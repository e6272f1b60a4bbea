// Shows images and videos, with their crops and points.

const SMALLEST = 240, LARGEST = 420, FRAME = 150;

/** Show the frames of a video side by side, below a bar with the times of events. */
function filmStrip(frames, marks, lanes) {
  const strip = make("div", { class: "frames" }, ...frames.map((frame) => picture(frame, marks, FRAME)));
  return make("div", { class: "film" }, ...(lanes.length ? [timeBar(frames, lanes)] : []), strip);
}

/** Draw one lane for each event; all frames have the same width, whatever their times. */
function timeBar(frames, lanes) {
  const share = (count) => `${100 * count / frames.length}%`;
  const rows = lanes.map(({ what, label, first, last }) => {
    const when = first === last ? `frame ${first + 1}` : `frames ${first + 1} to ${last + 1}`;
    const bar = make("i", { class: what, style: `left: ${share(first)}; width: ${share(last - first + 1)}`, title: `${when}: ${label}` });
    return make("div", { class: "lane" }, make("span", { class: "track" }, bar), make("span", { class: `key ${what}` }, label));
  });
  const ticks = frames.map((frame) => make("small", { style: `width: ${share(1)}` }, short(frame.time ?? NaN)));
  return make("div", { class: "timebar" }, ...rows, make("div", { class: "lane" }, make("span", { class: "track ticks" }, ...ticks), make("span", {}, "seconds")));
}

/** Show an image with its name, the boxes of its crops, and the points. */
function picture(part, marks, smallest = SMALLEST) {
  const width = Math.min(Math.max(part.width, smallest), LARGEST);
  const image = make("img", { src: part.image, width, height: Math.round(width * part.height / part.width), alt: part.name, loading: "lazy" });
  if (part.width < width) image.className = "enlarged";
  const link = make("a", { href: part.image, target: "_blank", title: "open by itself" }, image);
  const drawn = marks.filter((mark) => mark.image === part.name);
  if (drawn.length) link.append(overlay(part, drawn));
  const legend = drawn.map((mark) => make("span", { class: `key ${mark.what}` }, mark.label));
  const size = make("small", {}, `${part.width} × ${part.height}`);
  return make("figure", { class: "picture" }, link, make("figcaption", {}, make("code", {}, part.name), size, ...legend));
}

function overlay(part, marks) {
  const layer = draw("svg", { viewBox: `0 0 ${part.width} ${part.height}` });
  for (const { what, label, box, point, mask } of marks) {
    if (mask) layer.append(draw("path", { class: "mask", d: mask }, draw("title", {}, label)));
    if (box) {
      const [left, top, right, bottom] = box;
      layer.append(draw("rect", { class: what, x: left, y: top, width: right - left, height: bottom - top }, draw("title", {}, label)));
    }
    if (point) layer.append(draw("circle", { class: box ? "point" : `point ${what}`, cx: point[0], cy: point[1], r: Math.max(part.width, part.height) / 80 }, draw("title", {}, label)));
  }
  return layer;
}

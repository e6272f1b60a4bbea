// Draws the training curves by phase: the main ones first, the others collapsed.

const CHIEF = ["reward", "metrics/accuracy", "metrics/hit", "metrics/zoomed", "terms/format", "entropy", "loss"];
const LEFT = 40, RIGHT = 330, TOP = 10, BOTTOM = 128;

/** Return the rows of metrics by phase. */
function phasesOf(run) {
  const phases = new Map();
  for (const row of run.metrics) {
    if (!phases.has(row.phase)) phases.set(row.phase, []);
    phases.get(row.phase).push(row);
  }
  return phases;
}

/** Draw the curves of the first run, with those of the other run below them in phases of the same name. */
function showCurves() {
  const [run, other] = data.runs;
  byId("curves").hidden = !run.metrics.length;
  const others = other ? phasesOf(other) : new Map();
  const phases = [...phasesOf(run)];
  for (const [phase, rows] of phases) {
    // The metrics of a run with one phase may have another phase name.
    const below = others.get(phase) ?? (phases.length === 1 && others.size === 1 ? [...others.values()][0] : []);
    byId("curves").append(...phaseCurves(phase, rows, below));
  }
  if (other && others.size) byId("curves").querySelector("h2").append(make("small", { class: "legend" }, make("i", {}), run.name, " ", make("i", { class: "other" }), other.name));
}

function phaseCurves(phase, rows, below) {
  const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => name !== "step" && rows.some((row) => typeof row[name] === "number"));
  const charts = (some) => make("div", { class: "charts" }, ...some.map((name) => chart(name, rows, below)));
  const others = names.filter((name) => !CHIEF.includes(name)).sort();
  const spent = data.runs[0].seconds[phase];
  const took = typeof spent === "number" ? `, ${spent.toFixed(0)} s` : "";
  const parts = [
    make("h3", {}, phase, " ", make("small", {}, `${rows.length} steps${took}`)),
    charts(CHIEF.filter((name) => names.includes(name))),
  ];
  if (others.length) {
    const fold = make("details", {}, make("summary", {}, `${others.length} more`));
    fold.addEventListener("toggle", () => { if (fold.children.length === 1) fold.append(charts(others)); });
    parts.push(fold);
  }
  return parts;
}

const pointsOf = (name, rows) => rows.map((row, place) => [row.step ?? place + 1, row[name]]).filter(([, value]) => typeof value === "number");

function chart(name, rows, below) {
  const points = pointsOf(name, rows), others = pointsOf(name, below);
  const scale = scaleOf(name, [...points, ...others]);
  const smooth = smoothed(points);
  const line = (list) => list.map(([step, value]) => `${scale.x(step).toFixed(1)},${scale.y(value).toFixed(1)}`).join(" ");
  const picture = draw("svg", { viewBox: "0 0 340 150", role: "img", "aria-label": `${name} by step` });
  for (const tick of scale.ticks) {
    picture.append(draw("line", { class: "axis", x1: LEFT, x2: RIGHT, y1: scale.y(tick), y2: scale.y(tick) }));
    picture.append(draw("text", { class: "tick", x: LEFT - 5, y: scale.y(tick) + 3.5, "text-anchor": "end" }, short(tick)));
  }
  picture.append(draw("text", { class: "tick", x: LEFT, y: 145 }, String(scale.first)));
  picture.append(draw("text", { class: "tick", x: RIGHT, y: 145, "text-anchor": "end" }, `step ${scale.last}`));
  if (others.length) picture.append(draw("polyline", { class: "smooth other", points: line(smoothed(others)) }));
  picture.append(draw("polyline", { class: "raw", points: line(points) }), draw("polyline", { class: "smooth", points: line(smooth) }));
  const value = make("span", {}, number(smooth[smooth.length - 1][1]));
  followPointer(picture, value, points, smooth, scale);
  return make("figure", { "data-curve": name }, make("figcaption", {}, name, value), picture);
}

/** Return the scales of steps and values. Shares are drawn from 0 to 1, so that noise looks small. */
function scaleOf(name, points) {
  const values = points.map(([, value]) => value);
  let low = values.reduce((one, other) => Math.min(one, other)), high = values.reduce((one, other) => Math.max(one, other));
  if (/^(metrics|terms)\//.test(name) && low >= 0 && high <= 1) [low, high] = [0, 1];
  const size = Math.max(Math.abs(low), Math.abs(high));
  const unit = tickUnit(high - low > 1e-9 * size ? high - low : size || 1);  // rounding errors are no span
  low = Math.floor(low / unit + 1e-9) * unit;
  high = Math.max(Math.ceil(high / unit - 1e-9) * unit, low + unit);
  const ticks = Array.from({ length: Math.round((high - low) / unit) + 1 }, (_, index) => low + index * unit);
  const steps = points.map(([step]) => step);
  const first = steps.reduce((one, other) => Math.min(one, other)), last = steps.reduce((one, other) => Math.max(one, other));
  return {
    first, last, ticks,
    x: (step) => (last > first ? LEFT + (RIGHT - LEFT) * (step - first) / (last - first) : LEFT),
    y: (value) => BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low),
  };
}

/** Return 1, 2 or 5 times a power of ten, such that two to five of them cover the span. */
function tickUnit(span) {
  const power = 10 ** Math.floor(Math.log10(span / 2));
  return [1, 2, 5, 10].map((each) => each * power).find((unit) => span / unit <= 4.5);
}

const short = (value) => String(Number(value.toPrecision(3)));

/** Return the mean around each point over a twelfth of the run. */
function smoothed(points) {
  const reach = Math.floor(points.length / 24);
  const sums = [0];
  for (const [, value] of points) sums.push(sums[sums.length - 1] + value);
  return points.map(([step], index) => {
    const from = Math.max(0, index - reach), to = Math.min(points.length, index + reach + 1);
    return [step, (sums[to] - sums[from]) / (to - from)];
  });
}

/** Show the step under the pointer in the caption, or the last step without a pointer. */
function followPointer(picture, caption, points, smooth, scale) {
  const dot = draw("circle", { class: "dot", r: 3, visibility: "hidden" });
  const last = caption.textContent;
  picture.append(dot);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width * 340 - LEFT) / (RIGHT - LEFT);
    const index = Math.min(points.length - 1, Math.max(0, Math.round(across * (points.length - 1))));
    fill(dot, { cx: scale.x(points[index][0]), cy: scale.y(points[index][1]), visibility: "visible" }, []);
    caption.textContent = `step ${points[index][0]}: ${number(points[index][1])}, mean ${number(smooth[index][1])}`;
  });
  picture.addEventListener("pointerleave", () => {
    dot.setAttribute("visibility", "hidden");
    caption.textContent = last;
  });
}

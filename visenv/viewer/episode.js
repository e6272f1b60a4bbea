// One episode, turn by turn, with its images and what was drawn on them.

const SMALLEST = 240, LARGEST = 420, FRAME = 150;

function episodeDetails(episode) {
  const conversation = make("div", { class: "conversation" });
  const marks = episode.marks;
  for (const [index, turn] of episode.turns.entries()) {
    conversation.append(...turn.messages.map((message) => messageBubble(message, marks, episode.lanes)));
    conversation.append(turnBubble(turn, index));
  }
  conversation.append(...episode.closing.map((message) => messageBubble(message, marks, episode.lanes)));
  const ended = { ended: episode.reason ? `${episode.status}: ${episode.reason}` : episode.status };
  const facts = { ...ended, kind: episode.kind, seed: episode.seed, group: episode.group, member: episode.member, tokens: episode.tokens };
  return [
    conversation,
    make("aside", {}, factTable("Reward terms", episode.terms), factTable("Metrics", episode.metrics), factTable("Truth", episode.truth), factTable("Episode", facts)),
  ];
}

function messageBubble(message, marks, lanes) {
  const parts = message.parts.map((part) => {
    if (part.video) return filmStrip(part.video, marks, lanes);
    return part.image ? picture(part, marks) : make("pre", {}, part.text.replace(/^\n+|\n+$/g, ""));
  });
  return make("div", { class: "bubble" }, make("b", {}, message.role), ...parts);
}

function turnBubble(turn, index) {
  const head = make("b", {}, `policy, turn ${index + 1}`);
  if (turn.finish !== "stop") head.append(make("em", {}, turn.finish));
  if (turn.reward !== 0) head.append(make("span", { class: "paid" }, `reward ${number(turn.reward)}`));
  const text = make("pre", {}, make("span", { class: "prefix", title: "pre-filled, not sampled" }, turn.prefix), turn.text);
  const events = make("ul", { class: "events" }, ...turn.events.map(eventLine));
  return make("div", { class: "bubble policy" }, head, text, ...(turn.film ? [hiddenFrames(turn.film)] : []), ...(turn.events.length ? [events] : []));
}

function eventLine(event) {
  const silent = ["event", "turn"];
  const told = Object.entries(event).filter(([name, value]) => !silent.includes(name) && value !== "" && JSON.stringify(value) !== "{}" && JSON.stringify(value) !== "[]");
  const failed = event.event === "Malformed" || event.event === "Aborted" || event.event === "Truncated" || event.ok === false;
  return make("li", failed ? { class: "failed" } : {}, make("b", {}, event.event), ...told.flatMap(([name, value]) => [" ", make("i", {}, name), ` ${inWords(value)}`]));
}

/** A value on one line: objects as name: value, lists in brackets. */
function inWords(value) {
  if (value === null) return "not finite";
  if (Array.isArray(value)) return `[${value.map(inWords).join(", ")}]`;
  if (typeof value === "object") return Object.entries(value).map(([name, each]) => `${name}: ${inWords(each)}`).join(", ");
  return typeof value === "number" ? number(value) : String(value);
}

function factTable(title, facts) {
  const rows = Object.entries(facts).filter(([, value]) => value !== "").map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", {}, factValue(value))));
  return make("table", {}, make("caption", {}, title), ...rows);
}

/** Lists of objects, such as every sign of a scene, one object a line. */
function factValue(value) {
  const nested = Array.isArray(value) && value.some((each) => each !== null && typeof each === "object" && !Array.isArray(each));
  if (!nested) return Array.isArray(value) ? value.map(inWords).join(", ") : inWords(value);
  return make("ul", {}, ...value.map((each) => make("li", {}, inWords(each))));
}

/** The frames of a video side by side, under a bar that shows what happens when. */
function filmStrip(frames, marks, lanes) {
  const strip = make("div", { class: "frames" }, ...frames.map((frame) => picture(frame, marks, FRAME)));
  return make("div", { class: "film" }, ...(lanes.length ? [timeBar(frames, lanes)] : []), strip);
}

/** One lane for each event; a frame is as wide as the others, whatever its time. */
function timeBar(frames, lanes) {
  const share = (count) => `${100 * count / frames.length}%`;
  const rows = lanes.map(({ what, label, first, last }) => {
    const when = first === last ? `frame ${first + 1}` : `frames ${first + 1} to ${last + 1}`;
    const bar = make("i", { class: what, style: `left: ${share(first)}; width: ${share(last - first + 1)}`, title: `${when}: ${label}` });
    return make("div", { class: "lane" }, make("span", { class: "track" }, bar), make("span", { class: `key ${what}` }, label));
  });
  const ticks = frames.map((frame) => make("small", { style: `width: ${share(1)}` }, number(frame.time)));
  return make("div", { class: "timebar" }, ...rows, make("div", { class: "lane" }, make("span", { class: "track ticks" }, ...ticks), make("span", {}, "seconds")));
}

/** An image under its name, with the boxes that were cut out of it, and what was pointed to. */
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

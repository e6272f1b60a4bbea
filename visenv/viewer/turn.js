// Shows one message or one turn of the policy: its text, tokens, time, advantage and events.

const SURE = 4;  // nats; a token less likely than that fills the bar

function messageBubble(message, marks, lanes) {
  const shown = message.parts.map((part) => {
    if (part.video) return filmStrip(part.video, marks, lanes);
    return part.image ? picture(part, marks) : make("pre", {}, part.text.replace(/^\n+|\n+$/g, ""));
  });
  if (message.role !== "system") return make("div", { class: `bubble ${message.role}` }, make("b", {}, message.role), ...shown);
  const length = message.parts.reduce((sum, part) => sum + (part.text ?? "").length, 0);
  const summary = make("summary", {}, make("b", {}, "system"), make("small", {}, `${length.toLocaleString("en")} characters`));
  return make("details", { class: "bubble system" }, summary, ...shown);
}

function turnBubble(turn, place) {
  const text = make("pre", {}, make("span", { class: "prefix", title: "pre-filled, not sampled" }, turn.prefix), turn.text);
  return make("div", { class: "bubble policy", id: `turn-${place + 1}` }, turnHead(turn, place), text,
    ...(turn.film ? [hiddenFrames(turn.film)] : []),
    ...(turn.events.length ? [eventList(turn.events)] : []));
}

/** Show the facts of a turn; unknown ones are omitted. */
function turnHead(turn, place) {
  const fact = (name, value, title) => make("span", { class: "fact", title }, make("i", {}, name), ` ${value}`);
  const head = make("b", {}, make("span", {}, `policy, turn ${place + 1}`));
  if (turn.finish !== "stop") head.append(make("em", {}, turn.finish));
  if (turn.tokens !== undefined) head.append(fact("tokens", turn.tokens, "tokens sampled in this turn"));
  if (turn.mean !== undefined) head.append(fact("logprob", number(turn.mean).replace("-", "−"), `mean log-probability of a token, in nats; the lowest is ${turn.lowest}`), likelihoods(turn));
  const [sampling, env] = turn.seconds;
  if (typeof sampling === "number") head.append(fact("sampling", seconds(sampling), "time in which the policy replied"));
  if (typeof env === "number") head.append(fact("env", seconds(env), "time of the environment's step, tools included"));
  if (typeof turn.advantage === "number") head.append(make("span", { class: `fact ${sign(turn.advantage)}`, title: "what the algorithm credited the tokens with" }, make("i", {}, "advantage"), ` ${signed(turn.advantage)}`));
  if (turn.reward !== 0) head.append(make("span", { class: "paid" }, `reward ${number(turn.reward)}`));
  return head;
}

const sign = (value) => (value > 1e-9 ? "up" : value < -1e-9 ? "down" : "even");

/** Draw a bar for each token; it is higher for a less likely token. */
function likelihoods({ logprobs, tokens }) {
  const layer = draw("svg", { class: "likelihoods", viewBox: `0 0 ${logprobs.length} 10`, preserveAspectRatio: "none", style: `width: ${Math.min(160, 3 * logprobs.length)}px` },
    draw("title", {}, logprobs.length === tokens ? "each token: the higher, the less likely" : "runs of tokens: the lowest log-probability of each"));
  for (const [place, logprob] of logprobs.entries()) {
    const height = Math.max(0.4, 10 * Math.min(1, -logprob / SURE));
    layer.append(draw("rect", { x: place + 0.1, y: 10 - height, width: 0.8, height }));
  }
  return layer;
}

// ------------------------------------------------------------------ events

const eventList = (events) => make("ul", { class: "events" }, ...events.map(eventLine));

const failed = (event) => ["Malformed", "Aborted", "Truncated"].includes(event.event) || event.ok === false;

function eventLine(event) {
  const silent = ["event", "turn"];
  const told = Object.entries(event).filter(([name, value]) => !silent.includes(name) && value !== "" && !(name === "env_steps" && value === 0) && JSON.stringify(value) !== "{}" && JSON.stringify(value) !== "[]");
  return make("li", failed(event) ? { class: "failed" } : {}, make("b", {}, event.event), ...told.flatMap(([name, value]) => eventFact(name, value)));
}

/** Keep the lines of code: an argument of several lines gets its own block. */
function eventFact(name, value) {
  const lines = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value).filter(([, each]) => typeof each === "string" && each.includes("\n")) : [];
  const rest = lines.length ? Object.fromEntries(Object.entries(value).filter(([key]) => !lines.some(([one]) => one === key))) : value;
  const blocks = lines.map(([key, each]) => make("div", {}, make("i", {}, `${name} ${key}`), make("pre", {}, each)));
  if (typeof value === "string" && value.includes("\n")) return [make("div", {}, make("i", {}, name), make("pre", {}, value))];
  const told = lines.length && !Object.keys(rest).length ? [] : [" ", make("i", {}, name), ` ${inWords(rest)}`];
  return [...told, ...blocks];
}

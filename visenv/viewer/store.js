// Holds the index of all episodes, and loads the parts on demand.

const index = data.index;
const parts = data.parts;
const EVERYONE = Array.from({ length: index.count }, (_, place) => place);
const KEPT = 24;  // parts of episodes in memory

const textOf = (name, place) => index.texts[name].values[index.texts[name].rows[place]];
const numberOf = (name, place) => index.numbers[name][place];
const valuesOf = (name) => index.texts[name]?.values ?? [];

/** Return a column of numbers by name: of the episode, "terms/…" or "metrics/…". */
function numbers(name) {
  if (name.startsWith("terms/")) return index.terms[name.slice(6)];
  if (name.startsWith("metrics/")) return index.metrics[name.slice(8)];
  return index.numbers[name];
}

// ------------------------------------------------------------------ parts

const waiting = new Map();
const loaded = new Map();

/** Receive a part, which calls this function with JSON in a string. */
function receive(kind, number, packed) {
  const key = `${kind}-${number}`;
  waiting.get(key)?.(JSON.parse(packed));
  waiting.delete(key);
}

function loadPart(kind, number) {
  const key = `${kind}-${number}`;
  if (!loaded.has(key)) {
    loaded.set(key, new Promise((resolve, reject) => {
      waiting.set(key, resolve);
      const path = `${parts.folder}/${kind}-${parts.token}-${number}.js`;
      const script = make("script", { src: path });
      script.addEventListener("load", () => script.remove());
      script.addEventListener("error", () => reject(new Error(`${path} cannot be read. Reload the page if the report was written again. The folder ${parts.folder} belongs beside the page.`)));
      document.head.append(script);
    }));
    loaded.get(key).catch(() => loaded.delete(key));
  }
  return loaded.get(key);
}

/** Return the whole episode at an index. */
async function episodeAt(place) {
  const number = Math.floor(place / parts.episodes);
  const rows = await loadPart("episodes", number);
  const held = [...loaded.keys()].filter((key) => key.startsWith("episodes-"));
  if (held.length > KEPT) loaded.delete(held.find((key) => key !== `episodes-${number}`));
  return rows[place % parts.episodes];
}

// ------------------------------------------------------------------ searched texts

const EAGER_BYTES = 100e6;  // more than that is loaded only when somebody searches
const searched = [];
const textParts = Math.ceil(index.count / parts.texts);
let loading = null;
let textsFailed = false;

/** Load all searched texts, one part at a time; call `tell` after each. */
function loadTexts(tell = () => {}) {
  loading ??= (async () => {
    for (let number = 0; number < textParts; number += 1) {
      const rows = await loadPart("texts", number);
      loaded.delete(`texts-${number}`);
      for (const row of rows) searched.push(row);
      await new Promise((resolve) => setTimeout(resolve));
    }
  })();
  loading.catch(() => { textsFailed = true; });
  return loading.then(tell, tell);
}

const textsAreThere = () => searched.length === index.count;

/** Return the indices of the episodes of each file. */
const files = new Map(valuesOf("saved_in").map((name) => [name, []]));
for (const place of EVERYONE) files.get(textOf("saved_in", place)).push(place);

const isAborted = (place) => textOf("outcome", place) === "aborted";

/** Return how the episodes of a group ended, without aborted ones, which have no reward. */
const countedOutcomes = (places) => places.filter((place) => !isAborted(place)).map((place) => textOf("outcome", place));

/**
 * Return the values of a column that the mean of a file counts.
 *
 * As in `visenv eval`, an aborted episode counts as 0 in the reward, and in each term and metric that a played
 * episode with the same labels has, or any played episode if there is none with these labels.
 */
function countedValues(places, name) {
  const column = numbers(name);
  const values = places.map((place) => column[place]).filter((value) => value !== null);
  if (name !== "reward" && !/^(terms|metrics)\//.test(name)) return values;
  const labels = (place) => index.texts.labels.rows[place];
  const played = places.filter((place) => !isAborted(place));
  const known = new Set(played.map(labels));
  const counting = new Set(played.filter((place) => column[place] !== null).map(labels));
  const counts = (place) => name === "reward" || (known.has(labels(place)) ? counting.has(labels(place)) : counting.size > 0);
  return [...values, ...places.filter((place) => isAborted(place) && counts(place)).map(() => 0)];
}

const placesIn = (savedIn) => files.get(savedIn) ?? [];

// ------------------------------------------------------------------ groups and links

/** Return the indices of the members of each group, in the order in which the groups were saved. */
const groups = (() => {
  const found = new Map();
  for (const place of EVERYONE) {
    const key = `${textOf("saved_in", place)}/${numberOf("group", place)}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(place);
  }
  for (const members of found.values()) members.sort((one, other) => numberOf("member", one) - numberOf("member", other));
  return found;
})();

const groupKey = (place) => `${textOf("saved_in", place)}/${numberOf("group", place)}`;
const severalMembers = [...groups].filter(([, members]) => members.length > 1);

/** Return a link with file and line, which stays valid if the report is written again. */
const episodeLink = (place) => `#/episode/${encodeURIComponent(textOf("saved_in", place))}/${numberOf("line", place)}`;
const groupLink = (key) => `#/group/${key.split("/").map(encodeURIComponent).join("%2F")}`;

/** Return the names of the files, those of the first run first. */
function fileNames() {
  const names = valuesOf("saved_in");
  const first = `${data.runs[0].name}: `;
  return data.runs.length < 2 ? names : [...names.filter((name) => name.startsWith(first)), ...names.filter((name) => !name.startsWith(first))];
}

/** Return a file by its name in a link, which may have been written without the name of the run. */
function fileOf(name) {
  const names = [name, ...data.runs.map((run) => `${run.name}: ${name}`)];
  return names.find((each) => files.has(each));
}

function placeOf(savedIn, line) {
  const code = valuesOf("saved_in").indexOf(fileOf(savedIn));
  return index.texts.saved_in?.rows.findIndex((row, place) => row === code && index.numbers.line[place] === line) ?? -1;
}

// Finds the words of a text that are not in another one, in order, by the longest common subsequence.

const MOST_WORDS = 700;  // of texts that differ in more, the middle is marked as a whole

const wordsOf = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** Return the pieces of a text, and whether each differs from the reference. */
function differing(text, reference) {
  const words = wordsOf(text), others = wordsOf(reference);
  let head = 0, tail = 0;
  while (head < words.length && head < others.length && words[head] === others[head]) head += 1;
  while (tail < words.length - head && tail < others.length - head && words[words.length - 1 - tail] === others[others.length - 1 - tail]) tail += 1;
  const middle = words.slice(head, words.length - tail);
  const kept = commonWords(middle, others.slice(head, others.length - tail));
  const flags = [...words.slice(0, head).map(() => false), ...middle.map((_, place) => !kept.has(place)), ...words.slice(words.length - tail).map(() => false)];
  const pieces = [];
  for (const [place, word] of words.entries()) {
    const last = pieces[pieces.length - 1];
    // A space between two different words counts as different.
    const differs = flags[place] || (/^\s+$/.test(word) && flags[place - 1] && flags[place + 1]);
    if (last && last.differs === Boolean(differs)) last.text += word;
    else pieces.push({ text: word, differs: Boolean(differs) });
  }
  return pieces;
}

/** Return the indices of the words that both texts have. */
function commonWords(words, others) {
  const kept = new Set();
  if (!words.length || !others.length || words.length > MOST_WORDS || others.length > MOST_WORDS) return kept;
  const width = others.length + 1;
  const longest = new Uint16Array((words.length + 1) * width);
  for (let one = words.length - 1; one >= 0; one -= 1) {
    for (let other = others.length - 1; other >= 0; other -= 1) {
      longest[one * width + other] = words[one] === others[other] ? longest[(one + 1) * width + other + 1] + 1 : Math.max(longest[(one + 1) * width + other], longest[one * width + other + 1]);
    }
  }
  for (let one = 0, other = 0; one < words.length && other < others.length;) {
    if (words[one] === others[other]) { kept.add(one); one += 1; other += 1; }
    else if (longest[(one + 1) * width + other] >= longest[one * width + other + 1]) one += 1;
    else other += 1;
  }
  return kept;
}

/** Return a text with marked differences from the reference. */
const marked = (text, reference) => differing(text, reference).map(({ text: piece, differs }) => (differs ? make("mark", {}, piece) : piece));

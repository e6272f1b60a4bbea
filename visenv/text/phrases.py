"""Holds the words by which a reply asserts, denies or doubts something, in several languages.

`simplified` replaces the phrases of other languages, contractions and idioms by a few English
words, so that the rules of `visenv.text.claims` are written once. The texts are canonical
(`visenv.text.normalize.canonical`) and case folded. The lists contain function words, not topics:
a phrase that is missing makes a reply unread, not misread.
"""

from __future__ import annotations

import re

from visenv.text.mentions import ITEM, SPACE

_MENTION = ITEM.pattern
_AFTER = f"(?<={_MENTION})"
_IS_OR_CHOOSE = "(?:应该|應該|应|應|是|選擇|选择|選|选|为|為)"

_TRANSLATED: tuple[tuple[str, str], ...] = (
    # Chinese, Japanese and Korean; longer phrases first.
    (f"{_AFTER}を選[びぶ](?:ます)?", " is the answer "),
    ("選択肢", " option "),
    (rf"{_AFTER}\s*(?:项|項|选项|選項)", " "),
    (rf"{_AFTER}\s*(?:或者|或|または|또는)\s*(?={_MENTION})", " or "),
    (rf"{_AFTER}\s*(?:和|与|與|及|と|와|과|、)\s*(?={_MENTION})", " and "),
    ("(?:不能|不可以?|不要|不会|不會|别|別)(?:选择|選擇|选|選)?|排除", " is not "),
    (f"(?:不|並不|并不){_IS_OR_CHOOSE}|(?:並非|并非){_IS_OR_CHOOSE}?", " is not "),
    ("是?(?:不正确|不正確|不对|不對|错误|錯誤|错|錯|間違い|誤り)的?", " is wrong "),
    (f"{_AFTER}(?:가 정답|が正解|が答え|是正确答案|是答案|是正解)", " is the answer "),
    (rf"是?(?:正确|正確|对|對)的(?!是)|{_AFTER}\s?(?:对|對|正确|正確)", " is correct "),
    ("(?:应该|應該|正确的|正確的|而)是", " but it is "),
    ("除了?", " except "),
    ("可能|也许|也許|或许|或許|かもしれ|수도 있", " maybe "),
    (
        "(?:正确|正確|最终|最終)?的?(?:答案|选项|選項)(?:应该|應該|应|應)?[是为為选選]?",
        " the answer is ",
    ),
    ("(?:正解|答え|回答|解答)[は:]", " the answer is "),
    (r"(?:정답|답변|답|옵션)(?:[은는:]|(?=\s))", " the answer is "),
    ("(?:认为|認為|觉得|覺得)?(?:应该|應該|应|應)?(?:选择|選擇|选|選)", " i choose "),
    ("认为|認為|觉得|覺得", " think "),
    (r"(?:では|じゃ)(?:なくて?|ない|ありません)|[가이]?\s?아(?:니라|닙니다|니다)", " is not , "),
    ("だと思います|だと思う|です|である|입니다|이다|이에요|예요", " ; "),
    (f"{_AFTER}(?:だよ?|よ|吧|哦|啊|呢|了|嘛|번)", " "),
    ("、", ", "),
    ("因为|因為|由于|なぜなら", " because "),
    ("但是?", " but "),
    ("故|因此|所以", " so "),
    ("我", " i "),
    ("是", " is "),
    # European languages, Arabic, Thai and languages of India: nouns, adjectives, verbs, articles.
    ("คำตอบคือ|คำตอบ|उत्तर(?: है)?|பதில்|উত্তর|જવાબ|ಉತ್ತರ|(?:ال)?جواب(?: هو)?", " the answer is "),
    (r"\b(?:antwort|lösung|réponse|respuesta|opción|resposta|risposta|ответ)\b", "answer"),
    (r"\bodpowiedź to\b|\bsvar är\b", "answer is"),
    (r"\b(?:odpowiedź|cevap|svar|antwoord|válasz|odpověď)\b", "answer"),
    (r"\b(?:prawidłowa|poprawna|doğru|rätt|juiste|správná|helyes)\b", "correct"),
    (r"\b(?:falsch|faux|falso|incorrecta|неверно)\b", "wrong"),
    (r"\b(?:richtige?|korrekte?|correct[ao]|correcte|corrett[ao]|correta|bonne)\b", "correct"),
    (r"\b(?:верно|правильный)\b", "correct"),
    (r"\b(?:ich (?:wähle|nehme)|je choisis|elijo|eu escolho|scelgo|выбираю)\b", "i choose"),
    (r"\b(?:ich (?:denke|glaube)|je (?:pense|crois) que|creo que|acho que|penso che)\b", "i think"),
    (r"\b(?:nicht|kein|keine|niet|non|не|não|pas|n'est|auf keinen fall|weder)\b|\bno es\b", "not"),
    (r"\b(?:sondern|mais|mas|sino|aber|pero|maar|но|а)\b", "but"),
    (rf"{_AFTER} (?:oder|ou|o|или) (?={_MENTION})", " or "),
    (rf"{_AFTER} (?:und|et|y|и|ni|noch) (?={_MENTION})", " and "),
    (r"\b(?:ist|lautet|est|es|é|è|c'est|ce)\b", "is"),
    (rf"\bl'(?=\w)|\b(?:die|das|la|el|le|lo)\b(?= (?:correct|answer|{_MENTION}))", "the "),
)

_CHANGED = "(?:chang|switch)(?:e|ed|ing)"
_DETERMINER = "(?:the|this|that|your|given|above|first|last)"
_QUESTION = r"(?:question|problem|puzzle|riddle|quiz|task)(?: \d{1,3})?"
_OPTION = "(?:option|choice|answer|statement|letter|one)"
_MATCHES = "(?:describes|matches|fits|answers|represents|corresponds to)"
_SHOWN = "(?:to|the|this|it|what|best|image|picture|photo|scene|question|description|is|we|see)"
_HELPING = "is|are|was|were|do|does|did|has|have|had|would|could|should|must|might"
_CANNOT = "(?:can|could|would|am|is) not (?:really )?(?:be able to )?"
_EVERY = "(?:all|any|anything|everything|everyone|each|every)"
_SURELY = "(?:absolutely|definitely|certainly|clearly|exactly|of course)"
_THIS = "(?:it|this|that)"
_BEGIN = r"(?:\A|(?<=\n))[^\w\n]*"
_CHOOSING = "(?:picking|choosing|selecting|guessing)"
_REJECTED = "(?:wrong|incorrect|false|excluded|eliminated|ruled out)"
_RATE, _BETTER = "(?:judge|consider|rate|rank|find|deem)", "(?:better|best|higher|superior)"
_WITHOUT = "(?:no|without(?: an?y?)?|beyond(?: any| all| a| reasonable)*)"
_WRONG = (
    "(?:false|wrong|untrue|incorrect|not true|not the case|not right|a mistake|impossible|a lie)"
)
_BUT = "(?:but|except(?: for)?|other than|besides|apart from)"
_ENGLISH: tuple[tuple[str, str], ...] = (
    # Contractions.
    (rf"\b({_HELPING})n'?t\b", r"\1 not"),
    (r"\b(?:can'?t|cannot|won'?t|ain'?t|couldn'?t)\b", "can not"),
    (r"\b(it|that|this|there|here|what|answer|option|choice|he|she)'s\b", r"\1 is"),
    (rf"{_AFTER}'s\b", " is"),
    (r"'m\b", " am"),
    (r"'re\b", " are"),
    (r"'d\b", " would"),
    (r"'ll\b", " will"),
    # Negations in other words: "not the least bit", "not consider it", "refuse to call".
    (rf"[≠¬]|!(?={_MENTION})", " not "),
    (r"\bnot (?:even |remotely )*close to\b|\bnot the least bit\b", "not"),
    (r"\bis impossible for (?:it|this|that) to be\b", "is not"),
    (r"\bnot (?:consider|deem|find|judge|agree that) (it|this|that)(?: as)?\b", r"not think \1"),
    (r"\b(?:can|could) not be (?:considered|called|deemed|said to be)\b", "can not be"),
    (r"\brefuse to (?:call|say)\b", "not call"),
    # Verbs of rating, and remarks between a mention and its verb.
    (r"\b(?:mark|judge|rate|grade|label|classify) (it|this|that)(?: as)?\b", r"call \1"),
    (
        rf"\b{_RATE} ({_MENTION})(?: to be| as(?: being)?)?(?: the)? {_BETTER}\b",
        r"think \1 is better",
    ),
    (rf"(?<={_MENTION}), (?:and )?not {_MENTION}, (?=is\b)", " "),
    (rf"(?<={_MENTION}) (?:which|that) is\b", " is"),
    (rf"\b(winner|verdict|answer|choice|judge?ment) - (?={_MENTION})", r"\1: "),
    # A question that the reply answers itself.
    (
        rf"({_MENTION})\? ?(?:{_SURELY} )?(?:no|not|nope|never)(?={SPACE}(?:[.\n]|\Z))",
        r"not \1",
    ),
    (rf"({_MENTION})\? ?(?:yes|yep|indeed|{_SURELY})\b(?! (?:not|no)\b)", r"it is \1"),
    # Each candidate with its own verdict: "A - no, B - yes". Two right ones are a contradiction.
    (rf"({_MENTION})\s?[-:]\s?better(?=\s?(?:[,.;\n]|\Z))", r"\1 is better"),
    (
        rf"({_MENTION})\s?[-:]\s?(?:yes|right|correct|true)(?=\s?(?:[,.;\n]|\Z))",
        r"it is \1 ;",
    ),
    (
        rf"({_MENTION})\s?[-:]\s?(?:no|wrong|incorrect|false|worse)(?=\s?(?:[,.;\n]|\Z))",
        r"\1 is wrong",
    ),
    # A choice without a subject, a candidate that is close to another, and a change of mind.
    (
        rf"{_BEGIN}{_CHOOSING} (?:option )?(?={_MENTION}(?: over {_MENTION})?{SPACE}(?:\n|\Z))",
        "i choose ",
    ),
    (rf"\b(?:close|similar) to (?={_MENTION})", "nearly "),
    (r"\bclose to\b", "close"),
    (
        rf"\b{_CHANGED} (?:my (?:answer|choice|mind|verdict) )?(?:from (?:{_MENTION}|a) )?to\b",
        "; actually",
    ),
    # "The answer to this question" and "the option that describes the image" are one noun.
    (rf"\b(answers?|solution|choice) (?:to|for) (?:{_DETERMINER}\s)*{_QUESTION}\b", r"\1"),
    (rf"\b{_OPTION} (?:that|which) (?:\w+ )?{_MATCHES}(?: {_SHOWN})* (?=is\b)", "answer "),
    (rf"{_AFTER} as (?:an?|the|my|your) (?:\w+ )?(?:answer|choice|option|pick|solution)\b", ""),
    # Hearsay, conditions and comparisons.
    (r"\bor so (?:they|it|some|people) (?:says?|claims?|seems?)\b", "supposedly"),
    (rf"(?<!not )\b(?:as|so) long as (?!{_MENTION})", "provided that "),
    (r"\bas (?!well|far|soon)(\w+) as\b", r"equally \1 to"),
    # Words that say nothing about the claim, and phrases with a shorter synonym.
    (r"\bon the (?:other|one) hand\b|\bthen again\b|\bconversely\b", " "),
    (
        r"\b(?:it )?has got to be\b|(?<=\banswer )would have to be\b|\b(?:can|could) only be\b",
        "must be",
    ),
    (rf"{_AFTER} (?:does|did|performs|performed) (?:a )?better(?: job)?\b", " is better"),
    (r"\b(?:nobody|no one) (?:would|could|can) (?:call|consider|judge|say)\b", "i would not call"),
    (r"\ball the way\b", " "),
    (r"\bin my (?:opinion|view)\b|\b(?:for|to) me\b|\bby elimination\b", " "),
    (
        r"\b(is|are),[ ,]*(?:(?:overall|in general|on balance|all in all|by contrast)\b)?[ ,]*, ",
        r"\1 ",
    ),
    (r"\bbetween (?:the|these) (?:two|four|options|answers|responses)\b", " "),
    (r"\bat all\b|\bfor sure\b", " "),
    (r"\b(?:am )?(?:gonna|going to) (?:say|choose|pick)\b", "say"),
    (r"\bgotta be\b", "must be"),
    (r"\b100 ?%", "certainly"),
    (r"\bi (?:find|consider)\b", "i think"),
    (r"\b(?:even though|even if|despite)\b", "although"),
    (
        r"\b(seems?|appears?|looks|has|have|ought|proves?|turns? out|turned out|likely) to be\b",
        r"\1 be",
    ),
    (r"\b(?:turned out|turns out|proves|proved) be\b", "is"),
    (r"\bsomewhat (?=better|superior|preferable)", ""),
    (r"\b(?:sort|kind) of\b", "maybe"),
    (rf"\b(prefer(?:s|red)? {_MENTION}) to (?={_MENTION})", r"\1 over "),
    (r"\b(?:beats|outperforms|surpasses|outranks)\b", "is better than"),
    # Idioms without a negation of the claim.
    (rf"\b(?:there (?:is|can be) )?{_WITHOUT} (?:doubt|question)(?: that)?\b", "certainly"),
    (r"\b(?:hands down|by a mile|by far|easily|can not be denied)\b", "certainly"),
    (r"\b(?:of course|in fact|as expected)\b", "certainly"),
    (r"\b(?:undeniably|undoubtedly|unquestionably)\b", "certainly"),
    (
        rf"\b(?:nothing|none|no one|nobody|no \w+)(?: of (?:the|these|them)(?: \w+)?)? {_BUT}\b",
        "only",
    ),
    (rf"\b{_EVERY}(?: \w+){{0,3}}? (?:is|are|was|were) {_REJECTED},? {_BUT}\b", "it is only"),
    (
        rf"\bnone of (?:the|these|them)(?: \w+)? (?:fits?|works?|match(?:es)?)(?: \w+)?,? {_BUT}\b",
        "it is only",
    ),
    (
        rf"\b(?:not see how {_THIS} )?(?:can|could) (?:not )?be anything (?:but|other than)\b",
        "must be",
    ),
    (r"\b(?:one|option) (?:that|which) is not (?:wrong|false|incorrect)\b", "correct one"),
    (r"\b(?:likelier|more likely|more plausible) than\b", "better than"),
    (rf"\bno to ({_MENTION})", r"not \1"),
    (rf"\byes to ({_MENTION})", r"it is \1"),
    (rf"\bnot so much ({_MENTION}) as (?={_MENTION})", r"not \1, but "),
    (rf"\bonly ({_MENTION}) works\b", r"only \1 is correct"),
    (rf"\bnot (?:only|just|merely) (?={_MENTION})", ""),
    # Idioms that leave the claim open.
    (r"\b(?:not|am un|is un|are un)\s?(?:only|just|merely|necessarily|sure|certain)\b", "maybe"),
    (rf"\b{_CANNOT}(?:be sure|tell|decide|determine|identify|know|judge)\b", "maybe"),
    (rf"\b{_CANNOT}say (?:if|whether|for)\b", "maybe"),
    (r"\b(?:hard|difficult|impossible) to (?:say|tell|decide|know|judge)\b", "maybe"),
    # Idioms that negate the claim, and exceptions.
    (r"\banything but\b", "not"),
    (r"\b(?:none|nothing|not a \w+) (?:of|about|in) (?:it|this|that|them)\b", "not"),
    (r"\bcould not (?:possibly )?(?=be\b)|\b(?:can|could) not possibly\b", "can not "),
    (rf"\b{_EVERY}(?: other)?(?: of \w+)?(?: \w+)? but\b", "except"),
    (rf"\b{_EVERY} [^,.;:\n]{{1,40}}? but (?={_MENTION}{SPACE}(?:\n|\Z))", "except "),
    # Abbreviations, whose periods end no sentence.
    (r"\b(?:vs|cf|figs?|vit|approx|mrs?|ms|dr|prof|st|sec|eq|tab|e\.g)\.", "versus"),
    (r"\bi\.e\.", "that is"),
    # Further idioms that negate the claim.
    (r"\b(?:there is )?no (?:chance|possibility|way) (?:that|of|for)\b", "not"),
    (r"\b(?:by no means|in no way|no way|no longer|under no circumstances|in no sense)\b", "not"),
    (r"\b(?:far from(?: being)?|nowhere (?:near|close to)|not even(?: remotely)?)\b", "not"),
    (r"\b(?:hardly|barely|scarcely|nobody|no one)\b", "not"),
    (rf"\b(?:is|was|be) {_WRONG} (?:that|to)\b", "is not"),
    # Words that begin a clause of their own.
    (r"\b(?:leaving|leaves)\b", ", leaving"),
    (r"\bcompared (?:to|with)\b", "than"),
)

_ALL = [(re.compile(pattern), becomes) for pattern, becomes in (*_TRANSLATED, *_ENGLISH)]


def simplified(text: str) -> str:
    """Return a case folded text in the words that `visenv.text.claims` knows."""
    for pattern, becomes in _ALL:
        text = pattern.sub(becomes, text)
    return re.sub("  +", " ", text)

"""Defines a small set of English parameters for Punkt, written for visenv.

It is used if NLTK's trained set, ``punkt_tab``, is not installed. It contains no table of
orthography, because on ordinary prose Punkt agrees better with the trained set without such a table
than with a guessed one. Unlike the trained set, it contains e.g., i.e., et al., Fig. and similar
abbreviations.
"""

from __future__ import annotations

from typing import Final

_PEOPLE = """
adm atty brig capt cdr cmdr col cpl dr esq fr gen gov hon jr lt maj messrs mlle mme mr mrs ms mt
pfc ph.d pres prof pvt rep reps rev sen sens sgt sr st supt
b.a b.sc d.phil j.d ll.b ll.m m.a m.b.a m.d m.sc r.n
"""
_COMPANIES = "assn bros co corp dept inc intl ltd mfg plc pty univ u.n u.s.s.r"
_PLACES = """
ave blvd bldg hwy rd u.k u.s u.s.a u.a.e d.c l.a n.y n.j n.c n.d n.h n.m s.c s.d r.i w.va
ala ariz calif colo conn fla ga kan ky md mich minn mont neb nev okla ont penn tenn tex va vt wis
wyo
"""
_TIMES = """
jan feb apr aug sept sep oct nov dec mon tue tues wed thu thur thurs fri a.m p.m a.d b.c b.c.e c.e
hr hrs yr yrs ca
"""
_WRITING = """
al anon approx cf ch chap e.g ed eds eq eqs est etc excl ext fig figs i.e ibid illus incl
misc n.b op orig p.s pp ref refs resp sect v viz vol vols vs
"""
_MEASURES = "cu ft lb lbs oz qt sq tbsp tsp"

# These words can also end a sentence ("He said no."), so a full stop belongs to them only before a
# number.
_BEFORE_NUMBERS = "no nos art mar pg p par fn ver sat sun jun jul"

_STARTERS = """
a after all also although among an and another any are as at because before both but by can despite
did do does during each either even every finally first for from furthermore given hence here how
however i if in indeed instead it its later many meanwhile moreover most my neither nevertheless
next nobody none nor now of on once one only or other others our perhaps several she he since so
some still such that the their then there therefore these they this those though thus to today
together under unfortunately unless unlike until we what when where whether which while who why
with within without yes yet you your
"""

ABBREVIATIONS: Final = frozenset(
    f"{_PEOPLE} {_COMPANIES} {_PLACES} {_TIMES} {_WRITING} {_MEASURES}".split()
)
"""Abbreviations that end with a full stop, in lower case and without it."""

COLLOCATIONS: Final = frozenset((word, "##number##") for word in _BEFORE_NUMBERS.split())
"""Pairs of words between which no sentence ends; ``##number##`` is any number."""

STARTERS: Final = frozenset(_STARTERS.split())
"""Words that often begin a sentence."""

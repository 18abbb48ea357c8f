"""Print, for each record on standard input, whether one of the patterns there matches it."""

import json
import sys

from moto.events.models import EventPattern, EventPatternParser

given = json.load(sys.stdin)
patterns = [EventPattern(p, EventPatternParser(p).parse()) for p in given["patterns"]]
print(json.dumps([any(p.matches_event(r) for p in patterns) for r in given["records"]]))

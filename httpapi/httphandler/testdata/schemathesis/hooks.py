"""What the fuzzer has to know of the world that it asks, see schemathesis_test.go.

Random names meet nothing, so most of them are replaced by names that exist. Random lease IDs are
centuries old or ahead, so most of them get the world's time. A valid value is replaced by a valid
one only, so that what was malformed stays so.
"""

import collections
import re
import zlib

import schemathesis

ENTITIES = ("acme", "acme-bot")
RESOURCES = ("gpt-4o", "search")
LIMITS = ("rpm", "tpm", "rpm", "tpm", "parallel", "hourly", "usd_micros")
ZONES = ("UTC", "Europe/Berlin", "America/New_York")

# Printable ASCII. Names with other characters stay as they are.
NAME = r"(?!(\.|\.\.|_default_|\$SYSTEM.*|\$RESOURCE:.*)$)[!\"$-~]"
ENTITY = re.compile(NAME + r"{1,256}")
RESOURCE = re.compile(NAME + r"{1,128}")
LIMIT = re.compile(r"(?!wcu$)[A-Za-z][A-Za-z0-9_.-]{0,63}")
ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
LEASE = re.compile(r"(?!0{26}$)[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}")

# The first digits of a ULID of the world's hour, and the instant at which it begins.
HOUR = ("01KJQ6", "01KJQ7", "01KJQ8", "01KJQ9")
START = "01KJQ6PSG0"

LEASES = collections.deque(maxlen=64)

# Those that were settled since.
ENDED = set()

# The limits that each of them was charged to.
CHARGED = {}

# The version that each path answered last.
ETAGS = {}
ETAG = re.compile(r'"[!#-~]{1,128}"')


def number(value):
    """A number that looks random, and is the same for the same value."""
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))


def known(value, names, form):
    """One of the names for three values in four."""
    if not isinstance(value, str) or value in names or not form.fullmatch(value):
        return value
    n = number(value)
    return value if n % 4 == 0 else names[n // 4 % len(names)]


def fresh(value, body):
    """An ID that was not used before, unless for the same request."""
    if value.upper().startswith(HOUR):
        return value[:10] + "%016d" % number(body)
    return value if number(value) % 16 == 0 else START + value[10:]


def live(value, body):
    """A lease that was admitted, for half of the settlements of others and of ended ones."""
    n = number(body)
    known = value.upper().startswith(HOUR) and value not in ENDED
    if known or not LEASES or n % 2 == 0:
        return value
    return LEASES[n // 2 % len(LEASES)]


def costs(value):
    """Amounts of limits that exist."""
    if not isinstance(value, dict):
        return value
    return {known(name, LIMITS, LIMIT): small(amount) for name, amount in value.items()}


def small(amount):
    """An amount that a limit may hold, for three in four."""
    if type(amount) is int and 0 <= amount < 1 << 63 and number(amount) % 4 > 0:
        return amount % 120
    return amount


def settled(body, charged):
    """Amounts of limits that the lease was charged to, for half of its settlements."""
    for member in ("totals", "actuals"):
        amounts = body.get(member)
        if charged and isinstance(amounts, dict) and number(amounts) % 2 == 0:
            body[member] = dict(zip(charged, amounts.values()))


def whole(value):
    """3.0 is an integer to JSON Schema, but not to weir: integers are written as such."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [whole(member) for member in value]
    return value


def names(value, taken=()):
    """The names in an object, but for those that are taken."""
    for member, others, form in (
        ("entity", ENTITIES, ENTITY),
        ("key", ENTITIES, ENTITY),
        ("parent", ENTITIES, ENTITY),
        ("resource", RESOURCES, RESOURCE),
        ("zone", ZONES, ZONE),
    ):
        if member in value:
            name = known(value[member], others, form)
            value[member] = value[member] if name in taken else name
    for member in ("costs", "totals", "actuals"):
        if member in value:
            value[member] = costs(value[member])
    for member in ("amount", "actual_amount"):
        if member in value:
            value[member] = small(value[member])


def elements(values):
    """Charges, costs of each of them, or flat keys: no key twice, unless it was so before."""
    taken = []
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            continue
        if not {"entity", "key"} & value.keys():
            values[i] = costs(value)
            continue
        names(value, taken)
        taken.append(value.get("key"))


@schemathesis.hook
def before_call(context, case, kwargs):
    for place in (case.path_parameters, case.query):
        if place:
            names(place)
    case.query = whole(case.query)
    given = (case.headers or {}).get("If-Match")
    if isinstance(given, str) and ETAG.fullmatch(given) and number(given) % 2 == 0:
        case.headers["If-Match"] = ETAGS.get(case.formatted_path, given)
    if not isinstance(case.body, dict):
        return
    body = whole(case.body)
    names(body)
    for member in ("charges", "requirements", "totals", "actuals"):
        if isinstance(body.get(member), list):
            elements(body[member])
    limits = body.get("limits")
    for limit in limits.values() if isinstance(limits, dict) else ():
        if isinstance(limit, dict):
            names(limit)
    value = body.get("lease_id")
    if isinstance(value, str) and LEASE.fullmatch(value):
        if not case.path.endswith("/reserve"):
            body["lease_id"] = live(value, body)
            settled(body, CHARGED.get(body["lease_id"]))
        elif case.meta is None or case.meta.phase.name != "examples":
            body["lease_id"] = fresh(value, body)
    case.body = body


@schemathesis.hook
def after_call(context, case, response):
    if case.path.endswith("/reserve") and response.status_code == 200:
        answer = response.json()
        LEASES.append(answer["lease_id"])
        CHARGED[answer["lease_id"]] = sorted({limit["limit"] for limit in answer["limits"]})
    if case.path.endswith(("/complete", "/cancel")) and response.status_code in (200, 409):
        lease = case.body.get("lease_id") if isinstance(case.body, dict) else None
        ENDED.add(lease)
        if lease in LEASES:
            LEASES.remove(lease)
    if "etag" in response.headers:
        ETAGS[case.formatted_path] = response.headers["etag"][0]


# Well-formed requests that are refused for what they mean, which no schema can say: field and reason.
MEANING = [
    (re.compile(field), re.compile(reason))
    for field, reason in (
        (r"lease_id", r"is too old|is more than a minute ahead"),
        (r"costs", r"at most 32"),
        (r"(requirements|totals|actuals)\[\d+\]\.key", r"is given twice|was not reserved"),
        (r"(totals|actuals).*", r"was not reserved|several charges have it|give one set|is more slots|must name the keys|is more than a limit can count"),
        (r"limits\..*\.kind", r"the limit of .* is a"),
        (r"limits\..*\.zone", r"is not a known IANA time zone|must be the name of an IANA time zone"),
        (r"(entities\..*\.)?parent", r"is the entity itself|is not declared|leads back"),
        (r".*", r"must not contain .*, which cannot be printed|must have at most \d+ bytes, has \d+"),
        (r"to", r"must be after from"),
        (r"from|to", r"must be in the years"),
        (r"after", r"must be the next of a page of the same query"),
        (r"entity", r"must be given, or a resource"),
        (r"charges\[\d+\]", r"is given twice"),
        (r"If-None-Match", r"cannot be combined with If-Match"),
        (r"cascade", r"needs a parent|would reach more"),
        (r".*", r"(?s).*\(line \d+, column \d+\)$"),  # a mistake in a limits file
    )
]


def meant(mistake):
    return mistake.get("code") == "invalid" and any(
        field.fullmatch(mistake.get("field", "")) and reason.match(mistake.get("reason", ""))
        for field, reason in MEANING
    )


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False where an answer is right for a reason that the document cannot say."""
    kind = type(failure).__name__
    if kind == "RejectedPositiveData" and response.status_code == 400:
        problem = response.json()
        return not all(map(meant, problem.get("errors", [problem])))
    # An entity that is not declared has no limits and no children, but it may be asked for them.
    if kind == "UseAfterFree":
        return case.path == "/v1/admin/entities/{entity}"
    return True

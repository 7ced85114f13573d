# ruff: noqa: E501  (a form a line)
"""Credentials made up after what their vendors publish of their forms, and the disguises in which people write them.

Imports nothing of memlab: what it makes is what the privacy gate is measured by. Nothing here was ever valid.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
WORD = string.ascii_letters + string.digits
URL = WORD + "-_"
B64 = WORD + "+/"

Make = Callable[[random.Random], str]


def some(letters: str, count: int) -> Make:
    """Draw ``count`` of these characters uniformly."""
    return lambda rng: "".join(rng.choice(letters) for _ in range(count))


def after(prefix: str, letters: str, count: int) -> Make:
    return lambda rng: prefix + some(letters, count)(rng)


def password(rng: random.Random) -> str:
    """Return a typical password: a word or two, digits, a sign."""
    words = (
        "falcon",
        "Orchid",
        "tundra",
        "Pepper",
        "glacier",
        "Mustang",
        "violet",
        "Saturn",
        "maple",
        "Dragon",
    )
    return (
        rng.choice(words)
        + rng.choice("!#_.*-") * rng.randint(0, 1)
        + str(rng.randint(10, 9999))
        + rng.choice(words)[:3]
    )


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwt(rng: random.Random) -> str:
    head = json.dumps({"alg": rng.choice(["HS256", "RS256"]), "typ": "JWT"}, separators=(",", ":"))
    body = json.dumps(
        {"sub": str(rng.randint(1, 10**9)), "iat": rng.randint(1_600_000_000, 1_800_000_000)},
        separators=(",", ":"),
    )
    return ".".join((b64url(head.encode()), b64url(body.encode()), b64url(rng.randbytes(32))))


def pem(label: str) -> Make:
    def make(rng: random.Random) -> str:
        body = b64(rng.randbytes(240))
        lines = "\n".join(body[position : position + 64] for position in range(0, len(body), 64))
        return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"

    return make


def uuid(rng: random.Random) -> str:
    digits = some(HEX, 32)(rng)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def wif(rng: random.Random) -> str:
    """Return a Bitcoin key in the wallet import format: version, 32 bytes, four check bytes, in base 58."""
    data = b"\x80" + rng.randbytes(32)
    data += hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


_SEED = [
    "abandon",
    "ability",
    "absorb",
    "abstract",
    "acid",
    "acoustic",
    "adjust",
    "advice",
    "alpha",
    "amateur",
    "anchor",
    "ancient",
    "apple",
    "arctic",
    "armor",
    "arrow",
    "atom",
    "autumn",
    "avocado",
    "bacon",
    "bamboo",
    "banner",
    "barrel",
    "beach",
    "bicycle",
    "blanket",
    "bonus",
    "bracket",
    "breeze",
    "bronze",
    "bubble",
    "cactus",
    "camera",
    "canyon",
    "carbon",
    "castle",
    "cereal",
    "cherry",
    "circle",
    "clarify",
    "cluster",
    "coconut",
    "copper",
    "cradle",
    "crystal",
    "cushion",
    "decade",
    "denial",
    "dinosaur",
    "dolphin",
    "donkey",
    "dragon",
    "eagle",
    "echo",
    "elbow",
    "engine",
    "erosion",
    "exotic",
    "fabric",
    "fiction",
    "galaxy",
    "garlic",
    "ginger",
    "goddess",
    "gravity",
    "hazard",
    "hybrid",
    "icon",
    "jaguar",
    "jungle",
    "kangaroo",
    "ladder",
    "lemon",
    "lizard",
    "lunar",
    "magnet",
    "mango",
    "marble",
    "meadow",
    "mosquito",
    "napkin",
    "noodle",
    "oyster",
    "panda",
    "pelican",
    "pepper",
    "pigeon",
    "planet",
    "pyramid",
    "quantum",
    "rabbit",
    "raccoon",
    "ribbon",
    "rocket",
    "saddle",
    "salmon",
    "scorpion",
    "shadow",
    "silver",
    "spider",
    "squirrel",
    "sunset",
    "tenant",
    "tiger",
    "tobacco",
    "tornado",
    "tunnel",
    "umbrella",
    "velvet",
    "violin",
    "vivid",
    "walnut",
    "whale",
    "wisdom",
    "wolf",
    "zebra",
    "zone",
]


def seed(rng: random.Random) -> str:
    return " ".join(rng.sample(_SEED, rng.choice((12, 15, 18, 24))))


def basic(rng: random.Random) -> str:
    return b64(f"{rng.choice(['ci', 'bob', 'deploy'])}:{password(rng)}".encode())


def joined(*parts: Make | str) -> Make:
    return lambda rng: "".join(part if isinstance(part, str) else part(rng) for part in parts)


_SALT = "./" + WORD


@dataclass(frozen=True)
class Form:
    """A kind of secret: how one is generated, and the lines that contain it.

    The first half of the lines is for development, the second for the report. ``{}`` is the secret.
    """

    name: str
    make: Make
    lines: tuple[str, ...] = ()


_FREE = (
    *(
        "here it is: {}",
        "use {} for the staging build",
        "I pasted {} into the chat by mistake",
        "export TOKEN={}",
    ),
    *(
        "the new one for the bot is {} since Monday",
        "config: {{ auth: '{}' }}",
        "rotate {} please",
        "got it, {} works now",
    ),
)


def _form(name: str, make: Make, *lines: str) -> Form:
    return Form(name, make, lines or _FREE)


FORMS: tuple[Form, ...] = (
    # those that a first report found missed
    _form("Discord webhook", joined(some(string.digits, 18), "/", some(URL, 68)), "post to https://discord.com/api/webhooks/{}", "hook = 'https://discordapp.com/api/webhooks/{}'", "the channel's URL https://discord.com/api/v10/webhooks/{} is live", "curl -X POST https://discord.com/api/webhooks/{} -d x"),
    _form("Discord bot token", joined("M", some(WORD, 23), ".", some(URL, 6), ".", some(URL, 38))),
    _form("Telegram bot token", joined(some("123456789", 10), ":AA", some(URL, 33))),
    _form("Mailgun key, old", after("key-", HEX, 32)),
    _form("Mailgun key, new", joined(some(HEX, 32), "-", some(HEX, 8), "-", some(HEX, 8))),
    _form("URL password with a slash", joined(some(WORD, 5), "/", some(WORD, 6)), "postgres://app:{}@db.internal:5432/main", "DATABASE_URL=mysql://root:{}@10.0.0.3/shop", "amqp://worker:{}@mq.example.net/vhost", "connect with mongodb://admin:{}@cluster0.example.net/?retryWrites=true"),
    _form("password, German", password, "Das Passwort lautet {}", "Passwort: {}", "das WLAN-Passwort ist {}, bitte merken", "Mein Kennwort lautet {}"),
    _form("password, French", password, "le mot de passe est {}", "mot de passe : {}", "mon mot de passe pour le wifi est {}", "mdp: {}"),
    _form("password, Spanish", password, "la contraseña es {}", "contraseña: {}", "mi contraseña del correo es {}", "la contraseña de la wifi es {}"),
    _form("password, Italian", password, "la password è {}", "password: {}", "la mia password è {}", "la password del router è {}"),
    _form("password, Portuguese", password, "a senha é {}", "senha: {}", "a minha senha do wifi é {}", "minha senha é {}"),
    _form("password, Dutch", password, "het wachtwoord is {}", "wachtwoord: {}", "mijn wachtwoord is {}", "het wachtwoord van de router is {}"),
    _form("curl login", password, "curl -u bob:{} https://api.example.com/v1", "curl --user admin:{} http://10.0.0.1/", "curl -s -u 'deploy:{}' https://ci.example.net/job", "curl https://x.example.org -u ci:{}"),
    _form("API key in a sentence", some(HEX, 32), "my api key is {}", "the API key for the weather service is {}", "our api key is now {}", "API key: {}"),
    _form("Ethereum key", after("0x", HEX, 64), "my eth private key is {}", "PRIVATE_KEY={}", "the deployer's secret key: {}", "wallet private key {}"),
    _form("seed phrase", seed, "{}", "seed phrase: {}", "my recovery words are {}", "wallet: {}"),
    _form("Azure signature", lambda rng: b64(rng.randbytes(32)).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D"), "https://acct.blob.core.windows.net/c/f.csv?sv=2022-11-02&sr=b&sp=r&se=2027-01-01&sig={}", "BLOB=https://x.blob.core.windows.net/y?sp=rw&sig={}", "the link https://a.blob.core.windows.net/b?se=2026-05-05T00:00:00Z&sig={}", "?sv=2021-06-08&ss=b&sig={}"),
    _form("Vault token", after("hvs.", URL, 92)),
    _form("Shopify token", after("shpat_", HEX, 32)),
    _form("Square token", after("EAAA", URL, 60)),
    _form("Docker login", basic, '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}', '"auth": "{}"', '{{"auths":{{"index.docker.io":{{"auth":"{}"}}}}}}', "auth: '{}'"),
    _form("netrc password", password, "machine api.example.com login bob password {}", "machine github.com\n  login ci\n  password {}", "machine heroku.example login a@b.example password {}", "default login anonymous password {}"),
    _form("pgpass line", password, "db.example.com:5432:shop:app:{}", "*:5432:*:postgres:{}", "localhost:6432:main:bob:{}", "10.0.0.9:5433:stats:reader:{}"),
    _form("htpasswd hash", joined("$apr1$", some(_SALT, 8), "$", some(_SALT, 22)), "bob:{}", "admin:{}", "in .htpasswd: eve:{}", "alice:{}"),
    _form("bcrypt hash", joined("$2y$10$", some(_SALT, 53)), "bob:{}", "hash={}", "stored as {}", "alice:{}"),
    _form("mysql -p", password, "mysql -u root -p{} shop", "mysqldump -h db -u app -p{} main > x.sql", "mariadb -uroot -p{}", "mysqladmin -u admin -p{} status"),
    _form("session cookie", some(LOWER, 32), "Cookie: sessionid={}", "Set-Cookie: PHPSESSID={}; path=/", "cookie session_id={}; theme=dark", "Cookie: lang=en; connect.sid={}"),
    # the well-known ones
    _form("AWS access key", after("AKIA", string.ascii_uppercase + "234567", 16)),
    _form("AWS secret key", some(B64, 40), "AWS_SECRET_ACCESS_KEY={}", "aws_secret_access_key = {}", "secret_access_key: {}", "my AWS secret key is {}"),
    _form("GitHub token", after("ghp_", WORD, 36)),
    _form("GitHub app token", after("ghs_", WORD, 36)),
    _form("GitHub fine-grained token", joined("github_pat_", some(WORD, 22), "_", some(WORD, 59))),
    _form("GitLab token", after("glpat-", URL, 20)),
    _form("Slack bot token", joined("xoxb-", some(string.digits, 12), "-", some(string.digits, 12), "-", some(WORD, 24))),
    _form("Slack webhook", joined("T", some(string.ascii_uppercase + string.digits, 8), "/B", some(string.ascii_uppercase + string.digits, 8), "/", some(WORD, 24)), "https://hooks.slack.com/services/{}", "SLACK_URL=https://hooks.slack.com/services/{}", "alerts go to https://hooks.slack.com/services/{}", "url: https://hooks.slack.com/services/{}"),
    _form("Stripe key", after("sk_live_", WORD, 24)),
    _form("Stripe webhook secret", after("whsec_", WORD, 32)),
    _form("Twilio key", after("SK", HEX, 32)),
    _form("SendGrid key", joined("SG.", some(URL, 22), ".", some(URL, 43))),
    _form("Mailchimp key", joined(some(HEX, 32), "-us", some("123456789", 2))),
    _form("npm token", after("npm_", WORD, 36)),
    _form("PyPI token", after("pypi-AgEIcHlwaS5vcmc", URL, 120)),
    _form("OpenAI key", joined("sk-proj-", some(URL, 74), "T3BlbkFJ", some(URL, 74))),
    _form("OpenAI key, old", joined("sk-", some(WORD, 20), "T3BlbkFJ", some(WORD, 20))),
    _form("Anthropic key", joined("sk-ant-api03-", some(URL, 93), "AA")),
    _form("Hugging Face token", after("hf_", string.ascii_letters, 34)),
    _form("Databricks token", after("dapi", HEX, 32)),
    _form("Google API key", after("AIza", URL, 35)),
    _form("Google client secret", after("GOCSPX-", URL, 28)),
    _form("Azure storage key", lambda rng: b64(rng.randbytes(64)), "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net", "AccountName=x;AccountKey={}", "AccountName=files;AccountKey={};", "BlobEndpoint=https://b/;AccountKey={}"),
    _form("Azure client secret", joined(some(WORD, 3), "8Q~", some(WORD + "_~.-", 34))),
    _form("JWT", jwt),
    _form("PEM private key", pem("RSA PRIVATE KEY"), "{}", "the key:\n{}", "see {} above", "file:\n{}\nend"),
    _form("OpenSSH private key", pem("OPENSSH PRIVATE KEY"), "{}", "id:\n{}", "this one {} is it", "key\n{}\nthat is all"),
    _form("PGP private key", pem("PGP PRIVATE KEY BLOCK"), "{}", "mine:\n{}", "armored {} block", "x\n{}\ny"),
    _form("database URL", password, "postgresql://app:{}@db:5432/main", "redis://:{}@cache:6379/0", "mysql://root:{}@127.0.0.1/shop", "mongodb+srv://u:{}@c.example.net/db"),
    _form("bearer token", some(WORD, 40), "Authorization: Bearer {}", "curl -H 'Authorization: Bearer {}' https://x.example", "-H \"Authorization: Bearer {}\"", "headers = {{'Authorization': 'Bearer {}'}}"),
    _form("basic credentials", basic, "Authorization: Basic {}", "-H 'Authorization: Basic {}'", "Proxy-Authorization: Basic {}", "'Authorization': 'Basic {}'"),
    _form("Heroku key", uuid, "HEROKU_API_KEY={}", "heroku api key: {}", "my Heroku API key is {}", "heroku_api_key = '{}'"),
    _form("DigitalOcean token", after("dop_v1_", HEX, 64)),
    _form("Terraform token", joined(some(WORD, 14), ".atlasv1.", some(URL, 67))),
    _form("New Relic key", after("NRAK-", string.ascii_uppercase + string.digits, 27)),
    _form("Grafana token", joined("glsa_", some(WORD, 32), "_", some(HEX, 8))),
    _form("Linear key", after("lin_api_", WORD, 40)),
    _form("Notion token", after("secret_", WORD, 43)),
    _form("Airtable token", joined("pat", some(WORD, 14), ".", some(HEX, 64))),
    _form("Atlassian token", after("ATATT3xFf", URL, 186)),
    _form("Postman key", joined("PMAK-", some(HEX, 24), "-", some(HEX, 34))),
    _form("Supabase key", after("sbp_", HEX, 40)),
    _form("Doppler token", after("dp.pt.", WORD, 43)),
    _form("Brevo key", joined("xkeysib-", some(HEX, 64), "-", some(WORD, 16))),
    _form("Bitcoin key", wif),
    _form("age key", after("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    _form("password", password, "my password is {}", "password = '{}'", "the password for the router is {}", "DB_PASSWORD={}"),
    _form("client secret", some(WORD, 32), "client_secret: {}", "const clientSecret = '{}'", "CLIENT_SECRET={}", "\"client_secret\": \"{}\""),
    _form("token in a sentence", some(WORD, 40), "use the token {} for it", "the access token is {}", "my token is {}", "token: {}"),
)  # fmt: skip


# -- disguises -----------------------------------------------------------------------------------------------------

_CYRILLIC = str.maketrans("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ")


def _every(letter: str) -> Callable[[str, random.Random], str]:
    return lambda text, rng: letter.join(
        text[position : position + 4] for position in range(0, len(text), 4)
    )


def _some_of(escape: Callable[[str], str]) -> Callable[[str, random.Random], str]:
    """Escape every sign, and a few of the letters."""
    return lambda text, rng: "".join(
        escape(item) if item != "\n" and (not item.isalnum() or rng.random() < 0.2) else item
        for item in text
    )


def _cut(between: str) -> Callable[[str, random.Random], str]:
    def cut(text: str, rng: random.Random) -> str:
        cut = rng.randint(len(text) // 3, 2 * len(text) // 3)
        return f"{text[:cut]}{between}{text[cut:]}"

    return cut


DISGUISES: dict[str, Callable[[str, random.Random], str]] = {
    "plain": lambda text, rng: text,
    "over two lines": _cut("\n"),
    "zero-width space": _every("\u200b"),
    "soft hyphen": _every("\u00ad"),
    "full width": lambda text, rng: "".join(
        chr(ord(item) + 0xFEE0) if "!" <= item <= "~" else item for item in text
    ),
    "Cyrillic letters": lambda text, rng: text.translate(_CYRILLIC),
    "percent escapes": _some_of(lambda letter: f"%{ord(letter):02X}"),
    "HTML entities": _some_of(lambda letter: f"&#{ord(letter)};"),
    "JSON escapes": _some_of(lambda letter: f"\\u{ord(letter):04x}"),
    "hexadecimal": lambda text, rng: text.encode().hex(),
    "base64": lambda text, rng: b64(text.encode()),
    "base64 twice": lambda text, rng: b64(b64(text.encode()).encode()),
    "quoted-printable": _some_of(lambda letter: f"={ord(letter):02X}"),
    "letter in front": lambda text, rng: rng.choice("xqzk") + text,
    "underscore in front": lambda text, rng: "_" + text,
    "upper case": lambda text, rng: text.upper(),
    "Markdown": lambda text, rng: "".join(
        f"\\{item}" if item in "_*-.~`#+" else item for item in text
    ),
    "spaced": lambda text, rng: " ".join(text),
    "two halves": _cut('" + "'),
}


@dataclass(frozen=True)
class Case:
    kind: str
    disguise: str
    text: str
    secret: str


def cases(*, seed: int, each: int, half: int) -> list[Case]:
    """Return ``each`` texts of every kind and disguise; ``half`` 0 takes the first half of a kind's lines, 1 the other."""
    rng = random.Random(seed)
    results = []
    for form in FORMS:
        middle = len(form.lines) // 2
        lines = form.lines[middle:] if half else form.lines[:middle]
        for name, disguise in DISGUISES.items():
            for _ in range(each):
                secret = disguise(form.make(rng), rng)
                results.append(Case(form.name, name, rng.choice(lines).format(secret), secret))
    return results


def leaks(secret: str, redacted: str) -> bool:
    """Return whether a piece of the secret (a quarter of it, or at least five characters) is left."""
    size = max(5, min(len(secret) // 4, 24))
    pieces = {secret[position : position + size] for position in range(len(secret) - size + 1)}
    return any(
        redacted[position : position + size] in pieces
        for position in range(len(redacted) - size + 1)
    )

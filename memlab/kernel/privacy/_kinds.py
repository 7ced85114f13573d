# ruff: noqa: E501  (a kind a line)
"""The kinds of credentials with a recognisable form, one on each line.

Vendors publish these forms. Some patterns follow Yelp's detect-secrets (Apache-2.0); see NOTICE. A pattern is searched
only in texts that contain one of its literals ``begins``, which are in lower case. Every repetition is bounded or can
match in only one way, so that matching takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from memlab.kernel.privacy._values import (
    has_digit,
    is_basic,
    is_login,
    is_path,
    is_placeholder,
    is_random,
    is_random_hex,
    is_url_password,
    is_wallet_key,
    looks_generated,
)

Accept = Callable[[str], bool]


@dataclass(frozen=True)
class Kind:
    """A kind of credential and the pattern that recognises it.

    ``form`` is a regular expression, searched in texts that contain one of ``begins``.

    The secret is group 1 of ``form``, or the whole match without a group. ``full_length`` is the minimum length of a
    complete secret. A shorter secret may continue on the next line.
    """

    name: str
    begins: tuple[str, ...]
    form: str
    example: str = ""
    full_length: int = 0
    accept: Accept | None = None
    flags: int = re.IGNORECASE | re.ASCII

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled regular expression of this kind of credential."""
        return re.compile(self.form, self.flags)


# Alphabets of tokens, written as parts of a character class of a regular expression.
_WORD = "A-Za-z0-9_"
_DASHED = r"A-Za-z0-9_\-"
_PLAIN = "A-Za-z0-9"
_HEX = "a-f0-9"


_IN_A_WORD = "(?<![A-Za-z0-9+]{2})"
"""Allows at most one letter before a prefix, because a longer word may contain a short prefix by chance."""


def _token(
    name: str, prefixes: str, letters: str, minimum: int, full: int, maximum: int = 0
) -> Kind:
    """Return a kind of token that has a fixed prefix followed by random characters.

    At least ``minimum`` and at most ``maximum`` (by default ``full``) characters from ``letters``
    follow the prefix. A complete token has ``full`` of them. The prefix matches in any letter case and
    even after one letter, because the random characters are sufficient evidence.
    """
    words = sorted(prefixes.split(), key=lambda word: (-len(word), word))
    forms = [
        re.escape(word) if len(word) >= 4 and not word.isalnum() else _IN_A_WORD + re.escape(word)
        for word in words
    ]
    form = f"(?:{'|'.join(forms)})[{letters}]{{{minimum},{maximum or full}}}+"
    shortest_prefix = min(map(len, words))
    size = shortest_prefix + full
    begins = tuple(word.lower() for word in words)
    accept = is_random if all(word.isalnum() for word in words) else looks_generated
    return Kind(
        name,
        begins,
        form,
        f"{prefixes.split()[0]}...",
        size,
        lambda match: accept(match[shortest_prefix:]),
    )


def _at(
    name: str,
    begins: str,
    form: str,
    accept: Accept | None = None,
    *,
    example: str,
    cased: bool = False,
) -> Kind:
    """Return a kind of credential that is recognised by the words around it.

    The secret is group 1 of ``form``. Only texts that contain one of the words ``begins`` are searched.
    """
    return Kind(
        name,
        tuple(begins.split()),
        form,
        example,
        accept=accept,
        flags=re.ASCII if cased else _FOLDED,
    )


def _form(
    name: str,
    begins: str,
    form: str,
    accept: Accept | None = None,
    *,
    example: str,
    full_length: int,
) -> Kind:
    """Return a kind of credential that is recognised by its own format.

    Only texts that contain one of the words ``begins`` are searched.
    """
    return Kind(name, tuple(begins.split()), form, example, full_length, accept)


# Configuration files and command lines are matched in any letter case, with ASCII classes only.
_FOLDED = re.IGNORECASE | re.ASCII


def _real(value: str) -> bool:
    """Return whether a value is not a placeholder."""
    return not is_placeholder(value)


def _digits(value: str) -> bool:
    """Return whether a value has a digit or is random, and is not a placeholder."""
    return (has_digit(value) or is_random(value)) and not is_placeholder(value)


def _session(value: str) -> bool:
    """Return whether the value of a cookie looks like a session id."""
    return is_random(value) or (
        has_digit(value) and len(value) >= 24 and "_" not in value and not is_path(value)
    )


# The columns are name, prefixes, alphabet, minimum length, full length and maximum length. A minimum below the full
# length finds tokens that were cut, such as at the end of a line.
_TOKENS = (
    _token("AWS access key", "AKIA ASIA ABIA ACCA", "A-Z0-9", 16, 16),
    _token("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", _PLAIN, 16, 36, 255),
    _token("GitHub token", "github_pat_", _WORD, 18, 82),
    _token("GitLab token", "glpat- gldt- glrt- glft- glptt- glimt- glsoat- gloas- glcbt- glagent- glffct- glwt-", _DASHED + ".", 14, 20, 300),
    _token("GitLab token", "GR1348941", _DASHED, 14, 20, 60),
    _token("Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxp- xoxe.xoxb- xoxc- xoxd-", _DASHED + "%", 10, 40, 300),
    _token("Slack token", "xapp-", _DASHED, 16, 60, 200),
    _token("Stripe key", "sk_live_ rk_live_ sk_test_ rk_test_", _PLAIN, 10, 24, 255),
    _token("Stripe secret", "whsec_", "A-Za-z0-9+/=", 16, 32, 100),
    _token("Mailgun key", "key-", _HEX, 32, 32),
    _token("Brevo key", "xkeysib- xsmtpsib-", _DASHED, 40, 81, 90),
    _token("npm token", "npm_", _PLAIN, 20, 36),
    _token("PyPI token", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw pypi-AgE", _DASHED, 20, 400, 500),
    _token("RubyGems token", "rubygems_", _HEX, 24, 48),
    _token("NuGet key", "oy2", "a-z0-9", 43, 43),
    _token("Anthropic key", "sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-", _DASHED, 20, 95, 140),
    _token("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", _DASHED, 20, 120, 255),
    _token("OpenRouter key", "sk-or-v1-", _HEX, 30, 64),
    _token("LangSmith key", "lsv2_pt_ lsv2_sk_", _WORD, 24, 43),
    _token("Hugging Face token", "hf_ api_org_", _PLAIN, 20, 34, 50),
    _token("Groq key", "gsk_", _PLAIN, 24, 52),
    _token("Perplexity key", "pplx-", _PLAIN, 24, 48, 64),
    _token("xAI key", "xai-", _PLAIN, 32, 80),
    _token("Replicate token", "r8_", _PLAIN, 24, 37, 42),
    _token("Pinecone key", "pcsk_", _WORD, 30, 69, 75),
    _token("Databricks token", "dapi", _HEX, 24, 32),
    _token("Google API key", "AIza", _DASHED, 28, 35),
    _token("Google client secret", "GOCSPX-", _DASHED, 18, 28),
    _token("Google token", "ya29.", _DASHED + ".", 20, 100, 1000),
    _token("Google token", "1//0", _DASHED, 30, 97, 120),
    _token("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 32, 64),
    _token("Shopify token", "shpat_ shpca_ shppa_ shpss_", _PLAIN, 20, 32),
    _token("Square token", "EAAA", _DASHED, 50, 60),
    _token("Square token", "sq0atp- sq0csp- sq0idp-", _DASHED, 18, 22, 60),
    _token("PayPal token", "access_token$production$ access_token$sandbox$", _PLAIN + "$", 24, 49),
    _token("Vault token", "hvs. hvb. hvr.", _DASHED, 20, 200, 300),
    _token("Docker token", "dckr_pat_ dckr_oat_", _DASHED, 20, 27, 40),
    _token("Atlassian token", "ATATT3xFf ATCTT3xFf ATBB", _DASHED + "=", 24, 186, 250),
    _token("Linear key", "lin_api_ lin_oauth_", _PLAIN, 24, 40, 64),
    _token("Notion token", "secret_ ntn_", _PLAIN, 40, 43, 50),
    _token("New Relic key", "NRAK- NRJS- NRII- NRAA-", _DASHED, 19, 27, 40),
    _token("Grafana token", "glsa_ glc_", _WORD + "+/=", 30, 41, 400),
    _token("Postman key", "PMAK-", _PLAIN + r"\-", 34, 59),
    _token("Sentry token", "sntrys_ sntryu_", _WORD + "=+/", 32, 64, 300),
    _token("Supabase key", "sbp_ sb_secret_", _WORD, 20, 31, 60),
    _token("PlanetScale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", _DASHED + ".", 28, 32, 64),
    _token("Doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", _DASHED + ".", 30, 40, 80),
    _token("Pulumi token", "pul-", _HEX, 28, 40),
    _token("Figma token", "figd_ figo_ figu_", _DASHED, 24, 40, 64),
    _token("HubSpot token", "pat-na1- pat-eu1- pat-na2-", _HEX + r"\-", 28, 36),
    _token("Mapbox token", "sk.eyJ", _DASHED + ".", 50, 80, 120),
    _token("Tailscale key", "tskey-auth- tskey-api- tskey-client- tskey-", _DASHED, 20, 30, 80),
    _token("Netlify token", "nfp_ nfc_ nfo_", _PLAIN, 24, 40),
    _token("Heroku key", "HRKU-", _DASHED, 30, 60, 70),
    _token("Fly token", "fo1_ fm1a_ fm2_", _DASHED + "+/=", 30, 43, 500),
    _token("Buildkite token", "bkua_ bkat_", _PLAIN, 24, 40),
    _token("CircleCI token", "CCIPAT_ CCIPRJ_", _WORD, 30, 63),
    _token("Dynatrace token", "dt0c01. dt0s01.", _PLAIN + ".", 60, 89),
    _token("SonarQube token", "sqp_ squ_ sqa_", _HEX, 28, 40),
    _token("Sourcegraph token", "sgp_", _HEX + "_", 28, 40, 58),
    _token("Typeform token", "tfp_", _DASHED + ".", 40, 59),
    _token("Contentful token", "CFPAT-", _DASHED, 30, 43),
    _token("Alibaba key", "LTAI", _PLAIN, 16, 20),
    _token("Artifactory key", "AKCp", _PLAIN, 40, 69),
    _token("Razorpay key", "rzp_live_ rzp_test_", _PLAIN, 12, 14, 20),
    _token("Plaid token", "access-production- access-sandbox- access-development-", _HEX + r"\-", 30, 36),
    _token("Adafruit key", "aio_", _PLAIN, 24, 28),
    _token("1Password token", "ops_eyJ", "A-Za-z0-9+/=_-", 60, 250, 2000),
    _token("age key", "AGE-SECRET-KEY-1", "A-Z0-9", 40, 58),
    _token("Facebook token", "EAAG EAAB", _PLAIN, 60, 150, 300),
)  # fmt: skip

# The columns are name, literals, pattern and check of the match. Patterns are not wrapped, so that each can be compared
# with its source.
_SECRETS = (
    _form("AWS access key", "akia asia", r"(?-i:(?<![A-Za-z0-9+/])A[KS]IA[A-Z2-7]{16}(?![A-Za-z0-9]))", example="AKIA...", full_length=20),
    _form("SendGrid key", "sg.", r"(?<![A-Za-z0-9+]{2})SG\.[\w-]{16,32}\.[\w-]{20,50}+", is_random, example="SG.xxx.xxx", full_length=69),
    _form("JWT", "eyj", r"(?<![\w-]{2})eyJ[\w-]{8,4000}\.eyJ[\w-]{8,8000}(?:\.[\w-]{0,2000})?", has_digit, example="eyJxxx.eyJxxx.xxx", full_length=0),
    _form("Discord token", ".", r"(?<![\w-]{2})[MNO][A-Za-z\d]{22,27}\.[\w-]{6}\.[\w-]{27,40}+", is_random, example="Mxxx.xxx.xxx", full_length=58),
    _form("Telegram token", ":aa", r"(?<![0-9]{2})[0-9]{8,10}:AA[\w-]{30,34}+", is_random, example="123456789:AA...", full_length=44),
    _form("Twilio key", "sk ac", r"(?<![A-Za-z0-9+]{2})(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])", is_random, example="SK...", full_length=34),
    _form("Mailgun key", "-", r"(?<![A-Za-z0-9-]{2})[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![A-Za-z0-9-])", is_random, example="32-8-8 hexadecimal digits", full_length=50),
    _form("Mailchimp key", "-us", r"(?<![A-Za-z0-9]{2})[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])", is_random, example="xxx-us12", full_length=36),
    _form("Terraform token", ".atlasv1.", r"[a-z0-9]{8,14}\.atlasv1\.[\w=-]{40,70}+", is_random, example="xxx.atlasv1.xxx", full_length=83),
    _form("Airtable token", "pat", r"(?<![A-Za-z0-9]{2})pat[a-z0-9]{14}\.[0-9a-f]{40,64}+", is_random, example="patxxx.xxx", full_length=82),
    _form("Azure client secret", "q~", r"(?<![\w~.]{2})[\w~.]{3,4}[0-9]Q~[\w~.-]{28,34}+", is_random, example="xxx8Q~xxx", full_length=37),
    _form("bcrypt or crypt hash", "$2 $apr1$ $1$ $5$ $6$ $y$ $argon2 {sha} {ssha} $pbkdf2", r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{40,53}+|\$(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{16,22}+|\$[56]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{30,86}+|\$y\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{30,43}+|\$argon2(?:id|i|d)\$[\w$=,+/.-]{20,200}+|\$pbkdf2[\w-]{0,12}\$[\w$=,+/.-]{20,200}+|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,120}={0,2}", example="bob:$2y$10$...", full_length=30),
    _form("Bitcoin key", "5 k l", r"(?<![A-Za-z0-9]{2})(?:5[1-9A-HJ-NP-Za-km-z]{50}|[KL][1-9A-HJ-NP-Za-km-z]{51}|xprv[1-9A-HJ-NP-Za-km-z]{100,108}+)(?![A-Za-z0-9])", is_wallet_key, example="5J...", full_length=51),
    _at("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/]{20,200}+)", example="https://hooks.slack.com/services/..."),
    _at("Discord webhook", "discord", r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/([\w-]{15,24}/[\w-]{30,120}+)", example="https://discord.com/api/webhooks/..."),
    _at("Teams webhook", "webhook.office.com outlook.office", r"office(?:365)?\.com/webhook(?:b2)?/([\w@/-]{60,300}+)", example="https://x.webhook.office.com/webhookb2/..."),
    _at("Zapier webhook", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/catch/([\w/]{10,60}+)", example="https://hooks.zapier.com/hooks/catch/..."),
    _at("AWS secret key", "aws secret", r"(?:aws|secret)[\w .-]{0,40}?(?:key|secret)[\"'`*]{0,3}(?:\s{1,3}is\b|\s{0,3}[:=]>?){1,2}\s{0,3}[\"'`]?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", is_random, example="aws_secret_access_key=..."),
    _at("Okta token", "ssws", r"\bSSWS[ \t]{1,4}([\w-]{20,60}+)", is_random, example="Authorization: SSWS ..."),
    _at("bearer token", "bearer", r"bearer[ \t]{1,4}([\w.~+/-]{16,4000}+={0,3})", _digits, example="Bearer ..."),
    _at("credentials", "authorization", r"(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|digest|token)\s{1,4}([\w+/=-]{6,4000}+)", example="Authorization: Basic ..."),
    _at("Docker login", "auth", r"[\"']?auth[\"']?\s{0,4}:\s{0,4}[\"'](={0,2}[A-Za-z0-9+/_]{8,400}={0,2})[\"']", is_basic, example='"auth": "..."'),
    _at("connection string key", "accountkey= sharedaccesskey= accesskey=", r"(?:account|shared ?access|access)key=([A-Za-z0-9+/=]{16,200}+)", example="AccountKey=..."),
    _at("Azure signature", "sig=", r"[?&;](?:amp;)?sig=([\w%+/=-]{30,200}+)", has_digit, example="?sv=...&sig=..."),
    _at("URL password", "://", r"://[^\s/:@?#'\"<>`]{0,128}:([^\s'\"<>`]{1,256})@(?=[\w\[.-])", is_url_password, example="postgres://bob:...@host"),
    _at("login on a command line", "curl wget http", r"\b(?:curl|wget|https?)\b[^\n]{0,200}?[ \t](?:-u|-U|-a|--user|--proxy-user|--auth)[ =]?[\"']?[^\s:\"'/]{1,64}:([^\s\"']{2,200}+)", _real, example="curl -u bob:..."),
    _at("password on a command line", "mysql mariadb", r"\b(?:mysql\w{0,12}|mariadb[\w-]{0,12})\b[^\n]{0,200}?[ \t](?-i:-p)[\"']?([^\s\"'-][^\s\"']{2,128}+)", _real, example="mysql -p..."),
    _at("password on a command line", "sshpass redis-cli docker ldap", r"\b(?:sshpass\b[^\n]{0,40}?[ \t]-p|redis-cli\b[^\n]{0,120}?[ \t]-a|docker[ \t]login\b[^\n]{0,160}?[ \t]-p|ldap\w{3,10}\b[^\n]{0,160}?[ \t]-w)[ \t]{1,3}[\"']?([^\s\"'-][^\s\"']{2,128}+)", _real, example="redis-cli -a ..."),
    _at("password on a command line", "-passin -passout pass:", r"-pass(?:in|out)?[ \t]{1,3}[\"']?pass:([^\s\"']{2,128}+)", _real, example="openssl -passin pass:..."),
    _at("netrc password", "machine login", r"\b(?:machine[ \t]+\S{1,128}\s{1,8}|default\s{1,8}|)login\s{1,4}\S{1,128}\s{1,8}(?:account\s{1,4}\S{1,64}\s{1,8})?password\s{1,4}(\S{3,200}+)", _real, example="machine x login y password ..."),
    _at("pgpass line", ":", r"(?:^|(?<=[\s\"'`(]))[\w.*/-]{1,128}:(?:[1-9][0-9]{3,4}|\*):[A-Za-z*][\w*-]{0,63}:[A-Za-z*][\w*.-]{0,63}:([^\s:\"'`]{3,128}+)", is_login, example="host:5432:db:bob:..."),
    _at("session cookie", "sess sid= sid: auth remember csrf xsrf cookie", r"(?:\b|_)(?:[\w.-]{0,24}sess(?:ion)?(?:[_-]?(?:id|token|key))?|(?:connect\.|sails\.)?s?sid|[\w-]{0,12}auth(?:[_-]?token)?|remember(?:_me|_token|_user_token)?|(?:csrf|xsrf)[_-]?token)=([\w%.+/:-]{12,2000}+)", _session, example="Cookie: sessionid=..."),
    _at("Ethereum key", "0x", r"(?:key|secret|private|pk|priv|wallet|signer)[^\n]{0,60}?(?<![0-9a-zA-Z]{2})(0x[0-9a-f]{64})(?![0-9a-f])", is_random_hex, example="private key: 0x..."),
    _at("private key", "private priv", r"priv(?:ate)?[ _-]?key[^\n]{0,40}?(?<![0-9a-zA-Z]{2})([0-9a-f]{64})(?![0-9a-zA-Z])", is_random_hex, example="private key: ..."),
    _at("WordPress salt", "_key _salt", r"define\([ ]?['\"](?:(?:SECURE_|LOGGED_IN_)?AUTH|NONCE)_(?:KEY|SALT)['\"],[ ]{0,9}['\"]([^\n'\"]{20,80})['\"]", example="define('AUTH_KEY', ...)"),
    _form("API key", "sk-", r"(?<![A-Za-z0-9]{2})sk-[\w-]{20,200}+", is_random, example="sk-...", full_length=0),
)  # fmt: skip

# If several kinds match at the same position with the same length, the first kind in this order is reported.
KINDS: tuple[Kind, ...] = (*_TOKENS, *_SECRETS)

"""Django settings, read from the environment.

Every variable is documented in docs/operations.md. Unsafe defaults hold only with
CARDWIRE_DEBUG=1.
"""

from pathlib import Path
from tempfile import gettempdir

from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from cards.protocol.json_form import MAX_DEPTH
from cards.protocol.kinds import CardKind
from cards.protocol.user_blocks import MAX_BLOCKS
from cards.protocol.watchdog import DEFAULT_WINDOWS_MS
from config.environment import (
    artifact_storage,
    database,
    directories,
    directory,
    env,
    host_names,
    number,
    redis_url,
    switch,
    whole_number,
)

BASE_DIR = Path(__file__).resolve().parent.parent

#: Bounds of what nobody wants larger, far from where timers and dates overflow.
A_YEAR_S = 365 * 24 * 3600
A_CENTURY_DAYS = 36_500
MANY = 1_000_000_000

DEBUG = switch("CARDWIRE_DEBUG", False)

CARDWIRE_DATA_DIR = directory("CARDWIRE_DATA_DIR", BASE_DIR / "var")

#: Where the workers of this machine keep the locks that tell of their lives.
CARDWIRE_WORKERS_DIR = CARDWIRE_DATA_DIR / "workers"


def _secret_key() -> str:
    """Return the key of the environment; under DEBUG one kept in the data dir."""
    given: str = env.str("CARDWIRE_SECRET_KEY", "")
    if given:
        return given
    if not DEBUG:
        raise ImproperlyConfigured(
            "CARDWIRE_SECRET_KEY is required unless CARDWIRE_DEBUG=1"
        )
    path = CARDWIRE_DATA_DIR / "secret_key"
    try:
        # "x": of two processes that start together one creates, both read.
        with path.open("x") as file:
            path.chmod(0o600)
            file.write(get_random_secret_key())
    except FileExistsError:
        pass
    return path.read_text()


SECRET_KEY = _secret_key()

LOCAL_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS = host_names("CARDWIRE_ALLOWED_HOSTS")
if not ALLOWED_HOSTS:
    if not DEBUG:
        raise ImproperlyConfigured(
            "CARDWIRE_ALLOWED_HOSTS is required unless CARDWIRE_DEBUG=1"
        )
    ALLOWED_HOSTS = LOCAL_HOSTS

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "cards",
    "prompts",
    "artifacts",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

#: One writer at a time queues at BEGIN instead of failing in the middle; the log's
#: writer checkpoints in a thread of its own, so that nobody else has to.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA wal_autocheckpoint=0;"
    ),
}

DATABASES = {
    "default": database(
        "DATABASE_URL",
        f"sqlite:///{CARDWIRE_DATA_DIR / 'cardwire.sqlite3'}",
        conn_max_age=60,
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

#: Where files are written before the storage takes them; on one disk with that of the
#: data dir, which takes them by giving them another name.
CARDWIRE_INCOMING_DIR = CARDWIRE_DATA_DIR / "incoming"

STORAGES = {
    **global_settings.STORAGES,
    "artifacts": artifact_storage(
        "CARDWIRE_ARTIFACT_STORAGE",
        "CARDWIRE_ARTIFACT_STORAGE_OPTIONS",
        CARDWIRE_DATA_DIR / "artifacts",
    ),
}

REDIS_URL = redis_url("REDIS_URL")
CHANNEL_LAYERS = {
    "default": (
        {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {
                # redis-py's default socket_timeout kills an idle receiver.
                "hosts": [{"address": REDIS_URL, "socket_timeout": None}],
                # Workers join anew each hour; killed ones are forgotten after two.
                "group_expiry": 7200,
            },
        }
        if REDIS_URL
        else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    )
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = CARDWIRE_DATA_DIR / "static"
# Found in the apps themselves: a release needs no collectstatic, and a changed
# file is seen at once in development.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
# The folder is there from the start, so that WhiteNoise does not warn.
STATIC_ROOT.mkdir(parents=True, exist_ok=True)

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "page"
LOGOUT_REDIRECT_URL = "page"

SESSION_ENGINE = "cards.browser_sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_SECURE = not DEBUG
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
# TLS ends at the proxy in front of daphne, which is where the operator sets HSTS
# and the redirect to https (docs/operations.md).
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008"]

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["cards.permissions.CardwireAuthentication"],
    # Views of cards say themselves who may read them; whatever forgets to is closed.
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAdminUser"],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

CARDWIRE_ENGINE: str = env.str(
    "CARDWIRE_ENGINE", "cards.engines.workspace.WorkspaceEngine"
)
CARDWIRE_ALLOW_ANONYMOUS = switch("CARDWIRE_ALLOW_ANONYMOUS", DEBUG)
CARDWIRE_MAX_FRAME_BYTES = whole_number(
    "CARDWIRE_MAX_FRAME_BYTES", 16 * 1024 * 1024, at_least=1024, at_most=1024**3
)
#: Of a client's frame; what is nested more deeply than by default is never stored.
CARDWIRE_MAX_JSON_DEPTH = whole_number(
    "CARDWIRE_MAX_JSON_DEPTH", MAX_DEPTH, at_least=8, at_most=MAX_DEPTH
)
CARDWIRE_MAX_BLOCKS = whole_number(
    "CARDWIRE_MAX_BLOCKS", MAX_BLOCKS, at_least=1, at_most=10_000
)
CARDWIRE_MAX_WAITING_FRAMES = whole_number(
    "CARDWIRE_MAX_WAITING_FRAMES", 256, at_least=1, at_most=10_000
)
#: Of one uploaded file.
CARDWIRE_MAX_UPLOAD_BYTES = whole_number(
    "CARDWIRE_MAX_UPLOAD_BYTES", 512 * 1024 * 1024, at_least=1, at_most=1024**4
)
#: Where messages may name files of the server.
CARDWIRE_LOCAL_PATHS = directories(
    "CARDWIRE_LOCAL_PATHS",
    [CARDWIRE_DATA_DIR / "workspace", Path(gettempdir())] if DEBUG else [],
)
CARDWIRE_QUEUE_LIMIT = whole_number(
    "CARDWIRE_QUEUE_LIMIT", 8, at_least=0, at_most=10_000
)
CARDWIRE_IDLE_TIMEOUT_S = whole_number(
    "CARDWIRE_IDLE_TIMEOUT_S", 90, at_least=0, at_most=A_YEAR_S
)
CARDWIRE_TICK_INTERVAL_MS = whole_number(
    "CARDWIRE_TICK_INTERVAL_MS", 250, at_least=0, at_most=3_600_000
)
CARDWIRE_LEASE_S = number("CARDWIRE_LEASE_S", 15, at_least=1, at_most=3600)
#: Seconds of silence after which a card of a kind is an orphan; 0 = never.
CARDWIRE_WATCHDOG_S: dict[CardKind, float] = {
    kind: number(
        f"CARDWIRE_WATCHDOG_{kind.upper()}_S",
        default_ms / 1000,
        at_least=0,
        at_most=A_YEAR_S,
    )
    for kind, default_ms in DEFAULT_WINDOWS_MS.items()
}
CARDWIRE_STOP_GRACE_S = number("CARDWIRE_STOP_GRACE_S", 5, at_least=0, at_most=60)
CARDWIRE_STALLED_AFTER_S = number(
    "CARDWIRE_STALLED_AFTER_S", 30, at_least=0, at_most=A_YEAR_S
)
CARDWIRE_MAX_SESSIONS = whole_number(
    "CARDWIRE_MAX_SESSIONS", 10_000, at_least=0, at_most=MANY
)
CARDWIRE_MAX_CONNECTIONS = whole_number(
    "CARDWIRE_MAX_CONNECTIONS", 1000, at_least=0, at_most=MANY
)
CARDWIRE_MESSAGES_PER_MINUTE = whole_number(
    "CARDWIRE_MESSAGES_PER_MINUTE", 600, at_least=0, at_most=MANY
)
CARDWIRE_CREDENTIAL_CHECK_S = number(
    "CARDWIRE_CREDENTIAL_CHECK_S", 30, at_least=0, at_most=A_YEAR_S
)
#: Life of an unanswered prompt; 0 = for ever.
CARDWIRE_WAIT_TTL_DAYS = number(
    "CARDWIRE_WAIT_TTL_DAYS", 15, at_least=0, at_most=A_CENTURY_DAYS
)
#: Seconds between two sweeps of a running server; 0 = none.
CARDWIRE_SWEEP_INTERVAL_S = number(
    "CARDWIRE_SWEEP_INTERVAL_S", 3600, at_least=0, at_most=A_YEAR_S
)
CARDWIRE_EVENT_RETENTION_DAYS = number(
    "CARDWIRE_EVENT_RETENTION_DAYS", 0, at_least=0, at_most=A_CENTURY_DAYS
)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # Django's own handler would say everything twice.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        # It says of each ring that a worker which was killed did not hear it. Rings
        # may get lost, and there are many a second for hours.
        "channels_redis": {"level": "WARNING"},
        # One line per HTTP request is the proxy's business.
        "daphne": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
    },
}

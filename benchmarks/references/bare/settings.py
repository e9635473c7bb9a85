"""As little Django as channels can do with."""

SECRET_KEY = "not a secret: the server is local and holds nothing"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["channels"]

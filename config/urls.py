"""The HTTP routes."""

from django.contrib import admin
from django.urls import include, path

from artifacts.urls import artifact_routes
from cards.urls import card_routes
from config.wiring import artifact_shelf, prompt_book

urlpatterns = [
    path("admin/", admin.site.urls),
    *card_routes(prompt_book()),
    path("", include("prompts.urls")),
    *artifact_routes(artifact_shelf()),
]

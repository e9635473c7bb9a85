"""The HTTP routes of the app."""

from django.urls import path

from prompts import views

urlpatterns = [
    path("v1/prompts", views.PromptList.as_view(), name="prompts"),
    path(
        "v1/prompts/<str:request_id>/answer",
        views.PromptAnswer.as_view(),
        name="prompt-answer",
    ),
]

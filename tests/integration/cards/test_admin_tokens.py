"""The tokens of users in the operator's admin."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cards.models import AccessToken
from tests.integration.cards.admin_pages import NOW, link, page, statements

TOKENS = "/admin/cards/accesstoken/"


@pytest.fixture(name="browser")
def _browser(db: None) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("olga"))
    return browser


def make_tokens(username: str, count: int) -> None:
    user = User.objects.create_user(username)
    AccessToken.objects.bulk_create(
        AccessToken(
            user=user,
            digest=f"{username}{number:05}".ljust(64, "0"),
            created_at=NOW,
        )
        for number in range(count)
    )


def shown_in(html: str, username: str) -> list[int]:
    return [int(each) for each in re.findall(rf"{username}(\d{{5}})…", html)]


class TestTokens:
    def test_are_all_within_reach(self, browser: Client) -> None:
        """Newest first, page by page to the oldest, without counting them."""
        make_tokens("ann", 101)
        found: list[int] = []
        address: str | None = ""

        with CaptureQueriesContext(connection) as queries:
            while address is not None:
                html = page(browser, TOKENS + address)
                found += shown_in(html, "ann")
                address = link(html, "next")

        assert found == list(reversed(range(101)))
        assert "COUNT(" not in statements(queries)

    def test_of_a_user_are_paged_too(self, browser: Client) -> None:
        make_tokens("ann", 51)
        make_tokens("bob", 1)

        newest = page(browser, f"{TOKENS}?q=ann")
        older = page(browser, TOKENS + (link(newest, "next") or ""))

        assert (shown_in(newest, "bob"), shown_in(older, "bob")) == ([], [])
        assert shown_in(older, "ann") == [0]

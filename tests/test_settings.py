"""Settings: flags, our variables, the seeds' names, defaults, in that order; and what is wrong is named."""

from dataclasses import fields
from pathlib import Path

import pytest

from keepsake.core.errors import Misconfigured
from keepsake.settings import BY_NAME, SETTINGS, Settings, load

TENANT = "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"


def test_without_anything_the_defaults_hold() -> None:
    settings = load({})

    assert {setting.name: getattr(settings, setting.name) for setting in SETTINGS} == {
        setting.name: setting.default for setting in SETTINGS
    }
    assert set(settings.origins.values()) == {"default"}


def test_every_field_has_its_record() -> None:
    assert [field.name for field in fields(Settings) if field.name != "origins"] == list(BY_NAME)


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("HINDSIGHT_API_MCP_ENABLED", "false", "mcp_enabled", False),
        ("HINDSIGHT_MCP_BANK_ID", "notes", "default_bank", "notes"),
        ("HINDSIGHT_API_TENANT_API_KEY", "secret", "tenant_api_key", "secret"),
        ("MCP_RATE_LIMIT_PER_MINUTE", "5", "rate_limit", 5),
        ("XEROTIER_MCP_SESSION_TTL_SECONDS", "30", "xerotier_session_ttl", 30),
        ("XEROTIER_MCP_ENABLED", "off", "xerotier_enabled", False),
        ("XEROTIER_MCP_TRANSPORT", "legacy", "xerotier_transport", "legacy"),
        ("KEEPSAKE_PORT", "9000", "port", 9000),
        (
            "KEEPSAKE_ALLOWED_HOSTS",
            "a.example, b.example c.example",
            "allowed_hosts",
            ("a.example", "b.example", "c.example"),
        ),
        ("KEEPSAKE_DATA_DIR", "~/memories", "data_dir", Path.home() / "memories"),
        ("KEEPSAKE_WORKER", "OFF", "worker", False),
    ],
)
def test_a_variable_sets_its_setting_and_is_named_as_its_origin(
    variable: str, text: str, name: str, value: object
) -> None:
    settings = load({variable: text})

    assert (getattr(settings, name), settings.origins[name]) == (value, variable)


def test_the_extension_of_the_seed_is_accepted_with_its_key() -> None:
    settings = load({"HINDSIGHT_API_TENANT_EXTENSION": TENANT, "HINDSIGHT_API_TENANT_API_KEY": "secret"})

    assert settings.tenant_extension == TENANT


def test_a_flag_wins_over_our_variable_and_that_over_the_seeds() -> None:
    environment = {"KEEPSAKE_RATE_LIMIT": "7", "MCP_RATE_LIMIT_PER_MINUTE": "8"}

    flag, ours, theirs = load(environment, rate_limit=6), load(environment), load({"MCP_RATE_LIMIT_PER_MINUTE": "8"})

    assert [(one.rate_limit, one.origins["rate_limit"]) for one in (flag, ours, theirs)] == [
        (6, "flag"),
        (7, "KEEPSAKE_RATE_LIMIT"),
        (8, "MCP_RATE_LIMIT_PER_MINUTE"),
    ]


def test_an_empty_variable_counts_as_unset() -> None:
    settings = load({"KEEPSAKE_RATE_LIMIT": "", "MCP_RATE_LIMIT_PER_MINUTE": "8"})

    assert settings.rate_limit == 8


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("KEEPSAKE_PORT", "abc", "'abc' is not usable; it must be a whole number."),
        ("KEEPSAKE_PORT", "65536", "'65536' is not usable; it must be between 0 and 65535."),
        ("MCP_RATE_LIMIT_PER_MINUTE", "0", "'0' is not usable; it must be between 1 and 1000000."),
        ("KEEPSAKE_WORKER", "maybe", "'maybe' is not usable; it must be true or false."),
        ("KEEPSAKE_LOG_FORMAT", "xml", "'xml' is not usable; it must be one of auto, json, pretty."),
        ("KEEPSAKE_DATA_DIR", "~nobody-of-this-name/x", "it names the home of a user that does not exist."),
        ("HINDSIGHT_MCP_BANK_ID", "../x", "it must not contain '/', '\\', '..' or control characters."),
        ("HINDSIGHT_MCP_BANK_ID", " x", "it must not be blank or a dot, or begin or end with a blank."),
        ("HINDSIGHT_MCP_BANK_ID", "x" * 129, "it must have at most 128 characters."),
    ],
)
def test_a_bad_value_is_refused_with_its_variable_and_the_reason(variable: str, text: str, reason: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        load({variable: text})

    assert str(refused.value).startswith(f"{variable}: ")
    assert str(refused.value).endswith(reason)


def test_an_extension_without_its_key_or_of_another_kind_is_refused() -> None:
    with pytest.raises(Misconfigured, match="HINDSIGHT_API_TENANT_API_KEY must be too"):
        load({"HINDSIGHT_API_TENANT_EXTENSION": TENANT})
    with pytest.raises(Misconfigured, match="only …tenant:ApiKeyTenantExtension is supported"):
        load({"HINDSIGHT_API_TENANT_EXTENSION": "mine:Other", "HINDSIGHT_API_TENANT_API_KEY": "secret"})


def test_every_setting_says_what_it_means_and_no_two_share_a_variable() -> None:
    names = [name for setting in SETTINGS for name in (setting.variable, *setting.aliases)]

    assert all(setting.meaning.endswith(".") for setting in SETTINGS)
    assert len(names) == len(set(names))

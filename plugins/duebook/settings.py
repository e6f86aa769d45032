"""What a process is told by its environment (`DUEBOOK_*`), validated once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from duebook.errors import ConfigurationError

ENVIRONMENT_NAME: Final = r"^[a-z0-9][a-z0-9_.-]{0,62}$"
REPOSITORY_ROOT = Path(__file__).resolve().parents[2]


class Settings(BaseSettings):
    """Process settings. `database_url` empty means: the embedded server under `home`.

    `receiver_database_url` is the webhook receiver's own login, `trusted_proxies` (addresses or
    networks, by commas) who may hand it requests over plain HTTP.
    """

    model_config = SettingsConfigDict(env_prefix="DUEBOOK_", frozen=True, extra="ignore")

    home: Path = Field(default_factory=lambda: Path.cwd() / ".duebook")
    database_url: SecretStr | None = None
    receiver_database_url: SecretStr | None = None
    trusted_proxies: str = ""
    config_file: Path | None = None
    environment: str = Field(default="local", pattern=ENVIRONMENT_NAME)
    airflow_connection: str = "duebook"
    witness: str | None = None
    operator: str = Field(default_factory=lambda: os.environ.get("USER") or "operator")

    @property
    def witness_location(self) -> str | None:
        """Where the witness is kept: a folder or a URL; None when there is none.

        The embedded server has one beside it, outside its data directory. Another database needs
        DUEBOOK_WITNESS: no place of this machine can be guessed to outlive that one.
        """
        if self.witness:
            return self.witness if "://" in self.witness else str(Path(self.witness).resolve())
        is_embedded = self.database_url is None and (self.home / "postgres").exists()
        return str(self.home.resolve() / "witness") if is_embedded else None


def load_settings() -> Settings:
    """Read the settings from the environment.

    Raises ConfigurationError naming the variable and what was expected; values are not repeated,
    since one of them is a database URL with a password.
    """
    try:
        return Settings()
    except FileNotFoundError:
        raise ConfigurationError(
            "the current directory is gone: change to another, or set DUEBOOK_HOME"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        name = "DUEBOOK_" + ".".join(str(part) for part in first["loc"]).upper()
        raise ConfigurationError(f"{name}: {first['msg']}") from None

"""Parquet files with Parquet's own encryption."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Keys that are only encoded, not wrapped."""

    def __init__(self, _: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64decode(key)


def write_encrypted(path: Path, table: pa.Table, columns: list[str], plain_footer: bool) -> None:
    """Write a file with some encrypted columns, with a footer that anyone can read or not."""
    factory = pe.CryptoFactory(Keys)
    connection = pe.KmsConnectionConfig(
        custom_kms_conf={"footer": "0123456789012345", "column": "1234567890123450"}
    )
    how = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": columns}, plaintext_footer=plain_footer
    )
    properties = factory.file_encryption_properties(connection, how)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)

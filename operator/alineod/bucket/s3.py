"""The bucket over S3. The only module that knows the S3 client.

Keys come from the directory that `keys` knows, or else from the client's own chain (environment, files, the cloud's
identity). Signing asks nobody.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import boto3
import botocore.session
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.credentials import CredentialProvider, Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from alineod.bucket.keys import NAMES, find_directory, read_keys
from alineod.bucket.port import Content, StoredObject, check_conditions
from alineod.clock import Clock
from alineod.errors import AlineoError, Conflict, Denied, NotFound, Refused, Unavailable
from alineod.settings import BucketSettings, Fencing
from alineod.wire.turns import Grant

T = TypeVar("T")

_BUSY = {"SlowDown", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted", "InternalError"}


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach the store. `endpoint` and `ca_file` empty: the provider's own, the system's own.

    `conditional` false: the store keeps no conditional writes. They are not asked for then, and a condition is looked
    at before the write, which leaves a moment in which somebody else may write.
    """

    bucket: str
    endpoint: str = ""
    region: str = "us-east-1"
    path_style: bool = True
    conditional: bool = True
    ca_file: str = ""
    connect_timeout: float = 5.0
    read_timeout: float = 30.0


class S3Bucket:
    """`Bucket` over any store that speaks S3."""

    def __init__(self, options: S3Options, clock: Clock) -> None:
        self._name = options.bucket
        self._where = f"bucket {options.bucket!r}" + (f" at {options.endpoint}" if options.endpoint else "")
        self._clock = clock
        self._conditional = options.conditional
        self._client = build_client(options)

    def grant_put(self, key: str, expires: float) -> Grant:
        if not self._conditional:
            return self._sign("put_object", "PUT", key, expires, {}, {})
        return self._sign("put_object", "PUT", key, expires, {"IfNoneMatch": "*"}, {"If-None-Match": "*"})

    def grant_get(self, key: str, expires: float) -> Grant:
        return self._sign("get_object", "GET", key, expires, {}, {})

    def head(self, key: str) -> StoredObject | None:
        answer = self._call_or_none(lambda: self._client.head_object(Bucket=self._name, Key=key))
        if answer is None:
            return None
        return StoredObject(key, answer["ContentLength"], answer["ETag"].strip('"'), answer["LastModified"])

    def list(self, prefix: str) -> Iterator[StoredObject]:
        pages = iter(self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix))
        while page := self._call(lambda: next(pages, None)):
            for found in page.get("Contents", []):
                yield StoredObject(found["Key"], found["Size"], found["ETag"].strip('"'), found["LastModified"])

    def get(self, key: str) -> Content | None:
        def read() -> Content:
            answer = self._client.get_object(Bucket=self._name, Key=key)
            with contextlib.closing(answer["Body"]) as body:
                return Content(body.read(), answer["ETag"].strip('"'))

        return self._call_or_none(read)

    def download(self, key: str, path: Path) -> None:
        self._call(lambda: self._client.download_file(self._name, key, str(path)))

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str:
        if not self._conditional and (if_absent or if_match is not None):
            self._look_before(key, if_match)
            if_match, if_absent = None, False
        condition = {"IfMatch": f'"{if_match}"'} if if_match is not None else {}
        condition |= {"IfNoneMatch": "*"} if if_absent else {}
        try:
            answer = self._call(lambda: self._client.put_object(Bucket=self._name, Key=key, Body=body, **condition))
        except NotFound as error:
            if if_match is None or error.reason != "ObjectNotFound":
                raise
            raise Conflict("PreconditionFailed", f"{key} is not there, so it has not the wanted etag") from error
        return str(answer["ETag"]).strip('"')

    def delete(self, key: str) -> None:
        self._call_or_none(lambda: self._client.delete_object(Bucket=self._name, Key=key))

    def probe(self, key: str) -> None:
        self._call(lambda: self._client.list_objects_v2(Bucket=self._name, Prefix=key, MaxKeys=1))
        if self._conditional:
            return check_conditions(self, key)
        self.put(key, b"1")
        return self.delete(key)

    def _look_before(self, key: str, if_match: str | None) -> None:
        found = self.head(key)
        if (found.etag if found is not None else None) != if_match:
            raise Conflict("PreconditionFailed", f"{key} is not as the condition wants it")

    def _sign(
        self, operation: str, method: str, key: str, expires: float, params: dict[str, str], headers: dict[str, str]
    ) -> Grant:
        params = {"Bucket": self._name, "Key": key} | params
        url = self._call(lambda: self._client.generate_presigned_url(operation, Params=params, ExpiresIn=int(expires)))
        until = self._clock.now().timestamp() + int(expires)
        return Grant(method=method, url=url, headers=headers, key=key, expires_at=until)

    def _call_or_none(self, act: Callable[[], T]) -> T | None:
        try:
            return self._call(act)
        except NotFound as error:
            if error.reason == "BucketNotFound":
                raise
            return None

    def _call(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except ClientError as error:
            raise self._translate(error) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise self._denied("no complete access key was found in the environment") from error
        except (BotoCoreError, Boto3Error) as error:
            raise Unavailable("BucketUnreachable", f"{self._where} cannot be reached: {error}") from error

    def _translate(self, error: ClientError) -> AlineoError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        words = str(error.response.get("Error", {}).get("Message", "")) or code
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code == "NoSuchBucket":
            return NotFound("BucketNotFound", f"{self._where} does not exist; create it, or correct the name")
        if code == "PreconditionFailed" or status == 412:
            return Conflict("PreconditionFailed", words)
        if status >= 500 or status == 429 or code in _BUSY:
            return Unavailable("BucketUnreachable", f"{self._where} answers {status} {code}: {words}")
        if status in (401, 403):
            return self._denied(f"{code}: {words}")
        if status == 404:
            return NotFound("ObjectNotFound", words)
        return Refused("BucketRefused", f"{self._where} refuses with {status} {code}: {words}")

    def _denied(self, words: str) -> Denied:
        advice = "check the access key, the secret key and what they may do"
        return Denied("BucketAccessDenied", f"{self._where} refuses the keys ({words}); {advice}")


def build_options(settings: BucketSettings) -> S3Options:
    """How to reach the bucket that the release names."""
    conditional = settings.fencing is Fencing.CONDITIONAL_WRITES
    return S3Options(settings.name, settings.endpoint, settings.region, conditional=conditional)


def build_client(options: S3Options) -> Any:
    """A client of our own session: botocore's default session and AWS_CA_BUNDLE have no say in it."""
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if options.path_style else "virtual"},
        connect_timeout=options.connect_timeout,
        read_timeout=options.read_timeout,
        retries={"total_max_attempts": 2, "mode": "standard"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return _build_session(find_directory(os.environ)).client(
        "s3",
        region_name=options.region,
        endpoint_url=options.endpoint or None,
        verify=options.ca_file or True,
        config=config,
    )


def _build_session(mounted: Path | None) -> boto3.session.Session:
    session = botocore.session.get_session()
    if mounted is not None:
        session.get_component("credential_provider").insert_before("env", _Mounted(mounted))
    return boto3.session.Session(botocore_session=session)


class _Mounted(CredentialProvider):  # type: ignore[misc]
    """Found before all others: who mounts a Secret means it."""

    METHOD = "mounted-secret"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def load(self) -> Credentials | None:
        keys = read_keys(self._directory)
        return _MountedKeys(self._directory, keys) if keys else None


class _MountedKeys(Credentials):  # type: ignore[misc]
    """The client asks for them each time it signs; while there are none, those of before go on."""

    def __init__(self, directory: Path, keys: Mapping[str, str]) -> None:
        super().__init__(*(keys[name] for name in NAMES), method=_Mounted.METHOD)
        self._directory = directory

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        if keys := read_keys(self._directory):
            self.access_key, self.secret_key = (keys[name] for name in NAMES)
        return ReadOnlyCredentials(self.access_key, self.secret_key, None)

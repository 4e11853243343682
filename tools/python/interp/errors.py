"""Exceptions: one for each code of docs/errors.md, below the built-in one that is like it."""
from __future__ import annotations


class Error(Exception):
    """What all errors of interp are; the message says what, where and what was expected."""

    code = "unknown"


class InvalidArgument(Error, ValueError):
    """A program, an array or an option is wrong, or an op refuses its input."""

    code = "invalid argument"


class NotFound(Error, LookupError):
    """A file, variable, parameter or pass that does not exist."""

    code = "not found"


class AlreadyExists(Error, FileExistsError):
    """What a program is to save is there, and it may not overwrite it."""

    code = "already exists"


class PermissionDenied(Error, PermissionError):
    """The system refuses a file, or a program uses files and may not (file_folder)."""

    code = "permission denied"


class Unimplemented(Error, NotImplementedError):
    """Valid, but interp has no such op, dtype or form."""

    code = "unimplemented"


class ResourceExhausted(Error, MemoryError):
    """A memory limit, or the system's memory."""

    code = "resource exhausted"


class DataLoss(Error):
    """A truncated or damaged file."""

    code = "data loss"


class Cancelled(Error):
    """CancelToken.cancel() ended the call."""

    code = "cancelled"


class DeadlineExceeded(Error, TimeoutError):
    """The call took longer than its timeout."""

    code = "deadline exceeded"


class FailedPrecondition(Error):
    """Not now: something else is in progress."""

    code = "failed precondition"


class Internal(Error):
    """A bug of interp."""

    code = "internal"


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: str, message: str) -> Error:
    """The exception for a code; the extension module calls it."""
    return _BY_CODE.get(code, Error)(message)

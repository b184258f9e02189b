"""PyTRIO's failures in our words: what happened, and what to do about it."""

from agentic_rl.backend.remote.service import Remedy, RemoteError

_LATER = "continue later with `agentic-rl resume`"
_CODES: dict[str, tuple[Remedy, str]] = {
    "unauthorized": (Remedy.STOP, "run `trio login`, or set PYTRIO_API_KEY"),
    "api_key_expired": (Remedy.STOP, "run `trio login`, or set PYTRIO_API_KEY"),
    "api_key_revoked": (Remedy.STOP, "run `trio login`, or set PYTRIO_API_KEY"),
    "api_key_disabled": (Remedy.STOP, "run `trio login`, or set PYTRIO_API_KEY"),
    "forbidden": (Remedy.STOP, "this account may not do that: ask your workspace's owner"),
    "billing_insufficient_balance": (Remedy.STOP, f"top up the account, then {_LATER}"),
    "actor_capacity_exceeded": (Remedy.STOP, f"no machine is free: {_LATER}"),
    "model_not_found": (Remedy.REFUSE, "see backend.model"),
    "checkpoint_not_found": (Remedy.REFUSE, "see checkpoint="),
    "checkpoint_invalid_type": (
        Remedy.REFUSE,
        "weights of a sampler cannot be trained: give the address of a state"
        " (trio://RUN/weights/NAME)",
    ),
    "actor.invalid_response": (Remedy.REPEAT, _LATER),
    "training.run_broken": (Remedy.REBUILD, _LATER),
    "event_not_found": (Remedy.REBUILD, _LATER),
    "run_not_found": (Remedy.REBUILD, _LATER),
}
_STATUS: dict[int, tuple[Remedy, str]] = {
    401: _CODES["unauthorized"],
    402: _CODES["billing_insufficient_balance"],
    403: _CODES["forbidden"],
}


def word(error: Exception, doing: str, url: str, key: str) -> RemoteError:
    """One line that never holds the key; `url` is the service's address."""
    found = _word(error, doing, url)
    return RemoteError(str(found).replace(key, "***").replace("\n", " "), found.remedy)


def _word(error: Exception, doing: str, url: str) -> RemoteError:
    from pydantic import ValidationError as SchemaError
    from pytrio import PyTrioError
    from pytrio.errors.auth import AuthError
    from pytrio.errors.control import SDKCompatibilityError

    if isinstance(error, SDKCompatibilityError):
        return RemoteError(f"PyTRIO refuses this SDK: pip install -U pytrio ({error.message})")
    if isinstance(error, PyTrioError):
        return _service_error(error, doing, url, isinstance(error, AuthError))
    if isinstance(error, SchemaError):
        first = error.errors()[0] if error.errors() else {"msg": "", "loc": ()}
        return RemoteError(
            f"PyTRIO's answer while {doing} is of a shape that the installed SDK does not know"
            f" ({'.'.join(map(str, first['loc']))}: {first['msg']}): install another pytrio"
        )
    if doing == "loading the tokenizer":
        return RemoteError(
            f"the tokenizer could not be loaded ({type(error).__name__}: {_line(error)}):"
            " it comes from ModelScope, or from a folder in MODELSCOPE_CACHE"
        )
    if isinstance(error, ValueError | TypeError):
        return RemoteError(f"PyTRIO's SDK refuses {doing}: {_line(error)}")
    return RemoteError(
        f"{doing} failed in PyTRIO's SDK ({type(error).__name__}: {_line(error)}): {_LATER}",
        Remedy.REBUILD,
    )


def _service_error(error: Exception, doing: str, url: str, login: bool) -> RemoteError:
    code = str(getattr(error, "code", ""))
    status = int(getattr(error, "status_code", 0))
    message = str(getattr(error, "message", error))
    if code in _CODES or status in _STATUS:
        remedy, advice = _CODES.get(code) or _STATUS[status]
    elif login:
        remedy, advice = _CODES["unauthorized"]
    elif code in ("control.request_failed", "actor.request_failed") and status == 0:
        return RemoteError(f"{url} cannot be reached while {doing}: {_LATER}", Remedy.STOP)
    elif getattr(error, "retryable", False):
        remedy, advice = Remedy.REBUILD, _LATER
    else:
        remedy, advice = Remedy.REFUSE, ""
    label = code or type(error).__name__
    told = f"{label}, {status}" if status else label
    said = f"PyTRIO failed at {doing} ({told}): {_first_line(message)}"
    return RemoteError(f"{said}; {advice}" if advice else said, remedy)


def _line(error: Exception) -> str:
    return _first_line(str(error))


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0].rstrip(".")

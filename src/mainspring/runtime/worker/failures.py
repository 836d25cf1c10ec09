"""What a handler raised, in words."""

import traceback
from pathlib import Path

from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.runtime.executors.processes import ChildDied, ChildFailed

_OUR_CODE = str(Path(__file__).parents[1])


def describe(error: BaseException) -> str:
    """The traceback from the handler on, the exception itself first."""
    if isinstance(error, ChildDied | ChildFailed | AttemptFailed):
        return str(error)
    summary = "".join(traceback.format_exception_only(error)).strip()
    frames = list(traceback.extract_tb(error.__traceback__))
    ours = [index for index, frame in enumerate(frames) if frame.filename.startswith(_OUR_CODE)]
    frames = frames[ours[-1] + 1 :] if ours else frames
    if not frames:
        return summary
    return f"{summary}\n\n{''.join(traceback.format_list(frames))}"

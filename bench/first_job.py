"""An app whose only job ends the worker that starts it: what a start takes, and no more."""

import os
from typing import Final

from mainspring import Mainspring

app: Final = Mainspring()


@app.job(queue="bench")
async def leave() -> None:
    os._exit(0)

"""A tenant that minds its own business: how long its requests take.

    python -m tests.budgets.neighbour URL TOKEN

measures for as many seconds as each line of its input says, and writes a line of JSON for it: the
milliseconds that each request took.
"""

import sys
import time

import httpx
import orjson


def measure(client: httpx.Client, path: str, seconds: float) -> list[float]:
    """A job is read and one is enqueued, in turn, with a pause as long as a person's eye needs."""
    taken: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for method, where in (("GET", path), ("POST", "/jobs")):
            began = time.perf_counter()
            body = {"definition": "work"} if method == "POST" else None
            client.request(method, where, json=body).raise_for_status()
            taken.append((time.perf_counter() - began) * 1000)
        time.sleep(0.005)
    return taken


def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60) as client:
        made = client.post("/jobs", json={"definition": "work"}).raise_for_status().json()
        for line in sys.stdin:
            taken = measure(client, f"/jobs/{made['id']}", float(line))
            sys.stdout.write(orjson.dumps(taken).decode() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
